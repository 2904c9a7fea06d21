"""Operations and bytes of a pass over a network, computed from its tensors and cached per model and weight format."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from planner.dtypes import AS_STORED, SCHEMES
from planner.memory.weights import KEPT_BYTES, MATRIX_ROLES, weight_bytes
from planner.models.architecture import Architecture
from planner.models.layers import (
    Attention,
    LatentAttention,
    Layer,
    LayerGroup,
    Mixer,
    Mlp,
    Moe,
    Stack,
    StateMixer,
    Tensor,
)

_PRODUCTS: Final = ("linear", "router", "conv")
_STREAM_PASSES: Final = 10
"""Reads and writes of the residual stream in a layer: two norms (2 each) and two residual sums (3 each)."""
ELEMENT_BYTES: Final = 2
"""Bytes of an element of the residual stream and of activations: engines keep them in 16 bits."""


class ExpertGroup(NamedTuple):
    """The routed experts of all layers with the same number of experts."""

    bytes: float
    parameters: int
    experts: int
    visits: int

    def active_share(self, rows: float) -> float:
        """Return the share of the experts whose weights a pass over `rows` tokens reads.

        **Formula**: 1 − (1 − k / E)ᴮ, tokens choosing independently and evenly.
        """
        left: float = (1.0 - self.visits / self.experts) ** rows
        return 1.0 - left


class AttentionPairs(NamedTuple):
    """Attention work per query-key pair, in all layers with the same window."""

    flops: float
    scores: float
    window: int | None

    def prompt_pairs(self, tokens: float) -> float:
        """Return the query-key pairs in a prompt of `tokens` tokens, which attend to themselves and previous tokens."""
        if self.window is None or tokens <= self.window:
            return tokens * tokens / 2
        return self.window * (tokens - self.window / 2)


class DeltaNets(NamedTuple):
    """The gated delta nets of a number of equal layers: heads of a layer, and the width of a head's keys and values."""

    layers: int
    heads: int
    width: int


class PassWork(NamedTuple):
    """Operations and bytes of a pass over one stack, per token and in total.

    `parameters` are those of the products that a token passes through, the head left out; `fixed_bytes` are read in
    every pass, including the head's; `pointwise_bytes` are read and written per token outside of products;
    `dequantised_bytes` are those of the quantised weights, unpacked to 16 bits. `queries_per_key` are the heads that
    share keys and values, and `key_heads` the most GPUs that can share a cache. `delta_nets` are layers whose state
    goes through a prompt chunk by chunk.
    """

    layers: int
    expert_layers: int
    hidden: int
    parameters: float
    head_parameters: int
    fixed_bytes: float
    experts: tuple[ExpertGroup, ...]
    pairs: tuple[AttentionPairs, ...]
    pointwise_bytes: float
    dequantised_bytes: float
    queries_per_key: float
    key_heads: int
    delta_nets: tuple[DeltaNets, ...] = ()

    @property
    def delta_net_layers(self) -> int:
        """Return the number of layers with a gated delta net."""
        return sum([nets.layers for nets in self.delta_nets])

    @property
    def active_expert_parameters(self) -> float:
        """Return the parameters of routed experts that a token passes through."""
        return sum([kind.parameters * kind.visits / kind.experts for kind in self.experts])

    def expert_bytes(self, rows: float) -> float:
        """Return the size of the routed experts that a pass over `rows` tokens reads, in bytes."""
        return sum([kind.bytes * kind.active_share(rows) for kind in self.experts])

    def read_bytes(self, rows: float) -> float:
        """Return the size of the weights that a pass over `rows` tokens reads, in bytes."""
        return self.fixed_bytes + self.expert_bytes(rows)

    def attention_flops(self, tokens: float) -> float:
        """Return the floating-point operations of causal attention over a prompt of `tokens` tokens."""
        return sum([kind.flops * kind.prompt_pairs(tokens) for kind in self.pairs])

    def scores(self, tokens: float) -> float:
        """Return the number of attention scores of a prompt of `tokens` tokens, over all heads and layers."""
        return sum([kind.scores * kind.prompt_pairs(tokens) for kind in self.pairs])


