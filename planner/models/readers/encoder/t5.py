"""T5 and its descendants: mT5, UMT5, Flan-T5, T0."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from planner.models.architecture import Architecture, Attention, Layer, Mlp, Norm, Stack
from planner.models.readers.fields import MAX_LAYERS, Fields
from planner.models.readers.parts import ACTIVATIONS, Tensors, embedding, grouped, linear, norm_tensors
from planner.models.readers.registry import Reader
from planner.models.readers.towers import LayerNames, tower_layer

_NORM: Final = Norm(kind="rms", native=False, keeps_input=True)
_DROPOUT: Final = 0.1
_BUCKETS: Final = 32
_SELF: Final = (
    "layer.0.SelfAttention.q",
    "layer.0.SelfAttention.k",
    "layer.0.SelfAttention.v",
    "layer.0.SelfAttention.o",
)
_CROSS: Final = (
    "layer.1.EncDecAttention.q",
    "layer.1.EncDecAttention.k",
    "layer.1.EncDecAttention.v",
    "layer.1.EncDecAttention.o",
)


class _Kind(NamedTuple):
    """What differs between the layers of T5's two stacks."""

    decodes: bool
    has_bias: bool


def read_t5(fields: Fields) -> Architecture:
    """Read a T5; its encoder alone where `architectures` names an encoder model.

    **Assumes** that a file that says `tie_word_embeddings: false` (T5 v1.1 and later) comes with an output head of its
    own, as the published checkpoints do; transformers 5 ties it all the same.
    """
    hidden = fields.integer("d_model", "hidden_size")
    layers = fields.integer("num_layers", "num_hidden_layers", high=MAX_LAYERS)
    vocabulary = fields.integer("vocab_size")
    words = embedding("shared", vocabulary, hidden)
    alone = (fields.texts("architectures") or ("",))[0].endswith("EncoderModel")
    tied = fields.flag("tie_word_embeddings", default=True)
    if not (alone or tied):
        fields.note("the checkpoint's own output head is counted; transformers 5 ties it to the embedding")
    encoder = _stack(fields, hidden, layers, decodes=False, before=words if alone else ())
    decoder = _stack(
        fields,
        hidden,
        fields.integer("num_decoder_layers", default=layers, high=MAX_LAYERS),
        decodes=True,
        before=words,
    )
    return Architecture(
        model_type=fields.model_type,
        kind="encoder" if alone else "encoder-decoder",
        hidden=hidden,
        vocabulary=vocabulary,
        max_context=fields.optional_integer("n_positions"),
        stacks=(encoder,) if alone else (encoder, decoder),
        head=() if alone or tied else linear("lm_head", vocabulary, hidden, role="head"),
        tied_head=tied and not alone,
        loss_reads="logits",
    )


def _stack(fields: Fields, hidden: int, layers: int, *, decodes: bool, before: Tensors) -> Stack:
    every = fields.model_type == "umt5"
    kinds = (_Kind(decodes, every or place == 0) for place in range(layers))
    return Stack(
        name="decoder" if decodes else "encoder",
        hidden=hidden,
        groups=grouped(kinds, lambda kind: _layer(fields, hidden, kind)),
        before=before,
        after=norm_tensors("final_layer_norm", hidden, _NORM),
        embedding_dropout=_dropout(fields),
    )


def _layer(fields: Fields, hidden: int, kind: _Kind) -> Layer:
    attention = _attention(fields)
    mlp = _mlp(fields)
    forward = "layer.2" if kind.decodes else "layer.1"
    ups = ("wi_0", "wi_1") if mlp.gated else ("wi",)
    names = LayerNames(
        attention=_SELF,
        cross=_CROSS if kind.decodes else None,
        norms=tuple(f"layer.{place}.layer_norm" for place in range(3 if kind.decodes else 2)),
        mlp=tuple(f"{forward}.DenseReluDense.{name}" for name in (*ups, "wo")),
    )
    buckets = fields.integer("relative_attention_num_buckets", default=_BUCKETS)
    table = embedding("layer.0.SelfAttention.relative_attention_bias", buckets, attention.heads)
    return tower_layer(
        names,
        hidden,
        attention,
        mlp,
        norm=_NORM,
        bias=False,
        dropout=_dropout(fields),
        extra=table if kind.has_bias else (),
    )


def _attention(fields: Fields) -> Attention:
    heads = fields.integer("num_heads", "num_attention_heads", high=MAX_LAYERS)
    return Attention(
        heads=heads,
        kv_heads=heads,
        head_dim=fields.integer("d_kv", "head_dim"),
        rotary=False,
        position_bias=True,
        dropout=_dropout(fields),
        fp32_softmax=False,
    )


def _mlp(fields: Fields) -> Mlp:
    """Return the MLP; its activation is written as `relu`, `gated-gelu` or `gated-silu`.

    T5's gated GELU is the step-by-step tanh approximation, whatever the name says.
    """
    gate, _, name = fields.text("feed_forward_proj", default="relu").rpartition("-")
    known = {**ACTIVATIONS, "gelu": ACTIVATIONS["gelu_new"]} if gate else ACTIVATIONS
    if gate not in ("", "gated") or name not in known:
        fields.fail("feed_forward_proj", "must be an activation, with or without 'gated-' before it")
    return Mlp(
        intermediate=fields.integer("d_ff", "intermediate_size"),
        gated=bool(gate),
        activation=known[name],
        dropout=_dropout(fields),
    )


def _dropout(fields: Fields) -> float:
    return fields.dropout("dropout_rate", default=_DROPOUT)


READERS: Final[Mapping[str, Reader]] = {"mt5": read_t5, "t5": read_t5, "umt5": read_t5}
