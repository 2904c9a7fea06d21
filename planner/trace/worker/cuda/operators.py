"""Emulation of CUDA operators that differ from the CPU's, on CPU fake tensors."""

import contextlib
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Final, Self

import torch
from torch import Tensor

from planner.trace.recording import TraceDifference
from planner.trace.worker.cuda import attention as cuda_attention
from planner.trace.worker.cuda import kernels as cuda_kernels
from planner.trace.worker.cuda.attention import AttentionCall, Capability
from planner.trace.worker.cuda.autocast import autocast_as_on_cuda
from planner.trace.worker.cuda.device import device_move_kernels, simulated_card
from planner.trace.worker.cuda.dispatch import Kernel, replaced_compositions, replaced_fake_results, replaced_kernels
from planner.trace.worker.cuda.rnn import fake_rnns, rnn_compositions
from planner.trace.worker.cuda.uncertainty import UncertaintyBounds

_HALF_DTYPES: Final = (torch.float16, torch.bfloat16)


def fake_norms() -> dict[str, Kernel]:
    """Return fake implementations of CUDA's normalization kernels.

    **Source**: `layer_norm_cuda` and `_fused_rms_norm_cuda` of aten/src/ATen/native/cuda/layer_norm_kernel.cu. The CPU
    keeps the statistics in the input's type.
    """
    return {
        "native_layer_norm": _fake_layer_norm,
        "_fused_rms_norm": _fake_rms_norm,
        "_fused_rms_norm_backward": _fake_rms_norm_backward,
    }


def norm_placeholder_kernels() -> dict[str, Kernel]:
    """Return placeholders for kernels that only CUDA has, so that the derivatives of these operators are used.

    Fake tensors never reach these kernels.
    """

    def placeholder_kernel(*_: object, **__: object) -> None:
        raise NotImplementedError("this kernel is a placeholder, which must not run")

    return {"_fused_rms_norm": placeholder_kernel}


def accumulation_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the type in which CUDA's kernels accumulate values of `dtype`."""
    return torch.float32 if dtype in _HALF_DTYPES else dtype


def _empty_statistics(input_tensor: Tensor, normalized: Sequence[int]) -> Tensor:
    """Return an empty tensor for the statistics of a norm over the dimensions `normalized`."""
    kept_dimensions = input_tensor.dim() - len(normalized)
    shape = (*input_tensor.shape[:kept_dimensions], *(1 for _ in normalized))
    return input_tensor.new_empty(shape, dtype=accumulation_dtype(input_tensor.dtype))


def _fake_layer_norm(
    _mode: Any, _func: Any, input_tensor: Tensor, normalized: Sequence[int], *_: Any
) -> tuple[Tensor, ...]:
    """Return empty results of CUDA's layer norm: output, mean and inverse deviation."""
    return (
        input_tensor.new_empty(input_tensor.shape),
        _empty_statistics(input_tensor, normalized),
        _empty_statistics(input_tensor, normalized),
    )


def _fake_rms_norm(
    _mode: Any, _func: Any, input_tensor: Tensor, normalized: Sequence[int], *_: Any
) -> tuple[Tensor, Tensor]:
    """Return empty results of CUDA's fused RMS norm: output and inverse root mean square."""
    return input_tensor.new_empty(input_tensor.shape), _empty_statistics(input_tensor, normalized)


