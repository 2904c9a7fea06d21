"""Put blocks, norms and embeddings together to a decoder."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from planner.models.architecture import Architecture, Layer, Norm
from planner.models.readers.blocks import (
    AttentionStyle,
    Chance,
    ForwardBlock,
    MixerBlock,
    MlpStyle,
    Switch,
    attention_blocks,
    chance,
    mlp_block,
    switched,
)
from planner.models.readers.fields import Fields
from planner.models.readers.parts import RMS, Tensors, decoder, embedding, grouped, linear, norm_tensors
from planner.models.readers.sizes import Sizes, read_sizes

PRE_NORMS: Final = ("input_layernorm", "post_attention_layernorm")


@dataclass(frozen=True)
class Frame:
    """What stands around the blocks; the defaults are Llama's.

    `other_norms` counts norms over the hidden width that have no tensors or whose tensors belong to a block.
    """

    norm: Norm = RMS
    norms: tuple[str, ...] = PRE_NORMS
    other_norms: int = 0
    parallel: Switch = False
    post_norms: bool = False
    tied: bool = False
    embedding: str = "model.embed_tokens"
    positions: str | None = None
    final_norm: str | None = "model.norm"
    head: str = "lm_head"
    head_bias: Switch = False
    hidden_dropout: Chance = 0.0
    embedding_dropout: Chance = 0.0


def assemble(
    fields: Fields,
    sizes: Sizes,
    frame: Frame,
    mixers: Sequence[MixerBlock],
    forwards: Sequence[ForwardBlock],
    *,
    before: Tensors | None = None,
    after: Tensors | None = None,
    head: Tensors | None = None,
) -> Architecture:
    """Return the decoder whose layers have these mixers and feed-forward blocks, in order.

    `before`, `after` and `head` replace the tensors of the embedding, of the final norm and of an untied head.
    """
    norms = tuple(tensor for name in frame.norms for tensor in norm_tensors(name, sizes.hidden, frame.norm))
    parallel = switched(fields, frame.parallel)
    dropout = chance(fields, frame.hidden_dropout)

    def layer(blocks: tuple[MixerBlock, ForwardBlock]) -> Layer:
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

    return decoder(
        fields,
        hidden=sizes.hidden,
        vocabulary=sizes.vocabulary,
        groups=grouped(zip(mixers, forwards, strict=True), layer),
        before=_before(fields, sizes, frame) if before is None else before,
        after=_after(sizes, frame) if after is None else after,
        tied=fields.flag("tie_word_embeddings", default=frame.tied),
        max_context=sizes.max_context,
        head=_head(fields, sizes, frame) if head is None else head,
        embedding_dropout=chance(fields, frame.embedding_dropout),
    )


_LLAMA_FRAME: Final = Frame()
_LLAMA_ATTENTION: Final = AttentionStyle()
_LLAMA_MLP: Final = MlpStyle()


@dataclass(frozen=True)
class Family:
    """How a family of dense decoders differs from Llama.

    `kv_heads` and `head_dim` are what its configuration class takes where the file is silent.
    """

    frame: Frame = _LLAMA_FRAME
    attention: AttentionStyle = _LLAMA_ATTENTION
    mlp: MlpStyle = _LLAMA_MLP
    kv_heads: int | None = None
    head_dim: int | None = None

    def read(self, fields: Fields) -> Architecture:
        """Return the architecture that a configuration of this family describes."""
        sizes = read_sizes(fields, kv_heads=self.kv_heads, head_dim=self.head_dim)
        mixers = attention_blocks(fields, sizes, self.attention)
        forward = mlp_block(fields, sizes, self.mlp)
        return assemble(fields, sizes, self.frame, mixers, (forward,) * sizes.layers)


def _before(fields: Fields, sizes: Sizes, frame: Frame) -> Tensors:
    tokens = embedding(frame.embedding, sizes.vocabulary, sizes.hidden)
    if frame.positions is None:
        return tokens
    if sizes.max_context is None:
        fields.fail("max_position_embeddings", "is missing (or n_positions)")
    return tokens + embedding(frame.positions, sizes.max_context, sizes.hidden)


def _after(sizes: Sizes, frame: Frame) -> Tensors:
    return () if frame.final_norm is None else norm_tensors(frame.final_norm, sizes.hidden, frame.norm)


def _head(fields: Fields, sizes: Sizes, frame: Frame) -> Tensors:
    return linear(frame.head, sizes.vocabulary, sizes.hidden, bias=switched(fields, frame.head_bias), role="head")
