"""Readers of encoder-decoders: BART and its descendants, Whisper, and the T5 family.

**Source**: the modelling code of transformers 5.23; tensor names are those of the published checkpoints.
"""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from planner.models.architecture import Architecture, Layer, LossInput, Mlp, Norm, Stack
from planner.models.readers.blocks import (
    PLAIN_MLP,
    AttentionStyle,
    LayerStyle,
    MlpStyle,
    StackSizes,
    read_equal_head_sizes,
)
from planner.models.readers.config_fields import MAX_LAYERS, ConfigFields
from planner.models.readers.registry import Reader
from planner.models.readers.tensors import (
    ACTIVATIONS,
    LAYER,
    TaskHead,
    TaskHeads,
    Tensors,
    biased_linear,
    classification_head,
    conv,
    embedding,
    group_layers,
    label_count,
    linear,
    norm_tensors,
    repeat_layer,
    task_head,
)

Side = Literal["encoder", "decoder"]

_GENERATION: Final = "ForConditionalGeneration"
_DROPOUT: Final = 0.1
_MEL_BINS: Final = 80
_CONV_KERNEL: Final = 3
_SOURCE_POSITIONS: Final = 1500
_TARGET_POSITIONS: Final = 448

_ENCODER_LAYER: Final = LayerStyle(
    attention=AttentionStyle(
        names=("q_proj", "k_proj", "v_proj", "out_proj"), bias=True, out_bias=True, fp32_softmax=False
    ),
    mlp=PLAIN_MLP._replace(
        prefix="",
        activation_fields=("activation_function",),
        dropout=("activation_dropout", 0.0),
        width=("encoder_ffn_dim", "intermediate_size"),
    ),
    norms=("self_attn_layer_norm", "final_layer_norm"),
    dropout=("dropout", _DROPOUT),
)
_BART_LAYERS: Final[Mapping[Side, LayerStyle]] = {
    "encoder": _ENCODER_LAYER,
    "decoder": _ENCODER_LAYER._replace(
        mlp=_ENCODER_LAYER.mlp._replace(width=("decoder_ffn_dim", "intermediate_size")),
        norms=("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"),
        cross=_ENCODER_LAYER.attention._replace(prefix="encoder_attn."),
    ),
}


class BartFamily(NamedTuple):
    """Declaration of a family of encoder-decoders by its differences from BART.

    `position_offset` is the number of extra rows of the position table; `sinusoidal` positions are computed once, as
    parameters that are frozen or as a buffer. `embedding_norm` follows the embedding and `final_norm` the last layer.
    The loss reads logits to which a bias was added unless `loss_reads` says otherwise (M2M-100).
    """

    position_offset: int = 0
    sinusoidal: Literal["frozen", "buffer"] | None = None
    embedding_norm: bool = False
    final_norm: bool = True
    positions: int = 1024
    activation: str = "gelu"
    loss_reads: LossInput = "biased-logits"

    def read(self, fields: ConfigFields) -> Architecture:
        """Return the architecture that a configuration of this family describes."""
        hidden = fields.integer("d_model", "hidden_size")
        own_tables = not fields.flag("share_encoder_decoder_embeddings", default=True)
        vocabulary = fields.integer("vocab_size")
        target = fields.integer("decoder_vocab_size", default=vocabulary) if own_tables else vocabulary
        head = task_head(fields, _bart_heads(fields, hidden, target), _GENERATION)
        words = "decoder.embed_tokens" if own_tables else "shared"
        source = embedding("encoder.embed_tokens", vocabulary, hidden) if own_tables else ()
        return Architecture(
            model_type=fields.model_type,
            kind="encoder-decoder",
            hidden=hidden,
            vocabulary=target,
            max_context=self._max_positions(fields),
            stacks=(
                self._stack(fields, "encoder", source),
                self._stack(fields, "decoder", embedding(words, target, hidden), head.after),
            ),
            head=head.head,
            tied_head=head.tied,
            labels=head.labels,
            loss_reads=self.loss_reads,
            position_buffer_elements=2 * self._position_rows(fields) * hidden if self.sinusoidal == "buffer" else 0,
        )

    def _position_rows(self, fields: ConfigFields) -> int:
        return self._max_positions(fields) + self.position_offset

    def _max_positions(self, fields: ConfigFields) -> int:
        return fields.integer("max_position_embeddings", default=self.positions)

    def _stack(self, fields: ConfigFields, side: Side, embedding_tensors: Tensors, after: Tensors = ()) -> Stack:
        sizes = _stack_sizes(fields, side)
        positions = embedding(f"{side}.embed_positions", self._position_rows(fields), sizes.hidden)
        if self.sinusoidal:
            # Their table has no gradient; that of M2M-100 is in no checkpoint.
            positions = tuple(table.evolve(frozen=True) for table in positions if self.sinusoidal == "frozen")
        normed = norm_tensors(f"{side}.layernorm_embedding", sizes.hidden, LAYER) if self.embedding_norm else ()
        final = norm_tensors(f"{side}.layer_norm", sizes.hidden, LAYER) if self.final_norm else ()
        style = _BART_LAYERS[side]
        # Families without a norm after the last layer have post-norms.
        style = style._replace(mlp=style.mlp._replace(activation=self.activation), post_norms=not self.final_norm)
        return Stack(
            name=side,
            hidden=sizes.hidden,
            groups=repeat_layer(style.build_layer(fields, sizes), sizes.layers),
            before=(
                *embedding_tensors,
                *positions,
                *normed,
            ),
            after=(*final, *after),
            embedding_dropout=fields.dropout("dropout", default=_DROPOUT),
        )


