"""llama.cpp's compute buffer on a card: the tensors of one micro-batch's graph, laid out as ggml does.

Tensors are in fp32, and those of one layer are freed before the next, so that a few layers need as much as any number
of them: the first reads the embeddings, one of each kind follows, the last keeps the rows that have an output.

**Source**: llama.cpp 0.5.0, src/llama-graph.cpp and src/models for the nodes and their order, ggml/src/ggml-alloc.c
for their places.
"""

from functools import lru_cache
from typing import Final, NamedTuple

from planner.models.architecture import Attention, LatentAttention, Layer, Mixer, Mlp, Moe, StateMixer

ALIGNMENT: Final = 128
"""Alignment in bytes of tensors in a CUDA buffer (ggml-cuda.cu); other backends align to 32 to 256 bytes."""
FLOAT: Final = 4
HALF: Final = 2
INDEX: Final = 8
"""Sizes in bytes of an fp32 number (FLOAT), an fp16 number (HALF) and a 64-bit index (INDEX)."""
_ENDLESS: Final = 1 << 60
_COPIED_FROM: Final = 32
"""Rows from which a product's weights are copied to the card (ggml-cuda.cu, `op_offload_min_batch_size`)."""

Place = tuple[int, int]
"""A tensor's offset in the compute buffer, and its size in bytes."""


class GraphAllocator:
    """Allocator of the graph's tensors in one buffer: best fit among holes, otherwise at the end."""

    def __init__(self) -> None:
        self.furthest = 0
        self._free: list[list[int]] = [[0, _ENDLESS]]

    def allocate(self, size: int) -> Place:
        """Return the place of a new tensor of `size` bytes; among holes of equal size the last one is used."""
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
        """Free the tensors at `places` in this order, merging each with adjacent holes."""
        for offset, size in places:
            self._return_to_holes(offset, size)

    def _return_to_holes(self, offset: int, size: int) -> None:
        """Add a freed place to the holes, merged with adjacent holes."""
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
    """Allocator of the graph's tensors that have one row per computed token."""

    places: GraphAllocator
    computed: int

    def allocate(self, width: int, extra: int = 0) -> Place:
        """Return the place of a new tensor with `width` fp32 numbers per row and `extra` bytes after the rows."""
        return self.places.allocate(width * self.computed * FLOAT + extra)


def lay_out_mixer(
    rows: RowAllocator, mixer: Mixer, hidden: int, cells: int, normed: Place | None, *, flash: bool, widened: bool
) -> Place:
    """Allocate the tensors of `mixer`, return the place of its result, and free `normed` after its last reader."""
    read_last = (normed,) if normed is not None else ()
    if isinstance(mixer, StateMixer):
        return _lay_out_scan(rows, mixer, hidden, read_last)
    if isinstance(mixer, LatentAttention):
        return _lay_out_latent_attention(rows, mixer, hidden, cells, read_last, flash=flash, widened=widened)
    return _lay_out_attention(rows, mixer, hidden, cells, read_last, flash=flash, widened=widened)


class ExpertCopies(NamedTuple):
    """Bytes of one layer's expert matrices that are copied to the card: that of the gate, as that before it, and down.

    They are copied for products of 32 rows or more, each before its product, and freed after it.
    """

    gate: int = 0
    down: int = 0

    def for_rows(self, rows: int) -> "ExpertCopies":
        """Return the copies for products of `rows` rows: none for few rows, which the CPU computes."""
        return self if rows >= _COPIED_FROM else NO_COPIES


NO_COPIES: Final = ExpertCopies()


def lay_out_feed_forward(
    rows: RowAllocator, block: Mlp | Moe, hidden: int, normed: Place, copies: ExpertCopies = NO_COPIES
) -> Place:
    """Allocate the tensors of a feed-forward block that reads `normed`, and return the place of its result."""
    if isinstance(block, Mlp):
        return _lay_out_mlp(rows, block.intermediate, hidden, normed, gated=block.gated)
    read_last = () if block.shared_intermediate else (normed,)
    result = _lay_out_experts(rows, block, hidden, read_last, copies.for_rows(rows.computed))
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
    """Allocate queries, keys, values, their rotated copies, and attention; return the place of the projected result."""
    places = rows.places
    query = _lay_out_rotation(rows, mixer.q_dim, mixer)
    if mixer.kv_shared:
        places.free(*read_last)
    else:
        value = rows.allocate(mixer.kv_dim)
        key = _lay_out_rotation(rows, mixer.kv_dim, mixer)
        places.free(*read_last, key, value)
    copied = 2 * cells * mixer.kv_dim * HALF if widened else 0
    result = _lay_out_attention_result(rows, mixer.heads, mixer.q_dim, cells, query, copied, flash=flash)
    projected = rows.allocate(hidden)
    places.free(result)
    return projected


def _lay_out_rotation(rows: RowAllocator, width: int, mixer: Attention) -> Place:
    """Allocate queries or keys; the first norm or rotation reads a view and writes a new tensor."""
    plain = rows.allocate(width)
    if mixer.qk_norm == "none" and not mixer.rotary:
        return plain
    rotated = rows.allocate(width)
    rows.places.free(plain)
    return rotated


