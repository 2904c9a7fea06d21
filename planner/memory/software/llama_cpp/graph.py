"""The compute buffer of llama.cpp on a card: the graph of one micro-batch, laid out as ggml does.

Tensors are in fp32, and those of one layer are freed before the next, so that a few layers show what any number of
them needs: the first reads the embeddings, one of each kind follows, the last keeps the rows that have an output.

**Source**: llama.cpp 0.5.0, src/llama-graph.cpp and src/models for the nodes and their order, ggml/src/ggml-alloc.c
for their places.
"""

from functools import lru_cache
from typing import NamedTuple

from planner.memory.software.llama_cpp.allocator import FLOAT, HALF, INDEX, GraphAllocator, Place
from planner.memory.software.llama_cpp.blocks import Rows, feed_forward, mix
from planner.models.architecture import Attention, LatentAttention, Layer, Mixer


class Network(NamedTuple):
    """What the graph depends on: the width of the stream and of the output, and a few layers in their order."""

    hidden: int
    width: int
    layers: tuple[Layer, ...]


class Batch(NamedTuple):
    """The micro-batch that the buffer is reserved for: tokens, rows with logits, and the cells that attention reads.

    `sliding_cells` are those of layers with a window. `widened` says that flash attention makes a copy of a layer's
    cells in half precision, which it does on CUDA where they are not in F16. `on_card` is false for the buffer of a run
    without a card, where the token embedding stands beside the layers.
    """

    tokens: int
    outputs: int
    cells: int
    sliding_cells: int
    flash: bool = True
    widened: bool = False
    on_card: bool = True


@lru_cache(maxsize=512)
def compute_buffer_bytes(network: Network, batch: Batch) -> int:
    """Return the bytes of the compute buffer on the card that holds the layers and the output.

    **Formula**: max over the graph's tensors of offset + bytes, each at the place that ggml's allocator gives it.

    **Assumes** that embeddings, positions, masks and the rows to keep are copied to the card before the first layer,
    which the scheduler does where the token embedding stays on the host.
    """
    places = GraphAllocator()
    stream, inputs = _inputs(places, network, batch)
    rows = batch.tokens
    for index, layer in enumerate(network.layers):
        last = index == len(network.layers) - 1
        mixed = _mixed(places, network, layer, batch)
        if last:
            places.free(*inputs)
            rows = batch.outputs
            stream, mixed = _kept(places, network.hidden * rows * FLOAT, stream, mixed)
        stream = _after_mixing(Rows(places, rows), network.hidden, layer, stream, mixed)
    places.take(network.width * rows * FLOAT)
    return places.furthest


def mask_bytes(network: Network, batch: Batch) -> int:
    """Return the attention masks of `batch`: in half precision for flash attention, else in single."""
    cells = sum(_cells_read(kind, batch) for kind in _caches(network))
    return cells * batch.tokens * (HALF if batch.flash else FLOAT)


def _caches(network: Network) -> tuple[str, ...]:
    """Return the kinds of cache that there are: one for layers that read everything, one for those with a window."""
    mixers = [mixer for layer in network.layers for mixer in (layer.mixer, layer.second_mixer)]
    kinds = {_cache(mixer) for mixer in mixers}
    return tuple(kind for kind in ("full", "sliding") if kind in kinds)


def _cache(mixer: Mixer | None) -> str | None:
    if isinstance(mixer, Attention):
        return "sliding" if mixer.window else "full"
    return "full" if isinstance(mixer, LatentAttention) else None


def _cells_read(kind: str | None, batch: Batch) -> int:
    return batch.sliding_cells if kind == "sliding" else batch.cells


def _inputs(places: GraphAllocator, network: Network, batch: Batch) -> tuple[Place, list[Place]]:
    """Lay out the embedded tokens, positions, cells to write keys and values to, masks, and rows to keep.

    Without flash attention values are written transposed, and each number of them has an index of its own. Beside the
    token embedding stand the tokens, and room for embeddings given instead of them, which nothing reads or frees.
    """
    tokens, embedded = batch.tokens, network.hidden * batch.tokens * FLOAT
    values = 1 if batch.flash else max((_value_width(layer.mixer) for layer in network.layers), default=1)
    written = [tokens * INDEX, tokens * values * INDEX] * len(_caches(network))
    sizes = [tokens * FLOAT, *written, mask_bytes(network, batch), batch.outputs * FLOAT]
    if batch.on_card:
        return places.take(embedded), [places.take(size) for size in sizes if size]
    places.take(embedded)
    inputs = [places.take(size) for size in (tokens * FLOAT, *sizes) if size]
    return places.take(embedded), inputs


def _value_width(mixer: Mixer | None) -> int:
    return mixer.kv_dim if isinstance(mixer, Attention) else 1


def _mixed(places: GraphAllocator, network: Network, layer: Layer, batch: Batch) -> Place | None:
    """Lay out what the normed stream is mixed by; results of mixers side by side are added in the first one's place."""
    mixers = [mixer for mixer in (layer.mixer, layer.second_mixer) if mixer is not None]
    if not mixers:
        return None
    rows = Rows(places, batch.tokens)
    normed = rows.take(network.hidden)
    results = []
    for index, mixer in enumerate(mixers):
        cells = _cells_read(_cache(mixer), batch)
        read_last = normed if index == len(mixers) - 1 else None
        results.append(mix(rows, mixer, network.hidden, cells, read_last, flash=batch.flash, widened=batch.widened))
    places.free(*results[1:])
    return results[0]


def _kept(places: GraphAllocator, size: int, stream: Place, mixed: Place | None) -> tuple[Place, Place | None]:
    """Keep the rows that have an output, of the block's result and of the stream beside it."""
    kept_mixed = None
    if mixed is not None:
        kept_mixed = places.take(size)
        places.free(mixed)
    kept_stream = places.take(size)
    places.free(stream)
    return kept_stream, kept_mixed


def _after_mixing(rows: Rows, hidden: int, layer: Layer, stream: Place, mixed: Place | None) -> Place:
    """Lay out the sum with the stream, in the mixer's place, and the feed-forward block behind it or beside it."""
    if mixed is None:
        return _summed(rows, hidden, layer, stream)
    if layer.parallel:
        result = _summed(rows, hidden, layer, stream)
        rows.places.free(mixed)
        return result
    rows.places.free(stream)
    return _summed(rows, hidden, layer, mixed)


def _summed(rows: Rows, hidden: int, layer: Layer, stream: Place) -> Place:
    """Lay out the feed-forward block, whose result is summed with `stream` in its own place."""
    if layer.feed_forward is None:
        return stream
    normed = rows.take(hidden)
    result = feed_forward(rows, layer.feed_forward, hidden, normed)
    rows.places.free(stream)
    return result
