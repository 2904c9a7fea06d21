"""Activations that one transformer layer saves for the backward pass, operation by operation.

Each operation of a layer saves the inputs of its derivative: bytes per token, separately for norms, attention,
feed-forward and dropout, so that every share has its own formula.

**Source**: the saved tensors of PyTorch 2.13's operators and of the step-by-step modules of transformers 5.23,
checked by `tests/memory/test_formulas_against_traces.py` against traces, operator by operator.
"""

from functools import lru_cache
from typing import Final, NamedTuple

from planner.memory.kernels import MASK, AttentionKind, attention_kernel, repeats_heads, softmax_bytes
from planner.memory.precision import Precision
from planner.memory.training.saved import SavedPerToken
from planner.models.architecture import (
    Activation,
    Attention,
    LatentAttention,
    Layer,
    Mixer,
    Mlp,
    Moe,
    Norm,
    StateMixer,
)

STATISTIC: Final = 4
"""Bytes of one fp32 statistic that an operator saves, such as a norm's mean or a softmax's log-sum-exp."""


class _ActivationTensors(NamedTuple):
    """Number of tensors of intermediate width saved by an activation function and the product after it.

    `fp32` of them are in fp32 under autocast, which computes powers there (`pow` is in CUDA's list, not in the CPU's);
    what is cast for them is saved in the computing format, too, where its own gradient reads it (`cast`).
    """

    tensors: int
    fp32: int = 0
    cast: int = 0


KEPT_BY_ACTIVATION: Final[dict[Activation, _ActivationTensors]] = {
    "silu": _ActivationTensors(2),
    "gelu": _ActivationTensors(2),
    "gelu-tanh": _ActivationTensors(2),
    "gelu-new": _ActivationTensors(5, fp32=3),
    "gelu-fast": _ActivationTensors(8),
    "gelu-bloom": _ActivationTensors(2),
    "quick-gelu": _ActivationTensors(3),
    "relu": _ActivationTensors(1),
    "relu2": _ActivationTensors(2, fp32=1, cast=1),
    "clamped-swiglu": _ActivationTensors(5),
}


def saves_activation_output(activation: Activation, *, gated: bool) -> bool:
    """Return whether an activation function saves its output, not its input (ReLU)."""
    return activation == "relu" and not gated


def feed_forward_bytes(block: Mlp | Moe | None, hidden: int, precision: Precision) -> int:
    """Return the activation bytes per token saved by a feed-forward block, routed experts included."""
    if block is None:
        return 0
    size = precision.compute_bytes
    if isinstance(block, Mlp):
        copied = block.dropout or (block.recast and precision.autocast and precision.parameter_bytes == 4)
        dropped = size if saves_activation_output(block.activation, gated=block.gated) and copied else 0
        normed = _inner_norm_bytes(precision) if block.inner_norm else 0
        return block.intermediate * (
            _bytes_per_intermediate_element(block.gated, block.activation, precision) + dropped + normed
        )
    gate = size * hidden if block.shared_gate else 0
    shared = block.shared_intermediate * _bytes_per_intermediate_element(True, block.activation, precision) + gate
    return _experts_saved_bytes(block, hidden, precision) + shared + _router_saved_bytes(block, hidden, precision)


def freed_bytes_before_experts(block: Moe, hidden: int, precision: Precision) -> int:
    """Return the bytes per token of a shared expert that the backward pass frees before the routed experts.

    **Source**: transformers' DeepSeek. A shared expert whose output is weighted runs before the routed ones (Qwen2).
    """
    if not block.shared_intermediate or block.shared_gate:
        return 0
    read = precision.compute_bytes * hidden * (2 if precision.autocast else 1)
    return read + block.shared_intermediate * _bytes_per_intermediate_element(True, block.activation, precision)


def _experts_saved_bytes(block: Moe, hidden: int, precision: Precision) -> int:
    """Return the bytes per token saved by routed experts: inputs, intermediate tensors and outputs."""
    wide = 2 * hidden + block.intermediate * ((2 if block.gated else 0) + KEPT_BY_ACTIVATION[block.activation].tensors)
    if not (block.every_expert and precision.autocast):
        return block.visits * precision.residual_bytes * wide
    read = (precision.residual_bytes + precision.compute_bytes) * hidden
    inner = block.intermediate * _bytes_per_intermediate_element(block.gated, block.activation, precision)
    return block.visits * (read + inner)


def _router_saved_bytes(block: Moe, hidden: int, precision: Precision) -> int:
    """Return the bytes per token saved by the router: its probabilities, and an fp32 copy of its input."""
    copied = 4 * hidden if block.fp32_router and precision.residual_bytes < 4 else 0
    return copied + STATISTIC * block.experts


