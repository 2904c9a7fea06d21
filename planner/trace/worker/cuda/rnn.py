"""Recurrent networks in cuDNN: one operator for all layers and steps, which saves a reserve for gradients."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, Self

import torch
from torch import Tensor

from planner.trace.worker.cuda.dispatch import Kernel

RESERVE_SOURCE: Final = (
    "fitted to pytorch/pytorch#2895: 4 layers of 320 at 25,000 steps in all hold 736,000,000 bytes as an LSTM and "
    "864,000,000 as a GRU, which is 5 and 6 values for each unit and step, and one between layers"
)
WORKSPACE_SOURCE: Final = (
    "fitted to pytorch/pytorch#2895: the workspace holds the weight matrices and a multiple of the units of one step"
)

_aten: Final = torch.ops.aten
_MODES: Final = {"rnn_relu": 0, "rnn_tanh": 1, "lstm": 2, "gru": 3}
_SAVED_VALUES: Final = {0: 1, 1: 1, 2: 5, 3: 6}
_GATES: Final = {0: 1, 1: 1, 2: 4, 3: 3}


def rnn_compositions() -> dict[str, Kernel]:
    """Return the compositions of recurrent operators for cuDNN.

    **Source**: aten/src/ATen/native/RNN.cpp and `_cudnn_impl` of aten/src/ATen/native/cudnn/RNN.cpp. The weights are in
    one buffer, since modules flatten them on CUDA, so none are copied.
    """
    whole: dict[str, Kernel] = {f"{name}.input": partial(_run_on_padded_input, name) for name in _MODES}
    packed: dict[str, Kernel] = {f"{name}.data": partial(_run_on_packed_sequences, name) for name in _MODES}
    return whole | packed | {"lstm_cell": _lstm_cell, "gru_cell": _gru_cell}


def autocast_kernels(lower: Callable[[Tensor], Tensor]) -> dict[str, Kernel]:
    """Return cuDNN's operator within autocast, which copies all weights by `lower` at each call.

    **Source**: aten/src/ATen/cudnn/AutocastRNN.cpp.
    """

    def run_in_lower_precision(
        input_tensor: Tensor, weight: Sequence[Tensor], stride: int, buffer: Tensor | None, *rest: Any
    ) -> Any:
        hx, cx, *others = rest
        state = lower(hx), None if cx is None else lower(cx)
        return _aten._cudnn_rnn(
            lower(input_tensor), [lower(tensor) for tensor in weight], stride, buffer, *state, *others
        )

    return {"_cudnn_rnn": run_in_lower_precision}


def fake_rnns() -> dict[str, Kernel]:
    """Return fake implementations of cuDNN's operators and the fused cells, with reserves and workspaces."""
    return {
        "_cudnn_rnn": _fake_rnn,
        "_cudnn_rnn_backward": _fake_rnn_backward,
        "_thnn_fused_lstm_cell": _fake_lstm_cell,
        "_thnn_fused_gru_cell": _fake_gru_cell,
        "_thnn_fused_gru_cell_backward": _fake_gru_cell_backward,
        "_thnn_fused_lstm_cell_backward_impl": _fake_lstm_cell_backward,
    }


def _run_on_padded_input(
    name: str, input_tensor: Tensor, hx: Any, params: Sequence[Tensor], *settings: Any
) -> tuple[Tensor, ...]:
    """Run the recurrent network `name` on a batch of sequences of equal length."""
    has_biases, layers, dropout, train, is_bidirectional, batch_first = settings
    return _run_cudnn_rnn(
        name, input_tensor, hx, params, has_biases, layers, batch_first, dropout, train, is_bidirectional, []
    )


def _run_on_packed_sequences(
    name: str, data: Tensor, batch_sizes: Tensor, hx: Any, params: Sequence[Tensor], *settings: Any
) -> tuple[Tensor, ...]:
    """Run the recurrent network `name` on a packed batch of sequences of different lengths."""
    has_biases, layers, dropout, train, is_bidirectional = settings
    sizes = batch_sizes.tolist()
    return _run_cudnn_rnn(name, data, hx, params, has_biases, layers, False, dropout, train, is_bidirectional, sizes)


