"""Temporary activations of inference: tensors that one layer allocates and frees before the next layer runs."""

from functools import lru_cache, partial
from typing import Final, NamedTuple

from planner.memory.kernels import (
    MASK,
    AttentionKind,
    Kernel,
    attention_kernel,
    mask_bytes,
    needs_explicit_mask,
    repeats_heads,
    softmax_bytes,
)
from planner.memory.phases import DeferredTerm
from planner.memory.precision import Precision
from planner.memory.result import Term
from planner.memory.terms import deferred_measured_term, measured_term, model_symbol, workload_symbol
from planner.models.architecture import (
    Activation,
    Architecture,
    Attention,
    LatentAttention,
    Layer,
    Mixer,
    Mlp,
    Moe,
    Stack,
)
from planner.models.layers import Packing

SCRATCH_SOURCE: Final = "transformers 5.23 modules: the tensors alive at once inside one layer, in its widest block"
_WIDE_BY_ACTIVATION: Final[dict[Activation, int]] = {
    "gelu-new": 4,
    "gelu-fast": 5,
    "gelu-bloom": 5,
    "quick-gelu": 3,
    "relu2": 3,
}
"""Live tensors of intermediate width for activation functions computed step by step in Python; two for others."""
_STREAMS: Final[dict[Packing, int]] = {"apart": 3, "split": 2, "masked": 4}
"""Tensors of the stream's width beside attention: its input, that normed, and the embeddings, which Qwen's towers
overwrite, and Pixtral holds image by image, too."""


class DecodeCopy(NamedTuple):
    """Tensors copied by one layer in a decoding step: number of cached tokens, and copied elements per token."""

    tokens: int
    elements: int

    @property
    def total(self) -> int:
        """Return the number of copied elements: tokens times elements per token."""
        return self.tokens * self.elements


def scratch_term(
    architecture: Architecture,
    batch: int,
    prompt: int,
    precision: Precision,
    attention: AttentionKind,
    *,
    masked: bool = False,
) -> DeferredTerm:
    """Return the memory of one layer's temporary activations, and of the mask that layers share.

    The prompt may be `masked` otherwise: attention then has masks that are counted elsewhere.
    """
    needed = scratch_bytes(architecture, batch, prompt, precision, attention, masked=masked)
    return deferred_measured_term("activations", needed, partial(_write_scratch, needed, batch, prompt))


def _write_scratch(needed: int, batch: int, prompt: int) -> Term:
    return measured_term(
        "activations",
        needed,
        "B × s × a",
        (
            workload_symbol("B", batch, "sequences"),
            workload_symbol("s", prompt, "tokens of the prompt"),
            model_symbol("a", round(needed / max(batch * prompt, 1)), "bytes per token inside the widest layer"),
        ),
        SCRATCH_SOURCE,
    )


def scratch_bytes(
    architecture: Architecture,
    batch: int,
    prompt: int,
    precision: Precision,
    attention: AttentionKind,
    *,
    masked: bool = False,
) -> int:
    """Return the peak temporary bytes of one layer over `batch` × `prompt` tokens, plus the mask that layers share.

    **Formula** per token, the larger of two: 4h (embeddings, the layer's input, the residual and its norm) beside the
    feed-forward block, 3i (gate, up and their product; 2i without a gate); 3h beside the attention, the largest of its
    rotation 4q, the norm of the queries with its fp32 copies, and eager scores a · s · (scores, their fp32 copy and the
    softmax) or, where the code names its outputs, what is alive at its end. h more where positions have embeddings.
    Keys and values are in the cache already.
    """
    most = 0
    for stack in architecture.stacks:
        if stack.name in ("vision", "audio") and architecture.kind == "vision-language":
            continue
        is_decoder_of_pair = architecture.kind == "encoder-decoder" and stack is architecture.main
        tokens = 1 if is_decoder_of_pair else stack.token_count(prompt)
        masks = 0 if masked else mask_bytes(stack, batch, tokens, precision, attention)
        masks += 0 if masked else _causal_mask_bytes(stack, tokens, precision, attention)
        most = max(most, batch * tokens * _widest_layer_bytes(stack, tokens, precision, attention, masked) + masks)
    return most


