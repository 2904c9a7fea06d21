"""Memory of LSTM layers on the CPU: oneDNN's workspace, reordered weights, and scratchpad."""

from typing import Any, Final, NamedTuple

import torch

from planner.units import round_up

_PAGE_BYTES: Final = 4096
_GATES: Final = 4
_ALIGNMENT_BYTES: Final = 4664
"""Bytes that oneDNN adds to a scratchpad for alignment; measured, the same on every shape."""


class RnnLayer(NamedTuple):
    """Sizes of one layer in one direction: steps, batch, input width, state width, bytes per element."""

    steps: int
    batch: int
    inputs: int
    hidden: int
    itemsize: int

    @property
    def state_bytes(self) -> int:
        """Return the size of one hidden state in bytes."""
        return self.batch * self.hidden * self.itemsize


def _rnn_layer(input_tensor: torch.Tensor, hidden: int) -> RnnLayer:
    """Return the sizes of a recurrent layer with this input and `hidden` units."""
    steps, batch, inputs = input_tensor.shape
    return RnnLayer(steps, batch, inputs, hidden, input_tensor.element_size())


def _padded_row_length(elements: int, itemsize: int) -> int:
    """Return the padded row length in elements of a oneDNN matrix, which avoids cache conflicts between rows.

    **Source**: `get_good_ld` in oneDNN's src/cpu/rnn/rnn_utils.cpp.
    """
    row = round_up(elements, 64 // itemsize)
    return row + 64 // itemsize if row % 256 == 0 else row


def _page_rounded_bytes(size: int) -> int:
    """Return `size` bytes rounded up to whole memory pages."""
    return round_up(size, _PAGE_BYTES)


def rnn_workspace_bytes(input_tensor: torch.Tensor, hidden: int) -> int:
    """Return the size in bytes of the workspace that the forward pass saves for the backward pass.

    **Formula**: gates, outputs, states, cell states, and the gradients of all kinds of state, each on whole pages:
    steps x batch x row(4 x hidden); steps x batch x row(hidden); then 2 x (steps + 1) x batch x row for each of the
    states; gradients in float32. **Source**: `init_conf` and `set_offsets` in oneDNN's src/cpu/rnn/rnn_utils.
    """
    layer = _rnn_layer(input_tensor, hidden)
    cells = layer.steps * layer.batch
    states = 2 * (layer.steps + 1) * layer.batch
    widest = max(layer.inputs, hidden)
    parts = (
        cells * _padded_row_length(_GATES * hidden, layer.itemsize) * layer.itemsize,
        cells * _padded_row_length(hidden, layer.itemsize) * layer.itemsize,
        states * _padded_row_length(widest, layer.itemsize) * layer.itemsize,
        states * hidden * layer.itemsize,
        states * _padded_row_length(widest, 4) * 4,
        states * _padded_row_length(widest, 4) * 4,
        states * hidden * 4,
    )
    return sum(map(_page_rounded_bytes, parts))


def forward_hidden_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the temporary bytes of the kernel of `aten.mkldnn_rnn_layer`: one bias, reordered weights, and scratch.

    **Source**: `mkldnn_rnn_layer` in aten/src/ATen/native/mkldnn/RNN.cpp; measured with the profiler.
    """
    layer = _rnn_layer(args[0], args[10])
    held_bytes = _GATES * layer.hidden * layer.itemsize
    if layer.itemsize == 2 or not torch.is_grad_enabled():
        held_bytes += _GATES * layer.hidden * (layer.inputs + layer.hidden) * layer.itemsize
    else:
        held_bytes += _padded_row_length(_GATES * layer.hidden, 4) * (layer.inputs + layer.hidden) * 4
    scratch = _scratch_bytes(layer, merged=layer.batch < 128)
    if not torch.is_grad_enabled():
        states = 2 * (layer.steps + 1) * layer.batch * layer.itemsize
        widest = _padded_row_length(max(layer.inputs, layer.hidden), layer.itemsize)
        scratch = (
            _page_rounded_bytes(states * widest)
            + _page_rounded_bytes(states * layer.hidden)
            + _scratch_bytes(layer, merged=False)
        )
        scratch -= _page_rounded_bytes(layer.batch * _padded_row_length(layer.hidden, 4) * 4)
    return held_bytes + scratch


def backward_hidden_bytes(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
    """Return the temporary bytes of the kernel of `aten.mkldnn_rnn_layer_backward`.

    **Formula**: zero gradients of states that were not computed, the bias, weights and their gradients in oneDNN's
    layout, scratch; in half precision also the incoming gradients in float32. **Source**: `mkldnn_rnn_layer_backward`
    in aten/src/ATen/native/mkldnn/RNN.cpp; measured with the profiler.
    """
    layer = _rnn_layer(args[0], args[15])
    hidden = layer.hidden
    held_bytes = _GATES * hidden * layer.itemsize
    for gradient, size in zip(
        args[10:13], (layer.steps * layer.state_bytes, layer.state_bytes, layer.state_bytes), strict=True
    ):
        if gradient is None or not gradient.is_contiguous():
            held_bytes += size
    held_bytes += _padded_row_length(_GATES * hidden, 4) * (layer.inputs + hidden) * 4
    if layer.itemsize == 2:
        held_bytes += (layer.steps + 2) * layer.batch * hidden * 4
        held_bytes += _GATES * hidden * (round_up(layer.inputs, 32) + round_up(hidden, 32)) * 2
        return held_bytes + _scratch_bytes(layer, merged=False)
    held_bytes += sum(
        _GATES * hidden * _padded_row_length(width, 4) * 4
        for width in (layer.inputs, hidden)
        if _padded_row_length(width, 4) != width
    )
    return held_bytes + _scratch_bytes(layer, merged=True)


def _scratch_bytes(layer: RnnLayer, *, merged: bool) -> int:
    """Return the bytes of scratch for gates (of all steps at once if `merged`, in float32 only) and for two states."""
    cells = layer.batch * (layer.steps if merged and layer.itemsize == 4 else 1)
    gates = cells * _padded_row_length(_GATES * layer.hidden, 4) * 4
    return (
        _page_rounded_bytes(gates)
        + 2 * _page_rounded_bytes(layer.batch * _padded_row_length(layer.hidden, 4) * 4)
        + _ALIGNMENT_BYTES
    )
