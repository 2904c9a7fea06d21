"""Assembly of a decoder from blocks, norms and embeddings: the declarations of a decoder family and of its experts."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Literal, NamedTuple

from planner.models.architecture import Activation, Architecture, Layer, LayerGroup, Mlp, Moe, Norm, Stack, Tensor
from planner.models.readers.blocks import (
    ACTIVATION_FIELDS,
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
from planner.models.readers.config_fields import MAX_LAYERS, ConfigFields
from planner.models.readers.tensors import (
    ACTIVATIONS,
    RMS,
    Tensors,
    embedding,
    expert_tensors,
    group_layers,
    linear,
    mlp_tensors,
    norm_tensors,
    router_tensors,
)

PRE_NORMS: Final = ("input_layernorm", "post_attention_layernorm")


class DecoderFrame(NamedTuple):
    """Norms, embeddings and head around a decoder's blocks; the defaults are Llama's.

    `other_norms` is the number of norms over the hidden width without tensors or with tensors in a block; `softcapped`
    is whether the configuration class caps the logits by default; `named_streams` is as in `Layer`.
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
    named_streams: int = 0


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
            named_streams=frame.named_streams,
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
    if head is None:
        bias = read_flag(fields, frame.head_bias)
        head = linear(frame.head, sizes.vocabulary, sizes.hidden, bias=bias, role="head")
    if after is None:
        after = () if frame.final_norm is None else norm_tensors(frame.final_norm, sizes.hidden, frame.norm)
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
                after=after,
                embedding_dropout=read_dropout(fields, frame.embedding_dropout),
            ),
        ),
        # A tied head shares the weight but not a bias.
        head=tuple(tensor for tensor in head if tensor.role == "bias") if tied else head,
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


GATED_NAMES: Final = ("gate_proj", "up_proj", "down_proj")

SharedWidth = Callable[[ConfigFields, int], int]
"""Function that returns the total width of the shared experts, from the configuration and one expert's width."""

SparseLayers = Callable[[ConfigFields, int], tuple[bool, ...]]
"""Function that returns for each layer whether it has experts, from configuration and number of layers."""


def no_shared_experts(_: ConfigFields, __: int) -> int:
    """Return the width 0, for families without shared experts."""
    return 0


def shared_width_from_count(name: str, default: int) -> SharedWidth:
    """Return the width function for families that state the number of shared experts, each as wide as a routed one."""
    return lambda fields, width: width * fields.integer(name, default=default, low=0, high=MAX_LAYERS)


def shared_width_from_field(name: str, default: int | None = None) -> SharedWidth:
    """Return the width function for families that state the total width of the shared experts."""
    return lambda fields, _: fields.integer(name, default=default, low=0)


def experts_in_every_layer(_: ConfigFields, layers: int) -> tuple[bool, ...]:
    """Return that every layer has experts."""
    return (True,) * layers


def experts_in_stepped_layers(fields: ConfigFields, layers: int) -> tuple[bool, ...]:
    """Return that every `decoder_sparse_step`-th layer has experts, except `mlp_only_layers` (Qwen)."""
    dense = frozenset(fields.integers("mlp_only_layers") or ())
    step = fields.integer("decoder_sparse_step", default=1)
    return tuple(index not in dense and (index + 1) % step == 0 for index in range(layers))


def experts_after_dense_layers(default: int) -> SparseLayers:
    """Return the function for families with dense first layers and experts in all others."""

    def sparse_layers(fields: ConfigFields, layers: int) -> tuple[bool, ...]:
        stated = fields.texts_per_layer("mlp_layer_types", layers=layers)
        if stated is None:
            first = fields.integer("first_k_dense_replace", default=default, low=0)
            return tuple(index >= first for index in range(layers))
        return tuple(kind == "sparse" for kind in stated)

    return sparse_layers