@lru_cache(maxsize=1024)
def _widest_layer_bytes(
    stack: Stack, tokens: int, precision: Precision, attention: AttentionKind, masked: bool = False
) -> int:
    """Return the temporary bytes per token of the layer in `stack` that needs most, for sequences of `tokens`."""
    return max(_layer_scratch_bytes(group.layer, stack, tokens, precision, attention, masked) for group in stack.groups)


def tower_scratch_bytes(tower: Stack, images: int, patches: int, precision: Precision, attention: AttentionKind) -> int:
    """Return the peak temporary bytes of one vision-tower layer for `images` of `patches` patches each.

    **Formula**: as in `scratch_bytes`, without a cache: each image attends to itself only. Of images in one sequence
    that attention splits, the scores are those of one image, or of one window; with a mask they are those of all pairs
    of patches, for each of which the mask has a number.
    """
    every = images * patches
    if tower.images.packing == "split":
        widest = max(
            _layer_scratch_bytes(group.layer, tower, _shared_scores(group.layer, every, patches), precision, attention)
            for group in tower.groups
        )
        return every * (widest + tower.images.position_bytes)
    if tower.images.packing == "masked":
        return every * (_widest_layer_bytes(tower, every, precision, attention) + every * precision.compute_bytes)
    widest = _widest_layer_bytes(tower, patches, precision, attention)
    return every * widest + mask_bytes(tower, images, patches, precision, attention)


