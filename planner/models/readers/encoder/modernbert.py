"""Text encoders with gated MLPs and rotary positions: ModernBERT and Nomic BERT."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from planner.models.architecture import Architecture, Attention, Layer, Mlp, Norm
from planner.models.readers.encoder.bert_like import encoder, layers, positions
from planner.models.readers.encoder.heads import MASKED, modernbert_heads, nomic_heads
from planner.models.readers.fields import Fields
from planner.models.readers.parts import (
    ACTIVATIONS,
    LAYER,
    Tensors,
    embedding,
    fused_attention_tensors,
    grouped,
    mlp_tensors,
    norm_tensors,
    repeated,
)
from planner.models.readers.registry import Reader
from planner.models.readers.towers import LayerNames, full_attention, task_head, tower_layer

_LOCAL_ATTENTION: Final = 128
_GLOBAL_EVERY: Final = 3
_NOMIC: Final = LayerNames(
    attention=("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"),
    norms=("post_attention_layernorm", "post_mlp_layernorm"),
    mlp=("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"),
)


def read_nomic(fields: Fields) -> Architecture:
    """Read Nomic BERT: BERT's order of norms with a gated MLP, rotary positions and no biases."""
    hidden = fields.integer("hidden_size")
    dropout = fields.dropout("hidden_dropout_prob")
    attention = full_attention(
        fields,
        hidden,
        "num_attention_heads",
        dropout=fields.dropout("attention_probs_dropout_prob"),
        fp32_softmax=False,
        rotary=True,
    )
    mlp = Mlp(
        intermediate=fields.integer("intermediate_size"),
        gated=True,
        activation=fields.choice("hidden_act", among=ACTIVATIONS, default="silu"),
    )
    types = fields.integer("type_vocab_size", default=2, low=0)
    return encoder(
        fields,
        task_head(fields, nomic_heads(fields, hidden), MASKED),
        hidden=hidden,
        groups=repeated(tower_layer(_NOMIC, hidden, attention, mlp, bias=False, dropout=dropout), layers(fields)),
        before=(
            *embedding("embeddings.word_embeddings", fields.integer("vocab_size"), hidden),
            *(embedding("embeddings.token_type_embeddings", types, hidden) if types else ()),
            *norm_tensors("embeddings.LayerNorm", hidden, LAYER),
        ),
        max_context=positions(fields),
        dropout=dropout,
    )


class _Kind(NamedTuple):
    """What differs between layers of ModernBERT."""

    local: bool
    first: bool


def read_modernbert(fields: Fields) -> Architecture:
    """Read ModernBERT: fused projections, windows in two layers of three, and no norm before the first attention."""
    hidden = fields.integer("hidden_size")
    norm = Norm(kind="layer", bias=fields.flag("norm_bias", default=False))
    return encoder(
        fields,
        task_head(fields, modernbert_heads(fields, hidden, norm), MASKED),
        hidden=hidden,
        groups=grouped(_kinds(fields, layers(fields)), lambda kind: _modernbert_layer(fields, hidden, norm, kind)),
        before=(
            *embedding("embeddings.tok_embeddings", fields.integer("vocab_size"), hidden),
            *norm_tensors("embeddings.norm", hidden, norm),
        ),
        after=norm_tensors("final_norm", hidden, norm),
        loss_reads="fp32-copy",
        max_context=positions(fields),
        dropout=fields.dropout("embedding_dropout"),
    )


def _kinds(fields: Fields, count: int) -> tuple[_Kind, ...]:
    every = fields.integer("global_attn_every_n_layers", default=_GLOBAL_EVERY)
    stated = fields.texts("layer_types")
    if stated is None:
        return tuple(_Kind(bool(place % every), place == 0) for place in range(count))
    if len(stated) != count:
        fields.fail("layer_types", f"has {len(stated)} entries for {count} layers")
    return tuple(_Kind(name == "sliding_attention", place == 0) for place, name in enumerate(stated))


def _modernbert_layer(fields: Fields, hidden: int, norm: Norm, kind: _Kind) -> Layer:
    attention = _modernbert_attention(fields, hidden, kind)
    mlp = Mlp(
        intermediate=fields.integer("intermediate_size"),
        gated=True,
        activation=fields.choice("hidden_activation", among=ACTIVATIONS, default="gelu"),
        fused_gate_up=True,
        dropout=fields.dropout("mlp_dropout"),
    )
    norms = ("mlp_norm",) if kind.first else ("attn_norm", "mlp_norm")
    bias = fields.flag("attention_bias", default=False)
    projections: Tensors = (
        *fused_attention_tensors(attention, hidden, prefix="attn.", names=("Wqkv", "Wo"), bias=bias, out_bias=bias),
        *mlp_tensors(mlp, hidden, names=("Wi", "Wo"), bias=fields.flag("mlp_bias", default=False)),
    )
    return Layer(
        mixer=attention,
        feed_forward=mlp,
        norm=norm,
        norm_count=len(norms),
        tensors=(*projections, *(found for name in norms for found in norm_tensors(name, hidden, norm))),
    )


def _modernbert_attention(fields: Fields, hidden: int, kind: _Kind) -> Attention:
    whole = full_attention(
        fields, hidden, "num_attention_heads", dropout=fields.dropout("attention_dropout"), rotary=True
    )
    # Half of the window lies ahead: an encoder sees both sides.
    window = fields.integer("local_attention", default=_LOCAL_ATTENTION) if kind.local else None
    return whole.evolve(fused_qkv=True, window=window)


READERS: Final[Mapping[str, Reader]] = {"modernbert": read_modernbert, "nomic_bert": read_nomic}