class ExpertStyle(NamedTuple):
    """Tensor names and configuration fields of a family's experts; the defaults are Qwen's.

    `stacked` checkpoints hold the experts of a layer in one tensor, with gate and up concatenated: as (output, input)
    or, if `transposed`, as (input, output).
    """

    experts: tuple[str, ...] = ("num_experts", "num_local_experts", "n_routed_experts")
    top_k: tuple[str, ...] = ("num_experts_per_tok",)
    width: tuple[str, ...] = ("moe_intermediate_size",)
    activation: Activation | None = None
    router: str = "mlp.gate"
    router_bias: bool = False
    fp32_router: bool = False
    correction: str | None = None
    prefix: str = "mlp.experts.{expert}."
    names: tuple[str, ...] = GATED_NAMES
    layout: Literal["separate", "stacked", "transposed"] = "separate"
    bias: bool = False
    shared: SharedWidth = no_shared_experts
    shared_prefix: str = "mlp.shared_experts."
    shared_names: tuple[str, ...] = GATED_NAMES
    shared_bias: FlagSource = False
    shared_gate: str | None = None
    every_expert: bool = False
    sparse: SparseLayers = experts_in_every_layer

    def blocks(self, fields: ConfigFields, sizes: StackSizes, dense: MlpStyle) -> tuple[FeedForwardBlock, ...]:
        """Return one feed-forward block per layer: a mixture of experts, or dense."""
        sparse = self.sparse(fields, sizes.layers)
        made = {
            kind: moe_block(fields, sizes.hidden, self) if kind else mlp_block(fields, sizes, dense)
            for kind in set(sparse)
        }
        return tuple(made[kind] for kind in sparse)


QWEN_EXPERTS: Final = ExpertStyle(sparse=experts_in_stepped_layers)


def moe_block(fields: ConfigFields, hidden: int, style: ExpertStyle) -> FeedForwardBlock:
    """Return a layer's mixture-of-experts block with the tensors of router, routed and shared experts.

    Raises:
        ModelFileError: If more experts are selected per token than exist.
    """
    width = fields.integer(*style.width)
    experts = fields.integer(*style.experts, high=MAX_LAYERS)
    moe = Moe(
        experts=experts,
        top_k=fields.integer(*style.top_k, high=experts),
        intermediate=width,
        activation=style.activation or fields.choice(*ACTIVATION_FIELDS, among=ACTIVATIONS, default="silu"),
        shared_intermediate=style.shared(fields, width),
        fp32_router=style.fp32_router,
        shared_gate=style.shared_gate is not None,
        every_expert=style.every_expert,
    )
    shared = _shared_expert_tensors(moe, hidden, style, bias=read_flag(fields, style.shared_bias))
    return FeedForwardBlock(
        moe, (*_router_tensors(moe, hidden, style), *_routed_expert_tensors(moe, hidden, style), *shared)
    )


def _router_tensors(moe: Moe, hidden: int, style: ExpertStyle) -> Tensors:
    scores = router_tensors(style.router, moe.experts, hidden, bias=style.router_bias)
    if style.correction is None:
        return scores
    return (*scores, Tensor(name=style.correction, shape=(1, moe.experts), role="other"))


def _routed_expert_tensors(moe: Moe, hidden: int, style: ExpertStyle) -> Tensors:
    if style.layout == "separate":
        return expert_tensors(moe, hidden, prefix=style.prefix, names=style.names, bias=style.bias)
    make = partial(_stacked_expert_tensor, copies=moe.experts, transposed=style.layout == "transposed", bias=style.bias)
    gate_up, down = (f"{style.prefix}{name}" for name in style.names)
    return (*make(gate_up, 2 * moe.intermediate, hidden), *make(down, hidden, moe.intermediate))


def _stacked_expert_tensor(
    name: str, out_features: int, in_features: int, *, copies: int, transposed: bool, bias: bool
) -> Tensors:
    shape = (in_features, out_features) if transposed else (out_features, in_features)
    weight = Tensor(name=name, shape=shape, role="expert", copies=copies)
    return (
        (weight, Tensor(name=f"{name}_bias", shape=(out_features,), role="expert", copies=copies))
        if bias
        else (weight,)
    )


def _shared_expert_tensors(moe: Moe, hidden: int, style: ExpertStyle, *, bias: bool) -> Tensors:
    if not moe.shared_intermediate:
        return ()
    fused = len(style.shared_names) == 2
    shared = Mlp(intermediate=moe.shared_intermediate, gated=True, fused_gate_up=fused)
    tensors = mlp_tensors(shared, hidden, prefix=style.shared_prefix, names=style.shared_names, bias=bias)
    return tensors + router_tensors(style.shared_gate, 1, hidden) if style.shared_gate else tensors
