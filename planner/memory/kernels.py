"""Choice of attention kernel (fused, matrix products, or eager operators), and the size of attention masks."""

from typing import Final, Literal

from planner.memory.precision import Precision
from planner.models.architecture import Attention, LatentAttention, Layer, Mixer, Stack

AttentionKind = Literal["flash", "sdpa", "eager"]
Kernel = Literal["fused", "math", "eager"]

MASK: Final = 1
"""Bytes of one boolean element of a mask."""
LARGEST_GROUPED_HEAD: Final = 256
"""Largest head dimension for which the fused kernel reads grouped keys and values without copies."""


def attention_kernel(
    mixer: Attention | LatentAttention, precision: Precision, attention: AttentionKind, masked: bool
) -> Kernel:
    """Return the kernel that computes `mixer`; `masked` means that an explicit mask is passed to it.

    `scaled_dot_product_attention` falls back to matrix products, with all scores in memory, where no fused kernel
    supports the inputs: grouped keys and values in fp32 (flash attention has no fp32, the memory-efficient kernel no
    groups), and keys of one head that are broadcast instead of declared as shared.

    **Source**: PyTorch 2.13 aten/src/ATen/native/transformers/cuda/sdp_utils.cpp (`can_use_flash_attention`,
    `can_use_mem_efficient_attention`, `check_batch_size_and_num_heads_dense`).

    **Assumes** a card of compute capability 8.0 or higher, and heads that are a multiple of 8 wide.
    """
    if attention == "eager" or not _calls_kernel(mixer):
        return "eager"
    if attention == "flash" or isinstance(mixer, LatentAttention) or mixer.kv_heads == mixer.heads:
        return "fused"
    if mixer.grouping == "broadcast":
        return "math"
    in_groups = mixer.grouping == "native" and not masked and mixer.head_dim <= LARGEST_GROUPED_HEAD
    return "math" if in_groups and precision.compute_bytes == 4 else "fused"


def _calls_kernel(mixer: Attention | LatentAttention) -> bool:
    """Return whether the model's code calls `scaled_dot_product_attention` for `mixer`."""
    return isinstance(mixer, LatentAttention) or mixer.sdpa


def repeats_heads(mixer: Attention, kernel: Kernel, attention: AttentionKind, masked: bool) -> bool:
    """Return whether grouped keys and values are copied once per query head before attention.

    **Source**: transformers `sdpa_attention.use_gqa_in_sdpa`: the fused kernel reads them without copies if there is no
    mask and heads have at most 256 elements; `repeat_kv` repeats a single head without a copy. Matrix products
    need copies.
    """
    if mixer.kv_heads == mixer.heads:
        return False
    if kernel != "fused" or mixer.grouping == "copied":
        return True
    copied = attention == "sdpa" and (masked or mixer.head_dim > LARGEST_GROUPED_HEAD)
    return copied and mixer.kv_heads > 1


def needs_explicit_mask(layer: Layer, tokens: int, attention: AttentionKind) -> bool:
    """Return whether `layer` gives the fused kernel a mask: always, or if its window is shorter than the sequence.

    **Source**: transformers `masking_utils`: without a window it passes `is_causal` instead; Falcon asks for the mask
    all the same (transformers 5.23 `modeling_falcon.py`, `allow_is_causal_skip=False`).
    """
    return attention == "sdpa" and isinstance(layer.mixer, Attention) and _is_masked(layer.mixer, tokens)


def _is_masked(mixer: Attention, tokens: int) -> bool:
    windowed = mixer.window is not None and mixer.window < tokens
    # Windows of an image that attention splits are sequences of their own.
    return mixer.always_masked or (windowed and not mixer.joined)


def mask_bytes(
    stack: Stack, sequences: int, tokens: int, precision: Precision, attention: AttentionKind, groups: int | None = None
) -> int:
    """Return the bytes of the attention masks shared by the layers of `stack`, one mask per window size.

    **Formula**: eager attention b · s² numbers in the stream's format, or booleans (MPT); the fused kernel s² booleans,
    where a window is shorter than the sequence, or always (Falcon).

    **Source**: transformers `masking_utils.sdpa_mask` and `eager_mask`.
    """
    mixers = [group.layer.mixer for group in stack.groups[:groups] if isinstance(group.layer.mixer, Attention)]
    windows = {mixer.window for mixer in mixers} or {None}
    if stack.name != "decoder":
        # An encoder without a window attends to everything and needs no mask.
        windows.discard(None)
    if attention == "eager" or any(not mixer.sdpa for mixer in mixers):
        element = MASK if any(mixer.boolean_mask for mixer in mixers) else precision.residual_bytes
        return len(windows) * sequences * tokens * tokens * element
    masked = {mixer.window for mixer in mixers if attention == "sdpa" and _is_masked(mixer, tokens)}
    return len(masked) * tokens * tokens * MASK


def softmax_bytes(mixer: Mixer, kernel: Kernel, precision: Precision) -> int:
    """Return the bytes per element of the softmax over attention scores: fp32 or the compute format."""
    in_format = kernel == "eager" and isinstance(mixer, Attention) and not mixer.fp32_softmax
    return precision.compute_bytes if in_format and not precision.autocast else 4
