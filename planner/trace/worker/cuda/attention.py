"""Scaled dot product attention as in a CUDA build: choice of the kernel and preparation of its inputs."""

import math
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

import torch
from torch import Tensor

Backend = Literal["cudnn", "flash", "efficient", "math"]
Capability = tuple[int, int]

SOURCE: Final = "PyTorch 2.13 aten/src/ATen/native/transformers/cuda/sdp_utils.cpp and attention.cpp"

_aten: Final = torch.ops.aten
_backend_switches: Final[Any] = torch.backends.cuda
_HALF_DTYPES: Final = (torch.float16, torch.bfloat16)
_MIN_FLASH_CAPABILITY: Final = (8, 0)
_MAX_FUSED_CAPABILITY: Final = (12, 1)
_MIN_EFFICIENT_CAPABILITY: Final = (5, 0)
_MAX_FLASH_HEAD_WIDTH: Final = 256
_MAX_CUDNN_HEAD_WIDTH: Final = 128
_MAX_CUDNN_BATCH_OR_HEADS: Final = 65_535


class AttentionCall(NamedTuple):
    """Arguments of one `scaled_dot_product_attention` call."""

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None
    dropout: float
    is_causal: bool
    enable_gqa: bool

    @property
    def records_gradients(self) -> bool:
        """Return whether autograd records gradients for the call's inputs."""
        return torch.is_grad_enabled() and any(t.requires_grad for t in (self.query, self.key, self.value))


def choose_backend(call: AttentionCall, capability: Capability) -> Backend:
    """Return the attention backend that a card of `capability` uses for `call`.

    This is the first backend in order of priority that can run the call; backends disabled by
    `torch.backends.cuda.enable_…_sdp` or `torch.nn.attention.sdpa_kernel` are skipped.

    **Source**: `select_sdp_backend`, `check_prefer_cudnn_attention` and the `can_use_…_attention` functions of
    aten/src/ATen/native/transformers/cuda/sdp_utils.cpp.

    **Assumes**: cuDNN 9.15.1 or later, as in PyTorch's packages for CUDA 13; no nested tensors; no environment variable
    that changes the order.
    """
    order: tuple[Backend, ...] = ("flash", "efficient", "math")
    if capability in {(9, 0), (10, 0), (10, 3)}:
        order = ("cudnn", *order)
    return next((backend for backend in order if _CAN_USE[backend](call, capability)), "math")


def _can_use_flash(call: AttentionCall, capability: Capability) -> bool:
    """Return whether a card of `capability` can run the call with flash attention."""
    head_width = call.query.shape[-1]
    return (
        _backend_switches.flash_sdp_enabled()
        and _has_four_dimensions(call)
        and call.mask is None
        and head_width == call.key.shape[-1] == call.value.shape[-1]
        and head_width <= _MAX_FLASH_HEAD_WIDTH
        and _MIN_FLASH_CAPABILITY <= capability <= _MAX_FUSED_CAPABILITY
        and _flash_supports_training(call, capability)
        and (not call.is_causal or call.query.shape[-2] == call.key.shape[-2])
        and _has_allowed_dtype(call, _HALF_DTYPES)
        and _heads_match(call, grouped=True)
        and _is_not_empty(call)
        and (_last_stride_is_one(call) or (head_width == 1 and _mask_stride_is_one(call)))
    )


def _flash_supports_training(call: AttentionCall, capability: Capability) -> bool:
    """Return whether flash attention supports the call's backward pass on a card of `capability`."""
    # The backward kernel for large heads needs more shared memory than these consumer cards have.
    if not call.records_gradients or not ((8, 6) <= capability <= (8, 9) or (12, 0) <= capability <= (12, 1)):
        return True
    head_width = call.query.shape[-1]
    return head_width <= 192 or (call.dropout == 0 and head_width > 224)


def _can_use_efficient(call: AttentionCall, capability: Capability) -> bool:
    """Return whether a card of `capability` can run the call with memory-efficient attention."""
    head_width, value_head = call.query.shape[-1], call.value.shape[-1]
    alignment = _gemm_alignment_elements(call.query.dtype, capability)
    dtypes = (torch.float16, torch.float32, torch.bfloat16) if capability >= (8, 0) else (torch.float16, torch.float32)
    return (
        _backend_switches.mem_efficient_sdp_enabled()
        and _MIN_EFFICIENT_CAPABILITY <= capability <= _MAX_FUSED_CAPABILITY
        and _has_four_dimensions(call)
        and head_width == call.key.shape[-1]
        and head_width > 0
        and value_head > 0
        and head_width % alignment == 0
        and value_head % alignment == 0
        and _is_not_empty(call)
        and _last_stride_is_one(call)
        and _heads_match(call, grouped=False)
        and _has_allowed_dtype(call, dtypes)
    )