def _shared_scores(layer: Layer, every: int, patches: int) -> int:
    """Return the scores of each head that one image or window needs, for each of `every` patch."""
    window = layer.mixer.window if isinstance(layer.mixer, Attention) else None
    return max(1, min(patches, window or patches) ** 2 // every)


def _causal_mask_bytes(stack: Stack, tokens: int, precision: Precision, attention: AttentionKind) -> int:
    """Return the bytes of eager attention's causal mask: one boolean per token pair, and the fp32 values."""
    for group in stack.groups:
        mixer, masked = group.layer.mixer, needs_explicit_mask(group.layer, tokens, attention)
        if isinstance(mixer, Attention) and attention_kernel(mixer, precision, attention, masked) == "math":
            return tokens * tokens * (MASK + 4)
    return 0


def _position_embedding_count(stack: Stack) -> int:
    """Return 1 if position embeddings stay alive next to token embeddings, else 0."""
    return 1 if sum(1 for tensor in stack.before if tensor.role == "embedding") > 1 else 0


@lru_cache(maxsize=1024)
def largest_decode_copy(
    architecture: Architecture, context: int, precision: Precision, attention: AttentionKind
) -> DecodeCopy:
    """Return the copies of the layer that copies most elements per sequence in a decoding step.

    **Formula**: its keys, which grow by a token (2q more where attention repeats them; 3q in matrix products: keys,
    values, and scaled keys); with latent attention the latent, and the keys and values
    that are expanded from it for every cached token.
    """
    copies = (
        _mixer_decode_copy(mixer, context, precision, attention)
        for group in architecture.main.groups
        for mixer in (group.layer.mixer, group.layer.second_mixer)
    )
    return max(copies, key=lambda copy: copy.total)


def _mixer_decode_copy(mixer: Mixer | None, context: int, precision: Precision, attention: AttentionKind) -> DecodeCopy:
    """Return the cached keys and values that a mixer copies in a decoding step with `context` cached tokens."""
    if isinstance(mixer, LatentAttention):
        values = mixer.heads * mixer.v_head_dim if attention == "eager" else 0
        return DecodeCopy(
            context, mixer.kv_lora_rank + _expanded_elements(mixer) + _query_and_key_elements(mixer) + values
        )
    if not isinstance(mixer, Attention):
        return DecodeCopy(0, 0)
    kernel = attention_kernel(mixer, precision, attention, masked=False)
    tokens = min(context, mixer.window or context)
    if kernel == "math" and mixer.grouping == "broadcast":
        # Copies in fp32: keys and values, scaled keys, and one of them for each head.
        return DecodeCopy(tokens, (3 * mixer.kv_dim + mixer.q_dim) * 4 // precision.compute_bytes)
    if not repeats_heads(mixer, kernel, attention, masked=False):
        return DecodeCopy(tokens, mixer.cached_dim)
    if mixer.grouping == "broadcast":
        return DecodeCopy(tokens, mixer.q_dim)
    return DecodeCopy(tokens, 3 * mixer.q_dim if kernel == "math" else mixer.cached_dim + 2 * mixer.q_dim)


def _layer_scratch_bytes(
    layer: Layer, stack: Stack, tokens: int, precision: Precision, attention: AttentionKind, masked: bool = False
) -> int:
    """Return the temporary bytes of one layer for a sequence of `tokens` tokens."""
    hidden, size = stack.hidden, precision.compute_bytes
    mixers = (layer.mixer, layer.second_mixer)
    widest = max(_mixer_scratch_bytes(mixer, layer, tokens, precision, attention, masked) for mixer in mixers)
    held = _STREAMS[stack.images.packing]
    beside = (held + 1 + layer.named_streams) * hidden * size + _feed_forward_scratch_bytes(
        layer.feed_forward, hidden, size
    )
    return max(
        beside + size * _live_probability_elements(layer, tokens, precision, attention),
        (held + _position_embedding_count(stack)) * hidden * size + widest,
    )


def _live_probability_elements(layer: Layer, tokens: int, precision: Precision, attention: AttentionKind) -> int:
    """Return the eager attention probabilities per token that are still alive while the next block runs.

    Alive are the layer's probabilities, and those of the previous layer if the model returns them.
    """
    mixer = layer.mixer
    if isinstance(mixer, Attention | LatentAttention):
        is_eager = (
            attention_kernel(mixer, precision, attention, needs_explicit_mask(layer, tokens, attention)) == "eager"
        )
        layers = 2 if isinstance(mixer, Attention) and mixer.returns_scores else 1
        return layers * mixer.heads * tokens if is_eager else 0
    return 0


def _feed_forward_scratch_bytes(block: Mlp | Moe | None, hidden: int, element_bytes: int) -> int:
    """Return the temporary bytes per token inside a feed-forward block."""
    if block is None:
        return 0
    if isinstance(block, Mlp):
        gated = 4 if block.fused_gate_up else 3
        wide = element_bytes * (gated if block.gated else _WIDE_BY_ACTIVATION.get(block.activation, 2))
        # A norm inside holds its input, the input's copy in fp32, and that scaled.
        normed = element_bytes + 4 * (2 if element_bytes < 4 else 1) if block.inner_norm else 0
        return block.intermediate * max(wide, normed)
    beside = hidden if block.shared_gate else 0
    routed = block.visits * _expert_scratch_bytes(block, hidden, element_bytes) + element_bytes * beside
    return max(routed, element_bytes * (3 * block.shared_intermediate + hidden))


def _expert_scratch_bytes(block: Moe, hidden: int, element_bytes: int) -> int:
    """Return the temporary bytes per token of routed experts: inner width, or weighted and reordered outputs.

    **Source**: transformers `integrations.moe.grouped_mm_experts_forward`. An fp32 router's weights are in fp32, and so
    is what they are multiplied with.
    """
    # gpt-oss: the product with its bias, the bias of each row, clamped gate and up, two steps of the gate, the result.
    wide = 9 if block.activation == "clamped-swiglu" else 4 if block.gated else 2
    inner = element_bytes * (hidden + block.intermediate * wide)
    weighted = 4 if block.fp32_router else element_bytes
    return max(inner, 2 * hidden * (element_bytes + weighted))


def _mixer_scratch_bytes(
    mixer: Mixer | None, layer: Layer, tokens: int, precision: Precision, attention: AttentionKind, masked: bool
) -> int:
    """Return the temporary bytes inside a mixer for a sequence of `tokens` tokens."""
    size = precision.compute_bytes
    if mixer is None:
        return 0
    if isinstance(mixer, LatentAttention):
        width = (
            3 * _query_and_key_elements(mixer)
            + _expanded_elements(mixer)
            + mixer.heads * mixer.v_head_dim
            + 2 * mixer.latent_dim
        )
        return size * width + (_score_scratch_bytes(mixer, tokens, "eager", precision) if attention == "eager" else 0)
    if isinstance(mixer, Attention):
        masked = masked or needs_explicit_mask(layer, tokens, attention)
        return _attention_scratch_bytes(mixer, layer, tokens, precision, attention, masked)
    return 4 * mixer.inner_dim * size


def _attention_scratch_bytes(
    mixer: Attention, layer: Layer, tokens: int, precision: Precision, attention: AttentionKind, masked: bool
) -> int:
    """Return the temporary bytes inside attention for a sequence of `tokens` tokens."""
    size = precision.compute_bytes
    kernel = attention_kernel(mixer, precision, attention, masked)
    in_one = mixer.q_dim + 2 * mixer.kv_dim if mixer.fused_qkv else 0
    projected = in_one or mixer.q_dim
    rotation = size * (projected + 3 * mixer.q_dim) if mixer.rotary else 0
    if mixer.fp32_rotation:
        rotation = size * projected + 4 * mixer.q_dim * (6 if size < 4 else 4)
    normed = (size + 8) * mixer.q_dim if mixer.qk_norm != "none" and not layer.norm.native else 0
    repeated = 2 * mixer.q_dim if repeats_heads(mixer, kernel, attention, masked) else 0
    if kernel == "fused":
        attended = size * (projected + mixer.q_dim + repeated + (tokens if masked else 0))
        return max(rotation, normed, attended)
    scores = _score_scratch_bytes(mixer, tokens, kernel, precision)
    queries = in_one + mixer.q_dim if mixer.rotary or mixer.heads_first else projected
    if kernel == "eager":
        late = 0
        if mixer.late_outputs:
            kept = mixer.heads * tokens * (2 * size + _handed_out_bytes(mixer, size))
            late = size * (projected + mixer.late_outputs * mixer.q_dim) + kept
        upcast = 2 * 4 * mixer.q_dim if mixer.fp32_scores and size < 4 else 0
        return max(rotation, normed, size * (queries + repeated) + upcast + scores, late)
    copied = repeated if mixer.grouping == "native" else 2 * mixer.kv_dim
    return max(rotation, normed, size * queries + 4 * (mixer.q_dim + copied) + scores)


def _score_scratch_bytes(mixer: Attention | LatentAttention, tokens: int, kernel: Kernel, precision: Precision) -> int:
    """Return the bytes of attention scores, softmax, and the fp32 copy of bf16 scores if the softmax is in fp32.

    The cast back is smaller, and all that there is beside a softmax of fp16 scores. Matrix products hold the scores,
    the safe softmax, its result and one mask byte, and for each pair of positions its visibility and the added value.
    If a layer returns its probabilities, those of the previous one are alive too, and the scores once more, with the
    mask added, unless these replace them. Where scores are products of fp32 copies (GPT-J), they are in fp32, the
    softmax is, and the previous layer's probabilities are alive as well.

    **Source**: `softmax` of aten/src/ATen/native/SoftMax.cpp (only half precision is read as it is), `_safe_softmax`
    of aten/src/ATen/native/transformers/attention.cpp.
    """
    size = precision.compute_bytes
    softmax = softmax_bytes(mixer, kernel, precision)
    if kernel == "math":
        return mixer.heads * tokens * (3 * softmax + MASK)
    if isinstance(mixer, Attention) and mixer.fp32_scores:
        return mixer.heads * tokens * (2 * 4 + size)
    handed_out = _handed_out_bytes(mixer, size)
    copied = 0 if softmax == size else size if precision.half else softmax
    return mixer.heads * tokens * (size + copied + softmax + handed_out)


def _handed_out_bytes(mixer: Attention | LatentAttention, element_bytes: int) -> int:
    """Return the bytes per score of a previous layer's probabilities, and of scores to which the mask was added."""
    if not isinstance(mixer, Attention) or not mixer.returns_scores:
        return 0
    return element_bytes * (1 if mixer.boolean_mask else 2)


def _query_and_key_elements(mixer: LatentAttention) -> int:
    """Return the elements per token of latent attention's queries and keys, all heads together."""
    return mixer.heads * (mixer.qk_nope_head_dim + mixer.qk_rope_head_dim)


def _expanded_elements(mixer: LatentAttention) -> int:
    """Return the elements per token of keys and values expanded from the latent, all heads together."""
    return mixer.heads * (mixer.qk_nope_head_dim + mixer.v_head_dim)
