"""PyTorch's CUDA caching allocator, replayed: what a run reserves, how it fragments, and where it runs out.

**Source**: `DeviceCachingAllocator` in `c10/cuda/CUDACachingAllocator.cpp`, PyTorch 2.13 (main at commit
0919d01f216c), as `planner/trace/allocator_device.py` models it.

**Checked** with `benchmarks/allocator_on_gpu.py --snapshot` against 17 histories that PyTorch recorded on real cards
(in the repositories kkaitlyn111/cs336-a2-systems, bcrafton/assignment2-systems, MAGMA27/assignment2-systems and, with
expandable segments and a card that runs out, Constructor-Sun/code_location): each of their 53,437 blocks lies where the
model puts it, and the reserved bytes are the same at every moment.

**Assumes** one stream, no CUDA graphs, no memory pools of one's own, and a card that grants every byte up to the
capacity: what the driver rounds or holds itself is not in it.
"""

from dataclasses import dataclass
from typing import Final

from planner.trace.allocator.allocator import Block, CachingAllocator
from planner.trace.allocator.settings import DEFAULTS, AllocatorSettings
from planner.trace.recording import Allocations


@dataclass(frozen=True, slots=True)
class RunOut:
    """The first allocation that the card could not serve, also after every cached segment was given back."""

    index: int
    time: int
    bytes: int
    allocated_bytes: int
    reserved_bytes: int


@dataclass(frozen=True, slots=True)
class Replay:
    """What the allocator did; with `out_of_memory`, up to that moment.

    `time`, `allocated_bytes`, `largest_free_block_bytes` and `segments` are of the moment when `reserved_bytes`
    (`torch.cuda.max_memory_reserved`) was first reached; a time is `None` if nothing was ever allocated. Of
    expandable segments, each range of addresses with memory counts as one segment, as in PyTorch's snapshots.
    """

    reserved_bytes: int
    time: int | None
    allocated_bytes: int
    largest_free_block_bytes: int
    segments: int
    peak_allocated_bytes: int
    """`torch.cuda.max_memory_allocated`: with every size rounded as the allocator does."""
    peak_allocated_time: int | None
    out_of_memory: RunOut | None

    @property
    def fragmentation_fraction(self) -> float:
        """Return the share of the reserved memory that was not allocated when it was the most."""
        return (self.reserved_bytes - self.allocated_bytes) / self.reserved_bytes if self.reserved_bytes else 0.0


def replay(
    allocations: Allocations,
    settings: AllocatorSettings = DEFAULTS,
    capacity_bytes: int | None = None,
) -> Replay:
    """Replay a recording's allocations and frees; `capacity_bytes` is what the allocator may take from the card.

    Nothing is allocated for zero bytes, as in PyTorch.
    """
    allocator = CachingAllocator(settings, capacity_bytes)
    alive: dict[int, Block] = {}
    most = _Most()
    for time, index, is_free in _events(allocations):
        if is_free:
            allocator.free(alive.pop(index))
            continue
        block = allocator.malloc(allocations.bytes[index])
        most.see(allocator, time)
        if block is None:
            allocated, reserved = allocator.allocated_bytes, allocator.reserved_bytes
            return most.replay(RunOut(index, time, allocations.bytes[index], allocated, reserved))
        alive[index] = block
    return most.replay(None)


class _Most:
    """The highest figures so far, and what else held when they were reached."""

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

    def replay(self, out_of_memory: RunOut | None) -> Replay:
        return Replay(
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
    """Return each allocation and free with its time and the place of its allocation, in order."""
    real = [index for index, bytes_ in enumerate(allocations.bytes) if bytes_ > 0]
    events = [(allocations.made[index], index, False) for index in real]
    events += [(allocations.freed[index], index, True) for index in real if allocations.freed[index] >= 0]
    events.sort()
    return events


_PRECISION: Final = 0.02
"""Each halving is a whole replay; within the share of the reserved memory that is left, the verdict is tight."""


def least_capacity(allocations: Allocations, settings: AllocatorSettings, allocated: int, reserved: int) -> int:
    """Return a capacity that suffices and is at most 2 % of `reserved` above one that does not.

    A run of which `allocated` bytes are alive at the peak needs at least those, and gets through with the `reserved`
    bytes that it takes of a card without an end.

    **Assumes** that what suffices between the two is not followed by what does not.
    """
    too_little, enough = allocated - 1, reserved
    while enough - too_little > max(reserved * _PRECISION, 1):
        middle = (too_little + enough) // 2
        if replay(allocations, settings, middle).out_of_memory is None:
            enough = middle
        else:
            too_little = middle
    return enough
