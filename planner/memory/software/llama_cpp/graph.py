"""The compute buffer of llama.cpp on a card: the graph of one micro-batch, laid out as ggml does.

Tensors are in fp32, and those of one layer are freed before the next, so that a few layers need as much as any number
of them: the first reads the embeddings, one of each kind follows, the last keeps the rows that have an output.

**Source**: llama.cpp 0.5.0, src/llama-graph.cpp and src/models for the nodes and their order, ggml/src/ggml-alloc.c
for their places.
"""

from functools import lru_cache
from typing import Final, NamedTuple

from planner.models.architecture import Attention, LatentAttention, Layer, Mixer, Mlp, Moe, StateMixer

ALIGNMENT: Final = 128
"""Bytes that tensors are aligned to in a CUDA buffer (ggml-cuda.cu); other backends have 32 to 256."""
FLOAT: Final = 4
HALF: Final = 2
INDEX: Final = 8
"""Bytes of an fp32 number, of one in half precision, and of an index of 64 bits."""
_ENDLESS: Final = 1 << 60

Place = tuple[int, int]
"""Offset and bytes of a tensor."""


class GraphAllocator:
    """Allocator of tensors in one buffer: best fit, otherwise at the end."""

    def __init__(self) -> None:
        self.furthest = 0
        self._free: list[list[int]] = [[0, _ENDLESS]]

    def take(self, size: int) -> Place:
        """Return the place of a new tensor of `size` bytes; among holes of equal size the last is used."""
        size += -size % ALIGNMENT
        free = self._free
        best, least = len(free) - 1, _ENDLESS
        for index in range(len(free) - 1):
            hole = free[index][1]
            if size <= hole <= least:
                best, least = index, hole
        block = free[best]
        offset = block[0]
        if block[1] == size:
            del free[best]
        else:
            block[0] += size
            block[1] -= size
        if offset + size > self.furthest:
            self.furthest = offset + size
        return offset, size

    def free(self, *places: Place) -> None:
        """Free the tensors at `places`, in this order, merging them with adjacent holes."""
        for offset, size in places:
            self._return_to_holes(offset, size)

    def _return_to_holes(self, offset: int, size: int) -> None:
        free = self._free
        index = 0
        while free[index][0] < offset:
            index += 1
        following = free[index]
        if offset + size == following[0]:
            following[0] = offset
            following[1] += size
        else:
            free.insert(index, [offset, size])
        if index:
            before = free[index - 1]
            if before[0] + before[1] == offset:
                before[1] += free[index][1]
                del free[index]


class RowAllocator(NamedTuple):
    """An allocator of tensors with one row for each computed token."""

    places: GraphAllocator
    computed: int

    def take(self, width: int, extra: int = 0) -> Place:
        """Return the place of a tensor with `width` numbers per row and `extra` bytes behind it."""
        return self.places.take(width * self.computed * FLOAT + extra)


def lay_out_mixer(
    rows: RowAllocator, mixer: Mixer, hidden: int, cells: int, normed: Place | None, *, flash: bool, widened: bool
) -> Place:
    """Lay out `mixer` and return the place of its result; `normed` is freed after its last reader."""
    read_last = (normed,) if normed is not None else ()
    if isinstance(mixer, StateMixer):
        return _lay_out_scan(rows, mixer, hidden, read_last)
    if isinstance(mixer, LatentAttention):
        return _lay_out_latent_attention(rows, mixer, hidden, cells, read_last, flash=flash, widened=widened)
    return _lay_out_attention(rows, mixer, hidden, cells, read_last, flash=flash, widened=widened)


def lay_out_feed_forward(rows: RowAllocator, block: Mlp | Moe, hidden: int, normed: Place) -> Place:
    """Lay out a feed-forward block that reads `normed`, and return the place of its result."""
    if isinstance(block, Mlp):
        return _lay_out_mlp(rows, block.intermediate, hidden, normed, gated=block.gated)
    result = _lay_out_experts(rows, block, hidden, () if block.shared_intermediate else (normed,))
    if block.shared_intermediate:
        rows.places.free(_lay_out_mlp(rows, block.shared_intermediate, hidden, normed, gated=block.gated))
    return result


