"""Bounds on what a CUDA trace cannot know: behavior of closed libraries and of the card itself."""

from collections.abc import Callable
from math import prod
from typing import Any, Final

import torch
from torch import Tensor

from planner.trace.recording import TraceDifference
from planner.trace.worker.cuda import rnn as cuda_rnn
from planner.trace.worker.cuda.dispatch import aten_overload, operator_exists
from planner.trace.worker.cuda.kernels import flash_backward_bytes
from planner.units import ceil_div, round_up

Arguments = tuple[Any, ...]
DifferenceFunction = Callable[[Arguments, Any], TraceDifference | None]

_MAX_KEY_SPLITS: Final = 128
_MAX_SPLIT_BLOCKS: Final = 320
_MAX_UNSPLIT_ROWS: Final = 64 * 1024


class UncertaintyBounds:
    """Collector of trace differences by name: the largest for memory within a kernel, else the sum over all kernels."""

    def __init__(self) -> None:
        self._largest: dict[str, TraceDifference] = {}
        self._kept: dict[str, dict[Any, TraceDifference]] = {}

    def note_operator(self, func: Any, args: Arguments, result: Any) -> None:
        """Record the uncertainty of one operator."""
        bound = _DIFFERENCE_OF.get(func)
        difference = bound(args, result) if bound is not None else None
        if difference is not None:
            self.note_difference(difference)
        if func is _RNN_OPERATOR:
            self._kept.setdefault(_RESERVE_NAME, {})[id(args[1][0])] = _rnn_reserve_difference(args)

    def note_difference(self, difference: TraceDifference) -> None:
        """Record an uncertainty that matters only within one kernel."""
        previous = self._largest.get(difference.name)
        if previous is None or difference.high_bytes > previous.high_bytes:
            self._largest[difference.name] = difference

    def differences(self) -> list[TraceDifference]:
        """Return the collected differences, one for each name."""
        sums = [
            parts[0].evolve(**{size: sum(getattr(part, size) for part in parts) for size in _SIZE_FIELDS})
            for parts in (list(by_weight.values()) for by_weight in self._kept.values())
        ]
        return [*self._largest.values(), *sums]


def _workspace_difference(input_tensor: Tensor, weight: Tensor, output: Tensor) -> TraceDifference:
    """Return the uncertainty of cuDNN's workspace for a convolution: up to a copy of every tensor."""
    copies = sum(tensor.numel() * tensor.element_size() for tensor in (input_tensor, weight, output))
    return TraceDifference(
        name="cuDNN's workspace for convolutions",
        explanation="cuDNN's heuristics choose the algorithm, and so its scratch memory; none is assumed, and the "
        "upper bound is a copy of input, weight and output in another layout. Algorithms that build the whole matrix "
        "of the product, or its transform, need more; with torch.backends.cudnn.benchmark they may be chosen",
        source="PyTorch's Conv_v8.cpp allocates what the chosen plan asks for; cuDNN's developer guide: kernels for "
        "tensor cores work on NHWC, and other layouts are converted in the workspace",
        high_bytes=copies,
    )


def _flash_difference(args: Arguments, _result: Any) -> TraceDifference | None:
    """Return the uncertainty of flash attention's partial sums, if there are few queries."""
    query, key = args[0], args[1]
    batch, heads, rows, head = query.shape
    if (len(args) > 3 and args[3] > 0) or batch * heads * ceil_div(rows, 64) >= _MAX_SPLIT_BLOCKS:
        return None
    keys_per_block = 256 if head <= 64 else 128 if head <= 128 else 64
    splits = min(_MAX_KEY_SPLITS, ceil_div(key.shape[2], keys_per_block))
    wide = round_up(head, 32 if head <= 128 else 64)
    if splits < 2:
        return None
    return TraceDifference(
        name="partial sums of flash attention",
        explanation="with few queries, keys are split over as many blocks as the GPU has multiprocessors for; no "
        "split is assumed",
        source="PyTorch's flash_api.cpp, set_params_splitkv: at most 128 parts; keys are not split from 0.8 × 2 × the "
        f"number of multiprocessors on, which is {_MAX_SPLIT_BLOCKS} for a GPU with 200 multiprocessors",
        high_bytes=splits * batch * heads * rows * (wide + 1) * 4,
    )


