"""Encoder-decoders with learned or sinusoidal positions: BART and its descendants, and Whisper."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from planner.models.architecture import Architecture, Layer, Stack
from planner.models.readers.fields import MAX_LAYERS, Fields
from planner.models.readers.parts import LAYER, Tensors, conv, embedding, linear, norm_tensors, repeated
from planner.models.readers.registry import Reader
from planner.models.readers.towers import (
    Head,
    LayerNames,
    classifier,
    full_attention,
    labels,
    plain_mlp,
    task_head,
    tower_layer,
)

Side = Literal["encoder", "decoder"]

_GENERATION: Final = "ForConditionalGeneration"
_DROPOUT: Final = 0.1
_MEL_BINS: Final = 80
_CONV_KERNEL: Final = 3
_SOURCE_POSITIONS: Final = 1500
_TARGET_POSITIONS: Final = 448

_NAMES: Final[Mapping[Side, LayerNames]] = {
    "encoder": LayerNames(
        attention=("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj"),
        norms=("self_attn_layer_norm", "final_layer_norm"),
        mlp=("fc1", "fc2"),
    ),
    "decoder": LayerNames(
        attention=("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj"),
        norms=("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"),
        mlp=("fc1", "fc2"),
        cross=("encoder_attn.q_proj", "encoder_attn.k_proj", "encoder_attn.v_proj", "encoder_attn.out_proj"),
    ),
}


@dataclass(frozen=True)
class BartFamily:
    """How a family differs from BART.

    `position_offset` is how many rows the table of positions has beyond the context, and nothing where positions are
    computed; the norms stand behind the embedding and behind the last layer.
    """

    position_offset: int | None = 0
    embedding_norm: bool = False
    final_norm: bool = True
    positions: int = 1024
    activation: str = "gelu"

    def read(self, fields: Fields) -> Architecture:
        """Return the architecture that a configuration of this family describes."""
        hidden = fields.integer("d_model", "hidden_size")
        own_tables = not fields.flag("share_encoder_decoder_embeddings", default=True)
        vocabulary = fields.integer("vocab_size")
        target = fields.integer("decoder_vocab_size", default=vocabulary) if own_tables else vocabulary
        head = task_head(fields, _heads(fields, hidden, target), _GENERATION)
        words = "decoder.embed_tokens" if own_tables else "shared"
        source = embedding("encoder.embed_tokens", vocabulary, hidden) if own_tables else ()
        return Architecture(
            model_type=fields.model_type,
            kind="encoder-decoder",
            hidden=hidden,
            vocabulary=target,
            max_context=self._context(fields),
            stacks=(
                self._stack(fields, "encoder", hidden, source),
                self._stack(fields, "decoder", hidden, embedding(words, target, hidden), head.after),
            ),
            head=head.head,
            tied_head=head.tied,
            labels=head.labels,
            loss_reads="biased-logits",
        )

    def _context(self, fields: Fields) -> int:
        return fields.integer("max_position_embeddings", default=self.positions)

    def _stack(self, fields: Fields, side: Side, hidden: int, words: Tensors, after: Tensors = ()) -> Stack:
        rows = None if self.position_offset is None else self._context(fields) + self.position_offset
        normed = norm_tensors(f"{side}.layernorm_embedding", hidden, LAYER) if self.embedding_norm else ()
        final = norm_tensors(f"{side}.layer_norm", hidden, LAYER) if self.final_norm else ()
        # Families without a norm behind the last layer have one behind each block.
        layer = _layer(fields, side, hidden, activation=self.activation).evolve(post_norms=not self.final_norm)
        return Stack(
            name=side,
            hidden=hidden,
            groups=repeated(layer, _layers(fields, side)),
            before=(*words, *(embedding(f"{side}.embed_positions", rows, hidden) if rows else ()), *normed),
            after=(*final, *after),
            embedding_dropout=fields.dropout("dropout", default=_DROPOUT),
        )


def read_whisper(fields: Fields) -> Architecture:
    """Read Whisper: two convolutions over the spectrogram, a stack for audio, and a text decoder.

    The second convolution halves the number of frames; what is left is `max_source_positions`.
    """
    hidden = fields.integer("d_model", "hidden_size")
    vocabulary = fields.integer("vocab_size")
    frames = fields.integer("max_source_positions", default=_SOURCE_POSITIONS)
    tokens = fields.integer("max_target_positions", default=_TARGET_POSITIONS)
    head = _generation(fields, "proj_out", hidden, vocabulary)
    return Architecture(
        model_type=fields.model_type,
        kind="encoder-decoder",
        hidden=hidden,
        vocabulary=vocabulary,
        max_context=tokens,
        stacks=(
            _whisper_stack(fields, "encoder", hidden, _whisper_input(fields, hidden), frames),
            _whisper_stack(fields, "decoder", hidden, embedding("decoder.embed_tokens", vocabulary, hidden), tokens),
        ),
        head=head.head,
        tied_head=head.tied,
        loss_reads="logits",
    )


def _whisper_input(fields: Fields, hidden: int) -> Tensors:
    bins = fields.integer("num_mel_bins", default=_MEL_BINS)
    first = conv("encoder.conv1", hidden, bins, _CONV_KERNEL)
    return (*first, *conv("encoder.conv2", hidden, hidden, _CONV_KERNEL))


def _whisper_stack(fields: Fields, side: Side, hidden: int, before: Tensors, rows: int) -> Stack:
    layer = _layer(fields, side, hidden, default_dropout=0.0, key_bias=False, heads_first=True)
    return Stack(
        name="audio" if side == "encoder" else "decoder",
        hidden=hidden,
        groups=repeated(layer, _layers(fields, side)),
        before=(*before, *embedding(f"{side}.embed_positions", rows, hidden)),
        after=norm_tensors(f"{side}.layer_norm", hidden, LAYER),
        positions=rows if side == "encoder" else None,
        embedding_dropout=fields.dropout("dropout"),
    )


def _layer(
    fields: Fields,
    side: Side,
    hidden: int,
    *,
    activation: str = "gelu",
    default_dropout: float = _DROPOUT,
    key_bias: bool | None = None,
    heads_first: bool = False,
) -> Layer:
    attention = full_attention(
        fields,
        hidden,
        f"{side}_attention_heads",
        "num_attention_heads",
        dropout=fields.dropout("attention_dropout"),
        fp32_softmax=False,
    ).evolve(heads_first=heads_first)
    mlp = plain_mlp(
        fields,
        fields.integer(f"{side}_ffn_dim", "intermediate_size"),
        "activation_function",
        default=activation,
        dropout=fields.dropout("activation_dropout"),
    )
    dropout = fields.dropout("dropout", default=default_dropout)
    return tower_layer(_NAMES[side], hidden, attention, mlp, key_bias=key_bias, dropout=dropout)


def _layers(fields: Fields, side: Side) -> int:
    return fields.integer(f"{side}_layers", "num_hidden_layers", high=MAX_LAYERS)


def _heads(fields: Fields, hidden: int, vocabulary: int) -> Mapping[str, Head]:
    generation = _generation(fields, "lm_head", hidden, vocabulary)
    dense = linear("classification_head.dense", hidden, hidden, bias=True)
    return {
        _GENERATION: generation,
        "MTModel": generation,
        "Model": Head(),
        "ForSequenceClassification": classifier(
            labels(fields), hidden, name="classification_head.out_proj", after=dense
        ),
    }


def _generation(fields: Fields, name: str, hidden: int, vocabulary: int) -> Head:
    tied = fields.flag("tie_word_embeddings", default=True)
    return Head(head=() if tied else linear(name, vocabulary, hidden, role="head"), tied=tied)


READERS: Final[Mapping[str, Reader]] = {
    "bart": BartFamily(position_offset=2, embedding_norm=True, final_norm=False).read,
    "blenderbot": BartFamily(positions=128).read,
    "blenderbot-small": BartFamily(embedding_norm=True, final_norm=False, positions=512).read,
    "m2m_100": BartFamily(position_offset=None, activation="relu").read,
    "marian": BartFamily(final_norm=False).read,
    "mbart": BartFamily(position_offset=2, embedding_norm=True).read,
    "pegasus": BartFamily().read,
    "whisper": read_whisper,
}
