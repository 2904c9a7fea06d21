"""The tensors that one layer works with and frees again before the next: the activations of inference."""

from functools import lru_cache
from typing import Final, NamedTuple

from planner.memory.activations import stack_positions
from planner.memory.kernels import AttentionKind, Kernel, is_masked, kernel_of, mask_bytes, repeats_heads, softmax_bytes
from planner.memory.precision import Precision
from planner.models.architecture import Activation, Architecture, Attention, LatentAttention, Layer, Mixer, Mlp, Moe

_WIDE_BY_ACTIVATION: Final[dict[Activation, int]] = {"gelu-new": 4, "quick-gelu": 3}
"""Tensors of the intermediate width alive at once where Python computes an activation step by step; else two."""


class Copied(NamedTuple):
    """What a layer copies in a step of decoding: the tokens that it keeps, and elements for each of them."""

    tokens: int
    elements: int

    @property
    def total(self) -> int:
        """Return the elements."""
        return self.tokens * self.elements


@lru_cache(maxsize=1024)
def scratch_bytes(
    architecture: Architecture, batch: int, prompt: int, precision: Precision, attention: AttentionKind
) -> int:
    """Return the largest scratch that one layer needs for `batch` × `prompt` tokens, with the mask that all share.

    **Formula** per token, the larger of two: 4h (embeddings, the layer's input, the residual and its norm) beside the
    feed-forward block, 3i (gate, up and their product; 2i without a gate); 3h beside the attention, the largest of its
    rotation 4q, the norm of the queries with its fp32 copies, and eager scores a · s · (scores, fp32 softmax and its
    cast). Keys and values are in the cache already.
    """
    most = 0
    for stack in architecture.stacks:
        if stack.name in ("vision", "audio") and architecture.kind == "vision-language":
            continue
        is_decoder_of_pair = architecture.kind == "encoder-decoder" and stack is architecture.main
        tokens = 1 if is_decoder_of_pair else stack_positions(stack, prompt)
        widest = max(_layer_scratch(group.layer, stack.hidden, tokens, precision, attention) for group in stack.groups)
        most = max(most, batch * tokens * widest + mask_bytes(stack, batch, tokens, precision, attention))
    return most


def largest_copy(architecture: Architecture, context: int, precision: Precision, attention: AttentionKind) -> Copied:
    """Return what the layer that copies most copies for each sequence in a step of decoding.

    **Formula**: its keys, which grow by a token (2q more where attention repeats them); with latent attention the
    latent, and the keys and values that are expanded from it for every cached token.
    """
    copies = (
        _copied(mixer, context, precision, attention)
        for group in architecture.main.groups
        for mixer in (group.layer.mixer, group.layer.second_mixer)
    )
    return max(copies, key=lambda copy: copy.total)


def _copied(mixer: Mixer | None, context: int, precision: Precision, attention: AttentionKind) -> Copied:
    if isinstance(mixer, LatentAttention):
        return Copied(context, mixer.kv_lora_rank + _expanded(mixer) + _query_key(mixer))
    if not isinstance(mixer, Attention):
        return Copied(0, 0)
    kernel = kernel_of(mixer, precision, attention, masked=False)
    repeated = 2 * mixer.q_dim if repeats_heads(mixer, kernel, attention, masked=False) else 0
    return Copied(min(context, mixer.window or context), mixer.cached_dim + repeated)


def _layer_scratch(layer: Layer, hidden: int, tokens: int, precision: Precision, attention: AttentionKind) -> int:
    size = precision.compute_bytes
    mixers = (layer.mixer, layer.second_mixer)
    widest = max(_mixer_scratch(mixer, layer, tokens, precision, attention) for mixer in mixers)
    beside = 4 * hidden * size + _feed_forward_scratch(layer.feed_forward, hidden, size)
    return max(beside + size * _probabilities(layer, tokens, precision, attention), 3 * hidden * size + widest)


def _probabilities(layer: Layer, tokens: int, precision: Precision, attention: AttentionKind) -> int:
    """Return the elements of eager attention's result that the layer still holds while the next block runs."""
    mixer = layer.mixer
    if isinstance(mixer, Attention | LatentAttention):
        is_eager = kernel_of(mixer, precision, attention, is_masked(layer, tokens, attention)) == "eager"
        return mixer.heads * tokens if is_eager else 0
    return 0


def _feed_forward_scratch(block: Mlp | Moe | None, hidden: int, size: int) -> int:
    if block is None:
        return 0
    if isinstance(block, Mlp):
        gated = 4 if block.fused_gate_up else 3
        return size * block.intermediate * (gated if block.gated else _WIDE_BY_ACTIVATION.get(block.activation, 2))
    return max(block.top_k * _expert_scratch(block, hidden, size), size * (3 * block.shared_intermediate + hidden))


def _expert_scratch(block: Moe, hidden: int, size: int) -> int:
    """Return what each visit of a token to an expert needs: the inner width, or the outputs, weighted and put back.

    **Source**: transformers `integrations.moe.grouped_mm_experts_forward`. An fp32 router's weights are in fp32, and so
    is what they are multiplied with.
    """
    inner = size * (hidden + block.intermediate * (4 if block.gated else 2))
    weighted = 4 if block.fp32_router else size
    return max(inner, 2 * hidden * (size + weighted))


def _mixer_scratch(
    mixer: Mixer | None, layer: Layer, tokens: int, precision: Precision, attention: AttentionKind
) -> int:
    size = precision.compute_bytes
    if mixer is None:
        return 0
    if isinstance(mixer, LatentAttention):
        width = 3 * _query_key(mixer) + _expanded(mixer) + mixer.heads * mixer.v_head_dim + 2 * mixer.latent_dim
        return size * width + (_score_scratch(mixer, tokens, "eager", precision) if attention == "eager" else 0)
    if isinstance(mixer, Attention):
        return _attention_scratch(mixer, layer, tokens, precision, attention)
    return 4 * mixer.inner_dim * size


def _attention_scratch(
    mixer: Attention, layer: Layer, tokens: int, precision: Precision, attention: AttentionKind
) -> int:
    size = precision.compute_bytes
    masked = is_masked(layer, tokens, attention)
    kernel = kernel_of(mixer, precision, attention, masked)
    projected = mixer.q_dim + (2 * mixer.kv_dim if mixer.fused_qkv else 0)
    rotation = size * (projected + 3 * mixer.q_dim) if mixer.rotary else 0
    normed = (size + 8) * mixer.q_dim if mixer.qk_norm != "none" and not layer.norm.native else 0
    repeated = 2 * mixer.q_dim if repeats_heads(mixer, kernel, attention, masked) else 0
    if kernel != "fused":
        scores = _score_scratch(mixer, tokens, kernel, precision)
        return max(rotation, normed, size * (projected + repeated) + scores)
    attended = size * (projected + mixer.q_dim + repeated + (tokens if masked else 0))
    return max(rotation, normed, attended)


def _score_scratch(mixer: Attention | LatentAttention, tokens: int, kernel: Kernel, precision: Precision) -> int:
    """Count the scores, their softmax, and its cast where the softmax is in fp32."""
    softmax = softmax_bytes(mixer, kernel, precision)
    cast = precision.compute_bytes if softmax > precision.compute_bytes else 0
    return mixer.heads * tokens * (precision.compute_bytes + softmax + cast)


def _query_key(mixer: LatentAttention) -> int:
    return mixer.heads * (mixer.qk_nope_head_dim + mixer.qk_rope_head_dim)


def _expanded(mixer: LatentAttention) -> int:
    return mixer.heads * (mixer.qk_nope_head_dim + mixer.v_head_dim)