def _run_cudnn_rnn(
    name: str,
    input_tensor: Tensor,
    hx: Any,
    params: Sequence[Tensor],
    has_biases: bool,
    layers: int,
    batch_first: bool,
    dropout: float,
    train: bool,
    is_bidirectional: bool,
    batch_sizes: list[int],
) -> tuple[Tensor, ...]:
    """Run the recurrent network `name` with cuDNN's operator."""
    hidden, cell = hx if name == "lstm" else (hx, None)
    width = hidden.shape[2] if cell is None else cell.shape[2]
    projected = hidden.shape[2] if hidden.shape[2] != width else 0
    per_layer = (4 if has_biases else 2) + bool(projected)
    settings = (
        _MODES[name],
        width,
        projected,
        layers,
        batch_first,
        dropout,
        train,
        is_bidirectional,
        batch_sizes,
        None,
    )
    output, last, last_cell, _, _ = _aten._cudnn_rnn(
        input_tensor, list(params), per_layer, None, hidden, cell, *settings
    )
    return (output, last, last_cell) if name == "lstm" else (output, last)


def _lstm_cell(
    input_tensor: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Run one LSTM step with a fused kernel that saves the gates.

    **Source**: `CellParams` and `LSTMCell` of aten/src/ATen/native/RNN.cpp.
    """
    gates = torch.nn.functional.linear(input_tensor, w_ih), torch.nn.functional.linear(hx[0], w_hh)
    hidden, cell, _ = _aten._thnn_fused_lstm_cell(*gates, hx[1], b_ih, b_hh)
    return hidden, cell


def _gru_cell(
    input_tensor: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """Run one GRU step with a fused kernel that saves its workspace."""
    gates = torch.nn.functional.linear(input_tensor, w_ih), torch.nn.functional.linear(hx, w_hh)
    hidden: Tensor = _aten._thnn_fused_gru_cell(*gates, hx, b_ih, b_hh)[0]
    return hidden


class RnnCall(NamedTuple):
    """Sizes of one cuDNN call; `steps` is the number of time steps in all sequences of the batch."""

    mode: int
    weights: Sequence[Tensor]
    batch: int
    steps: int
    width: int
    layers: int
    directions: int
    saves_for_backward: bool

    @classmethod
    def from_forward_arguments(cls, args: tuple[Any, ...]) -> Self:
        """Parse the arguments of `_cudnn_rnn`."""
        return cls._from_arguments(args[0], args[1], *args[6:15])

    @classmethod
    def from_backward_arguments(cls, args: tuple[Any, ...]) -> Self:
        """Parse the arguments of `_cudnn_rnn_backward`."""
        return cls._from_arguments(args[0], args[1], *args[10:19])

    @classmethod
    def _from_arguments(cls, input_tensor: Tensor, weights: Sequence[Tensor], *settings: Any) -> Self:
        """Return the sizes of a call from the arguments that its forward and backward operators share."""
        mode, width, _, layers, batch_first, _, saves_for_backward, is_bidirectional, sizes = settings
        batch = sizes[0] if sizes else input_tensor.shape[0 if batch_first else 1]
        steps = input_tensor.shape[0] if sizes else input_tensor.shape[0] * input_tensor.shape[1]
        return cls(mode, weights, batch, steps, width, layers, 2 if is_bidirectional else 1, saves_for_backward)


def reserve_bytes(call: RnnCall) -> int:
    """Return the size in bytes of the reserve that cuDNN saves for the backward pass.

    **Formula**: steps × width × directions × (k × layers + layers − 1) × itemsize, with k = 5 for an LSTM (four gates
    and the cell), 6 for a GRU and 1 for plain networks. **Source**: `RESERVE_SOURCE`. **Assumes** the same for other
    versions of cuDNN and other dtypes.
    """
    return _saved_bytes(call, _SAVED_VALUES[call.mode], 1) if call.saves_for_backward else 0


def reserve_bounds_bytes(call: RnnCall) -> tuple[int, int]:
    """Return the lower and upper bound of the reserve in bytes: one value less or more per layer and between layers."""
    values = _SAVED_VALUES[call.mode]
    return (
        (_saved_bytes(call, max(1, values - 1), 0), _saved_bytes(call, values + 1, 2))
        if call.saves_for_backward
        else (0, 0)
    )


def _saved_bytes(call: RnnCall, values_per_layer: int, values_between_layers: int) -> int:
    """Return the size in bytes of values saved per step and unit, in each layer and between layers."""
    values = values_per_layer * call.layers + values_between_layers * (call.layers - 1)
    return call.steps * call.width * call.directions * values * call.weights[0].element_size()


def workspace_bytes(call: RnnCall, times: int = 1) -> int:
    """Return the size in bytes of cuDNN's workspace: the weight matrices, and values per unit of one step.

    **Formula**: (w + `times` × (3 g − 1) × layers × directions × batch × width) × itemsize with g gates. **Source**:
    `WORKSPACE_SOURCE`. **Assumes** a batch of 100 there, which is not stated; if it were 50, `times` would be 2.
    """
    matrices = sum(weight.numel() for weight in call.weights if weight.dim() == 2)
    units = call.layers * call.directions * call.batch * call.width
    return (matrices + times * (3 * _GATES[call.mode] - 1) * units) * call.weights[0].element_size()


def _fake_rnn(_mode: Any, _func: Any, *args: Any, **_: Any) -> tuple[Tensor, ...]:
    """Return empty results of cuDNN's recurrent operator, with its reserve."""
    call, input_tensor, hx, cx = RnnCall.from_forward_arguments(args), args[0], args[4], args[5]
    output = input_tensor.new_empty((*input_tensor.shape[:-1], hx.shape[-1] * call.directions))
    cell = hx.new_empty((0,) if cx is None else cx.shape)
    reserve = input_tensor.new_empty((reserve_bytes(call),), dtype=torch.uint8)
    # cuDNN reads the weights' own buffer, so this output holds nothing.
    return output, hx.new_empty(hx.shape), cell, reserve, call.weights[0].new_empty((0,))


def _fake_rnn_backward(_mode: Any, _func: Any, *args: Any, **_: Any) -> tuple[Any, ...]:
    """Return empty gradients of cuDNN's recurrent operator."""
    input_tensor, weight, hx, cx = args[0], args[1], args[4], args[5]
    # All gradients of weights are parts of one buffer.
    flat = weight[0].new_empty((sum(tensor.numel() for tensor in weight),))
    parts = [
        part.view(tensor.shape)
        for part, tensor in zip(flat.split([tensor.numel() for tensor in weight]), weight, strict=True)
    ]
    cell = None if cx is None else cx.new_empty(cx.shape)
    return input_tensor.new_empty(input_tensor.shape), hx.new_empty(hx.shape), cell, parts


def _fake_lstm_cell(_mode: Any, _func: Any, gates: Tensor, _hidden: Tensor, cx: Tensor, *_: Any) -> tuple[Tensor, ...]:
    """Return empty results of the fused LSTM cell: hidden state, cell state and gates."""
    return torch.empty_like(cx), torch.empty_like(cx), torch.empty_like(gates)


def _fake_gru_cell(_mode: Any, _func: Any, input_gates: Tensor, _hidden: Tensor, hx: Tensor, *_: Any) -> Any:
    """Return empty results of the fused GRU cell: hidden state and workspace."""
    return torch.empty_like(hx), hx.new_empty((hx.shape[0], hx.shape[1] * 5))


def _fake_gru_cell_backward(
    _mode: Any, _func: Any, grad: Tensor, workspace: Tensor, has_bias: bool
) -> tuple[Tensor | None, ...]:
    """Return empty gradients of the fused GRU cell."""
    batch, width = workspace.shape[0], workspace.shape[1] // 5
    gates = [grad.new_empty((batch, 3 * width)) for _ in range(2)]
    biases = [grad.new_empty((3 * width,)) if has_bias else None for _ in range(2)]
    return *gates, grad.new_empty(grad.shape), *biases


def _fake_lstm_cell_backward(
    _mode: Any, _func: Any, _grad: Any, _grad_cell: Any, cx: Tensor, _cell: Tensor, workspace: Tensor, has_bias: bool
) -> tuple[Tensor | None, ...]:
    """Return empty gradients of the fused LSTM cell."""
    bias = workspace.new_empty((workspace.shape[1],)) if has_bias else None
    return torch.empty_like(workspace), torch.empty_like(cx), bias
