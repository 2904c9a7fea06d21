"""Floating-point operations and bytes moved in one forward pass of a network, by kind of operation.

A multiplication and an addition are two operations. Attention is counted as it is computed: a causal layer reads half
of the square of its context, a window no more than the window. Figures that count the full square, as those of PaLM's
appendix do, are higher for long sequences.
"""

from functools import lru_cache
from math import prod
from typing import NamedTuple

from planner.memory.training.autograd.network import is_frozen, trained_stacks
from planner.models.architecture import (
    Architecture,
    Attention,
    LatentAttention,
    Layer,
    LayerGroup,
    Moe,
    Stack,
    StateMixer,
    Tensor,
)


class MatrixProduct(NamedTuple):
    """A number of equal matrix products: (`rows` × `inputs`) times (`inputs` × `outputs`), `number` times."""

    rows: float
    inputs: int
    outputs: int
    number: float
    expert: bool

    @property
    def flops(self) -> float:
        """Return the floating-point operations of all products."""
        return 2 * self.rows * self.inputs * self.outputs * self.number

    def moved_bytes(self, element_bytes: float) -> float:
        """Return the bytes that all products read and write at `element_bytes` bytes per element."""
        read = self.inputs * self.outputs + self.rows * self.inputs
        return element_bytes * self.number * (read + self.rows * self.outputs)


class ForwardWork(NamedTuple):
    """Work of one forward pass over a number of sequences: matrix products, attention and logits.

    `products` are the matrix products of the layers, `head` those of the output head; `attention_flops` the products
    of queries, keys and values with each other; `logits` the number of outputs of the head.
    """

    products: tuple[MatrixProduct, ...]
    head: tuple[MatrixProduct, ...]
    attention_flops: float
    logits: float
    layers: int
    expert_layers: int

    @property
    def layer_flops(self) -> float:
        """Return the floating-point operations of matrix products inside the layers, without attention."""
        return sum([product.flops for product in self.products])

    @property
    def head_flops(self) -> float:
        """Return the floating-point operations of the output head."""
        return sum([product.flops for product in self.head])

    @property
    def flops(self) -> float:
        """Return the total floating-point operations, including attention and the output head."""
        return self.layer_flops + self.head_flops + self.attention_flops


@lru_cache(maxsize=1024)
def forward_work(architecture: Architecture, sequences: float, length: int) -> ForwardWork:
    """Return the work of a forward pass.

    **Formula**: Σ 2 · rows · inputs · outputs over the matrices that a token passes through, plus attention
    2 · context · (width of the queries + width of the values) for each token, with a context of (s + 1) / 2 where it is
    causal, s where it is not, and no more than a window.

    **Source**: Kaplan et al. 2020, arXiv 2001.08361 §2.1 (2N for each token); Narayanan et al. 2021, arXiv 2104.04473
    appendix (attention); Dao 2023, arXiv 2307.08691 §4.1 (a causal mask halves it).

    **Assumes** that an encoder reads as many tokens as its decoder, and that routers spread the tokens evenly. A frozen
    tower before a language model, which has no backward pass, is `frozen_tower_work`.
    """
    products: dict[tuple[float, int, int, bool], float] = {}
    attention = 0.0
    layers = expert_layers = source = 0
    for stack in trained_stacks(architecture):
        images = stack.images
        if images.count and architecture.kind == "vision-language" and is_frozen(stack):
            continue
        rows = sequences * max(images.count, 1)
        tokens = images.patches if images.count else stack.positions or length
        for group in stack.groups:
            layers += group.count
            expert_layers += group.count if isinstance(group.layer.feed_forward, Moe) else 0
            for product in _layer_products(group.layer, rows * tokens, sequences * (source or tokens)):
                key = (product.rows, product.inputs, product.outputs, product.expert)
                products[key] = products.get(key, 0.0) + product.number * group.count
            attention += rows * tokens * group.count * _attention_flops_per_token(group, stack, tokens, source)
        for tensor in stack.before:
            if tensor.role in ("conv", "linear"):
                key = (rows * tokens, prod(tensor.shape[1:]), tensor.shape[0], False)
                products[key] = products.get(key, 0.0) + tensor.copies
        source = tokens
    head = tuple(_head_products(architecture, sequences * source))
    logits = sum([product.rows * product.outputs for product in head])
    return ForwardWork(
        tuple([MatrixProduct(*key[:3], number, key[3]) for key, number in products.items()]),
        head,
        attention,
        logits,
        layers,
        expert_layers,
    )