def _lay_out_attention(
    rows: RowAllocator,
    mixer: Attention,
    hidden: int,
    cells: int,
    read_last: tuple[Place, ...],
    *,
    flash: bool,
    widened: bool,
) -> Place:
    """Lay out queries, keys and values, copied by rotation, then attention and its projection."""
    places = rows.places
    query = _lay_out_rotation(rows, mixer.q_dim, mixer)
    if mixer.kv_shared:
        places.free(*read_last)
    else:
        value = rows.take(mixer.kv_dim)
        key = _lay_out_rotation(rows, mixer.kv_dim, mixer)
        places.free(*read_last, key, value)
    copied = 2 * cells * mixer.kv_dim * HALF if widened else 0
    result = _lay_out_attention_result(rows, mixer.heads, mixer.q_dim, cells, query, copied, flash=flash)
    projected = rows.take(hidden)
    places.free(result)
    return projected


def _lay_out_rotation(rows: RowAllocator, width: int, mixer: Attention) -> Place:
    """Lay out queries or keys; the first of norm and rotation reads a view, so it writes a new tensor."""
    plain = rows.take(width)
    if mixer.qk_norm == "none" and not mixer.rotary:
        return plain
    rotated = rows.take(width)
    rows.places.free(plain)
    return rotated


def _lay_out_attention_result(
    rows: RowAllocator, heads: int, width: int, cells: int, query: Place, copied: int, *, flash: bool
) -> Place:
    """Lay out attention over `cells`: fused, with `copied` bytes of cells in F16, or with its score matrix."""
    if flash:
        result = rows.take(width, copied)
        rows.places.free(query)
        return result
    scores = rows.take(heads * cells)
    rows.places.free(query)
    weighted = rows.take(width)
    rows.places.free(scores)
    result = rows.take(width)
    rows.places.free(weighted)
    return result


def _lay_out_latent_attention(
    rows: RowAllocator,
    mixer: LatentAttention,
    hidden: int,
    cells: int,
    read_last: tuple[Place, ...],
    *,
    flash: bool,
    widened: bool,
) -> Place:
    """Lay out latent attention with the keys' projection absorbed into the queries."""
    places, heads = rows.places, mixer.heads
    compressed = (rows.take(mixer.q_lora_rank),) if mixer.q_lora_rank else ()
    plain = rows.take(heads * (mixer.qk_nope_head_dim + mixer.qk_rope_head_dim))
    places.free(*compressed)
    rotated = rows.take(heads * mixer.qk_rope_head_dim)
    absorbed = rows.take(heads * mixer.kv_lora_rank)
    places.free(plain)
    query = rows.take(heads * mixer.latent_dim)
    places.free(absorbed, rotated)
    latent = rows.take(mixer.latent_dim)
    places.free(*read_last)
    key = rows.take(mixer.latent_dim)
    places.free(latent, key)
    copied = cells * mixer.latent_dim * HALF if widened else 0
    result = _lay_out_attention_result(rows, heads, heads * mixer.kv_lora_rank, cells, query, copied, flash=flash)
    expanded = rows.take(heads * mixer.v_head_dim)
    places.free(result)
    ordered = rows.take(heads * mixer.v_head_dim)
    places.free(expanded)
    projected = rows.take(hidden)
    places.free(ordered)
    return projected


def _lay_out_scan(rows: RowAllocator, mixer: StateMixer, hidden: int, read_last: tuple[Place, ...]) -> Place:
    """Lay out a scan: the expanded stream and its gate, the convolution's input and result, the scan's result."""
    places = rows.places
    expanded = rows.take(2 * mixer.inner_dim)
    places.free(*read_last)
    joined = rows.take(mixer.inner_dim)
    convolved = rows.take(mixer.inner_dim)
    places.free(joined)
    scanned = rows.take(mixer.inner_dim, mixer.recurrent_state_elements * FLOAT)
    places.free(convolved, expanded)
    projected = rows.take(hidden)
    places.free(scanned)
    return projected