def _lay_out_attention_result(
    rows: RowAllocator, heads: int, width: int, cells: int, query: Place, copied: int, *, flash: bool
) -> Place:
    """Allocate attention's result over `cells`: fused with `copied` bytes of F16 cells, or with the score matrix."""
    if flash:
        result = rows.allocate(width, copied)
        rows.places.free(query)
        return result
    scores = rows.allocate(heads * cells)
    rows.places.free(query)
    weighted = rows.allocate(width)
    rows.places.free(scores)
    result = rows.allocate(width)
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
    """Allocate latent attention, with the keys' projection absorbed into the queries; return the result's place."""
    places, heads = rows.places, mixer.heads
    compressed = (rows.allocate(mixer.q_lora_rank),) if mixer.q_lora_rank else ()
    plain = rows.allocate(heads * (mixer.qk_nope_head_dim + mixer.qk_rope_head_dim))
    places.free(*compressed)
    rotated = rows.allocate(heads * mixer.qk_rope_head_dim)
    absorbed = rows.allocate(heads * mixer.kv_lora_rank)
    places.free(plain)
    query = rows.allocate(heads * mixer.latent_dim)
    places.free(absorbed, rotated)
    latent = rows.allocate(mixer.latent_dim)
    places.free(*read_last)
    key = rows.allocate(mixer.latent_dim)
    places.free(latent, key)
    copied = cells * mixer.latent_dim * HALF if widened else 0
    result = _lay_out_attention_result(rows, heads, heads * mixer.kv_lora_rank, cells, query, copied, flash=flash)
    expanded = rows.allocate(heads * mixer.v_head_dim)
    places.free(result)
    ordered = rows.allocate(heads * mixer.v_head_dim)
    places.free(expanded)
    projected = rows.allocate(hidden)
    places.free(ordered)
    return projected


def _lay_out_scan(rows: RowAllocator, mixer: StateMixer, hidden: int, read_last: tuple[Place, ...]) -> Place:
    """Allocate a state-space scan: expanded stream and gate, convolution, and the scan's result."""
    places = rows.places
    expanded = rows.allocate(2 * mixer.inner_dim)
    places.free(*read_last)
    joined = rows.allocate(mixer.inner_dim)
    convolved = rows.allocate(mixer.inner_dim)
    places.free(joined)
    scanned = rows.allocate(mixer.inner_dim, mixer.recurrent_state_elements * FLOAT)
    places.free(convolved, expanded)
    projected = rows.allocate(hidden)
    places.free(scanned)
    return projected


def _lay_out_mlp(rows: RowAllocator, width: int, hidden: int, normed: Place, *, gated: bool) -> Place:
    """Allocate gate, up, product and down projection of an MLP; ungated activations are computed in place."""
    places = rows.places
    wide = [rows.allocate(width) for _ in range(2 if gated else 1)]
    places.free(normed)
    if gated:
        product = rows.allocate(width)
        places.free(*wide)
        wide = [product]
    result = rows.allocate(hidden)
    places.free(*wide)
    return result


def _lay_out_experts(
    rows: RowAllocator, block: Moe, hidden: int, read_last: tuple[Place, ...], copies: ExpertCopies
) -> Place:
    """Allocate routing, inner tensors of the chosen experts, their outputs, and the running sum."""
    places, chosen = rows.places, block.top_k
    scores = rows.allocate(block.experts)
    order = rows.allocate(block.experts)
    weights = rows.allocate(chosen)
    places.free(scores)
    wide = [_lay_out_product(rows, chosen * block.intermediate, copies.gate) for _ in range(2 if block.gated else 1)]
    places.free(*read_last)
    if block.gated:
        product = rows.allocate(chosen * block.intermediate)
        places.free(*wide)
        wide = [product]
    results = _lay_out_product(rows, chosen * hidden, copies.down)
    places.free(*wide, order, weights)
    total = rows.allocate(hidden)
    places.free(results)
    return total


def _lay_out_product(rows: RowAllocator, width: int, copied: int) -> Place:
    """Allocate the result of a product, after a copy of its weights of `copied` bytes that is freed after it."""
    if not copied:
        return rows.allocate(width)
    copy = rows.places.allocate(copied)
    result = rows.allocate(width)
    rows.places.free(copy)
    return result


class GraphNetwork(NamedTuple):
    """The network in llama.cpp's compute graph: widths of residual stream and output, and a few layers in order."""

    hidden: int
    width: int
    layers: tuple[Layer, ...]


class GraphBatch(NamedTuple):
    """The micro-batch in llama.cpp's compute graph: tokens, rows with logits, and cache cells read by attention.

    `sliding_cells` are those of layers with a window. `widened` means that flash attention makes a copy of a layer's
    cells in half precision, which it does on CUDA where they are not in F16. `on_card` is false for the buffer of a run
    without a card, where the token embedding is in the same buffer as the layers. `copies` are those of experts in RAM.
    """

    tokens: int
    outputs: int
    cells: int
    sliding_cells: int
    flash: bool = True
    widened: bool = False
    on_card: bool = True
    copies: ExpertCopies = NO_COPIES