def frozen_tower_work(architecture: Architecture, sequences: float) -> ForwardWork | None:
    """Return the work of the images in `sequences` in a vision tower that is not trained; None if none is."""
    tower = architecture.stacks[0]
    if not tower.images.count or not is_frozen(tower):
        return None
    alone = tower.evolve(after=())
    network = architecture.evolve(kind="vision-encoder", stacks=(alone,), head=(), tied_head=False, hidden=tower.hidden)
    return forward_work(network, sequences, tower.images.patches)


def _layer_products(layer: Layer, rows: float, source_rows: float) -> list[MatrixProduct]:
    """Return the matrix products of one layer; keys and values of cross-attention read the encoder."""
    return [
        product
        for tensor in layer.tensors
        if (product := _matrix_product(tensor, layer, rows, source_rows)) is not None
    ]


def _matrix_product(tensor: Tensor, layer: Layer, rows: float, source_rows: float) -> MatrixProduct | None:
    if len(tensor.shape) < 2:
        return None
    if tensor.role == "expert" and isinstance(layer.feed_forward, Moe):
        outputs, inputs = tensor.shape[-2:]
        block = layer.feed_forward
        return MatrixProduct(
            rows * block.visits / block.experts, inputs, outputs, prod((tensor.copies, *tensor.shape[:-2])), True
        )
    if tensor.role not in ("linear", "router"):
        return None
    crossed = layer.cross_attention is not None and _reads_encoder_output(tensor.name)
    return MatrixProduct(
        source_rows if crossed else rows, prod(tensor.shape[1:]), tensor.shape[0], tensor.copies, False
    )


def _reads_encoder_output(name: str) -> bool:
    """Return whether a cross-attention projection computes keys or values, which come from the encoder."""
    crossed = "encoder_attn" in name or "EncDecAttention" in name or "cross" in name
    return crossed and any(part in name for part in ("k_proj", "v_proj", ".k.", ".v."))


def _head_products(architecture: Architecture, rows: float) -> list[MatrixProduct]:
    """Return the matrix products after the layers: a pooler or projector, and the tied or separate output head."""
    tensors = [tensor for tensor in architecture.main.after if tensor.role == "linear"]
    if architecture.tied_head:
        tables = [tensor for tensor in architecture.main.before if tensor.role == "embedding"]
        tensors.append(max(tables, key=lambda tensor: tensor.size))
    tensors += [tensor for tensor in architecture.head if len(tensor.shape) > 1]
    return [MatrixProduct(rows, prod(tensor.shape[1:]), tensor.shape[0], tensor.copies, False) for tensor in tensors]


def _attention_flops_per_token(group: LayerGroup, stack: Stack, tokens: int, source: int) -> float:
    """Return the floating-point operations of attention per token in one layer of `group`."""
    layer, causal = group.layer, stack.name == "decoder"
    found = 0.0
    for mixer in (layer.mixer, layer.second_mixer):
        if isinstance(mixer, Attention):
            found += 4 * mixer.q_dim * mean_context_tokens(tokens, mixer.window, causal=causal)
        elif isinstance(mixer, LatentAttention):
            wide = mixer.qk_nope_head_dim + mixer.qk_rope_head_dim + mixer.v_head_dim
            found += 2 * mixer.heads * wide * mean_context_tokens(tokens, None, causal=causal)
        elif isinstance(mixer, StateMixer):
            found += 6 * mixer.recurrent_state_elements
    if layer.cross_attention is not None:
        found += 4 * layer.cross_attention.q_dim * (source or tokens)
    return found


def mean_context_tokens(tokens: int, window: int | None, *, causal: bool) -> float:
    """Return the mean number of tokens that a token attends to in a sequence of `tokens` tokens.

    **Formula**: causal (s + 1) / 2; within a window w the mean of min(i, w) over i = 1 … s.
    """
    if window is None or window >= tokens:
        return (tokens + 1) / 2 if causal else float(tokens)
    if not causal:
        return float(min(2 * window, tokens))
    return (window * (window + 1) / 2 + (tokens - window) * window) / tokens
