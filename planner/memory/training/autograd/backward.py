"""Gradients alive during the backward pass through one layer, in full fine-tuning."""

from functools import lru_cache
from typing import Final

from planner.memory.kernels import AttentionKind, attention_kernel, needs_explicit_mask, softmax_bytes
from planner.memory.precision import Precision
from planner.memory.training.autograd.layer import (
    feed_forward_norm_and_readers_bytes,
    freed_bytes_before_experts,
    mixer_output_width,
    norm_bytes_after_blocks,
    saved_by_layer,
)
from planner.memory.training.saved import BackwardPoint, SavedPerToken
from planner.models.architecture import Activation, Attention, LatentAttention, Layer, Mlp, Moe

_TWO_BRANCHES: Final[tuple[Activation, ...]] = ("gelu-new", "quick-gelu")
"""Activation functions computed step by step in Python, in which two branches meet in a product.

ReLU counts as two as well: its result is also the next projection's input and stays alive while its gradient is
computed.
"""
SCORE_GRADIENTS: Final = 3
"""Number of score-sized tensors in the softmax's backward pass: output gradient, product, input gradient."""


@lru_cache(maxsize=4096)
def backward_points(
    layer: Layer,
    hidden: int,
    tokens: int,
    precision: Precision,
    attention: AttentionKind,
    checkpointed: bool,
) -> tuple[BackwardPoint, ...]:
    """Return the moments of the backward pass through `layer` at which memory may peak, at least one per block.

    Their bytes are those of one token in a sequence of `tokens`.

    **Formula**: in the feed-forward block w · n · i + r · h: the gradients of its n branches (two where a gate or
    an activation computed step by step creates them) and of its last projection; before that, where experts'
    outputs are weighted, 3 · k · h · w for what k experts put out; in the scores of attention 3 · a · s · f, with f
    bytes of the softmax, less everything after attention, which is freed by then. Once a checkpointed layer has been
    computed again, its output and that of its last block, the stream beside it and the gradient: 3 · r · h + w · h.

    **Source**: torch/csrc/autograd/FunctionsManual.cpp; aten/src/ATen/native/cuda/SoftMax.cu
    (`softmax_backward_cuda_out` multiplies gradient and output first).
    """
    block = layer.feed_forward
    stream = precision.residual_bytes * hidden
    points = [
        _feed_forward_point(
            feed_forward_gradient_bytes(block, hidden, precision, checkpointed) + stream,
            block,
            last_projection_parameters(block, hidden),
        )
    ]
    if isinstance(block, Moe) and not block.every_expert:
        points.append(BackwardPoint(expert_weighting_bytes(block, hidden, precision) + 2 * stream))
    if checkpointed:
        points.append(BackwardPoint(3 * stream + precision.compute_bytes * hidden))
    in_scores = _score_gradient_bytes(layer, hidden, tokens, precision, attention)
    if in_scores is not None:
        points.append(_feed_forward_point(in_scores, block, feed_forward_parameters(block, hidden)))
    return tuple(points)


def _feed_forward_point(size_bytes: int, block: Mlp | Moe | None, gradients: int) -> BackwardPoint:
    """Return a peak candidate of the backward pass: `size_bytes`, and the parameters with gradients by then."""
    return BackwardPoint(size_bytes, gradients, 0 if isinstance(block, Moe) else gradients)


def _score_gradient_bytes(
    layer: Layer, hidden: int, tokens: int, precision: Precision, attention: AttentionKind
) -> int | None:
    """Return the bytes per token of gradients alive in eager attention's scores, None for fused kernels."""
    mixer = layer.mixer
    if not isinstance(mixer, Attention | LatentAttention):
        return None
    masked = needs_explicit_mask(layer, tokens, attention)
    kernel = attention_kernel(mixer, precision, attention, masked)
    if kernel == "fused":
        return None
    ledger = saved_by_layer(layer, hidden, precision, attention, masked)
    softmax = mixer.heads * softmax_bytes(mixer, kernel, precision)
    capped = mixer.heads * precision.compute_bytes if isinstance(mixer, Attention) and mixer.softcap else 0
    scores = tokens * (SCORE_GRADIENTS * softmax - (ledger.scores - softmax - capped))
    return scores + precision.residual_bytes * hidden - _freed_before_attention(layer, hidden, ledger, precision)


def _freed_before_attention(layer: Layer, hidden: int, ledger: SavedPerToken, precision: Precision) -> int:
    """Return the saved bytes per token that are freed before the backward pass reaches attention."""
    norms = feed_forward_norm_and_readers_bytes(layer, hidden, precision) + norm_bytes_after_blocks(
        layer, hidden, precision
    )
    return ledger.feed_forward + norms + precision.compute_bytes * mixer_output_width(layer.mixer)


def feed_forward_gradient_bytes(block: Mlp | Moe | None, hidden: int, precision: Precision, checkpointed: bool) -> int:
    """Return the gradient bytes per token alive in the backward pass of the feed-forward `block`."""
    size = precision.compute_bytes
    if block is None:
        return size * hidden
    if isinstance(block, Moe):
        return expert_gradient_bytes(block, hidden, precision)
    if block.activation == "gelu-new" and precision.autocast:
        # Three gradients in fp32, while the product's copy is freed. One of them is then copied to the computing
        # format; without checkpointing the values that it was computed from are still alive.
        return (3 * 4 - (size if checkpointed else 0)) * block.intermediate
    branches = block.gated or block.activation in _TWO_BRANCHES or (block.activation == "relu" and not block.dropout)
    return size * block.intermediate * (2 if branches else 1)


def expert_gradient_bytes(block: Moe, hidden: int, precision: Precision) -> int:
    """Return the bytes per token of experts' gate and up gradients, after the experts' outputs are freed."""
    freed = freed_bytes_before_experts(block, hidden, precision)
    if block.every_expert:
        return precision.compute_bytes * block.visits * block.intermediate * 2 - freed
    return precision.residual_bytes * block.visits * (2 * block.intermediate - hidden) - freed


def expert_weighting_bytes(block: Moe, hidden: int, precision: Precision) -> int:
    """Return the gradient bytes per token at the weighting of expert outputs: sum, reordered sum, each output.

    **Source**: transformers `integrations.moe.grouped_mm_experts_forward`; an fp32 router's weights are in fp32, and so
    is what they are multiplied with.
    """
    weighted = 4 if block.fp32_router else precision.residual_bytes
    return 3 * block.visits * hidden * weighted - freed_bytes_before_experts(block, hidden, precision)


def last_projection_parameters(block: Mlp | Moe | None, hidden: int) -> int:
    """Return the parameters of the feed-forward projection that the backward pass reaches first."""
    if block is None:
        return 0
    if not isinstance(block, Moe):
        return hidden * block.intermediate
    behind = 0 if block.shared_gate else 3 * block.shared_intermediate
    return hidden * (block.intermediate * block.experts + behind)


def feed_forward_parameters(block: Mlp | Moe | None, hidden: int) -> int:
    """Return the number of parameters in all projections of the feed-forward block."""
    if block is None:
        return 0
    every = block.intermediate * (block.experts if isinstance(block, Moe) else 1) * (3 if block.gated else 2)
    return hidden * (every + (3 * block.shared_intermediate if isinstance(block, Moe) else 0))