def _bytes_per_intermediate_element(gated: bool, activation: Activation, precision: Precision) -> int:
    """Return the saved bytes per element of the intermediate width: activation, gate and product.

    A gate is multiplied with the activation as it is, in fp32 too.
    """
    kept = KEPT_BY_ACTIVATION[activation]
    in_fp32 = kept.fp32 + (1 if gated and kept.fp32 else 0)
    wider = in_fp32 * (4 - precision.compute_bytes) + kept.cast * precision.compute_bytes if precision.autocast else 0
    return precision.compute_bytes * (kept.tensors + (2 if gated else 0)) + wider


def _inner_norm_bytes(precision: Precision) -> int:
    """Return what a step-by-step norm before the last projection saves per element of the intermediate width.

    **Formula**: 4 + w: the input in fp32, and that scaled, in place of the product. Under autocast squared ReLU makes
    the product fp32, and that scaled, too; the last projection reads a copy of it in w.

    **Source**: transformers 5.23 BitNetMLP: `down_proj(ffn_sub_norm(act_fn(gate_proj(x)) * up_proj(x)))`.
    """
    return 4 + (4 if precision.autocast and precision.parameter_bytes == 4 else precision.compute_bytes)


INDEX: Final = 8
"""Bytes of one saved 64-bit index, such as that of a maximum, an expert or a position bucket."""


@lru_cache(maxsize=4096)
def saved_by_layer(
    layer: Layer, hidden: int, precision: Precision, attention: AttentionKind, masked: bool = False
) -> SavedPerToken:
    """Return the activation bytes saved by one `layer`; `masked`: the fused kernel gets an explicit mask.

    **Formula** (bf16, RMSNorm, gated MLP, flash): 16h + 4q + 4kv + 8i + 4a + 8 bytes per token, made of norms
    2 · (4h + 2h + 2h + 4), attention 2q + 2kv + 2kv + 2q + 4a, feed-forward 4 · 2i.
    """
    norms = _norms_and_readers_bytes(layer, hidden, precision) + layer_scale_bytes(layer, hidden, precision)
    saved = SavedPerToken(
        norms=norms // layer.stream_shards,
        feed_forward=feed_forward_bytes(layer.feed_forward, hidden, precision),
        dropout=dropout_bytes(layer, hidden),
        bias=position_bias_bytes(layer.mixer, precision, attention),
    )
    for mixer in (layer.mixer, layer.second_mixer):
        if mixer is not None:
            saved += saved_by_mixer(mixer, precision, attention, layer, masked)
    return saved + saved_by_cross_attention(layer.cross_attention, hidden, precision, attention)


def norm_bytes(norm: Norm, width: int, precision: Precision) -> int:
    """Return the bytes per token saved by one norm over `width` elements, without its output.

    **Formula**: fused LayerNorm r·h + 8; fused RMSNorm r·h + 4; step-by-step RMSNorm 4h (fp32 input) + 4 (reciprocal
    root) + r·h (normalized input in the stream's format; 4h where the weight multiplies in fp32) + r·h where the input
    itself is scaled and r < 4; step-by-step LayerNorm 4h more, since the centred input is computed twice.
    """
    return _grouped_norm_bytes(norm, width, precision.compute_bytes if norm.autocasts else precision.residual_bytes)


def _readers_copy(layer: Layer, precision: Precision) -> bool:
    """Return whether each projection of a norm's output saves a cast copy of its own, as under autocast."""
    return precision.autocast and not layer.norm.autocasts


def _mixer_reader_count(layer: Layer) -> int:
    """Return how many projections read the normed input of a layer's mixer."""
    if isinstance(layer.mixer, Attention):
        return 1 if layer.mixer.fused_qkv else 3
    if isinstance(layer.mixer, LatentAttention):
        return 2
    return 0 if layer.mixer is None else 1


def _feed_forward_reader_count(block: Mlp | Moe | None) -> int:
    """Return how many projections read the feed-forward block's normed input; routed experts read a copy."""
    if isinstance(block, Mlp):
        return 2 if block.gated and not block.fused_gate_up else 1
    if isinstance(block, Moe):
        return 1 + (2 if block.shared_intermediate else 0) + (1 if block.shared_gate else 0)
    return 0


def _norms_and_readers_bytes(layer: Layer, hidden: int, precision: Precision) -> int:
    """Return the bytes per token saved by a layer's norms and by the projections of their outputs.

    Without autocast the readers share the norm's output. Under autocast each of them keeps a cast copy of its own,
    unless the norm itself ran in the computing format.
    Norms side by side (parallel blocks) share one input. Norms after a block read a projection's output.
    """
    readers = (
        _mixer_reader_count(layer),
        _feed_forward_reader_count(layer.feed_forward),
        1 if layer.cross_attention else 0,
    )
    copied = _readers_copy(layer, precision)
    inputs = sum(readers) if copied else sum(1 for count in readers if count)
    if layer.parallel and not copied:
        inputs = max(layer.norm_count, 1) if inputs else 0
    behind = _norm_count_after_blocks(layer)
    own = (layer.norm_count - behind) * norm_bytes(layer.norm, hidden, precision)
    own += norm_bytes_after_blocks(layer, hidden, precision)
    if layer.parallel and layer.norm.native:
        own -= (layer.norm_count - 1) * precision.residual_bytes * hidden
    return own + inputs * precision.compute_bytes * hidden


