"""Replay of a run through the caching allocator: reserved memory, fragmentation, and out-of-memory errors.

**Source**: `DeviceCachingAllocator` in `c10/cuda/CUDACachingAllocator.cpp`, PyTorch 2.13 (main at commit 0919d01f216c),
as modeled in `planner/trace/allocator.py`.

**Checked** with `benchmarks/allocator_on_gpu.py --snapshot` against 17 histories that PyTorch recorded on real cards
(in the repositories kkaitlyn111/cs336-a2-systems, bcrafton/assignment2-systems, MAGMA27/assignment2-systems and, with
expandable segments and a card that runs out, Constructor-Sun/code_location): each of their 53,437 blocks is at the
model's address, and the reserved bytes are equal at all times.

**Assumes** one stream, no CUDA graphs, no custom memory pools, and a card that grants every byte up to the capacity:
rounding and reservations by the driver are not included.
"""

from dataclasses import dataclass
from typing import Final

from planner.trace.allocator import CachingAllocator, MemoryBlock
from planner.trace.allocator_settings import DEFAULT_SETTINGS, AllocatorSettings
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
    """Peak reserved and allocated memory of a replay; if memory runs out, up to the failed allocation `out_of_memory`.

    `time`, `allocated_bytes`, `largest_free_block_bytes` and `segments` apply when `reserved_bytes`
    (`torch.cuda.max_memory_reserved`) was first reached; a time is `None` if nothing was ever allocated. Each mapped
    address range of an expandable segment counts as one segment, as in PyTorch's snapshots.
    """

    reserved_bytes: int
    time: int | None
    allocated_bytes: int
    largest_free_block_bytes: int
    segments: int
    peak_allocated_bytes: int
    """`torch.cuda.max_memory_allocated`: with every size rounded up by the allocator."""
    peak_allocated_time: int | None
    out_of_memory: FailedAllocation | None

    @property
    def fragmentation_fraction(self) -> float:
        """Return the fraction of the peak reserved memory that was not allocated."""
        return (self.reserved_bytes - self.allocated_bytes) / self.reserved_bytes if self.reserved_bytes else 0.0


def replay(
    allocations: Allocations,
    settings: AllocatorSettings = DEFAULT_SETTINGS,
    capacity_bytes: int | None = None,
) -> AllocatorReplay:
    """Replay a recording's allocations and frees, with at most `capacity_bytes` from the card.

    Allocations of zero bytes are skipped, as in PyTorch.
    """
    allocator = CachingAllocator(settings, capacity_bytes)
    alive: dict[int, MemoryBlock] = {}
    peaks = _PeakRecorder()
    for time, index, is_free in _ordered_events(allocations):
        if is_free:
            allocator.free(alive.pop(index))
            continue
        block = allocator.malloc(allocations.bytes[index])
        peaks.record_peaks(allocator, time)
        if block is None:
            allocated, reserved = allocator.allocated_bytes, allocator.reserved_bytes
            return peaks.result(FailedAllocation(index, time, allocations.bytes[index], allocated, reserved))
        alive[index] = block
    return peaks.result(None)


class _PeakRecorder:
    """Running maxima of allocated and reserved memory, with the allocator's state at each maximum."""

    def __init__(self) -> None:
        self._peak_reserved = self._peak_allocated = self._allocated_at_reserved_peak = (
            self._largest_free_block_bytes
        ) = self._segments = 0
        self._peak_reserved_time: int | None = None
        self._peak_allocated_time: int | None = None

    def record_peaks(self, allocator: CachingAllocator, time: int) -> None:
        """Update the maxima from the allocator's state after the event at `time`."""
        if allocator.allocated_bytes > self._peak_allocated:
            self._peak_allocated, self._peak_allocated_time = allocator.allocated_bytes, time
        if allocator.max_reserved_bytes > self._peak_reserved:
            self._peak_reserved, self._peak_reserved_time = allocator.max_reserved_bytes, time
            self._allocated_at_reserved_peak = allocator.allocated_bytes
            self._largest_free_block_bytes = allocator.largest_free_block_bytes
            self._segments = allocator.segments

    def result(self, out_of_memory: FailedAllocation | None) -> AllocatorReplay:
        """Return the replay's result from the recorded maxima."""
        return AllocatorReplay(
            reserved_bytes=self._peak_reserved,
            time=self._peak_reserved_time,
            allocated_bytes=self._allocated_at_reserved_peak,
            largest_free_block_bytes=self._largest_free_block_bytes,
            segments=self._segments,
            peak_allocated_bytes=self._peak_allocated,
            peak_allocated_time=self._peak_allocated_time,
            out_of_memory=out_of_memory,
        )


def _ordered_events(allocations: Allocations) -> list[tuple[int, int, bool]]:
    """Return each allocation and free as (time, allocation index, whether it is a free), in order of time."""
    nonempty = [index for index, bytes_ in enumerate(allocations.bytes) if bytes_ > 0]
    events = [(allocations.made[index], index, False) for index in nonempty]
    events += [(allocations.freed[index], index, True) for index in nonempty if allocations.freed[index] >= 0]
    events.sort()
    return events


_CAPACITY_PRECISION: Final = 0.02
"""Precision of the search for the minimum capacity, as a fraction of the reserved bytes: each bisection step replays
the whole run, and a verdict within this margin counts as tight."""


def minimum_capacity_bytes(
    allocations: Allocations, settings: AllocatorSettings, allocated_bytes: int, reserved_bytes: int
) -> int:
    """Return a capacity in bytes that suffices for the run, at most 2 % of `reserved_bytes` above one that does not.

    A run needs at least the `allocated_bytes` that are live at its peak, and completes with the `reserved_bytes` that
    it uses on an unlimited card.

    **Assumes** that every capacity above a sufficient capacity is sufficient too.
    """
    insufficient, sufficient = allocated_bytes - 1, reserved_bytes
    while sufficient - insufficient > max(reserved_bytes * _CAPACITY_PRECISION, 1):
        middle = (insufficient + sufficient) // 2
        if replay(allocations, settings, middle).out_of_memory is None:
            sufficient = middle
        else:
            insufficient = middle
    return sufficient
