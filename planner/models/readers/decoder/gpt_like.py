"""Readers of dense decoders with biases, LayerNorm and plain feed-forward blocks: GPT-2 and its descendants.

**Source**: the modelling code of transformers 5.23; tensor names are those of the published checkpoints.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from planner.models.architecture import Architecture, Grouping
from planner.models.readers.attention_patterns import LayerAttention, full_attention, unrotated_attention
from planner.models.readers.blocks import (
    AttentionStyle,
    FeedForwardBlock,
    MixerBlock,
    MlpStyle,
    StackSizes,
    attention_blocks,
    mlp_block,
    read_sizes,
    transform_blocks,
)
from planner.models.readers.config_fields import MAX_LAYERS, ConfigFields
from planner.models.readers.decoder.assembly import DecoderFamily, DecoderFrame, assemble_decoder
from planner.models.readers.registry import Reader
from planner.models.readers.tensors import BARE_LAYER, LAYER, Tensors, embedding, linear, norm_tensors

_GPT2_FRAME: Final = DecoderFrame(
    norm=LAYER,
    norms=("ln_1", "ln_2"),
    tied=True,
    embedding="transformer.wte",
    positions="transformer.wpe",
    final_norm="transformer.ln_f",
    hidden_dropout=("resid_pdrop", 0.1),
    embedding_dropout=("embd_pdrop", 0.1),
)
_GPT2_ATTENTION: Final = AttentionStyle(
    prefix="attn.",
    names=("c_attn", "c_proj"),
    bias=True,
    out_bias=True,
    pattern=unrotated_attention,
    dropout=("attn_pdrop", 0.1),
    fp32_softmax=False,
)
_GPT2_MLP: Final = MlpStyle(names=("c_fc", "c_proj"), bias=True, activation="gelu_new", ratio=4)
_GPTJ_FRAME: Final = DecoderFrame(
    norm=LAYER,
    norms=("ln_1",),
    parallel=True,
    embedding="transformer.wte",
    final_norm="transformer.ln_f",
    head_bias=True,
    hidden_dropout=("resid_pdrop", 0.0),
    embedding_dropout=("embd_pdrop", 0.0),
)
_GPTJ_ATTENTION: Final = AttentionStyle(
    prefix="attn.",
    names=("q_proj", "k_proj", "v_proj", "out_proj"),
    dropout=("attn_pdrop", 0.0),
    sdpa=False,
    fp32_scores=True,
    returns_scores=True,
)
_BLOOM_NAMES: Final = ("query_key_value", "dense")
_WIDENING_NAMES: Final = ("dense_h_to_4h", "dense_4h_to_h")


def _gpt2_mixers(fields: ConfigFields, sizes: StackSizes, style: AttentionStyle) -> Sequence[MixerBlock]:
    """Return GPT-2's attention of every layer, whose projections are stored as (input, output)."""
    return transform_blocks(
        attention_blocks(fields, sizes, style), lambda made: made._replace(tensors=_transposed_tensors(made.tensors))
    )


def _gpt2_feed_forwards(fields: ConfigFields, sizes: StackSizes, style: MlpStyle) -> Sequence[FeedForwardBlock]:
    block, tensors = mlp_block(fields, sizes, style)
    return (FeedForwardBlock(block, _transposed_tensors(tensors)),) * sizes.layers


def _transposed_tensors(tensors: Tensors) -> Tensors:
    return tuple(tensor.evolve(shape=tensor.shape[::-1]) for tensor in tensors)


def _read_gpt_bigcode(fields: ConfigFields) -> Architecture:
    """Read GPT-BigCode, with one key/value head under `multi_query`, else one for each query head."""
    sizes = read_sizes(fields)
    sizes = sizes._replace(kv_heads=1 if fields.flag("multi_query", default=True) else sizes.heads)
    attention = _GPT2_ATTENTION._replace(fp32_softmax=fields.flag("attention_softmax_in_fp32", default=True))
    mlp = mlp_block(fields, sizes, _GPT2_MLP._replace(activation="gelu_pytorch_tanh"))
    mixers = attention_blocks(fields, sizes, attention)
    read = assemble_decoder(fields, sizes, _GPT2_FRAME, mixers, (mlp,) * sizes.layers)
    return read.evolve(mask_buffer_bytes=_mask_buffer_bytes(read))


def _mask_buffer_bytes(read: Architecture) -> int:
    """Return the bytes of one boolean for each pair of positions, which a module keeps as a buffer.

    **Source**: transformers 5.23 `GPTBigCodeModel` and `GPTNeoSelfAttention`: `self.bias`.
    """
    return (read.max_context or 0) ** 2


def _read_gpt_neo(fields: ConfigFields) -> Architecture:
    """Read GPT-Neo, whose layers attend to a window in turn, and each keep their causal mask."""
    read = _GPT_NEO.read(fields)
    return read.evolve(mask_buffer_bytes=read.depth * _mask_buffer_bytes(read))