@lru_cache(maxsize=256)
def work_of(
    architecture: Architecture, weights: str, stack_index: int | None = None, *, every_expert: bool = False
) -> PassWork:
    """Return the work of a pass over one stack of layers: `architecture.stacks[stack_index]`, by default the main one.

    With `every_expert` all experts compute each token if the model's own code does so (Llama 4 in transformers).

    **Formula**: 2 operations for each parameter of a product and token; attention 4 · heads · head size for each pair
    of a query and a key, half of the square where it is causal; experts k of E.

    **Source**: Kaplan et al. 2020 (arXiv 2001.08361), table 1; tensors as the model lists them.

    **Assumes** that embedding look-ups are negligible, and that norms and biases are read with the products.
    """
    stack = architecture.main if stack_index is None else architecture.stacks[stack_index]
    head = _head_tensors(architecture) if stack is architecture.main else ()
    tensors = [(tensor, tensor.copies * group.count) for group in stack.groups for tensor in group.layer.tensors]
    dense = [(tensor, count) for tensor, count in tensors if tensor.role != "expert"]
    after = [(tensor, tensor.copies) for tensor in (*stack.after, *head)]
    return PassWork(
        layers=stack.layer_count,
        expert_layers=sum(group.count for group in stack.groups if isinstance(group.layer.feed_forward, Moe)),
        hidden=stack.hidden,
        parameters=sum(tensor.size * count for tensor, count in dense if tensor.role in _PRODUCTS)
        + sum(_active_expert_parameters(group, every_expert) for group in stack.groups),
        head_parameters=sum(tensor.parameters for tensor in head if len(tensor.shape) > 1),
        fixed_bytes=_stored_bytes(architecture, weights, [*dense, *after]),
        experts=tuple(_expert_groups(architecture, weights, stack, every_expert)),
        pairs=tuple(_attention_pairs(stack)),
        pointwise_bytes=sum(group.count * _pointwise_bytes(group.layer, stack.hidden) for group in stack.groups),
        dequantised_bytes=_unpacked_bytes(weights, architecture, tensors),
        key_heads=min((_max_cache_shards(group.layer.mixer) for group in stack.groups), default=1),
        queries_per_key=max((_queries_per_key(group.layer.mixer) for group in stack.groups), default=1.0),
        delta_nets=tuple(_delta_nets(stack)),
    )


def _head_tensors(architecture: Architecture) -> tuple[Tensor, ...]:
    if not architecture.tied_head:
        return architecture.head
    tables = [tensor for tensor in architecture.main.before if tensor.role == "embedding"]
    return (*architecture.head, *sorted(tables, key=lambda table: -table.size)[:1])


def _active_expert_parameters(group: LayerGroup, every_expert: bool) -> float:
    moe = group.layer.feed_forward
    if not isinstance(moe, Moe):
        return 0.0
    return group.count * _routed_parameters(group.layer) * _expert_visits(moe, every_expert) / moe.experts


def _expert_visits(moe: Moe, every_expert: bool) -> int:
    """Return the experts that compute each token: `top_k`, or all if the engine and the model's code compute all."""
    return moe.visits if every_expert else moe.top_k


def _routed_parameters(layer: Layer) -> int:
    return sum(tensor.parameters for tensor in layer.tensors if tensor.role == "expert")


def _expert_groups(architecture: Architecture, weights: str, stack: Stack, every_expert: bool) -> Iterator[ExpertGroup]:
    for group in stack.groups:
        moe = group.layer.feed_forward
        if isinstance(moe, Moe):
            own = [(tensor, tensor.copies * group.count) for tensor in group.layer.tensors if tensor.role == "expert"]
            held = _stored_bytes(architecture, weights, own)
            yield ExpertGroup(
                held, group.count * _routed_parameters(group.layer), moe.experts, _expert_visits(moe, every_expert)
            )


def _stored_bytes(architecture: Architecture, weights: str, tensors: list[tuple[Tensor, int]]) -> float:
    """Return the stored size of `tensors` in bytes: exact if the scheme defines it, else in proportion to the file."""
    name = architecture.stored_as if weights == AS_STORED else weights
    scheme = SCHEMES.get(name)
    if scheme is None or scheme.family in ("plain", "gguf-file"):
        each = weight_bytes(architecture, weights) / architecture.parameters
        return sum([tensor.size * count for tensor, count in tensors]) * each
    roles = architecture.quantized_roles if name == architecture.quantization else MATRIX_ROLES
    return float(
        sum(
            count * (scheme.tensor_bytes(tensor.shape) if tensor.role in roles else tensor.size * KEPT_BYTES)
            for tensor, count in tensors
        )
    )


