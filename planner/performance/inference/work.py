"""Operations and bytes of a pass over the network, from its tensors: cached per model and weight format."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from planner.dtypes import AS_STORED, SCHEMES
from planner.memory.weights import KEPT_BYTES, MATRIX_ROLES, weight_bytes
from planner.models.architecture import Architecture
from planner.models.layers import Attention, LatentAttention, Layer, LayerGroup, Mixer, Mlp, Moe, Stack, Tensor

_PRODUCTS: Final = ("linear", "router", "conv")
_STREAM_PASSES: Final = 10
"""Reads and writes of the stream in a layer: two norms (2 each) and two residual sums (3 each)."""
_ELEMENT_BYTES: Final = 2


class Experts(NamedTuple):
    """Routed experts of all layers with the same number of experts."""

    bytes: float
    parameters: int
    experts: int
    visits: int

    def touched(self, rows: float) -> float:
        """Return the share of the experts that a pass over `rows` tokens reads.

        **Formula**: 1 − (1 − k / E)ᴮ, tokens choosing independently and evenly.
        """
        left: float = (1.0 - self.visits / self.experts) ** rows
        return 1.0 - left


class Pairs(NamedTuple):
    """Attention work per pair of a query and a key, in all layers with the same window."""

    flops: float
    scores: float
    window: int | None

    def of_prompt(self, tokens: float) -> float:
        """Return the pairs of a prompt of `tokens` tokens, each attending to itself and the previous ones."""
        if self.window is None or tokens <= self.window:
            return tokens * tokens / 2
        return self.window * (tokens - self.window / 2)


class PassWork(NamedTuple):
    """Work of a pass over one stack, per token and as a whole.

    `parameters` are those of the products that a token passes through, the head left out; `fixed_bytes` are read in
    every pass, including the head's; `pointwise_bytes` are read and written per token outside of products;
    `dequantised_bytes` are those of the quantised weights, unpacked to 16 bits. `queries_per_key` are the heads that
    share keys and values, and `key_heads` the most cards that can share a cache.
    """

    layers: int
    hidden: int
    parameters: float
    head_parameters: int
    fixed_bytes: float
    experts: tuple[Experts, ...]
    pairs: tuple[Pairs, ...]
    pointwise_bytes: float
    dequantised_bytes: float
    queries_per_key: float
    key_heads: int

    def read_bytes(self, rows: float) -> float:
        """Return the bytes of weights that a pass over `rows` tokens reads."""
        return self.fixed_bytes + sum([kind.bytes * kind.touched(rows) for kind in self.experts])

    def attention_flops(self, tokens: float) -> float:
        """Return the operations of causal attention over a prompt."""
        return sum([kind.flops * kind.of_prompt(tokens) for kind in self.pairs])

    def scores(self, tokens: float) -> float:
        """Return the number of attention scores of a prompt, over all heads and layers."""
        return sum([kind.scores * kind.of_prompt(tokens) for kind in self.pairs])


@lru_cache(maxsize=256)
def work_of(architecture: Architecture, weights: str, number: int = -1, *, every_expert: bool = False) -> PassWork:
    """Return the work of a pass over stack `number` of `architecture`, by default over the main one.

    With `every_expert` all experts compute each token if the model's own code does so (Llama 4 in transformers).

    **Formula**: 2 operations for each parameter of a product and token; attention 4 · heads · head size for each pair
    of a query and a key, half of the square where it is causal; experts k of E.

    **Source**: Kaplan et al. 2020 (arXiv 2001.08361), table 1; tensors as the model lists them.

    **Assumes** that embedding look-ups are negligible, and that norms and biases are read with the products.
    """
    stack = architecture.stacks[number]
    head = _head(architecture) if stack is architecture.main else ()
    tensors = [(tensor, tensor.copies * group.count) for group in stack.groups for tensor in group.layer.tensors]
    dense = [(tensor, count) for tensor, count in tensors if tensor.role != "expert"]
    after = [(tensor, tensor.copies) for tensor in (*stack.after, *head)]
    return PassWork(
        layers=stack.layer_count,
        hidden=stack.hidden,
        parameters=_products(dense) + sum(_active(group, every_expert) for group in stack.groups),
        head_parameters=sum(tensor.parameters for tensor in head if len(tensor.shape) > 1),
        fixed_bytes=_bytes(architecture, weights, [*dense, *after]),
        experts=tuple(_experts(architecture, weights, stack, every_expert)),
        pairs=tuple(_pairs(stack)),
        pointwise_bytes=sum(group.count * _pointwise(group.layer, stack.hidden) for group in stack.groups),
        dequantised_bytes=_unpacked(weights, architecture, tensors),
        key_heads=min((_key_heads(group.layer.mixer) for group in stack.groups), default=1),
        queries_per_key=max((_shared_by(group.layer.mixer) for group in stack.groups), default=1.0),
    )


def _head(architecture: Architecture) -> tuple[Tensor, ...]:
    """Return the tensors that compute the logits: those of the head, or the tied embedding."""
    if not architecture.tied_head:
        return architecture.head
    tables = [tensor for tensor in architecture.main.before if tensor.role == "embedding"]
    return (*architecture.head, *sorted(tables, key=lambda table: -table.size)[:1])


def _products(tensors: Iterable[tuple[Tensor, int]]) -> int:
    return sum(tensor.size * count for tensor, count in tensors if tensor.role in _PRODUCTS)


def _active(group: LayerGroup, every_expert: bool) -> float:
    moe = group.layer.feed_forward
    if not isinstance(moe, Moe):
        return 0.0
    return group.count * _routed(group.layer) * _visits(moe, every_expert) / moe.experts


def _visits(moe: Moe, every_expert: bool) -> int:
    return moe.visits if every_expert else moe.top_k


def _routed(layer: Layer) -> int:
    return sum(tensor.parameters for tensor in layer.tensors if tensor.role == "expert")


def _experts(architecture: Architecture, weights: str, stack: Stack, every_expert: bool) -> Iterator[Experts]:
    for group in stack.groups:
        moe = group.layer.feed_forward
        if isinstance(moe, Moe):
            own = [(tensor, tensor.copies * group.count) for tensor in group.layer.tensors if tensor.role == "expert"]
            held = _bytes(architecture, weights, own)
            yield Experts(held, group.count * _routed(group.layer), moe.experts, _visits(moe, every_expert))


def _bytes(architecture: Architecture, weights: str, tensors: list[tuple[Tensor, int]]) -> float:
    """Return the bytes of `tensors` as stored: exact if the scheme defines them, otherwise their share of the file."""
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


def _unpacked(weights: str, architecture: Architecture, tensors: list[tuple[Tensor, int]]) -> float:
    """Return the bytes of quantised weights in 16 bits; 0 if they have 16 bits or more already."""
    name = architecture.stored_as if weights == AS_STORED else weights
    scheme = SCHEMES.get(name)
    if scheme is None or scheme.bits_per_weight >= 8 * _ELEMENT_BYTES:
        return 0.0
    return float(_ELEMENT_BYTES * sum(tensor.size * count for tensor, count in tensors if tensor.role in MATRIX_ROLES))


def _pairs(stack: Stack) -> Iterator[Pairs]:
    found: dict[int | None, tuple[float, float]] = {}
    for group in stack.groups:
        for mixer in (group.layer.mixer, group.layer.second_mixer):
            if isinstance(mixer, Attention | LatentAttention):
                window = mixer.window if isinstance(mixer, Attention) else None
                flops, scores = found.get(window, (0.0, 0.0))
                found[window] = (flops + group.count * _pair_flops(mixer), scores + group.count * mixer.heads)
    return (Pairs(flops, scores, window) for window, (flops, scores) in found.items())


def _pair_flops(mixer: Attention | LatentAttention) -> int:
    if isinstance(mixer, Attention):
        return 4 * mixer.heads * mixer.head_dim
    return 2 * mixer.heads * (mixer.qk_nope_head_dim + mixer.qk_rope_head_dim + mixer.v_head_dim)


def _key_heads(mixer: Mixer | None) -> int:
    """Return how many cards can hold parts of a layer's cache; latents and states are whole on each."""
    return mixer.kv_heads if isinstance(mixer, Attention) else 1


def _shared_by(mixer: Mixer | None) -> float:
    return mixer.heads / mixer.kv_heads if isinstance(mixer, Attention) else 1.0


def _pointwise(layer: Layer, hidden: int) -> float:
    return _ELEMENT_BYTES * (_STREAM_PASSES * hidden + _mixed(layer.mixer) + _activated(layer, hidden))


def _mixed(mixer: Mixer | None) -> int:
    """Return the elements read and written by rotation and by caching keys and values."""
    return 2 * (mixer.q_dim + 2 * mixer.kv_dim) if isinstance(mixer, Attention) else 0


def _activated(layer: Layer, hidden: int) -> int:
    """Return the elements read and written by the activation, and by dispatching tokens to experts and back."""
    match layer.feed_forward:
        case Mlp(gated=gated, intermediate=width):
            return (3 if gated else 2) * width
        case Moe(gated=gated, intermediate=width) as moe:
            own = (3 if gated else 2) * (moe.top_k * width + moe.shared_intermediate)
            return own + 4 * moe.top_k * hidden
        case _:
            return 0