def _can_use_cudnn(call: AttentionCall, capability: Capability) -> bool:
    """Return whether a card of `capability` can run the call with cuDNN's attention."""
    return (
        _backend_switches.cudnn_sdp_enabled()
        and _has_four_dimensions(call)
        and not torch.are_deterministic_algorithms_enabled()
        and _has_allowed_dtype(call, _HALF_DTYPES if capability >= (8, 0) else (torch.float16,))
        and _cudnn_supports_mask(call)
        and _MIN_FLASH_CAPABILITY <= capability <= _MAX_FUSED_CAPABILITY
        and (call.dropout * 16).is_integer()
        and _is_not_empty(call)
        and (_last_stride_is_one(call) or (call.query.shape[-1] == 1 and _mask_stride_is_one(call)))
        and _heads_match(call, grouped=True, same_key_and_value=False)
        and _cudnn_supports_shapes(call)
    )


def _cudnn_supports_shapes(call: AttentionCall) -> bool:
    """Return whether cuDNN's attention supports the numbers and widths of heads."""
    batch, heads, queries, head_width = call.query.shape
    keys, value_head = call.key.shape[2], call.value.shape[3]
    max_head_width = 192 if (head_width, value_head) == (192, 128) else _MAX_CUDNN_HEAD_WIDTH
    return (
        max(batch, heads) <= _MAX_CUDNN_BATCH_OR_HEADS
        and max(head_width, value_head) <= max_head_width
        and head_width % 8 == 0
        and value_head % 8 == 0
        and keys != 1
        and not (call.dropout and queries == 1)
    )


def _cudnn_supports_mask(call: AttentionCall) -> bool:
    """Return whether cuDNN's attention supports the mask, if there is one."""
    if call.mask is None:
        return True
    scores_shape = (*call.query.shape[:3], call.key.shape[2])
    return (
        not call.mask.requires_grad
        and call.mask.dim() in (2, 4)
        and all(size in (1, side) for size, side in zip(call.mask.shape, scores_shape[-call.mask.dim() :], strict=True))
    )


def _is_math_enabled(_call: AttentionCall, _capability: Capability) -> bool:
    """Return whether attention by plain matrix products is allowed."""
    return bool(_backend_switches.math_sdp_enabled())


_CAN_USE: Final[dict[Backend, Callable[[AttentionCall, Capability], bool]]] = {
    "cudnn": _can_use_cudnn,
    "flash": _can_use_flash,
    "efficient": _can_use_efficient,
    "math": _is_math_enabled,
}


def _has_four_dimensions(call: AttentionCall) -> bool:
    """Return whether queries, keys and values have batch, head, sequence and width dimensions."""
    return call.query.dim() == call.key.dim() == call.value.dim() == 4


def _has_allowed_dtype(call: AttentionCall, allowed: tuple[torch.dtype, ...]) -> bool:
    return call.query.dtype == call.key.dtype == call.value.dtype and call.query.dtype in allowed


def _heads_match(call: AttentionCall, grouped: bool, same_key_and_value: bool = True) -> bool:
    """Return whether queries, keys and values have compatible numbers of heads."""
    if not call.query.shape[0] == call.key.shape[0] == call.value.shape[0]:
        return False
    query, key, value = (tensor.shape[-3] for tensor in (call.query, call.key, call.value))
    if not (call.enable_gqa and grouped):
        return query == key == value
    if same_key_and_value and key != value:
        return False
    return query % key == 0 and query % value == 0


def _is_not_empty(call: AttentionCall) -> bool:
    """Return whether the call has at least one query and one key."""
    return call.query.shape[-2] > 0 and call.key.shape[-2] > 0


def _last_stride_is_one(call: AttentionCall) -> bool:
    """Return whether queries, keys, values and mask are contiguous in their last dimension."""
    tensors = (call.query, call.key, call.value)
    return all(tensor.stride(-1) == 1 for tensor in tensors) and _mask_stride_is_one(call)


def _mask_stride_is_one(call: AttentionCall) -> bool:
    return call.mask is None or call.mask.stride(-1) == 1