def _norm_count_after_blocks(layer: Layer) -> int:
    """Return the number of a layer's norms that follow a block and feed no projection."""
    readers = (
        _mixer_reader_count(layer),
        _feed_forward_reader_count(layer.feed_forward),
        1 if layer.cross_attention else 0,
    )
    return 0 if layer.parallel else max(layer.norm_count - sum(1 for count in readers if count), 0)


def norm_bytes_after_blocks(layer: Layer, hidden: int, precision: Precision) -> int:
    """Return the bytes per token saved by norms that follow a block and normalize its output."""
    return _norm_count_after_blocks(layer) * _grouped_norm_bytes(layer.norm, hidden, precision.compute_bytes)


def feed_forward_norm_and_readers_bytes(layer: Layer, hidden: int, precision: Precision) -> int:
    """Return the bytes per token saved by the norm before the feed-forward block and by its output's projections."""
    if layer.parallel or layer.norm_count < 2:
        return 0
    readers = _feed_forward_reader_count(layer.feed_forward)
    inputs = readers if _readers_copy(layer, precision) else min(readers, 1)
    return norm_bytes(layer.norm, hidden, precision) + inputs * precision.compute_bytes * hidden


def mixer_output_width(mixer: Mixer | None) -> int:
    """Return the number of elements per token that a mixer passes to its output projection."""
    if isinstance(mixer, Attention):
        return mixer.q_dim
    if isinstance(mixer, LatentAttention):
        return mixer.heads * mixer.v_head_dim
    return mixer.inner_dim if mixer is not None else 0


def saved_by_mixer(
    mixer: Mixer,
    precision: Precision,
    kind: AttentionKind,
    layer: Layer,
    masked: bool,
) -> SavedPerToken:
    """Return the activation bytes saved by `mixer`: per token, and per query-key pair for scores."""
    if isinstance(mixer, StateMixer):
        # The stream around the convolution, the gate, and the result of the scan.
        return SavedPerToken(attention=4 * precision.compute_bytes * mixer.inner_dim)
    if isinstance(mixer, LatentAttention):
        return _saved_by_latent_attention(mixer, precision, kind)
    return _saved_by_attention(mixer, precision, kind, layer, masked)


def _saved_by_attention(
    mixer: Attention, precision: Precision, kind: AttentionKind, layer: Layer, masked: bool
) -> SavedPerToken:
    """Return the activation bytes saved by attention: per token, and per query-key pair for scores or masks."""
    size = precision.compute_bytes
    kernel = attention_kernel(mixer, precision, kind, masked)
    q, kv = mixer.q_dim, mixer.kv_dim
    keys_values = 2 * (q if repeats_heads(mixer, kernel, kind, masked) else kv)
    if mixer.fused_qkv and mixer.rotary and kernel == "fused":
        keys_values += q + kv if keys_values == 2 * kv else 0
    kept = size * (2 * q + keys_values)
    kept += _qk_norm_bytes(layer.norm, mixer, precision)
    if kernel == "fused":
        kept += _fused_output_bytes(mixer, precision, masked)
        kept += size * q if mixer.joined and kind == "sdpa" else 0
        return SavedPerToken(attention=kept, scores=size if masked else 0)
    if kernel == "math":
        return SavedPerToken(attention=kept + (4 - size) * 3 * q, scores=4 * mixer.heads)
    capped = mixer.heads * size if mixer.softcap else 0
    copied = 2 * (4 - size) * q if mixer.fp32_scores and not precision.autocast else 0
    sinks = INDEX * mixer.heads if mixer.sinks else 0
    gathered = size * mixer.heads * sum(mixer.gathered_rows)
    hidden_pairs = MASK if mixer.gathered_rows else 0
    return SavedPerToken(
        attention=kept + copied + sinks + gathered, scores=_score_matrix_bytes(mixer, precision) + capped + hidden_pairs
    )


def _fused_output_bytes(mixer: Attention, precision: Precision, masked: bool) -> int:
    """Return the bytes per token saved of a fused kernel's row sums, and of its output if it is copied."""
    flash = precision.compute_bytes < 4 and not masked
    return STATISTIC * mixer.heads + (precision.compute_bytes * mixer.q_dim if mixer.heads_first and flash else 0)