def _fake_rms_norm_backward(
    _mode: Any,
    _func: Any,
    _grad: Tensor,
    input_tensor: Tensor,
    _normalized: Sequence[int],
    _rstd: Tensor,
    weight: Tensor | None,
    mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    """Return empty gradients of CUDA's fused RMS norm."""
    return (
        input_tensor.new_empty(input_tensor.shape) if mask[0] else None,
        weight.new_empty(weight.shape) if mask[1] and weight is not None else None,
    )


def _fake_sums_of_channels(_mode: Any, _func: Any, input_tensor: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    """Return empty means and inverse deviations of a batch norm over several ranks.

    **Source**: `batch_norm_stats_cuda` and `batch_norm_gather_stats_with_counts_cuda` of
    aten/src/ATen/native/cuda/Normalization.cu.
    """
    dtype = accumulation_dtype(input_tensor.dtype)
    return (
        input_tensor.new_empty(input_tensor.shape[1], dtype=dtype),
        input_tensor.new_empty(input_tensor.shape[1], dtype=dtype),
    )


def _fake_reduced_gradients(
    _mode: Any,
    _func: Any,
    _gradient: Tensor,
    input_tensor: Tensor,
    mean: Tensor,
    _invstd: Tensor,
    weight: Tensor | None,
    *wanted: bool,
) -> tuple[Tensor | None, ...]:
    """Return empty sums of a batch norm's gradients over a rank, and those of its weight and bias.

    **Source**: `batch_norm_backward_reduce_cuda` of aten/src/ATen/native/cuda/Normalization.cu.
    """
    templates = (mean, mean, mean if weight is None else weight, mean if weight is None else weight)
    flags = (wanted[0], wanted[0], *wanted[1:])
    return tuple(
        template.new_empty(input_tensor.shape[1]) if is_wanted else None
        for template, is_wanted in zip(templates, flags, strict=True)
    )


def _fake_normalized(_mode: Any, func: Any, *tensors: Any) -> Tensor:
    """Return the empty result of a batch norm over several ranks, or the empty gradient of its input.

    **Source**: `batch_norm_elemt_cuda` and `batch_norm_backward_elemt_cuda` of
    aten/src/ATen/native/cuda/Normalization.cu.
    """
    return torch.empty_like(tensors[1 if "backward" in func._overloadpacket.__name__ else 0])


def _fake_histogram(_mode: Any, _func: Any, values: Tensor, bins: int = 100, *_: Any, **__: Any) -> Tensor:
    """Return the empty result of CUDA's histogram, which unlike the CPU's also counts integers.

    **Source**: `_histc_cuda` of aten/src/ATen/native/cuda/SummaryOps.cu.
    """
    return values.new_empty((bins,))


_FAKE_RESULTS: Final[dict[str, Kernel]] = {
    "histc": _fake_histogram,
    "batch_norm_stats": _fake_sums_of_channels,
    "batch_norm_gather_stats_with_counts": _fake_sums_of_channels,
    "batch_norm_elemt": _fake_normalized,
    "batch_norm_backward_reduce": _fake_reduced_gradients,
    "batch_norm_backward_elemt": _fake_normalized,
}
"""Fake results of operators that only a card has, or has in more formats."""

ASSUMED_CAPABILITY: Final[Capability] = (8, 0)

_aten: Final = torch.ops.aten


class CudaOperators(contextlib.AbstractContextManager["CudaOperators"]):
    """Context that runs the user's code as on a card of `compute_capability`, with CPU tensors.

    Enter it inside a `FakeTensorMode`, around the whole run. Operators that a CUDA build composes differently, or runs
    by its own kernels, are replaced in the dispatcher; requests for a CUDA device get CPU tensors. `note` receives what
    may differ on exit, and `tell` a sentence on each kernel that is chosen by the card.
    """

    def __init__(
        self,
        compute_capability: Capability | None,
        note: Callable[[TraceDifference], None],
        tell: Callable[[str], None],
    ) -> None:
        self.capability = compute_capability or ASSUMED_CAPABILITY
        self._is_known = compute_capability is not None
        self._note, self._tell = note, tell
        self._bounds = UncertaintyBounds()
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        stack = self._stack
        stack.enter_context(autocast_as_on_cuda())
        stack.enter_context(replaced_kernels("CPU", norm_placeholder_kernels()))
        stack.enter_context(replaced_fake_results(fake_norms() | fake_rnns() | _FAKE_RESULTS))
        attention_composition = {"scaled_dot_product_attention": self._attend}
        stack.enter_context(
            replaced_compositions(_COMPOSITIONS | device_move_kernels() | rnn_compositions() | attention_composition)
        )
        stack.enter_context(simulated_card())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        for difference in self._bounds.differences():
            self._note(difference)

    def hidden_bytes(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
        """Return the maximum bytes held by CUDA's kernel of `func` in addition to its inputs and `result`."""
        self._bounds.note_operator(func, args, result)
        return cuda_kernels.hidden_bytes(func, args, result, self.capability)

    def _attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        *,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        """Run scaled dot product attention with the backend that the card uses."""
        call = AttentionCall(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
        backend = cuda_attention.choose_backend(call, self.capability)
        major, minor = self.capability
        assumed = "" if self._is_known else " (assumed)"
        self._tell(
            f"scaled_dot_product_attention runs as {_ATTENTION_NAMES[backend]} on a GPU of compute capability "
            f"{major}.{minor}{assumed}."
        )
        return cuda_attention.attend(call, scale, backend)


_ATTENTION_NAMES: Final = {
    "flash": "flash attention",
    "efficient": "memory-efficient attention",
    "cudnn": "cuDNN's attention",
    "math": "attention by matrix products",
}


def _dropout(tensor: Tensor, p: float, train: bool) -> Tensor:
    """Drop elements with the kernel that saves a one-byte mask; the CPU saves factors in the input's type.

    **Source**: `is_fused_kernel_acceptable` of aten/src/ATen/native/Dropout.cpp.
    """
    if p == 0 or not train or tensor.numel() == 0:
        return tensor
    if p == 1:
        return tensor.mul(torch.zeros((), dtype=tensor.dtype))
    result: Tensor = _aten.native_dropout(tensor, p, train)[0]
    return result


def _softmax(tensor: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """Compute the softmax, directly to fp32 from half-precision inputs; the CPU copies them first.

    **Source**: `softmax` of aten/src/ATen/native/SoftMax.cpp.
    """
    return _run_softmax(_aten._softmax, tensor, dim, dtype)


def _log_softmax(tensor: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """Compute the log-softmax, with inputs handled as by `_softmax`.

    **Source**: `log_softmax` of aten/src/ATen/native/SoftMax.cpp.
    """
    return _run_softmax(_aten._log_softmax, tensor, dim, dtype)


def _run_softmax(operator: Any, tensor: Tensor, dim: int, dtype: torch.dtype | None) -> Tensor:
    """Run a softmax `operator`, with fp32 results directly from half-precision inputs."""
    fused = tensor.dtype == torch.float16 and dtype == torch.float32
    converted = tensor if fused or dtype is None else tensor.to(dtype)
    result: Tensor = operator(converted, dim, fused)
    return result


_COMPOSITIONS: Final[dict[str, Kernel]] = {
    "dropout": _dropout,
    "softmax.int": _softmax,
    "log_softmax.int": _log_softmax,
}
