"""What a CUDA build of PyTorch does where it differs from a CPU build, on the CPU's fake tensors."""

import contextlib
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self

import torch
from torch import Tensor

from planner.trace.recording import Difference
from planner.trace.worker import cuda_attention, cuda_kernels
from planner.trace.worker.cuda_attention import Attention, Capability
from planner.trace.worker.cuda_autocast import autocast_as_on_cuda
from planner.trace.worker.cuda_bounds import Bounds
from planner.trace.worker.cuda_device import moves, pretended_card
from planner.trace.worker.cuda_dispatch import Kernel, compositions, fake_results, kernels
from planner.trace.worker.cuda_norms import fake_norms, kernels_of_norms
from planner.trace.worker.cuda_rnn import compositions_of_rnns, fake_rnns

ASSUMED_CAPABILITY: Final[Capability] = (8, 0)

_aten: Final = torch.ops.aten


class CudaOperators(contextlib.AbstractContextManager["CudaOperators"]):
    """Runs a person's code as on a card of `compute_capability`, though its tensors are the CPU's.

    Entered inside a `FakeTensorMode`, around the whole run. Operators that a CUDA build composes otherwise, or runs by
    kernels of its own, are replaced in the dispatcher; what asks for a CUDA device gets the CPU's tensors. `note` is
    told of each assumption when all is over.
    """

    def __init__(self, compute_capability: Capability | None, note: Callable[[Difference], None]) -> None:
        self.capability = compute_capability or ASSUMED_CAPABILITY
        self._is_known = compute_capability is not None
        self._note = note
        self._bounds = Bounds()
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        stack = self._stack
        stack.enter_context(autocast_as_on_cuda())
        stack.enter_context(kernels("CPU", kernels_of_norms()))
        stack.enter_context(fake_results(fake_norms() | fake_rnns()))
        own = {"scaled_dot_product_attention": self._attend}
        stack.enter_context(compositions(_COMPOSED | moves() | compositions_of_rnns() | own))
        stack.enter_context(pretended_card(self.capability))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        for difference in self._bounds.all():
            self._note(difference)

    def hidden_bytes(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:
        """Return the bytes that CUDA's kernel of `func` takes while it runs, beside its inputs and `result`."""
        self._bounds.look(func, args, result)
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
        call = Attention(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
        backend = cuda_attention.choose_backend(call, self.capability)
        self._bounds.within(_attention_difference(backend, self.capability, self._is_known))
        return cuda_attention.attend(call, scale, backend)


def _attention_difference(backend: str, capability: Capability, is_known: bool) -> Difference:
    name = {
        "flash": "flash attention",
        "efficient": "memory-efficient attention",
        "cudnn": "cuDNN's attention",
        "math": "attention by matrix products",
    }[backend]
    card = f"compute capability {capability[0]}.{capability[1]}"
    assumed = "" if is_known else ", which was assumed"
    return Difference(
        name=name,
        explanation=f"scaled_dot_product_attention runs as {name} on a card of {card}{assumed}",
        source=cuda_attention.SOURCE,
    )


def _dropout(tensor: Tensor, p: float, train: bool) -> Tensor:
    """Drop elements by the kernel that keeps a mask of one byte each, where a CPU keeps factors in the input's type.

    **Source**: `is_fused_kernel_acceptable` of aten/src/ATen/native/Dropout.cpp.
    """
    if p == 0 or not train or tensor.numel() == 0:
        return tensor
    if p == 1:
        return tensor.mul(torch.zeros((), dtype=tensor.dtype))
    result: Tensor = _aten.native_dropout(tensor, p, train)[0]
    return result


def _softmax(tensor: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """Compute the softmax, in fp32 straight from half-precision inputs if asked for, where a CPU copies them first.

    **Source**: `softmax` of aten/src/ATen/native/SoftMax.cpp.
    """
    return _reduced(_aten._softmax, tensor, dim, dtype)


def _log_softmax(tensor: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """Compute the logarithm of the softmax, with the inputs taken as `_softmax` takes them.

    **Source**: `log_softmax` of aten/src/ATen/native/SoftMax.cpp.
    """
    return _reduced(_aten._log_softmax, tensor, dim, dtype)


def _reduced(operator: Any, tensor: Tensor, dim: int, dtype: torch.dtype | None) -> Tensor:
    fused = tensor.dtype == torch.float16 and dtype == torch.float32
    converted = tensor if fused or dtype is None else tensor.to(dtype)
    result: Tensor = operator(converted, dim, fused)
    return result


_COMPOSED: Final[dict[str, Kernel]] = {"dropout": _dropout, "softmax.int": _softmax, "log_softmax.int": _log_softmax}