def _lay_out_mlp(rows: RowAllocator, width: int, hidden: int, normed: Place, *, gated: bool) -> Place:
    """Lay out gate, up, their product and the projection back; without a gate the activation is in place."""
    places = rows.places
    wide = [rows.take(width) for _ in range(2 if gated else 1)]
    places.free(normed)
    if gated:
        product = rows.take(width)
        places.free(*wide)
        wide = [product]
    result = rows.take(hidden)
    places.free(*wide)
    return result


def _lay_out_experts(rows: RowAllocator, block: Moe, hidden: int, read_last: tuple[Place, ...]) -> Place:
    """Lay out the routing, the chosen experts' inner tensors, their results side by side, and the running sum."""
    places, chosen = rows.places, block.top_k
    scores = rows.take(block.experts)
    order = rows.take(block.experts)
    weights = rows.take(chosen)
    places.free(scores)
    wide = [rows.take(chosen * block.intermediate) for _ in range(2 if block.gated else 1)]
    places.free(*read_last)
    if block.gated:
        product = rows.take(chosen * block.intermediate)
        places.free(*wide)
        wide = [product]
    results = rows.take(chosen * hidden)
    places.free(*wide, order, weights)
    total = rows.take(hidden)
    places.free(results)
    return total


class GraphNetwork(NamedTuple):
    """Parameters of the graph: the widths of the stream and the output, and a few layers in order."""

    hidden: int
    width: int
    layers: tuple[Layer, ...]


class GraphBatch(NamedTuple):
    """The micro-batch for which the buffer is reserved: tokens, rows with logits, and cells read by attention.

    `sliding_cells` are those of layers with a window. `widened` means that flash attention makes a copy of a layer's
    cells in half precision, which it does on CUDA where they are not in F16. `on_card` is false for the buffer of a run
    without a card, where the token embedding is in the same buffer as the layers.
    """

    tokens: int
    outputs: int
    cells: int
    sliding_cells: int
    flash: bool = True
    widened: bool = False
    on_card: bool = True


@lru_cache(maxsize=512)
def compute_buffer_bytes(network: GraphNetwork, batch: GraphBatch) -> int:
    """Return the size in bytes of the compute buffer on the card that holds the layers and the output.

    **Formula**: max over the graph's tensors of offset + bytes, each at the place that ggml's allocator gives it.

    **Assumes** that embeddings, positions, masks and the rows to keep are copied to the card before the first layer,
    which the scheduler does where the token embedding stays on the host.
    """
    places = GraphAllocator()
    stream, inputs = _lay_out_inputs(places, network, batch)
    rows = batch.tokens
    for index, layer in enumerate(network.layers):
        last = index == len(network.layers) - 1
        mixed = _lay_out_mixers(places, network, layer, batch)
        if last:
            places.free(*inputs)
            rows = batch.outputs
            stream, mixed = _keep_output_rows(places, network.hidden * rows * FLOAT, stream, mixed)
        stream = _lay_out_residual(RowAllocator(places, rows), network.hidden, layer, stream, mixed)
    places.take(network.width * rows * FLOAT)
    return places.furthest


def graph_mask_bytes(network: GraphNetwork, batch: GraphBatch) -> int:
    """Return the size in bytes of the attention masks: half precision for flash attention, otherwise fp32."""
    cells = sum(_cells_read(kind, batch) for kind in _cache_kinds(network))
    return cells * batch.tokens * (HALF if batch.flash else FLOAT)


def _cache_kinds(network: GraphNetwork) -> tuple[str, ...]:
    """Return the kinds of cache in use: full for layers without a window, sliding for layers with a window."""
    mixers = [mixer for layer in network.layers for mixer in (layer.mixer, layer.second_mixer)]
    kinds = {_cache_kind(mixer) for mixer in mixers}
    return tuple(kind for kind in ("full", "sliding") if kind in kinds)


