"""Reader of Gemma 4: wider heads in full-attention layers, shared keys and values, and per-layer embeddings.

**Source**: the modelling code of transformers 5.23, `models/gemma4`.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from planner.models.architecture import Architecture, Attention, Tensor
from planner.models.readers.attention_patterns import windowed_layers
from planner.models.readers.blocks import FeedForwardBlock, MixerBlock, StackSizes, dense_mlp, read_sizes
from planner.models.readers.config_fields import MAX_LAYERS, ConfigFields
from planner.models.readers.decoder.assembly import DecoderFrame, ExpertStyle, assemble_decoder, moe_block
from planner.models.readers.decoder.llama_like import GELU_GLU, GEMMA_NORMS
from planner.models.readers.registry import Reader
from planner.models.readers.tensors import FP32_RMS, Tensors, embedding, linear, mlp_tensors, norm_tensors

_EXPERT_NORMS: Final = (
    "post_feedforward_layernorm_1",
    "post_feedforward_layernorm_2",
    "pre_feedforward_layernorm_2",
)
_EXPERTS: Final = ExpertStyle(
    experts=("num_experts",),
    top_k=("top_k_experts",),
    router="router.proj",
    prefix="experts.",
    names=("gate_up_proj", "down_proj"),
    layout="stacked",
)


class _LayerKind(NamedTuple):
    """Properties of a Gemma 4 layer that differ between layers."""

    window: int | None
    head_dim: int
    kv_heads: int
    shares: bool


def _read_gemma4(fields: ConfigFields) -> Architecture:
    sizes = read_sizes(fields, kv_heads=4, head_dim=256)
    width = fields.integer("hidden_size_per_layer_input", default=256, low=0)
    experts = fields.flag("enable_moe_block", default=False)
    kinds = _layer_kinds(fields, sizes)
    own = _layer_embedding_tensors(width, sizes.hidden)
    mixers = {kind: _attention_block(fields, sizes, kind, own) for kind in set(kinds)}
    feed_forwards = {
        shares: _feed_forward_block(fields, sizes, shares=shares, experts=experts) for shares in (False, True)
    }
    frame = DecoderFrame(
        norm=FP32_RMS,
        norms=GEMMA_NORMS + (_EXPERT_NORMS if experts else ()),
        other_norms=1 if width else 0,
        tied=True,
    )
    return assemble_decoder(
        fields,
        sizes,
        frame,
        [mixers[kind] for kind in kinds],
        [feed_forwards[kind.shares] for kind in kinds],
        before=_embedding_tensors(fields, sizes, width) if width else None,
    )


def _layer_kinds(fields: ConfigFields, sizes: StackSizes) -> tuple[_LayerKind, ...]:
    layers = sizes.layers
    limited = windowed_layers(fields, layers) or tuple((index + 1) % 6 != 0 for index in range(layers))
    window = fields.integer("sliding_window", default=512, high=10**9)
    shared = fields.integer("num_kv_shared_layers", default=0, low=0, high=layers)
    listed = fields.nested("per_layer_config")
    wide = fields if listed is None else None
    kinds = []
    for index, few in enumerate((*limited[:-1], False)):  # the last layer always has full attention
        head_dim, kv_heads = (
            _full_attention_heads(wide, sizes) if wide and not few else (sizes.head_dim, sizes.kv_heads)
        )
        if listed and (own := listed.nested(str(index), f"{index:02}", f"{index:03}")):
            head_dim = own.integer("head_dim", default=head_dim)
            kv_heads = own.integer("num_key_value_heads", default=kv_heads, high=MAX_LAYERS)
        kinds.append(_LayerKind(window if few else None, head_dim, kv_heads, shares=index >= layers - shared))
    return tuple(kinds)


def _full_attention_heads(fields: ConfigFields, sizes: StackSizes) -> tuple[int, int]:
    own = sizes.kv_heads
    if fields.flag("attention_k_eq_v", default=False):
        own = fields.integer("num_global_key_value_heads", default=own, high=MAX_LAYERS)
    return fields.integer("global_head_dim", default=512), own


def _attention_block(fields: ConfigFields, sizes: StackSizes, kind: _LayerKind, own_embedding: Tensors) -> MixerBlock:
    bias = fields.flag("attention_bias", default=False)
    mixer = Attention(
        heads=sizes.heads,
        kv_heads=kind.kv_heads,
        head_dim=kind.head_dim,
        window=kind.window,
        qk_norm="head",
        dropout=fields.dropout("attention_dropout"),
        kv_shared=kind.shares,
    )
    keys_are_values = kind.window is None and fields.flag("attention_k_eq_v", default=False)
    tensors = (
        *linear("self_attn.q_proj", mixer.q_dim, sizes.hidden, bias=bias),
        *norm_tensors("self_attn.q_norm", mixer.head_dim, FP32_RMS),
        *(() if kind.shares else _key_tensors(mixer, sizes.hidden, bias=bias)),
        *(() if kind.shares or keys_are_values else linear("self_attn.v_proj", mixer.kv_dim, sizes.hidden, bias=bias)),
        *linear("self_attn.o_proj", sizes.hidden, mixer.q_dim, bias=bias),
    )
    return MixerBlock(mixer, tensors + own_embedding)


def _key_tensors(mixer: Attention, hidden: int, *, bias: bool) -> Tensors:
    norm = norm_tensors("self_attn.k_norm", mixer.head_dim, FP32_RMS)
    return linear("self_attn.k_proj", mixer.kv_dim, hidden, bias=bias) + norm


def _feed_forward_block(fields: ConfigFields, sizes: StackSizes, *, shares: bool, experts: bool) -> FeedForwardBlock:
    """Return a dense feed-forward block, with parallel experts if `experts`, and perhaps twice as wide if `shares`."""
    dense = dense_mlp(fields, sizes, GELU_GLU)
    if shares and fields.flag("use_double_wide_mlp", default=False):
        dense = dense.evolve(intermediate=2 * dense.intermediate)
    tensors = mlp_tensors(dense, sizes.hidden)
    if not experts:
        return FeedForwardBlock(dense, tensors)
    style = _EXPERTS._replace(activation=dense.activation)
    moe, routed = moe_block(fields, sizes.hidden, style)
    scales = (
        Tensor(name="router.scale", shape=(sizes.hidden,), role="other"),
        Tensor(name="router.per_expert_scale", shape=(fields.integer("num_experts", high=MAX_LAYERS),), role="other"),
    )
    return FeedForwardBlock(moe.evolve(shared_intermediate=dense.intermediate), (*tensors, *routed, *scales))


def _layer_embedding_tensors(width: int, hidden: int) -> Tensors:
    if not width:
        return ()
    return (
        *linear("per_layer_input_gate", width, hidden),
        *linear("per_layer_projection", hidden, width),
        *norm_tensors("post_per_layer_input_norm", hidden, FP32_RMS),
    )


def _embedding_tensors(fields: ConfigFields, sizes: StackSizes, width: int) -> Tensors:
    rows = fields.integer("vocab_size_per_layer_input", default=262_144)
    return (
        *embedding("model.embed_tokens", sizes.vocabulary, sizes.hidden),
        *embedding("model.embed_tokens_per_layer", rows, sizes.layers * width),
        *linear("model.per_layer_model_projection", sizes.layers * width, sizes.hidden),
        *norm_tensors("model.per_layer_projection_norm", width, FP32_RMS),
    )


READERS: Final[Mapping[str, Reader]] = {"gemma4_text": _read_gemma4}
