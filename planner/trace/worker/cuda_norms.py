"""Normalization as CUDA's kernels do it: statistics in fp32, and one kernel for the root mean square."""

from collections.abc import Sequence
from typing import Any, Final

import torch
from torch import Tensor

from planner.trace.worker.cuda_dispatch import Kernel

_HALF: Final = (torch.float16, torch.bfloat16)


def fake_norms() -> dict[str, Kernel]:
    """Return what CUDA's kernels of normalization give on fake tensors.

    **Source**: `layer_norm_cuda` and `_fused_rms_norm_cuda` of aten/src/ATen/native/cuda/layer_norm_kernel.cu. A CPU
    keeps the statistics in the input's type.
    """
    return {
        "native_layer_norm": _layer_norm,
        "_fused_rms_norm": _rms_norm,
        "_fused_rms_norm_backward": _rms_norm_backward,
    }


def kernels_of_norms() -> dict[str, Kernel]:
    """Return the operators that only CUDA has a kernel for, so that their own derivatives are used.

    Fake tensors never get as far as these.
    """

    def unreached(*_: object, **__: object) -> None:
        raise NotImplementedError("this kernel only says that there is one")

    return {"_fused_rms_norm": unreached}


def accumulated(dtype: torch.dtype) -> torch.dtype:
    """Return the type in which CUDA's kernels accumulate values of `dtype`."""
    return torch.float32 if dtype in _HALF else dtype


def _statistics(given: Tensor, normalized: Sequence[int]) -> Tensor:
    kept = given.dim() - len(normalized)
    shape = (*given.shape[:kept], *(1 for _ in normalized))
    return given.new_empty(shape, dtype=accumulated(given.dtype))


def _layer_norm(_mode: Any, _func: Any, given: Tensor, normalized: Sequence[int], *_: Any) -> tuple[Tensor, ...]:
    return given.new_empty(given.shape), _statistics(given, normalized), _statistics(given, normalized)


def _rms_norm(_mode: Any, _func: Any, given: Tensor, normalized: Sequence[int], *_: Any) -> tuple[Tensor, Tensor]:
    return given.new_empty(given.shape), _statistics(given, normalized)


def _rms_norm_backward(
    _mode: Any,
    _func: Any,
    _grad: Tensor,
    given: Tensor,
    _normalized: Sequence[int],
    _rstd: Tensor,
    weight: Tensor | None,
    mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    return (
        given.new_empty(given.shape) if mask[0] else None,
        weight.new_empty(weight.shape) if mask[1] and weight is not None else None,
    )
