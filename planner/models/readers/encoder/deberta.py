"""DeBERTa-v2 and v3: text encoders whose attention also compares contents with relative positions."""

from collections.abc import Mapping
from typing import Final

from planner.models.architecture import Architecture
from planner.models.readers.encoder.bert_like import (
    BERT,
    bert_layer,
    encoder,
    hidden_dropout,
    layers,
    positions,
    tables,
)
from planner.models.readers.encoder.heads import MASKED, deberta_heads, dense
from planner.models.readers.fields import Fields
from planner.models.readers.parts import LAYER, Tensors, conv, embedding, linear, norm_tensors, repeated
from planner.models.readers.registry import Reader
from planner.models.readers.towers import LayerNames, task_head

_NAMES: Final = LayerNames(
    attention=(
        "attention.self.query_proj",
        "attention.self.key_proj",
        "attention.self.value_proj",
        "attention.output.dense",
    ),
    norms=BERT.norms,
    mlp=BERT.mlp,
)


def read_deberta(fields: Fields) -> Architecture:
    """Read DeBERTa-v2 and v3: attention that also compares contents with relative positions."""
    hidden = fields.integer("hidden_size")
    width = fields.integer("embedding_size", default=hidden)
    absolute = fields.flag("position_biased_input", default=True)
    types = fields.integer("type_vocab_size", default=0, low=0)
    words = tables(fields, width, types=types, absolute=absolute, norm=hidden)
    project = () if width == hidden else linear("embeddings.embed_proj", hidden, width)
    layer = bert_layer(fields, _NAMES, hidden, extra=_relative_tensors(fields, hidden), sdpa=False)
    return encoder(
        fields,
        task_head(fields, deberta_heads(fields, hidden), MASKED),
        hidden=hidden,
        groups=repeated(layer, layers(fields)),
        before=(*words, *project, *_relative_tables(fields, hidden)),
        max_context=positions(fields),
        dropout=hidden_dropout(fields),
    )


def _relative_tensors(fields: Fields, hidden: int) -> Tensors:
    """Return the projections of relative positions, unless those of the contents serve."""
    if not fields.flag("relative_attention", default=False) or fields.flag("share_att_key", default=False):
        return ()
    kinds = fields.words("pos_att_type")
    key = dense("attention.self.pos_key_proj", hidden) if "c2p" in kinds else ()
    return (*key, *(dense("attention.self.pos_query_proj", hidden) if "p2c" in kinds else ()))


def _relative_tables(fields: Fields, hidden: int) -> Tensors:
    """Return the table of relative positions, its norm, and the convolution beside the first layer."""
    relative = fields.flag("relative_attention", default=False)
    kernel = fields.integer("conv_kernel_size", default=0, low=0)
    normed = "layer_norm" in fields.words("norm_rel_ebd")
    return (
        *(embedding("encoder.rel_embeddings", 2 * _relative_positions(fields), hidden) if relative else ()),
        *(norm_tensors("encoder.LayerNorm", hidden, LAYER) if normed else ()),
        *(_convolution(fields, hidden, kernel) if kernel else ()),
    )


def _relative_positions(fields: Fields) -> int:
    buckets = fields.integer("position_buckets", default=-1, low=-1)
    if buckets > 0:
        return buckets
    stated = fields.integer("max_relative_positions", default=-1, low=-1)
    return stated if stated > 0 else positions(fields)


def _convolution(fields: Fields, hidden: int, kernel: int) -> Tensors:
    groups = fields.integer("conv_groups", default=1)
    return (
        *conv("encoder.conv.conv", hidden, hidden, kernel, groups=groups),
        *norm_tensors("encoder.conv.LayerNorm", hidden, LAYER),
    )


READERS: Final[Mapping[str, Reader]] = {"deberta-v2": read_deberta}