def _cudnn_attention_difference(args: Arguments, _result: Any) -> TraceDifference:
    """Return the uncertainty of the workspace of cuDNN's attention."""
    return TraceDifference(
        name="cuDNN's workspace for attention",
        explanation="the scratch memory of cuDNN's backward pass is not documented; none is assumed, and the "
        "upper bound is that of flash attention",
        source="PyTorch's cudnn/MHA.cpp allocates what the graph asks for; the bound is from flash_api.cpp",
        high_bytes=flash_backward_bytes(args[1], args[2]),
    )


def _norm_backward_difference(args: Arguments, _result: Any) -> TraceDifference | None:
    """Return the uncertainty of partial sums in a norm's backward pass, for very many rows."""
    input_tensor, width = args[1], prod(args[2])
    rows = input_tensor.numel() // max(width, 1)
    if rows <= _MAX_UNSPLIT_ROWS:
        return None
    blocks = min(32 * 1024 // ceil_div(width, 32), ceil_div(rows, 32))
    return TraceDifference(
        name="partial sums of a norm's gradients",
        explanation="for very many rows, the gradients of a norm's weights are summed in parts on GPUs with more than "
        "a sixteenth as many multiprocessors as the row width; this split is not assumed",
        source="PyTorch's cuda/layer_norm_kernel.cu, LaunchGammaBetaBackwardCUDAKernel",
        high_bytes=2 * blocks * width * input_tensor.element_size(),
    )


def _rnn_workspace_difference(args: Arguments, _result: Any) -> TraceDifference:
    """Return the uncertainty of cuDNN's workspace for a recurrent network."""
    call = cuda_rnn.RnnCall.from_forward_arguments(args)
    return TraceDifference(
        name="cuDNN's workspace for recurrent networks",
        explanation="cuDNN does not document its scratch memory; a measurement of one network is used",
        source=cuda_rnn.WORKSPACE_SOURCE,
        bytes=cuda_rnn.workspace_bytes(call),
        low_bytes=0,
        high_bytes=cuda_rnn.workspace_bytes(call, times=2),
    )


def _rnn_reserve_difference(args: Arguments) -> TraceDifference:
    """Return the uncertainty of the reserve that cuDNN saves for a recurrent network's backward pass."""
    call = cuda_rnn.RnnCall.from_forward_arguments(args)
    low, high = cuda_rnn.reserve_bounds_bytes(call)
    return TraceDifference(
        name=_RESERVE_NAME,
        explanation="cuDNN does not document what it saves for the backward pass; two measured networks are used",
        source=cuda_rnn.RESERVE_SOURCE,
        bytes=cuda_rnn.reserve_bytes(call),
        low_bytes=low,
        high_bytes=high,
    )


_RESERVE_NAME: Final = "cuDNN's reserve of recurrent networks"
_SIZE_FIELDS: Final = ("bytes", "low_bytes", "high_bytes")
_RNN_OPERATOR: Final = torch.ops.aten._cudnn_rnn.default
_DIFFERENCE_OF: Final[dict[Any, DifferenceFunction]] = {
    aten_overload(name): bound
    for name, bound in {
        "convolution": lambda args, result: _workspace_difference(args[0], args[1], result),
        "convolution_backward": lambda args, _: _workspace_difference(args[1], args[2], args[0]),
        "_scaled_dot_product_flash_attention": _flash_difference,
        "_scaled_dot_product_cudnn_attention_backward": _cudnn_attention_difference,
        "native_layer_norm_backward": _norm_backward_difference,
        "_fused_rms_norm_backward": _norm_backward_difference,
        "_cudnn_rnn": _rnn_workspace_difference,
    }.items()
    if operator_exists(name)
}
