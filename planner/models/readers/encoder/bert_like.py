"""Text encoders that normalise behind each block: BERT and its descendants."""

from collections.abc import Mapping
from typing import Final

from planner.models.architecture import Architecture, Layer, LayerGroup, LossReads, Stack
from planner.models.readers.encoder.heads import (
    MASKED,
    albert_heads,
    bert_heads,
    dense,
    distilbert_heads,
    electra_heads,
    roberta_heads,
)
from planner.models.readers.fields import MAX_LAYERS, Fields
from planner.models.readers.parts import LAYER, Tensors, embedding, norm_tensors, repeated, shared
from planner.models.readers.registry import Reader
from planner.models.readers.towers import Head, LayerNames, full_attention, plain_mlp, task_head, tower_layer

_MAX_POSITIONS: Final = 512
_TOKEN_TYPES: Final = 2
_RELATIVE_BUCKETS: Final = 32
_DROPOUT: Final = 0.1

BERT: Final = LayerNames(
    attention=("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"),
    norms=("attention.output.LayerNorm", "output.LayerNorm"),
    mlp=("intermediate.dense", "output.dense"),
)
_DISTILBERT: Final = LayerNames(
    attention=("attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin"),
    norms=("sa_layer_norm", "output_layer_norm"),
    mlp=("ffn.lin1", "ffn.lin2"),
)
_MPNET: Final = LayerNames(
    attention=("attention.attn.q", "attention.attn.k", "attention.attn.v", "attention.attn.o"),
    norms=("attention.LayerNorm", "output.LayerNorm"),
    mlp=("intermediate.dense", "output.dense"),
)
_ALBERT: Final = LayerNames(
    attention=("attention.query", "attention.key", "attention.value", "attention.dense"),
    norms=("attention.LayerNorm", "full_layer_layer_norm"),
    mlp=("ffn", "ffn_output"),
)


def encoder(
    fields: Fields,
    head: Head,
    *,
    hidden: int,
    groups: tuple[LayerGroup, ...],
    before: Tensors,
    max_context: int,
    dropout: float,
    after: Tensors = (),
    loss_reads: LossReads = "logits",
) -> Architecture:
    """Return a network of one text encoder and the head of its task."""
    stack = Stack(
        name="encoder",
        hidden=hidden,
        groups=groups,
        before=before,
        after=(*after, *head.after),
        embedding_dropout=dropout,
    )
    return Architecture(
        model_type=fields.model_type,
        kind="encoder",
        hidden=hidden,
        vocabulary=fields.integer("vocab_size"),
        max_context=max_context,
        stacks=(stack,),
        head=head.head,
        tied_head=head.tied,
        labels=head.labels,
        loss_reads=loss_reads,
    )


def read_bert(fields: Fields) -> Architecture:
    """Read BERT."""
    hidden = fields.integer("hidden_size")
    return encoder(
        fields,
        task_head(fields, bert_heads(fields, hidden), MASKED),
        hidden=hidden,
        groups=repeated(bert_layer(fields, BERT, hidden), layers(fields)),
        before=tables(fields, hidden),
        max_context=positions(fields),
        dropout=hidden_dropout(fields),
    )


def read_electra(fields: Fields) -> Architecture:
    """Read ELECTRA, whose embeddings may be narrower than the encoder."""
    hidden = fields.integer("hidden_size")
    width = fields.integer("embedding_size", default=hidden)
    project = () if width == hidden else dense("embeddings_project", hidden, width)
    return encoder(
        fields,
        task_head(fields, electra_heads(fields, hidden), MASKED),
        hidden=hidden,
        groups=repeated(bert_layer(fields, BERT, hidden), layers(fields)),
        before=(*tables(fields, width), *project),
        max_context=positions(fields),
        dropout=hidden_dropout(fields),
    )


def read_roberta(fields: Fields) -> Architecture:
    """Read RoBERTa, XLM-RoBERTa and CamemBERT."""
    hidden = fields.integer("hidden_size")
    return encoder(
        fields,
        task_head(fields, roberta_heads(fields, hidden), MASKED),
        hidden=hidden,
        groups=repeated(bert_layer(fields, BERT, hidden), layers(fields)),
        before=tables(fields, hidden),
        max_context=_positions_behind_padding(fields),
        dropout=hidden_dropout(fields),
    )


def read_mpnet(fields: Fields) -> Architecture:
    """Read MPNet, which adds one table of relative positions for all layers."""
    hidden = fields.integer("hidden_size")
    layer = bert_layer(fields, _MPNET, hidden, sdpa=False)
    buckets = fields.integer("relative_attention_num_buckets", default=_RELATIVE_BUCKETS)
    heads = fields.integer("num_attention_heads", high=MAX_LAYERS)
    return encoder(
        fields,
        task_head(fields, roberta_heads(fields, hidden), MASKED),
        hidden=hidden,
        groups=repeated(layer, layers(fields)),
        before=(*tables(fields, hidden, types=0), *embedding("encoder.relative_attention_bias", buckets, heads)),
        max_context=_positions_behind_padding(fields),
        dropout=hidden_dropout(fields),
    )