def _stack_sizes(fields: ConfigFields, side: Side) -> StackSizes:
    return read_equal_head_sizes(
        fields,
        hidden=("d_model", "hidden_size"),
        heads=(f"{side}_attention_heads", "num_attention_heads"),
        layers=(f"{side}_layers", "num_hidden_layers"),
    )


def _bart_heads(fields: ConfigFields, hidden: int, vocabulary: int) -> TaskHeads:
    generation = _generation_head(fields, "lm_head", hidden, vocabulary)
    before = biased_linear("classification_head.dense", hidden)
    return {
        _GENERATION: generation,
        "MTModel": generation,
        "Model": TaskHead(),
        "ForSequenceClassification": classification_head(
            label_count(fields), hidden, name="classification_head.out_proj", after=before
        ),
    }


def _generation_head(fields: ConfigFields, name: str, hidden: int, vocabulary: int) -> TaskHead:
    tied = fields.flag("tie_word_embeddings", default=True)
    return TaskHead(head=() if tied else linear(name, vocabulary, hidden, role="head"), tied=tied)


def read_whisper(fields: ConfigFields) -> Architecture:
    """Read Whisper: two convolutions over the spectrogram, an audio encoder and a text decoder.

    The second convolution halves the number of frames to `max_source_positions`.
    """
    hidden = fields.integer("d_model", "hidden_size")
    vocabulary = fields.integer("vocab_size")
    frames = fields.integer("max_source_positions", default=_SOURCE_POSITIONS)
    tokens = fields.integer("max_target_positions", default=_TARGET_POSITIONS)
    head = _generation_head(fields, "proj_out", hidden, vocabulary)
    return Architecture(
        model_type=fields.model_type,
        kind="encoder-decoder",
        hidden=hidden,
        vocabulary=vocabulary,
        max_context=tokens,
        stacks=(
            _whisper_stack(fields, "encoder", _whisper_input_tensors(fields, hidden), frames),
            _whisper_stack(fields, "decoder", embedding("decoder.embed_tokens", vocabulary, hidden), tokens),
        ),
        head=head.head,
        tied_head=head.tied,
        loss_reads="logits",
    )


def _whisper_input_tensors(fields: ConfigFields, hidden: int) -> Tensors:
    bins = fields.integer("num_mel_bins", default=_MEL_BINS)
    first = conv("encoder.conv1", hidden, bins, _CONV_KERNEL)
    return (*first, *conv("encoder.conv2", hidden, hidden, _CONV_KERNEL))


def _whisper_stack(fields: ConfigFields, side: Side, before: Tensors, rows: int) -> Stack:
    sizes, style = _stack_sizes(fields, side), _BART_LAYERS[side]
    attention = style.attention._replace(key_bias=False, heads_first=True)
    cross = style.cross._replace(key_bias=False) if style.cross else None
    layer = style._replace(attention=attention, cross=cross, dropout=("dropout", 0.0)).build_layer(fields, sizes)
    # The encoder's positions are sinusoidal, and frozen.
    positions = embedding(f"{side}.embed_positions", rows, sizes.hidden)[0].evolve(frozen=side == "encoder")
    return Stack(
        name="audio" if side == "encoder" else "decoder",
        hidden=sizes.hidden,
        groups=repeat_layer(layer, sizes.layers),
        before=(*before, positions),
        after=norm_tensors(f"{side}.layer_norm", sizes.hidden, LAYER),
        positions=rows if side == "encoder" else None,
        embedding_dropout=fields.dropout("dropout"),
    )


_T5_NORM: Final = Norm(kind="rms", native=False, keeps_input=True)
_T5_DROPOUT: Final = ("dropout_rate", _DROPOUT)
_T5_BUCKETS: Final = 32
_T5_ATTENTION: Final = AttentionStyle(
    prefix="layer.0.SelfAttention.",
    names=("q", "k", "v", "o"),
    dropout=_T5_DROPOUT,
    fp32_softmax=False,
    position_bias=True,
)