def _gpt_neo_pattern(fields: ConfigFields, layers: int) -> tuple[LayerAttention, ...]:
    window = fields.integer("window_size", default=256)
    kinds = fields.texts_per_layer("attention_layers", layers=layers)
    if kinds is None:
        kinds = tuple(("global", "local")[index % 2] for index in range(layers))
    return tuple(LayerAttention(window if kind == "local" else None, rotary=False) for kind in kinds)


def _bloom_embedding_tensors(_: ConfigFields, sizes: StackSizes) -> Tensors:
    return (
        *embedding("transformer.word_embeddings", sizes.vocabulary, sizes.hidden),
        *norm_tensors("transformer.word_embeddings_layernorm", sizes.hidden, LAYER),
    )


def _read_mpt(fields: ConfigFields) -> Architecture:
    """Read MPT, which has ALiBi positions and no bias tensors."""
    inner = fields.nested("attn_config")
    dropout = 0.0 if inner is None else inner.dropout("attn_pdrop", default=0.0)
    frame = DecoderFrame(
        norm=BARE_LAYER,
        norms=("norm_1", "norm_2"),
        tied=True,
        embedding="transformer.wte",
        final_norm="transformer.norm_f",
        hidden_dropout=dropout,
    )
    attention = AttentionStyle(
        prefix="attn.",
        names=("Wqkv", "out_proj"),
        pattern=unrotated_attention,
        dropout=dropout,
        sdpa=False,
        returns_scores=True,
        boolean_mask=True,
        late_outputs=2,
    )
    mlp = MlpStyle(prefix="ffn.", names=("up_proj", "down_proj"), activation="gelu", width=(), ratio=4)
    return DecoderFamily(frame=frame, attention=attention, mlp=mlp).read(fields)


def _read_opt(fields: ConfigFields) -> Architecture:
    """Read OPT; the 350M model has a narrow embedding with projections, and post-norms."""
    sizes = read_sizes(fields)
    biased = ("enable_bias", True)
    weighted = fields.flag("layer_norm_elementwise_affine", default=True)
    frame = DecoderFrame(
        norm=LAYER,
        norms=("self_attn_layer_norm", "final_layer_norm") if weighted else (),
        other_norms=0 if weighted else 2,
        tied=True,
        hidden_dropout=("dropout", 0.1),
    )
    attention = AttentionStyle(
        names=("q_proj", "k_proj", "v_proj", "out_proj"), bias=biased, out_bias=biased, pattern=unrotated_attention
    )
    mlp = MlpStyle(prefix="", names=("fc1", "fc2"), bias=biased, activation="relu")
    return assemble_decoder(
        fields,
        sizes,
        frame,
        attention_blocks(fields, sizes, attention),
        (mlp_block(fields, sizes, mlp),) * sizes.layers,
        before=_opt_embedding_tensors(fields, sizes),
        after=_opt_final_tensors(fields, sizes, weighted=weighted),
        head=linear("lm_head", sizes.vocabulary, _opt_embedding_width(fields, sizes), role="head"),
    )


def _opt_embedding_width(fields: ConfigFields, sizes: StackSizes) -> int:
    return fields.integer("word_embed_proj_dim", default=sizes.hidden)


def _opt_embedding_tensors(fields: ConfigFields, sizes: StackSizes) -> Tensors:
    width = _opt_embedding_width(fields, sizes)
    # The first two rows are reserved for padding.
    rows = fields.integer("max_position_embeddings", default=2048) + 2
    tokens = embedding("model.decoder.embed_tokens", sizes.vocabulary, width)
    tables = tokens + embedding("model.decoder.embed_positions", rows, sizes.hidden)
    return tables if width == sizes.hidden else tables + linear("model.decoder.project_in", sizes.hidden, width)


def _opt_final_tensors(fields: ConfigFields, sizes: StackSizes, *, weighted: bool) -> Tensors:
    width = _opt_embedding_width(fields, sizes)
    first = fields.flag("do_layer_norm_before", default=True)
    kept = weighted and first and not fields.flag("_remove_final_layer_norm", default=False)
    norm = norm_tensors("model.decoder.final_layer_norm", sizes.hidden, LAYER) if kept else ()
    return norm if width == sizes.hidden else norm + linear("model.decoder.project_out", width, sizes.hidden)


