"""Assembly of a decoder from blocks, norms and embeddings, and the declaration of a decoder family."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from planner.models.architecture import Architecture, Layer, LayerGroup, Norm, Stack
from planner.models.readers.blocks import (
    AttentionStyle,
    DropoutSource,
    ExtraTensors,
    FeedForwardBlock,
    FlagSource,
    MixerBlock,
    MlpStyle,
    StackSizes,
    attention_blocks,
    mlp_block,
    read_dropout,
    read_flag,
    read_sizes,
)
from planner.models.readers.config_fields import ConfigFields
from planner.models.readers.tensors import RMS, Tensors, embedding, group_layers, linear, norm_tensors

PRE_NORMS: Final = ("input_layernorm", "post_attention_layernorm")


class DecoderFrame(NamedTuple):
    """Norms, embeddings and head around a decoder's blocks; the defaults are Llama's.

    `other_norms` is the number of norms over the hidden width without tensors or with tensors in a block; `softcapped`
    is whether the configuration class caps the logits by default.
    """

    norm: Norm = RMS
    norms: tuple[str, ...] = PRE_NORMS
    other_norms: int = 0
    parallel: FlagSource = False
    post_norms: bool = False
    tied: bool = False
    softcapped: bool = False
    embedding: str = "model.embed_tokens"
    positions: str | None = None
    final_norm: str | None = "model.norm"
    head: str = "lm_head"
    head_bias: FlagSource = False
    hidden_dropout: DropoutSource = 0.0
    embedding_dropout: DropoutSource = 0.0


def assemble_decoder(
    fields: ConfigFields,
    sizes: StackSizes,
    frame: DecoderFrame,
    mixers: Sequence[MixerBlock],
    feed_forwards: Sequence[FeedForwardBlock],
    *,
    before: Tensors | None = None,
    after: Tensors | None = None,
    head: Tensors | None = None,
) -> Architecture:
    """Return the decoder with the token mixer and the feed-forward block of each layer."""
    norms = tuple(tensor for name in frame.norms for tensor in norm_tensors(name, sizes.hidden, frame.norm))
    parallel = read_flag(fields, frame.parallel)
    dropout = read_dropout(fields, frame.hidden_dropout)

    def layer(blocks: tuple[MixerBlock, FeedForwardBlock]) -> Layer:
        (mixer, mixer_tensors), (forward, forward_tensors) = blocks
        return Layer(
            mixer=mixer,
            feed_forward=forward,
            norm=frame.norm,
            norm_count=len(frame.norms) + frame.other_norms,
            parallel=parallel,
            post_norms=frame.post_norms,
            hidden_dropout=dropout,
            tensors=(*mixer_tensors, *forward_tensors, *norms),
        )

    groups = group_layers(zip(mixers, feed_forwards, strict=True), layer)
    return decoder_network(fields, sizes, frame, groups, before=before, after=after, head=head)


def decoder_network(
    fields: ConfigFields,
    sizes: StackSizes,
    frame: DecoderFrame,
    groups: tuple[LayerGroup, ...],
    *,
    before: Tensors | None = None,
    after: Tensors | None = None,
    head: Tensors | None = None,
) -> Architecture:
    """Return the decoder with the layers `groups` in the norms, embeddings and head of `frame`.

    `before`, `after` and `head` replace the tensors of the embedding, of the final norm and of an untied head.
    """
    tied = fields.flag("tie_word_embeddings", default=frame.tied)
    untied = _head_tensors(fields, sizes, frame) if head is None else head
    return Architecture(
        model_type=fields.model_type,
        kind="decoder",
        hidden=sizes.hidden,
        vocabulary=sizes.vocabulary,
        max_context=sizes.max_context,
        stacks=(
            Stack(
                name="decoder",
                hidden=sizes.hidden,
                groups=groups,
                before=_embedding_tensors(fields, sizes, frame) if before is None else before,
                after=_final_norm_tensors(sizes, frame) if after is None else after,
                embedding_dropout=read_dropout(fields, frame.embedding_dropout),
            ),
        ),
        # A tied head shares the weight but not a bias.
        head=tuple(tensor for tensor in untied if tensor.role == "bias") if tied else untied,
        tied_head=tied,
        softcapped_logits=fields.has("final_logit_softcapping")
        or (frame.softcapped and not fields.is_stated("final_logit_softcapping")),
    )


_LLAMA_FRAME: Final = DecoderFrame()
_LLAMA_ATTENTION: Final = AttentionStyle()
_LLAMA_MLP: Final = MlpStyle()

Mixers = Callable[[ConfigFields, StackSizes, AttentionStyle], Sequence[MixerBlock]]
"""Function that returns one token mixer per layer."""

FeedForwards = Callable[[ConfigFields, StackSizes, MlpStyle], Sequence[FeedForwardBlock]]
"""Function that returns one feed-forward block per layer."""


def dense_blocks(fields: ConfigFields, sizes: StackSizes, style: MlpStyle) -> Sequence[FeedForwardBlock]:
    """Return the dense feed-forward block of every layer."""
    return (mlp_block(fields, sizes, style),) * sizes.layers


class DecoderFamily(NamedTuple):
    """Declaration of a decoder family by its differences from Llama.

    `kv_heads` and `head_dim` are the defaults of its configuration class. `mixers` and `feed_forwards` build the blocks
    of layers that are not all ordinary attention (state space mixers) or not all dense (`ExpertStyle.blocks`); `before`
    builds the tensors before the layers if they are more than token and position embeddings.
    """

    frame: DecoderFrame = _LLAMA_FRAME
    attention: AttentionStyle = _LLAMA_ATTENTION
    mlp: MlpStyle = _LLAMA_MLP
    kv_heads: int | None = None
    head_dim: int | None = None
    mixers: Mixers = attention_blocks
    feed_forwards: FeedForwards = dense_blocks
    before: ExtraTensors | None = None

    def read(self, fields: ConfigFields) -> Architecture:
        """Return the architecture that a configuration of this family describes."""
        sizes = read_sizes(fields, kv_heads=self.kv_heads, head_dim=self.head_dim)
        mixers = self.mixers(fields, sizes, self.attention)
        feed_forwards = self.feed_forwards(fields, sizes, self.mlp)
        before = None if self.before is None else self.before(fields, sizes)
        return assemble_decoder(fields, sizes, self.frame, mixers, feed_forwards, before=before)


def _embedding_tensors(fields: ConfigFields, sizes: StackSizes, frame: DecoderFrame) -> Tensors:
    tokens = embedding(frame.embedding, sizes.vocabulary, sizes.hidden)
    if frame.positions is None:
        return tokens
    if sizes.max_context is None:
        fields.fail("max_position_embeddings", "is missing (or n_positions)")
    return tokens + embedding(frame.positions, sizes.max_context, sizes.hidden)


def _final_norm_tensors(sizes: StackSizes, frame: DecoderFrame) -> Tensors:
    return () if frame.final_norm is None else norm_tensors(frame.final_norm, sizes.hidden, frame.norm)


def _head_tensors(fields: ConfigFields, sizes: StackSizes, frame: DecoderFrame) -> Tensors:
    return linear(frame.head, sizes.vocabulary, sizes.hidden, bias=read_flag(fields, frame.head_bias), role="head")
