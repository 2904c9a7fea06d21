"""The sizes that PyTorch's CUDA caching allocator thinks in, and how it rounds.

**Source**: `c10/core/AllocatorConfig.h` of PyTorch 2.13.0 (commit cf30153c4c13); `round_size` and
`get_allocation_size` in `c10/cuda/CUDACachingAllocator.cpp`, PyTorch 2.13 (main at commit 0919d01f216c).
"""

from typing import Final

MIB: Final = 1 << 20
MIN_BLOCK_BYTES: Final = 512
"""`kMinBlockSize`: every size is rounded up to a multiple of it."""
SMALL_BYTES: Final = MIB
"""`kSmallSize`: the largest request of the small pool."""
SMALL_SEGMENT_BYTES: Final = 2 * MIB
"""`kSmallBuffer`: what is asked from the card for the small pool."""
LARGE_SEGMENT_BYTES: Final = 20 * MIB
"""`large_segment_size`: what is asked from the card for requests above 1 MiB and below 10 MiB."""
MIN_LARGE_BYTES: Final = 10 * MIB
"""`kMinLargeAlloc`: from here on a segment is as large as the request."""
LARGE_STEP_BYTES: Final = 2 * MIB
"""`kRoundLarge`: what segments of large requests are rounded up to."""


def round_size(bytes_: int, divisions: int = 1) -> int:
    """Return what is handed out for a request; models `round_size` and `roundup_power2_next_division`.

    **Formula**: the next multiple of 512 bytes; with `divisions`, the range between two powers of two is divided
    into so many steps, and the next step is taken.
    """
    step = MIN_BLOCK_BYTES
    if divisions > 1 and bytes_ > MIN_BLOCK_BYTES * divisions:
        step = (1 << bytes_.bit_length() - 1) // divisions
    return max(round_up(bytes_, step), MIN_BLOCK_BYTES)


def segment_size(size: int) -> int:
    """Return what is asked from the card for a rounded request; models `get_allocation_size`."""
    if size <= SMALL_BYTES:
        return SMALL_SEGMENT_BYTES
    if size < MIN_LARGE_BYTES:
        return LARGE_SEGMENT_BYTES
    return round_up(size, LARGE_STEP_BYTES)


def round_up(bytes_: int, step: int) -> int:
    """Return the next multiple of `step`."""
    return -(-bytes_ // step) * step
