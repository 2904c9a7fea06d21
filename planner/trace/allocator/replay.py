"""Replay of a run through the caching allocator: reserved memory, fragmentation, and out-of-memory errors.

**Source**: `DeviceCachingAllocator` in `c10/cuda/CUDACachingAllocator.cpp`, PyTorch 2.13 (main at commit 0919d01f216c),
as modeled in `planner/trace/allocator/allocator.py`.

**Checked** with `benchmarks/allocator_on_gpu.py --snapshot` against 17 histories that PyTorch recorded on real cards
(in the repositories kkaitlyn111/cs336-a2-systems, bcrafton/assignment2-systems, MAGMA27/assignment2-systems and, with
expandable segments and a card that runs out, Constructor-Sun/code_location): each of their 53,437 blocks is at the
model's address, and the reserved bytes are equal at all times.

**Assumes** one stream, no CUDA graphs, no custom memory pools, and a card that grants every byte up to the capacity:
rounding and reservations by the driver are not included.
"""

from dataclasses import dataclass
from typing import Final

from planner.trace.allocator.allocator import CachingAllocator, MemoryBlock
from planner.trace.allocator.settings import DEFAULTS, AllocatorSettings
from planner.trace.recording import Allocations


@dataclass(frozen=True, slots=True)
class FailedAllocation:
    """The first allocation that fails even after all cached segments were released."""

    index: int
    time: int
    bytes: int
    allocated_bytes: int
    reserved_bytes: int


@dataclass(frozen=True, slots=True)
class AllocatorReplay:
    """Result of a replay; with `out_of_memory`, up to that event.

    `time`, `allocated_bytes`, `largest_free_block_bytes` and `segments` are of the time when `reserved_bytes`
    (`torch.cuda.max_memory_reserved`) was first reached; a time is `None` if nothing was ever allocated. Each mapped
    address range of an expandable segment counts as one segment, as in PyTorch's snapshots.
    """

    reserved_bytes: int
    time: int | None
    allocated_bytes: int
    largest_free_block_bytes: int
    segments: int
    peak_allocated_bytes: int
    """`torch.cuda.max_memory_allocated`: with every size rounded as by the allocator."""
    peak_allocated_time: int | None
    out_of_memory: FailedAllocation | None

    @property
    def fragmentation_fraction(self) -> float:
        """Return the fraction of the peak reserved memory that was not allocated."""
        return (self.reserved_bytes - self.allocated_bytes) / self.reserved_bytes if self.reserved_bytes else 0.0


def replay(
    allocations: Allocations,
    settings: AllocatorSettings = DEFAULTS,
    capacity_bytes: int | None = None,
) -> AllocatorReplay:
    """Replay a recording's allocations and frees, with at most `capacity_bytes` from the card.

    Allocations of zero bytes are skipped, as in PyTorch.
    """
    allocator = CachingAllocator(settings, capacity_bytes)
    alive: dict[int, MemoryBlock] = {}
    peaks = _PeakRecorder()
    for time, index, is_free in _events(allocations):
        if is_free:
            allocator.free(alive.pop(index))
            continue
        block = allocator.malloc(allocations.bytes[index])
        peaks.see(allocator, time)
        if block is None:
            allocated, reserved = allocator.allocated_bytes, allocator.reserved_bytes
            return peaks.replay(FailedAllocation(index, time, allocations.bytes[index], allocated, reserved))
        alive[index] = block
    return peaks.replay(None)


class _PeakRecorder:
    """Running maxima, with the allocator's state when they were reached."""

    def __init__(self) -> None:
        self._reserved = self._allocated = self._allocated_then = self._largest_free_block = self._segments = 0
        self._reserved_at: int | None = None
        self._allocated_at: int | None = None

    def see(self, allocator: CachingAllocator, time: int) -> None:
        if allocator.allocated_bytes > self._allocated:
            self._allocated, self._allocated_at = allocator.allocated_bytes, time
        if allocator.max_reserved_bytes > self._reserved:
            self._reserved, self._reserved_at = allocator.max_reserved_bytes, time
            self._allocated_then = allocator.allocated_bytes
            self._largest_free_block = allocator.largest_free_block_bytes
            self._segments = allocator.segments

    def replay(self, out_of_memory: FailedAllocation | None) -> AllocatorReplay:
        return AllocatorReplay(
            reserved_bytes=self._reserved,
            time=self._reserved_at,
            allocated_bytes=self._allocated_then,
            largest_free_block_bytes=self._largest_free_block,
            segments=self._segments,
            peak_allocated_bytes=self._allocated,
            peak_allocated_time=self._allocated_at,
            out_of_memory=out_of_memory,
        )


def _events(allocations: Allocations) -> list[tuple[int, int, bool]]:
    """Return each allocation and free as (time, allocation index, is free), in order."""
    real = [index for index, bytes_ in enumerate(allocations.bytes) if bytes_ > 0]
    events = [(allocations.made[index], index, False) for index in real]
    events += [(allocations.freed[index], index, True) for index in real if allocations.freed[index] >= 0]
    events.sort()
    return events


_PRECISION: Final = 0.02
"""Relative precision: each halving is a whole replay, and within this margin the verdict is tight."""


def minimum_capacity_bytes(allocations: Allocations, settings: AllocatorSettings, allocated: int, reserved: int) -> int:
    """Return a sufficient capacity that is at most 2 % of `reserved` above an insufficient one.

    A run with `allocated` live bytes at its peak needs at least those, and completes with the `reserved` bytes that it
    uses on an unlimited card.

    **Assumes** that every capacity above a sufficient one is sufficient too.
    """
    too_little, enough = allocated - 1, reserved
    while enough - too_little > max(reserved * _PRECISION, 1):
        middle = (too_little + enough) // 2
        if replay(allocations, settings, middle).out_of_memory is None:
            enough = middle
        else:
            too_little = middle
    return enough