def read_distilbert(fields: Fields) -> Architecture:
    """Read DistilBERT, which has field names of its own and no token types."""
    hidden = fields.integer("dim", "hidden_size")
    dropout = fields.dropout("dropout", default=_DROPOUT)
    layer = tower_layer(
        _DISTILBERT,
        hidden,
        full_attention(
            fields,
            hidden,
            "n_heads",
            "num_attention_heads",
            dropout=fields.dropout("attention_dropout", default=_DROPOUT),
            fp32_softmax=False,
        ),
        plain_mlp(fields, fields.integer("hidden_dim", "intermediate_size"), "activation"),
        dropout=dropout,
        post_norms=True,
    )
    return encoder(
        fields,
        task_head(fields, distilbert_heads(fields, hidden), MASKED),
        hidden=hidden,
        groups=repeated(layer, fields.integer("n_layers", "num_hidden_layers", high=MAX_LAYERS)),
        before=tables(fields, hidden, types=0),
        max_context=positions(fields),
        dropout=dropout,
    )


def read_albert(fields: Fields) -> Architecture:
    """Read ALBERT, whose layers share one set of tensors.

    **Assumes** one group of one inner layer, as in all published checkpoints.
    """
    hidden = fields.integer("hidden_size")
    width = fields.integer("embedding_size")
    for name in ("num_hidden_groups", "inner_group_num"):
        fields.integer(name, default=1, high=1)
    count = layers(fields)
    fields.note(f"all {count} layers share one set of weights, counted once; each keeps its own activations")
    return encoder(
        fields,
        task_head(fields, albert_heads(fields, hidden), MASKED),
        hidden=hidden,
        groups=shared(bert_layer(fields, _ALBERT, hidden, default_dropout=0.0), count),
        before=(*tables(fields, width), *dense("encoder.embedding_hidden_mapping_in", hidden, width)),
        max_context=positions(fields),
        dropout=hidden_dropout(fields, default=0.0),
    )


def tables(
    fields: Fields, width: int, *, types: int | None = None, absolute: bool = True, norm: int | None = None
) -> Tensors:
    """Return the embeddings of words, positions and token types, and their norm, by default as wide as they are."""
    rows = fields.integer("type_vocab_size", default=_TOKEN_TYPES, low=0) if types is None else types
    return (
        *embedding("embeddings.word_embeddings", fields.integer("vocab_size"), width),
        *(embedding("embeddings.position_embeddings", positions(fields), width) if absolute else ()),
        *(embedding("embeddings.token_type_embeddings", rows, width) if rows else ()),
        *norm_tensors("embeddings.LayerNorm", width if norm is None else norm, LAYER),
    )


def bert_layer(
    fields: Fields,
    names: LayerNames,
    hidden: int,
    *,
    extra: Tensors = (),
    default_dropout: float = _DROPOUT,
    sdpa: bool = True,
) -> Layer:
    """Return one layer under BERT's field names, with further tensors of the family."""
    attention_dropout = fields.dropout("attention_probs_dropout_prob", default=default_dropout)
    return tower_layer(
        names,
        hidden,
        full_attention(fields, hidden, "num_attention_heads", dropout=attention_dropout, fp32_softmax=False, sdpa=sdpa),
        plain_mlp(fields, fields.integer("intermediate_size"), "hidden_act"),
        dropout=hidden_dropout(fields, default_dropout),
        post_norms=True,
        extra=extra,
    )


def hidden_dropout(fields: Fields, default: float = _DROPOUT) -> float:
    """Return the dropout of embeddings and of what each block adds."""
    return fields.dropout("hidden_dropout_prob", default=default)


def layers(fields: Fields) -> int:
    """Return the number of layers."""
    return fields.integer("num_hidden_layers", high=MAX_LAYERS)


def positions(fields: Fields) -> int:
    """Return the rows of the table of positions."""
    return fields.integer("max_position_embeddings", default=_MAX_POSITIONS)


def _positions_behind_padding(fields: Fields) -> int:
    """Return the tokens that fit where positions are counted from behind the padding token's index."""
    return max(1, positions(fields) - fields.integer("pad_token_id", default=1, low=0) - 1)


READERS: Final[Mapping[str, Reader]] = {
    "albert": read_albert,
    "bert": read_bert,
    "camembert": read_roberta,
    "distilbert": read_distilbert,
    "electra": read_electra,
    "mpnet": read_mpnet,
    "roberta": read_roberta,
    "xlm-roberta": read_roberta,
}
