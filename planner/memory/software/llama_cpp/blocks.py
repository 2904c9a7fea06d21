"""The tensors of llama.cpp's blocks in the order that they are computed and freed.

**Source**: llama.cpp 0.5.0: build_qkv, build_attn_mha, build_ffn and build_moe_ffn of src/llama-graph.cpp;
src/models/deepseek2.cpp for latent attention; src/models/mamba-base.cpp and delta-net-base.cpp for scans.
"""

from typing import NamedTuple

from planner.memory.software.llama_cpp.allocator import FLOAT, HALF, GraphAllocator, Place
from planner.models.architecture import Attention, LatentAttention, Mixer, Mlp, Moe, StateMixer


class Rows(NamedTuple):
    """An allocator, and the rows that are computed."""

    places: GraphAllocator
    computed: int

    def take(self, width: int, extra: int = 0) -> Place:
        """Return the place of a tensor with `width` numbers a row, and `extra` bytes behind it."""
        return self.places.take(width * self.computed * FLOAT + extra)


def mix(
    rows: Rows, mixer: Mixer, hidden: int, cells: int, normed: Place | None, *, flash: bool, widened: bool
) -> Place:
    """Lay out `mixer` and return the place of its result; `normed` is freed where nothing reads it afterwards."""
    read_last = (normed,) if normed is not None else ()
    if isinstance(mixer, StateMixer):
        return _state(rows, mixer, hidden, read_last)
    if isinstance(mixer, LatentAttention):
        return _latent(rows, mixer, hidden, cells, read_last, flash=flash, widened=widened)
    return _attention(rows, mixer, hidden, cells, read_last, flash=flash, widened=widened)


def feed_forward(rows: Rows, block: Mlp | Moe, hidden: int, normed: Place) -> Place:
    """Lay out a feed-forward block that reads `normed`, and return the place of its result."""
    if isinstance(block, Mlp):
        return _mlp(rows, block.intermediate, hidden, normed, gated=block.gated)
    result = _experts(rows, block, hidden, () if block.shared_intermediate else (normed,))
    if block.shared_intermediate:
        rows.places.free(_mlp(rows, block.shared_intermediate, hidden, normed, gated=block.gated))
    return result


def _attention(
    rows: Rows, mixer: Attention, hidden: int, cells: int, read_last: tuple[Place, ...], *, flash: bool, widened: bool
) -> Place:
    """Lay out queries, keys and values, which rotation copies, attention, and its projection."""
    places = rows.places
    query = _rotated(rows, mixer.q_dim, mixer)
    if mixer.kv_shared:
        places.free(*read_last)
    else:
        value = rows.take(mixer.kv_dim)
        key = _rotated(rows, mixer.kv_dim, mixer)
        places.free(*read_last, key, value)
    copied = 2 * cells * mixer.kv_dim * HALF if widened else 0
    result = _attended(rows, mixer.heads, mixer.q_dim, cells, query, copied, flash=flash)
    projected = rows.take(hidden)
    places.free(result)
    return projected


def _rotated(rows: Rows, width: int, mixer: Attention) -> Place:
    """Lay out queries or keys; the first of norm and rotation reads a view, and writes to a new tensor for that."""
    plain = rows.take(width)
    if mixer.qk_norm == "none" and not mixer.rotary:
        return plain
    rotated = rows.take(width)
    rows.places.free(plain)
    return rotated


def _attended(rows: Rows, heads: int, width: int, cells: int, query: Place, copied: int, *, flash: bool) -> Place:
    """Lay out attention over `cells`: fused, with `copied` bytes of cells in F16, or with its matrix of scores."""
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


def _latent(
    rows: Rows,
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
    result = _attended(rows, heads, heads * mixer.kv_lora_rank, cells, query, copied, flash=flash)
    expanded = rows.take(heads * mixer.v_head_dim)
    places.free(result)
    ordered = rows.take(heads * mixer.v_head_dim)
    places.free(expanded)
    projected = rows.take(hidden)
    places.free(ordered)
    return projected


def _state(rows: Rows, mixer: StateMixer, hidden: int, read_last: tuple[Place, ...]) -> Place:
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


def _mlp(rows: Rows, width: int, hidden: int, normed: Place, *, gated: bool) -> Place:
    """Lay out gate, up, their product and the projection back; without a gate the activation stays in place."""
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


def _experts(rows: Rows, block: Moe, hidden: int, read_last: tuple[Place, ...]) -> Place:
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