def _read_falcon(fields: ConfigFields) -> Architecture:
    """Read Falcon: 7B has one key/value head, 40B and 180B have several, and RW one per attention head."""
    grouped = fields.flag("new_decoder_architecture", default=False)
    sizes = _falcon_sizes(fields, grouped=grouped)
    parallel = fields.flag("parallel_attn", default=True)
    bias = ("bias", False)
    frame = DecoderFrame(
        norm=LAYER,
        norms=_falcon_norm_names(fields, grouped=grouped, parallel=parallel),
        parallel=parallel or grouped,
        tied=True,
        embedding="transformer.word_embeddings",
        final_norm="transformer.ln_f",
        hidden_dropout=("hidden_dropout", 0.0),
    )
    attention = AttentionStyle(
        prefix="self_attention.",
        names=_BLOOM_NAMES,
        bias=bias,
        out_bias=bias,
        pattern=unrotated_attention if fields.flag("alibi", default=False) else full_attention,
        fp32_softmax=False,
        returns_scores=True,
    )
    mlp = MlpStyle(names=_WIDENING_NAMES, bias=bias, activation="gelu", width=("ffn_hidden_size",), ratio=4)
    grouping: Grouping = "copied" if grouped else "broadcast"
    mixers = transform_blocks(
        attention_blocks(fields, sizes, attention),
        lambda made: made._replace(mixer=made.mixer.evolve(grouping=grouping, always_masked=True)),
    )
    return assemble_decoder(fields, sizes, frame, mixers, (mlp_block(fields, sizes, mlp),) * sizes.layers)


def _falcon_sizes(fields: ConfigFields, *, grouped: bool) -> StackSizes:
    sizes = read_sizes(fields)
    kv_heads = fields.integer("num_kv_heads", "n_head_kv", default=sizes.heads, high=MAX_LAYERS)
    if not grouped:
        return sizes._replace(kv_heads=1 if fields.flag("multi_query", default=True) else sizes.heads)
    if sizes.heads % kv_heads:
        fields.fail("num_kv_heads", f"must divide the {sizes.heads} attention heads, got {kv_heads}")
    return sizes._replace(kv_heads=kv_heads)


def _falcon_norm_names(fields: ConfigFields, *, grouped: bool, parallel: bool) -> tuple[str, ...]:
    if not parallel:
        return ("input_layernorm", "post_attention_layernorm")
    two = fields.integer("num_ln_in_parallel_attn", default=2 if grouped else 1, high=2) == 2
    return ("ln_attn", "ln_mlp") if two else ("input_layernorm",)


_GPTJ: Final = DecoderFamily(
    frame=_GPTJ_FRAME,
    attention=_GPTJ_ATTENTION,
    mlp=MlpStyle(names=("fc_in", "fc_out"), bias=True, activation="gelu_new", ratio=4),
)
_GPT_NEO: Final = DecoderFamily(
    frame=_GPT2_FRAME._replace(hidden_dropout=("resid_dropout", 0.0), embedding_dropout=("embed_dropout", 0.0)),
    attention=_GPTJ_ATTENTION._replace(
        prefix="attn.attention.",
        out_bias=True,
        pattern=_gpt_neo_pattern,
        dropout=("attention_dropout", 0.0),
    ),
    mlp=_GPT2_MLP._replace(width=("intermediate_size",)),
)

READERS: Final[Mapping[str, Reader]] = {
    "gpt2": DecoderFamily(
        frame=_GPT2_FRAME,
        attention=_GPT2_ATTENTION,
        mlp=_GPT2_MLP,
        mixers=_gpt2_mixers,
        feed_forwards=_gpt2_feed_forwards,
    ).read,
    "gpt_bigcode": _read_gpt_bigcode,
    "gpt_neo": _read_gpt_neo,
    "gpt_neox": DecoderFamily(
        frame=DecoderFrame(
            norm=LAYER,
            parallel=("use_parallel_residual", True),
            embedding="gpt_neox.embed_in",
            final_norm="gpt_neox.final_layer_norm",
            head="embed_out",
            hidden_dropout=("hidden_dropout", 0.0),
            embedding_dropout=("hidden_dropout", 0.0),
        ),
        attention=AttentionStyle(
            prefix="attention.",
            names=_BLOOM_NAMES,
            bias=("attention_bias", True),
            out_bias=("attention_bias", True),
            heads_first=True,
        ),
        mlp=MlpStyle(names=_WIDENING_NAMES, bias=True, activation="gelu"),
    ).read,
    "gptj": _GPTJ.read,
    "codegen": _GPTJ._replace(attention=_GPTJ_ATTENTION._replace(names=("qkv_proj", "out_proj"))).read,
    # It normalizes its embedding and has ALiBi positions; its custom GELU saves only its input for the backward pass.
    "bloom": DecoderFamily(
        frame=DecoderFrame(
            norm=LAYER, tied=True, final_norm="transformer.ln_f", hidden_dropout=("hidden_dropout", 0.0)
        ),
        attention=AttentionStyle(
            prefix="self_attention.",
            names=_BLOOM_NAMES,
            bias=True,
            out_bias=True,
            pattern=unrotated_attention,
            sdpa=False,
            heads_first=True,
            returns_scores=True,
            late_outputs=4,
        ),
        mlp=MlpStyle(names=_WIDENING_NAMES, bias=True, activation="gelu_bloom", width=("n_inner",), ratio=4),
        before=_bloom_embedding_tensors,
    ).read,
    "mpt": _read_mpt,
    "opt": _read_opt,
    "falcon": _read_falcon,
}