def _gemm_alignment_elements(dtype: torch.dtype, capability: Capability) -> int:
    """Return the alignment in elements that matrix products of `dtype` need on a card of `capability`."""
    is_half = dtype in _HALF_DTYPES
    tensor_cores = capability >= (8, 0) or (capability >= (7, 0) and is_half)
    min_alignment = 4 if capability >= (8, 0) else 1
    return max(min_alignment, 128 // (16 if is_half else 32)) if tensor_cores else min_alignment


def attend(call: AttentionCall, scale: float | None, backend: Backend) -> Tensor:
    """Run `call` with `backend` as `scaled_dot_product_attention` of a CUDA build does.

    **Source**: aten/src/ATen/native/transformers/attention.cpp: flash pads the heads to a multiple of 8, the memory-
    efficient kernel takes an additive mask padded to a multiple of 8, and both save the log-sum-exp in fp32 for the
    backward pass.
    """
    query, key, value, mask, dropout, is_causal, _ = call
    if backend == "math":
        return _attend_by_math(call, scale)
    if backend == "flash":
        return _attend_by_flash(call, scale)
    mask = additive_mask(mask, query.dtype)
    if backend == "cudnn":
        operator = _aten._scaled_dot_product_cudnn_attention
        return _first_result(
            operator(query, key, value, mask, call.records_gradients, dropout, is_causal, False, scale=scale)
        )
    if mask is not None:
        mask = _aligned_mask(mask).expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
    operator = _aten._scaled_dot_product_efficient_attention
    return _first_result(operator(query, key, value, mask, call.records_gradients, dropout, is_causal, scale=scale))


def _attend_by_flash(call: AttentionCall, scale: float | None) -> Tensor:
    """Return the attention output by flash attention, with padded heads."""
    head_width = call.query.shape[-1]
    query, key, value = (_padded_last_dimension(tensor, 8) for tensor in (call.query, call.key, call.value))
    result = _first_result(
        _aten._scaled_dot_product_flash_attention(
            query, key, value, call.dropout, call.is_causal, False, scale=_softmax_scale(call, scale)
        )
    )
    return result if result.shape[-1] == head_width else result[..., :head_width]


def _attend_by_math(call: AttentionCall, scale: float | None) -> Tensor:
    """Return the attention output by plain matrix products, as PyTorch composes them."""
    # Composed here, since PyTorch's own composition adds the mask out of place when it is given fake tensors.
    dtype = call.query.dtype
    in_float32 = dtype in _HALF_DTYPES and not _backend_switches.fp16_bf16_reduction_math_sdp_allowed()
    query, key, value = (t.float() if in_float32 else t for t in (call.query, call.key, call.value))
    mask, factor = additive_mask(call.mask, dtype), math.sqrt(abs(_softmax_scale(call, scale)))
    query = query * (-factor if scale is not None and scale < 0 else factor)
    if call.is_causal:
        allowed = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril()
        mask = additive_mask(allowed, query.dtype)
    if call.enable_gqa:
        key, value = (_repeated_heads(tensor, query.shape[-3]) for tensor in (key, value))
    scores = torch.matmul(query, key.transpose(-2, -1) * factor)
    if mask is not None:
        scores.add_(mask)
    weights = _aten._safe_softmax(scores, -1)
    if call.dropout > 0:
        weights = torch.dropout(weights, call.dropout, True)
    # PyTorch's composition also returns the weights, so it converts them to the inputs' type; nothing reads them.
    _returned = weights.to(dtype)
    return torch.matmul(weights, value).to(dtype)


def additive_mask(mask: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """Return `mask` as an additive mask: a boolean mask becomes zeros and minus infinities."""
    if mask is None or mask.dtype != torch.bool:
        return mask
    zero = torch.scalar_tensor(0.0, dtype=dtype, device=mask.device)
    return torch.where(mask, zero, -math.inf)


def _aligned_mask(mask: Tensor) -> Tensor:
    """Return a view of the mask whose rows are padded to the alignment that the kernels need."""
    strides = [mask.stride(dimension) for dimension in range(mask.dim())]
    if strides[-1] == 1 and all(stride % 8 == 0 for stride in strides[:-1]):
        return mask
    width = mask.shape[-1]
    return torch.constant_pad_nd(mask, [0, 8 - width % 8])[..., :width]


def _padded_last_dimension(tensor: Tensor, multiple: int) -> Tensor:
    """Return `tensor` with its last dimension padded to a multiple of `multiple`."""
    excess = tensor.shape[-1] % multiple
    return torch.constant_pad_nd(tensor, [0, multiple - excess]) if excess else tensor


def _repeated_heads(tensor: Tensor, heads: int) -> Tensor:
    """Return `tensor` with its heads repeated up to `heads`, for grouped-query attention."""
    return tensor if tensor.shape[-3] == heads else tensor.repeat_interleave(heads // tensor.shape[-3], -3)


def _softmax_scale(call: AttentionCall, scale: float | None) -> float:
    """Return the factor for scores: `scale`, or one over the square root of the head width."""
    return 1 / math.sqrt(call.query.shape[-1]) if scale is None else scale


def _first_result(results: tuple[Any, ...]) -> Tensor:
    """Return the first of an operator's results, the attention output."""
    result: Tensor = results[0]
    return result