def _unpacked_bytes(weights: str, architecture: Architecture, tensors: list[tuple[Tensor, int]]) -> float:
    """Return the bytes of the quantised weights after unpacking to 16 bits; 0 for weights in 16 bits or more."""
    name = architecture.stored_as if weights == AS_STORED else weights
    scheme = SCHEMES.get(name)
    if scheme is None or scheme.bits_per_weight >= 8 * ELEMENT_BYTES:
        return 0.0
    return float(ELEMENT_BYTES * sum(tensor.size * count for tensor, count in tensors if tensor.role in MATRIX_ROLES))


def _attention_pairs(stack: Stack) -> Iterator[AttentionPairs]:
    found: dict[int | None, tuple[float, float]] = {}
    for group in stack.groups:
        for mixer in (group.layer.mixer, group.layer.second_mixer):
            if isinstance(mixer, Attention | LatentAttention):
                window = mixer.window if isinstance(mixer, Attention) else None
                flops, scores = found.get(window, (0.0, 0.0))
                found[window] = (
                    flops + group.count * _flops_per_query_key_pair(mixer),
                    scores + group.count * mixer.heads,
                )
    return (AttentionPairs(flops, scores, window) for window, (flops, scores) in found.items())


def _flops_per_query_key_pair(mixer: Attention | LatentAttention) -> int:
    if isinstance(mixer, Attention):
        return 4 * mixer.heads * mixer.head_dim
    return 2 * mixer.heads * (mixer.qk_nope_head_dim + mixer.qk_rope_head_dim + mixer.v_head_dim)


def _max_cache_shards(mixer: Mixer | None) -> int:
    """Return the maximum number of GPUs over which a layer's KV cache splits: its key/value heads; 1 for latents."""
    return mixer.kv_heads if isinstance(mixer, Attention) else 1


def _queries_per_key(mixer: Mixer | None) -> float:
    return mixer.heads / mixer.kv_heads if isinstance(mixer, Attention) else 1.0


def _delta_nets(stack: Stack) -> Iterator[DeltaNets]:
    """Yield the gated delta nets, whose keys are as wide as their values in all published networks."""
    for group in stack.groups:
        mixer = group.layer.mixer
        if isinstance(mixer, StateMixer) and mixer.name == "gated-delta-net":
            width = mixer.recurrent_state_elements // mixer.inner_dim
            yield DeltaNets(group.count, mixer.inner_dim // width, width)


def _pointwise_bytes(layer: Layer, hidden: int) -> float:
    """Return the bytes per token that a layer's operations other than matrix products move."""
    return ELEMENT_BYTES * (
        _STREAM_PASSES * hidden + _mixer_elements(layer.mixer) + _activation_elements(layer, hidden)
    )


def _mixer_elements(mixer: Mixer | None) -> int:
    """Return the elements per token that rotary embedding and the writing of the KV cache read and write.

    Of a gated delta net they are those of the convolution over queries, keys and values, the norms of queries and keys,
    and the gated norm of its results, which reads two numbers and writes one.
    """
    if isinstance(mixer, StateMixer) and mixer.name == "gated-delta-net":
        channels = mixer.conv_state_elements // max(1, mixer.conv_kernel)
        return 2 * channels + 2 * (channels - mixer.inner_dim) + 3 * mixer.inner_dim
    return 2 * (mixer.q_dim + 2 * mixer.kv_dim) if isinstance(mixer, Attention) else 0


def _activation_elements(layer: Layer, hidden: int) -> int:
    """Return the elements per token that the activation and the dispatch to experts and back read and write."""
    match layer.feed_forward:
        case Mlp(gated=gated, intermediate=width):
            return (3 if gated else 2) * width
        case Moe(gated=gated, intermediate=width) as moe:
            own = (3 if gated else 2) * (moe.top_k * width + moe.shared_intermediate)
            return own + 4 * moe.top_k * hidden
        case _:
            return 0