def _cache_kind(mixer: Mixer | None) -> str | None:
    if isinstance(mixer, Attention):
        return "sliding" if mixer.window else "full"
    return "full" if isinstance(mixer, LatentAttention) else None


def _cells_read(kind: str | None, batch: GraphBatch) -> int:
    return batch.sliding_cells if kind == "sliding" else batch.cells


def _lay_out_inputs(places: GraphAllocator, network: GraphNetwork, batch: GraphBatch) -> tuple[Place, list[Place]]:
    """Lay out the inputs: embedded tokens, positions, indices of written cells, masks, and rows to keep.

    Without flash attention values are written transposed, and each element has an index of its own. With the
    token embedding in the buffer come the tokens, and space for embeddings given instead of them, never read or freed.
    """
    tokens, embedded = batch.tokens, network.hidden * batch.tokens * FLOAT
    values = 1 if batch.flash else max((_value_width(layer.mixer) for layer in network.layers), default=1)
    written = [tokens * INDEX, tokens * values * INDEX] * len(_cache_kinds(network))
    sizes = [tokens * FLOAT, *written, graph_mask_bytes(network, batch), batch.outputs * FLOAT]
    if batch.on_card:
        return places.take(embedded), [places.take(size) for size in sizes if size]
    places.take(embedded)
    inputs = [places.take(size) for size in (tokens * FLOAT, *sizes) if size]
    return places.take(embedded), inputs


def _value_width(mixer: Mixer | None) -> int:
    return mixer.kv_dim if isinstance(mixer, Attention) else 1


def _lay_out_mixers(places: GraphAllocator, network: GraphNetwork, layer: Layer, batch: GraphBatch) -> Place | None:
    """Lay out the mixers of the normed stream; results of parallel mixers are added in the first one's place."""
    mixers = [mixer for mixer in (layer.mixer, layer.second_mixer) if mixer is not None]
    if not mixers:
        return None
    rows = RowAllocator(places, batch.tokens)
    normed = rows.take(network.hidden)
    results = []
    for index, mixer in enumerate(mixers):
        cells = _cells_read(_cache_kind(mixer), batch)
        read_last = normed if index == len(mixers) - 1 else None
        results.append(
            lay_out_mixer(rows, mixer, network.hidden, cells, read_last, flash=batch.flash, widened=batch.widened)
        )
    places.free(*results[1:])
    return results[0]


def _keep_output_rows(
    places: GraphAllocator, size: int, stream: Place, mixed: Place | None
) -> tuple[Place, Place | None]:
    """Copy the output rows of the block's result and of the residual stream, and free the originals."""
    kept_mixed = None
    if mixed is not None:
        kept_mixed = places.take(size)
        places.free(mixed)
    kept_stream = places.take(size)
    places.free(stream)
    return kept_stream, kept_mixed


def _lay_out_residual(rows: RowAllocator, hidden: int, layer: Layer, stream: Place, mixed: Place | None) -> Place:
    """Lay out the residual sum, in the mixer's place, and the feed-forward block after it or parallel to it."""
    if mixed is None:
        return _lay_out_feed_forward_sum(rows, hidden, layer, stream)
    if layer.parallel:
        result = _lay_out_feed_forward_sum(rows, hidden, layer, stream)
        rows.places.free(mixed)
        return result
    rows.places.free(stream)
    return _lay_out_feed_forward_sum(rows, hidden, layer, mixed)


def _lay_out_feed_forward_sum(rows: RowAllocator, hidden: int, layer: Layer, stream: Place) -> Place:
    """Lay out the feed-forward block, with `stream` added to the block's result in place."""
    if layer.feed_forward is None:
        return stream
    normed = rows.take(hidden)
    result = lay_out_feed_forward(rows, layer.feed_forward, hidden, normed)
    rows.places.free(stream)
    return result