@lru_cache(maxsize=512)
def compute_buffer_bytes(network: GraphNetwork, batch: GraphBatch) -> int:
    """Return the size in bytes of the compute buffer on the card with all layers and the output.

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
        stream = _lay_out_residual(RowAllocator(places, rows), network.hidden, layer, stream, mixed, batch.copies)
    places.allocate(network.width * rows * FLOAT)
    return places.furthest


def graph_mask_bytes(network: GraphNetwork, batch: GraphBatch) -> int:
    """Return the bytes of the attention masks of one micro-batch: fp16 for flash attention, otherwise fp32."""
    cells = sum(_cells_read(kind, batch) for kind in _cache_kinds(network))
    return cells * batch.tokens * (HALF if batch.flash else FLOAT)


def _cache_kinds(network: GraphNetwork) -> tuple[str, ...]:
    """Return the kinds of KV cache in use: `full` without a window, `sliding` with a window."""
    mixers = [mixer for layer in network.layers for mixer in (layer.mixer, layer.second_mixer)]
    kinds = {_cache_kind(mixer) for mixer in mixers}
    return tuple(kind for kind in ("full", "sliding") if kind in kinds)


def _cache_kind(mixer: Mixer | None) -> str | None:
    """Return the kind of KV cache of a mixer, `full` or `sliding`; None without a cache."""
    if isinstance(mixer, Attention):
        return "sliding" if mixer.window else "full"
    return "full" if isinstance(mixer, LatentAttention) else None


def _cells_read(kind: str | None, batch: GraphBatch) -> int:
    """Return the cells of a cache of `kind` that attention reads."""
    return batch.sliding_cells if kind == "sliding" else batch.cells


def _lay_out_inputs(places: GraphAllocator, network: GraphNetwork, batch: GraphBatch) -> tuple[Place, list[Place]]:
    """Allocate the graph's inputs; return the place of the embedded tokens and of the other inputs.

    Without flash attention values are written transposed, and each element has an index of its own. With the
    token embedding in the buffer come the tokens, and space for embeddings given instead of them, never read or freed.
    """
    tokens, embedded = batch.tokens, network.hidden * batch.tokens * FLOAT
    values = 1 if batch.flash else max((_value_width(layer.mixer) for layer in network.layers), default=1)
    written = [tokens * INDEX, tokens * values * INDEX] * len(_cache_kinds(network))
    sizes = [tokens * FLOAT, *written, graph_mask_bytes(network, batch), batch.outputs * FLOAT]
    if batch.on_card:
        return places.allocate(embedded), [places.allocate(size) for size in sizes if size]
    places.allocate(embedded)
    inputs = [places.allocate(size) for size in (tokens * FLOAT, *sizes) if size]
    return places.allocate(embedded), inputs


def _value_width(mixer: Mixer | None) -> int:
    """Return the elements per token of a mixer's cached values."""
    return mixer.kv_dim if isinstance(mixer, Attention) else 1


def _lay_out_mixers(places: GraphAllocator, network: GraphNetwork, layer: Layer, batch: GraphBatch) -> Place | None:
    """Allocate the mixers of a layer; parallel mixers' results are added in place of the first one's."""
    mixers = [mixer for mixer in (layer.mixer, layer.second_mixer) if mixer is not None]
    if not mixers:
        return None
    rows = RowAllocator(places, batch.tokens)
    normed = rows.allocate(network.hidden)
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
    """Allocate copies of the rows that need logits, of block result and residual stream, and free the originals."""
    kept_mixed = None
    if mixed is not None:
        kept_mixed = places.allocate(size)
        places.free(mixed)
    kept_stream = places.allocate(size)
    places.free(stream)
    return kept_stream, kept_mixed


def _lay_out_residual(
    rows: RowAllocator, hidden: int, layer: Layer, stream: Place, mixed: Place | None, copies: ExpertCopies
) -> Place:
    """Allocate the residual sum in the mixer's place, and the feed-forward block after or parallel to it."""
    if mixed is None:
        return _lay_out_feed_forward_sum(rows, hidden, layer, stream, copies)
    if layer.parallel:
        result = _lay_out_feed_forward_sum(rows, hidden, layer, stream, copies)
        rows.places.free(mixed)
        return result
    rows.places.free(stream)
    return _lay_out_feed_forward_sum(rows, hidden, layer, mixed, copies)


def _lay_out_feed_forward_sum(
    rows: RowAllocator, hidden: int, layer: Layer, stream: Place, copies: ExpertCopies
) -> Place:
    """Allocate the feed-forward block, and add `stream` to its result in place."""
    if layer.feed_forward is None:
        return stream
    normed = rows.allocate(hidden)
    result = lay_out_feed_forward(rows, layer.feed_forward, hidden, normed, copies)
    rows.places.free(stream)
    return result