def saved_by_cross_attention(
    mixer: Attention | None, hidden: int, precision: Precision, kind: AttentionKind
) -> SavedPerToken:
    """Return the bytes saved by cross-attention: per decoder token, and per encoder token for keys and values.

    Under autocast the projections of keys and values each save a cast copy of the encoder's output.
    """
    if mixer is None:
        return SavedPerToken()
    size = precision.compute_bytes
    kernel = attention_kernel(mixer, precision, kind, mixer.position_bias)
    casts = 2 * size * hidden if precision.autocast else 0
    fused = kernel == "fused"
    return SavedPerToken(
        attention=size * 2 * mixer.q_dim + (_fused_output_bytes(mixer, precision, mixer.position_bias) if fused else 0),
        source=size * 2 * mixer.kv_dim + casts,
        source_scores=0 if fused else _score_matrix_bytes(mixer, precision),
    )


def position_bias_bytes(mixer: object, precision: Precision, kind: AttentionKind) -> int:
    """Return the bytes per query-key pair of the position bias that the fused kernel receives as a mask."""
    if not isinstance(mixer, Attention) or not mixer.position_bias or kind == "eager":
        return 0
    return mixer.heads * precision.compute_bytes


def _grouped_norm_bytes(norm: Norm, width: int, element_bytes: int, groups: int = 1) -> int:
    """Return the bytes per token saved by a norm of `groups` vectors with `width` elements in total."""
    if norm.native:
        read = 4 if norm.upcast else element_bytes
        return read * width + STATISTIC * groups * (2 if norm.kind == "layer" else 1)
    centred = 4 if norm.kind == "layer" else 0
    scaled = element_bytes if norm.keeps_input and element_bytes < 4 else 0
    return (4 + centred + scaled + (4 if norm.fp32_product else element_bytes)) * width + STATISTIC * groups


def _qk_norm_bytes(norm: Norm, mixer: Attention, precision: Precision) -> int:
    """Return the bytes per token saved by the norms of queries and keys.

    Without weights its output is what attention saves anyway.
    """
    if mixer.qk_norm == "none":
        return 0
    if mixer.qk_norm == "bare":
        return 4 * (mixer.q_dim + mixer.kv_dim) + STATISTIC * (mixer.heads + mixer.kv_heads)
    groups = (mixer.heads + mixer.kv_heads) if mixer.qk_norm == "head" else 2
    return _grouped_norm_bytes(norm, mixer.q_dim + mixer.kv_dim, precision.compute_bytes, groups)


def _score_matrix_bytes(mixer: Attention | LatentAttention, precision: Precision) -> int:
    """Return the bytes per query-key pair saved of eager attention: softmax, its cast, dropout's mask and result."""
    size = precision.compute_bytes
    softmax = softmax_bytes(mixer, "eager", precision)
    cast = 0 if softmax == size else size
    dropout = isinstance(mixer, Attention) and mixer.dropout
    dropped = (MASK + (size if not cast else 0)) if dropout else 0
    return mixer.heads * (softmax + cast + dropped)


def _saved_by_latent_attention(mixer: LatentAttention, precision: Precision, kind: AttentionKind) -> SavedPerToken:
    """Return the activation bytes saved by latent attention: per token, and per query-key pair for scores."""
    size = precision.compute_bytes
    query_key = mixer.heads * (mixer.qk_nope_head_dim + mixer.qk_rope_head_dim)
    value = mixer.heads * mixer.v_head_dim
    expanded = mixer.heads * (mixer.qk_nope_head_dim + mixer.v_head_dim)
    latents = (mixer.q_lora_rank or 0) + mixer.kv_lora_rank
    normed = (4 + size) * latents + size * latents + STATISTIC * (2 if mixer.q_lora_rank else 1)
    if kind == "eager":
        kept = size * (2 * query_key + 2 * value) + normed
        return SavedPerToken(attention=kept, scores=_score_matrix_bytes(mixer, precision))
    kept = size * (2 * query_key + expanded + value) + normed
    return SavedPerToken(attention=kept + STATISTIC * mixer.heads)


def layer_scale_bytes(layer: Layer, hidden: int, precision: Precision) -> int:
    """Return the bytes per token of block outputs saved for the gradient of a learned layer scale."""
    blocks = sum(1 for part in (layer.mixer, layer.cross_attention, layer.feed_forward) if part is not None)
    return blocks * precision.compute_bytes * hidden if layer.scaled else 0


def dropout_bytes(layer: Layer, hidden: int) -> int:
    """Return the bytes per token of dropout masks: of block outputs, and of activations."""
    blocks = sum(1 for part in (layer.mixer, layer.cross_attention, layer.feed_forward) if part is not None)
    inner = 0
    block = layer.feed_forward
    if isinstance(block, Mlp) and block.dropout:
        inner = MASK * block.intermediate
    return inner + (MASK * hidden * blocks // layer.stream_shards if layer.hidden_dropout else 0)
