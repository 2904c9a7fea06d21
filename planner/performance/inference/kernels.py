"""Time of a pass as the sum of its measured kernels, for dense networks in engines whose kernels were measured."""

from functools import lru_cache
from typing import Final, NamedTuple

from planner.hardware.gpu import Gpu
from planner.models.architecture import Architecture
from planner.models.layers import Attention, Layer, Mlp
from planner.performance.inference.machine import CardSpeed
from planner.performance.inference.passes import ModelSplit, PassBatch, PassTime, elementwise_seconds
from planner.performance.inference.work import PassWork
from planner.performance.kernels.attention import AttentionShape
from planner.performance.kernels.curves import Kernel, KernelTime, find_curve
from planner.performance.kernels.times import (
    attention_prompt_time,
    attention_token_time,
    collective_time,
    element_format,
    launch_seconds,
    matmul_time,
)

_FORMATS: Final = {"bf16": "bf16", "fp16": "bf16", "BF16": "bf16", "F16": "bf16", "fp8": "fp8", "nvfp4": "nvfp4"}
"""Formats of weights that kernels multiply as stored, with the tables' names."""
_CACHES: Final = {"fp16": "bf16", "bf16": "bf16", "fp8": "fp8"}
_HEAD: Final = "bf16"
"""Format of the output head, which engines do not quantise."""
_ELEMENTWISE: Final = 3
"""Element-wise kernels of a layer: two norms with the sums before them, and the activation."""
_MOST_CARDS: Final = 8
"""Most cards over which an all-reduce was measured."""
_STREAM_BYTES: Final = 2


class DenseLayers(NamedTuple):
    """A number of equal layers with attention and a dense feed-forward block."""

    number: int
    attention: Attention
    feed_forward: Mlp


class PassKernels(NamedTuple):
    """The measured kernels of a pass: card, name of the engine's tables, formats of products and cache, and layers."""

    gpu: Gpu
    tables: str
    products: str
    cache: str
    hidden: int
    vocabulary: int
    layers: tuple[DenseLayers, ...]


@lru_cache(maxsize=512)
def pass_kernels(
    architecture: Architecture, machine: CardSpeed, gpu: Gpu, weights: str, cache: str
) -> PassKernels | None:
    """Return the kernels of a pass over `architecture` on `gpu`, or None if their sum is not its time.

    All must have been measured in the engine on the card or on its family, and unfused attention was not. Mixtures of
    experts are left to the classes: the sum of their kernels was no better on any of three families of cards.
    """
    tables, products, stored = machine.engine.kernels, _FORMATS.get(weights), _CACHES.get(cache)
    layers = _dense_layers(architecture)
    if tables is None or products is None or stored is None or layers is None or machine.unfused:
        return None
    needed: set[tuple[Kernel, str]] = {
        ("product", products),
        ("product", _HEAD),
        ("attention-read", f"{_HEAD}/{stored}"),
        ("attention-write", stored),
        ("attention-write-single", stored),
        ("all-reduce", "graph"),
    }
    if not all(_is_measured(gpu, kernel, tables, number_format) for kernel, number_format in needed):
        return None
    return PassKernels(gpu, tables, products, stored, architecture.main.hidden, architecture.vocabulary or 0, layers)


def _is_measured(gpu: Gpu, kernel: Kernel, tables: str, number_format: str) -> bool:
    """Return whether `kernel` was measured in the engine of `tables`, on `gpu` or its family."""
    found = find_curve(gpu, kernel, tables, number_format)
    return found is not None and found.curve.engine == tables and found.reach != "all cards"


def _dense_layers(architecture: Architecture) -> tuple[DenseLayers, ...] | None:
    """Return the layers of a decoder, or None if one has other than attention and a dense feed-forward block."""
    if architecture.kind != "decoder":
        return None
    found = []
    for group in architecture.main.groups:
        attention, feed_forward = group.layer.mixer, group.layer.feed_forward
        if not isinstance(attention, Attention) or not isinstance(feed_forward, Mlp) or _has_more(group.layer):
            return None
        found.append(DenseLayers(group.count, attention, feed_forward))
    return tuple(found)