class _T5LayerKind(NamedTuple):
    """Properties of a T5 layer that differ between layers."""

    decodes: bool
    has_bias: bool


def read_t5(fields: ConfigFields) -> Architecture:
    """Read T5, or its encoder only if `architectures` names an encoder model.

    **Assumes** that checkpoints with `tie_word_embeddings: false` (T5 v1.1 and later) have a separate output head, as
    the published ones do; transformers 5 ties it nevertheless.
    """
    hidden = fields.integer("d_model", "hidden_size")
    layers = fields.integer("num_layers", "num_hidden_layers", high=MAX_LAYERS)
    vocabulary = fields.integer("vocab_size")
    words = embedding("shared", vocabulary, hidden)
    alone = (fields.texts("architectures") or ("",))[0].endswith("EncoderModel")
    tied = fields.flag("tie_word_embeddings", default=True)
    if not (alone or tied):
        fields.note("the checkpoint's own output head is counted; transformers 5 ties it to the embedding")
    decoders = fields.integer("num_decoder_layers", default=layers, high=MAX_LAYERS)
    encoder = _t5_stack(fields, hidden, layers, decodes=False, before=words if alone else ())
    decoder = _t5_stack(fields, hidden, decoders, decodes=True, before=words)
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


def _t5_stack(fields: ConfigFields, hidden: int, layers: int, *, decodes: bool, before: Tensors) -> Stack:
    heads = fields.integer("num_heads", "num_attention_heads", high=MAX_LAYERS)
    width = fields.integer("d_kv", "head_dim")
    sizes = StackSizes(hidden=hidden, layers=layers, heads=heads, kv_heads=heads, head_dim=width)
    every = fields.model_type == "umt5"
    kinds = (_T5LayerKind(decodes, every or index == 0) for index in range(layers))
    return Stack(
        name="decoder" if decodes else "encoder",
        hidden=hidden,
        groups=group_layers(kinds, lambda kind: _t5_layer(fields, sizes, kind)),
        before=before,
        after=norm_tensors("final_layer_norm", hidden, _T5_NORM),
        embedding_dropout=fields.dropout(_T5_DROPOUT[0], default=_T5_DROPOUT[1]),
    )


def _t5_layer(fields: ConfigFields, sizes: StackSizes, kind: _T5LayerKind) -> Layer:
    mlp = _t5_mlp(fields)
    ups = ("wi_0", "wi_1") if mlp.gated else ("wi",)
    blocks = 3 if kind.decodes else 2
    style = LayerStyle(
        attention=_T5_ATTENTION,
        cross=_T5_ATTENTION._replace(prefix="layer.1.EncDecAttention.") if kind.decodes else None,
        mlp=MlpStyle(prefix=f"layer.{blocks - 1}.DenseReluDense.", names=(*ups, "wo")),
        norm=_T5_NORM,
        norms=tuple(f"layer.{index}.layer_norm" for index in range(blocks)),
        dropout=_T5_DROPOUT,
    )
    buckets = fields.integer("relative_attention_num_buckets", default=_T5_BUCKETS)
    table = embedding("layer.0.SelfAttention.relative_attention_bias", buckets, sizes.heads)
    return style.build_layer(fields, sizes, mlp=mlp, extra=table if kind.has_bias else ())


def _t5_mlp(fields: ConfigFields) -> Mlp:
    """Return T5's MLP, with the activation `relu`, `gated-gelu` or `gated-silu`.

    T5's gated GELU is the step-by-step tanh approximation.
    """
    gate, _, name = fields.text("feed_forward_proj", default="relu").rpartition("-")
    known = {**ACTIVATIONS, "gelu": ACTIVATIONS["gelu_new"]} if gate else ACTIVATIONS
    if gate not in ("", "gated") or name not in known:
        fields.fail("feed_forward_proj", "must be an activation, with or without 'gated-' before it")
    return Mlp(
        intermediate=fields.integer("d_ff", "intermediate_size"),
        gated=bool(gate),
        activation=known[name],
        dropout=fields.dropout(_T5_DROPOUT[0], default=_T5_DROPOUT[1]),
        recast=True,
    )


READERS: Final[Mapping[str, Reader]] = {
    "bart": BartFamily(position_offset=2, embedding_norm=True, final_norm=False).read,
    "blenderbot": BartFamily(positions=128).read,
    "blenderbot-small": BartFamily(embedding_norm=True, final_norm=False, positions=512).read,
    "m2m_100": BartFamily(position_offset=2, sinusoidal="buffer", activation="relu", loss_reads="logits").read,
    "marian": BartFamily(sinusoidal="frozen", final_norm=False).read,
    "mbart": BartFamily(position_offset=2, embedding_norm=True).read,
    "pegasus": BartFamily(sinusoidal="frozen").read,
    "whisper": read_whisper,
    "mt5": read_t5,
    "t5": read_t5,
    "umt5": read_t5,
}
