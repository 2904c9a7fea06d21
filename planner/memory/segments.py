"""Segments and blocks of PyTorch's caching allocator, and what long-lived tensors leave unused at the end of segments.

**Source**: sizes in `c10/core/AllocatorConfig.h` of PyTorch 2.13.0; `round_size`, `get_allocation_size` and
`should_split` in `c10/cuda/CUDACachingAllocator.cpp` (main at commit 0919d01f216c).
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from planner.dtypes import AS_STORED, SCHEMES, Scheme
from planner.memory.weights import KEPT_BYTES, MATRIX_ROLES
from planner.models.architecture import Architecture, Tensor
from planner.units import MIB, round_up

MIN_BLOCK_BYTES: Final = 512
"""`kMinBlockSize`: every size is rounded up to a multiple of this size."""
SMALL_BYTES: Final = MIB
"""`kSmallSize`: the largest request of the small pool."""
SMALL_SEGMENT_BYTES: Final = 2 * MIB
"""`kSmallBuffer`: segment size of the small pool."""
LARGE_SEGMENT_BYTES: Final = 20 * MIB
"""`large_segment_size`: segment size for requests above 1 MiB and below 10 MiB."""
MIN_LARGE_BYTES: Final = 10 * MIB
"""`kMinLargeAlloc`: from this size on, a segment is as large as the request."""
LARGE_STEP_BYTES: Final = 2 * MIB
"""`kRoundLarge`: segments of large requests are rounded up to a multiple of this size."""


def block_size_bytes(requested_bytes: int, divisions: int = 1) -> int:
    """Return the block size in bytes for a request; models `round_size` and `roundup_power2_next_division`.

    **Formula**: the next multiple of 512 bytes; with `divisions`, the range between two powers of two is divided into
    that many steps, and the next step is used.
    """
    step = MIN_BLOCK_BYTES
    if divisions > 1 and requested_bytes > MIN_BLOCK_BYTES * divisions:
        step = (1 << requested_bytes.bit_length() - 1) // divisions
    return max(round_up(requested_bytes, step), MIN_BLOCK_BYTES)


def segment_size_bytes(size: int) -> int:
    """Return the segment size in bytes for a rounded request; models `get_allocation_size`."""
    if size <= SMALL_BYTES:
        return SMALL_SEGMENT_BYTES
    if size < MIN_LARGE_BYTES:
        return LARGE_SEGMENT_BYTES
    return round_up(size, LARGE_STEP_BYTES)


def unsplit_bytes(sizes_bytes: Iterable[int]) -> int:
    """Return the bytes that blocks hold beyond their tensors, which are allocated in the order of `sizes_bytes`.

    **Formula**: a tensor above 1 MiB takes the smallest end of a segment with room for it, or a new segment: of 20 MiB,
    or from 10 MiB on of its own size, rounded up to 2 MiB. What is left stays with the block if it is at most 1 MiB;
    more is split off. Blocks of up to 1 MiB are always split.
    """
    unsplit, ends = 0, list[int]()
    for size in sizes_bytes:
        block = block_size_bytes(size)
        if block <= SMALL_BYTES:
            continue
        place = bisect_left(ends, block)
        rest = (ends.pop(place) if place < len(ends) else segment_size_bytes(block)) - block
        if rest > SMALL_BYTES:
            insort(ends, rest)
        else:
            unsplit += rest
    return unsplit


@lru_cache(maxsize=256)
def unsplit_weight_bytes(architecture: Architecture, scheme_name: str) -> int:
    """Return the bytes that the blocks of all weights stored as `scheme_name` hold beyond the weights.

    **Assumes** that tensors are loaded in the order of the layers and that the experts of a
    layer are one tensor (transformers 5).
    """
    scheme = SCHEMES.get(architecture.stored_as if scheme_name == AS_STORED else scheme_name)
    if scheme is None or scheme.family == "gguf-file":
        return 0
    return unsplit_bytes(
        size for tensor, number in _tensors_in_order(architecture) for size in _stored_sizes(tensor, number, scheme)
    )


def _stored_sizes(tensor: Tensor, number: int, scheme: Scheme) -> Iterator[int]:
    """Yield the sizes in bytes of the tensors in which `number` copies of `tensor` are stored: values, then scales."""
    elements = tensor.size * number
    if scheme.family != "plain" and tensor.role not in MATRIX_ROLES:
        yield elements * KEPT_BYTES
        return
    bits = scheme.data_bits
    yield elements * bits.numerator // (8 * bits.denominator)
    columns = tensor.shape[-1] if tensor.shape else 1
    rows = elements // columns
    yield from (int(item.size_bytes * item.overhead_count(rows, columns)) for item in scheme.overheads)


def _tensors_in_order(architecture: Architecture) -> Iterator[tuple[Tensor, int]]:
    """Yield each tensor with the number of its copies, layer by layer."""
    for stack in architecture.stacks:
        layers = (layer for group in stack.groups for layer in (group.layer.tensors,) * group.count)
        for tensors in (stack.before, *layers, stack.after):
            yield from ((tensor, tensor.copies) for tensor in tensors)
    for tensors in (architecture.head, *(component.tensors for component in architecture.components)):
        yield from ((tensor, tensor.copies) for tensor in tensors)