def _has_more(layer: Layer) -> bool:
    return layer.second_mixer is not None or layer.cross_attention is not None


def kernels_time(
    kernels: PassKernels, work: PassWork, machine: CardSpeed, sharing: ModelSplit, batch: PassBatch
) -> PassTime | None:
    """Return the time of the kernels of a pass over `batch`, or None if no table has this split over cards.

    **Formula**: for each layer the products (queries, keys and values in one, gate and up projection in one),
    attention, two all-reduces and the bytes of element-wise kernels ÷ bandwidth, plus the product of the head; every
    kernel with the time that a CUDA graph needs to start it.

    **Source**: curves fitted to ai-dynamo/aiconfigurator@095f58a; no figure of a whole pass is used.

    **Assumes** that kernels run one after the other, and that products read no weights from memory twice.
    """
    cards = sharing.tensor
    if cards > _MOST_CARDS or sharing.offloaded.share:
        return None
    products = _seconds(_product(kernels, batch.outputs, kernels.vocabulary / cards, kernels.hidden, _HEAD))
    attention = launches = exchanged = 0.0
    for layers in kernels.layers:
        products += layers.number * _product_seconds(kernels, layers, batch.rows, cards)
        attention += layers.number * _attention_seconds(kernels, layers.attention, batch, cards)
        launches += layers.number * _ELEMENTWISE * launch_seconds(kernels.gpu, kernels.tables)
    if cards > 1:
        size = batch.rows * kernels.hidden * _STREAM_BYTES
        each = collective_time(kernels.gpu, kernels.tables, "graph", "all-reduce", cards, size)
        exchanged = 2 * work.layers * _seconds(each)
    read = min(products, work.read_bytes(batch.rows) / (machine.bytes_per_s * cards))
    is_prompt = batch.scores > 0
    return PassTime(
        weights_read=read,
        compute=products - read,
        attention=attention if is_prompt else 0.0,
        cache_read=0.0 if is_prompt else attention,
        elementwise=elementwise_seconds(work, machine, batch.rows, cards) + launches,
        tensor_exchange=exchanged,
    )


def _product_seconds(kernels: PassKernels, layers: DenseLayers, rows: float, cards: int) -> float:
    """Return the seconds of a layer's products over `rows` tokens, on each of `cards` cards."""
    attention, block, hidden = layers.attention, layers.feed_forward, kernels.hidden
    width = block.intermediate / cards
    queries, keys = attention.q_dim / cards, _key_heads(attention, cards) * attention.head_dim
    shapes = (
        (queries + 2 * keys, hidden),
        (hidden, queries),
        ((2 if block.gated else 1) * width, hidden),
        (hidden, width),
    )
    return sum(_seconds(_product(kernels, rows, columns, inner, kernels.products)) for columns, inner in shapes)


def _product(kernels: PassKernels, rows: float, columns: float, inner: float, number_format: str) -> KernelTime | None:
    return matmul_time(kernels.gpu, kernels.tables, number_format, rows, columns, inner, fused=True)


def _attention_seconds(kernels: PassKernels, attention: Attention, batch: PassBatch, cards: int) -> float:
    """Return the seconds of a layer's attention, of a prompt or of one new token of each sequence."""
    is_prompt, window = batch.scores > 0, attention.window or 0
    shape = AttentionShape(
        sequences=batch.sequences,
        tokens=batch.tokens if is_prompt else min(batch.tokens, window or batch.tokens),
        heads=max(1.0, attention.heads / cards),
        key_heads=_key_heads(attention, cards),
        head_size=attention.head_dim,
        window=window if is_prompt else 0,
        cache_bytes=element_format(kernels.cache).weight_bytes,
    )
    if is_prompt:
        return _seconds(attention_prompt_time(kernels.gpu, kernels.tables, f"{_HEAD}/{kernels.cache}", shape))
    return _seconds(attention_token_time(kernels.gpu, kernels.tables, kernels.cache, shape))


def _key_heads(attention: Attention, cards: int) -> float:
    """Return the key/value heads on each card, which are copied if there are more cards than heads."""
    return max(1.0, attention.kv_heads / cards)


def _seconds(found: KernelTime | None) -> float:
    return found.seconds if found else 0.0
