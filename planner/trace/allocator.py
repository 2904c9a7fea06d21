"""Model of PyTorch's CUDA caching allocator: blocks, pools, splitting, merging and expandable segments.

**Source**: `Block`, `BlockPool` and `DeviceCachingAllocator` in `c10/cuda/CUDACachingAllocator.cpp`, PyTorch 2.13 (main
at commit 0919d01f216c); each function names the one that it models.
"""

from bisect import bisect_left, insort
from typing import Final

from planner.memory.segments import (
    LARGE_SEGMENT_BYTES,
    MIN_BLOCK_BYTES,
    SMALL_BYTES,
    SMALL_SEGMENT_BYTES,
    block_size_bytes,
    segment_size_bytes,
)
from planner.trace.allocator_settings import AllocatorSettings
from planner.units import round_up


class MemoryBlock:
    """A range of addresses within a segment: allocated, free, or (`mapped` is false) without physical memory."""

    __slots__ = ("address", "allocated", "freed_at_search", "mapped", "next", "pool", "previous", "size")

    def __init__(self, pool: "BlockPool", address: int, size: int, mapped: bool = True) -> None:
        self.pool: Final = pool
        self.address = address
        self.size = size
        self.mapped = mapped
        self.allocated = False
        self.freed_at_search = 0
        """Number of searches in the pool when the block became free; the searches since then are the block's age."""
        self.previous: MemoryBlock | None = None
        self.next: MemoryBlock | None = None

    @property
    def is_split(self) -> bool:
        """Return whether the block shares its segment with other blocks."""
        return self.previous is not None or self.next is not None

    def cut_front(self, size: int) -> "MemoryBlock":
        """Split off the first `size` bytes, and return them as a block before this block."""
        front = MemoryBlock(self.pool, self.address, size, self.mapped)
        front.previous, front.next = self.previous, self
        if front.previous is not None:
            front.previous.next = front
        self.previous = front
        self.address += size
        self.size -= size
        return front

    def absorb(self, neighbor: "MemoryBlock | None") -> None:
        """Merge this block with `neighbor`, unless `neighbor` is allocated or only one of the two is mapped."""
        if neighbor is None or neighbor.allocated or neighbor.mapped != self.mapped:
            return
        neighbor.pool.discard(neighbor)
        self.size += neighbor.size
        if neighbor is self.previous:
            self.address = neighbor.address
            self.previous = neighbor.previous
            if self.previous is not None:
                self.previous.next = self
        else:
            self.next = neighbor.next
            if self.next is not None:
                self.next.previous = self


class BlockPool:
    """Pool for small or large requests: free blocks, smallest first, and unmapped blocks, lowest address first.

    **Assumes** that a new segment lies above all older ones: the driver's placement cannot be known, and only the
    choice between free blocks of equal size depends on it.
    """

    __slots__ = ("free", "page_bytes", "searches", "top", "unmapped")

    def __init__(self, page_bytes: int) -> None:
        self.page_bytes: Final = page_bytes
        """Page size in bytes: an expandable segment of this pool grows by whole pages."""
        self.free: list[tuple[int, int, MemoryBlock]] = []
        self.unmapped: list[tuple[int, MemoryBlock]] = []
        self.searches = 0
        self.top = 0

    def new_segment(self, size: int, mapped: bool = True) -> MemoryBlock:
        """Return a new segment as one block, which is not added to the pool yet."""
        block = MemoryBlock(self, self.top, size, mapped)
        self.top += size
        return block

    def add(self, block: MemoryBlock) -> None:
        """Add a freed or unmapped block to the pool."""
        if block.mapped:
            block.freed_at_search = self.searches
            insort(self.free, (block.size, block.address, block))
        else:
            insort(self.unmapped, (block.address, block))

    def discard(self, block: MemoryBlock) -> None:
        """Remove a block from the pool."""
        if block.mapped:
            del self.free[bisect_left(self.free, (block.size, block.address))]
        else:
            del self.unmapped[bisect_left(self.unmapped, (block.address,))]

    def searches_since_freed(self, block: MemoryBlock) -> int:
        """Return the number of searches since the block was freed."""
        return self.searches - block.freed_at_search

    def best_fit_index(self, size: int) -> int | None:
        """Return the index of the smallest free block of at least `size` bytes; None if there is none.

        In expandable segments, a block that can grow counts with the size that it can grow to, so a larger block that
        cannot grow is preferred.
        """
        free = self.free
        index = bisect_left(free, (size,))
        if index == len(free):
            return None
        while index + 1 < len(free) and _growable_size_bytes(free[index + 1][2]) < _growable_size_bytes(free[index][2]):
            index += 1
        return index


def _growable_size_bytes(block: MemoryBlock) -> int:
    """Return the size in bytes to which the block can grow: the block with the unmapped block after it."""
    following = block.next
    return block.size if following is None or following.mapped else block.size + following.size


_NO_LIMIT_BYTES: Final = 1 << 80
"""Address space in bytes for replays without a memory limit, more than any recording fills."""


class CachingAllocator:
    """Caching allocator of one card and one stream; `capacity_bytes` limits its memory, `None` means no limit."""

    def __init__(self, settings: AllocatorSettings, capacity_bytes: int | None = None) -> None:
        self._expandable: Final = settings.expandable_segments
        self._max_split_bytes: Final = settings.max_split_size_bytes
        self._divisions: Final = settings.roundup_power2_divisions or 1
        self._capacity_bytes: Final = _NO_LIMIT_BYTES if capacity_bytes is None else max(capacity_bytes, 0)
        collects = capacity_bytes is not None and not self._expandable
        threshold = settings.garbage_collection_threshold if collects else None
        self._collection_threshold_bytes: Final = None if threshold is None else int(threshold * self._capacity_bytes)
        self.small: Final = BlockPool(page_bytes=SMALL_SEGMENT_BYTES)
        self.large: Final = BlockPool(page_bytes=LARGE_SEGMENT_BYTES)
        self.allocated_bytes = 0
        self.reserved_bytes = 0
        self.max_reserved_bytes = 0
        self.segments = 0

    @property
    def largest_free_block_bytes(self) -> int:
        """Return the size in bytes of the largest block available without reserving more memory."""
        return max((pool.free[-1][0] for pool in (self.small, self.large) if pool.free), default=0)

    def malloc(self, requested_bytes: int) -> MemoryBlock | None:
        """Allocate a block, or return `None` if memory runs out; models `malloc` and `alloc_found_block`."""
        size = block_size_bytes(requested_bytes, self._divisions)
        pool = self.small if size <= SMALL_BYTES else self.large
        block = self._take_cached_block(pool, size) or self._reserve_with_retries(pool, size)
        if block is None:
            return None
        if self._should_split(pool, block.size - size, size):
            rest, block = block, block.cut_front(size)
            pool.add(rest)
        block.allocated = True
        self.allocated_bytes += block.size
        return block

    def free(self, block: MemoryBlock) -> None:
        """Free a block and merge it with its free neighbors; models `free` and `free_block`."""
        block.allocated = False
        self.allocated_bytes -= block.size
        block.absorb(block.previous)
        block.absorb(block.next)
        block.pool.add(block)

    def empty_cache(self) -> None:
        """Release every completely free segment, and every free page; models `release_cached_blocks`."""
        for pool in (self.large, self.small):
            blocks = [block for _, _, block in pool.free]
            for block in blocks:
                if self._expandable:
                    self._unmap_pages(block)
                elif not block.is_split:
                    self._release_segment(block)

    def _should_split(self, pool: BlockPool, rest_bytes: int, size: int) -> bool:
        """Return whether the unused `rest_bytes` of a block are split off as a free block."""
        if pool is self.small or self._expandable:
            return rest_bytes >= MIN_BLOCK_BYTES
        return rest_bytes > SMALL_BYTES and (self._max_split_bytes is None or size < self._max_split_bytes)

    def _take_cached_block(self, pool: BlockPool, size: int) -> MemoryBlock | None:
        """Remove a cached free block from its pool and return it; models `get_free_block`."""
        if self._collection_threshold_bytes is not None:
            pool.searches += 1
        index = pool.best_fit_index(size)
        if index is None:
            return None
        block_bytes, _, block = pool.free[index]
        max_split_bytes = self._max_split_bytes
        if max_split_bytes is not None and (
            block_bytes >= max_split_bytes if size < max_split_bytes else block_bytes >= size + LARGE_SEGMENT_BYTES
        ):
            return None
        del pool.free[index]
        return block

    def _reserve_with_retries(self, pool: BlockPool, size: int) -> MemoryBlock | None:
        """Reserve a block, releasing cached segments and retrying if that fails; models the second half of `malloc`."""
        if self._collection_threshold_bytes is not None:
            self._collect_garbage(self._collection_threshold_bytes)
        block = self._reserve_block(pool, size)
        if block is None and self._release_oversize_segments(pool, size):
            block = self._reserve_block(pool, size)
        if block is None:
            self.empty_cache()
            block = self._reserve_block(pool, size)
        return block

    def _reserve_block(self, pool: BlockPool, size: int) -> MemoryBlock | None:
        """Reserve a block of memory from the card once; models `alloc_block`."""
        if self._expandable:
            return self._allocate_in_expandable_segment(pool, size)
        segment_bytes = segment_size_bytes(size)
        if self.reserved_bytes + segment_bytes > self._capacity_bytes:
            return None
        self._add_reserved_bytes(segment_bytes)
        self.segments += 1
        return pool.new_segment(segment_bytes)

    def _add_reserved_bytes(self, size: int) -> None:
        """Count `size` more bytes as reserved, and update the maximum."""
        self.reserved_bytes += size
        self.max_reserved_bytes = max(self.max_reserved_bytes, self.reserved_bytes)

    def _release_segment(self, block: MemoryBlock) -> None:
        """Release a segment; models `release_block`."""
        block.pool.discard(block)
        self.reserved_bytes -= block.size
        self.segments -= 1

    def _release_oversize_segments(self, pool: BlockPool, size: int) -> bool:
        """Release oversize segments, which are never split; models `release_available_cached_blocks`."""
        max_split_bytes = self._max_split_bytes
        if max_split_bytes is None or self._expandable:
            return False
        wanted_bytes = max(size, max_split_bytes)
        index = pool.best_fit_index(wanted_bytes)
        if index is not None:
            self._release_segment(pool.free[index][2])
            return True
        released_bytes = 0
        while released_bytes < wanted_bytes and pool.free and pool.free[-1][0] >= max_split_bytes:
            released_bytes += pool.free[-1][0]
            self._release_segment(pool.free[-1][2])
        return released_bytes >= wanted_bytes

    def _collect_garbage(self, threshold_bytes: int) -> None:
        """Release free large segments, segments above the mean age first; models `garbage_collect_cached_blocks`."""
        excess_bytes = self.reserved_bytes - threshold_bytes
        pool = self.large
        candidates = [block for _, _, block in pool.free if not block.is_split]
        while excess_bytes > 0 and candidates:
            mean_age = sum(map(pool.searches_since_freed, candidates)) / len(candidates)
            for block in candidates:
                if pool.searches_since_freed(block) >= mean_age:
                    excess_bytes -= block.size
                    self._release_segment(block)
            candidates = [block for block in candidates if pool.searches_since_freed(block) < mean_age]

    def _allocate_in_expandable_segment(self, pool: BlockPool, size: int) -> MemoryBlock | None:
        """Allocate from an expandable segment; models `try_allocate_expandable_block`."""
        block = self._find_expandable_block(pool, size)
        if not block.mapped:
            mapped = self._map_pages(block, min(block.size, size))
            if mapped is None:
                return None
            block = mapped
        while block.size < size:
            # A segment with room for the request has unmapped addresses after its mapped blocks.
            following = block.next
            assert following is not None
            mapped = self._map_pages(following, min(size - block.size, following.size))
            if mapped is None:
                return None
            block = mapped
        pool.discard(block)
        return block

    def _find_expandable_block(self, pool: BlockPool, size: int) -> MemoryBlock:
        """Return the lowest free or unmapped block from which a segment has room; models `find_expandable_block`."""
        for _, block in pool.unmapped:
            previous = block.previous
            first = block if previous is None or previous.allocated else previous
            if _has_room(first, size):
                return first
        segment_bytes = max(self._capacity_bytes + self._capacity_bytes // 8, 1)
        segment = pool.new_segment(round_up(segment_bytes, pool.page_bytes), mapped=False)
        pool.add(segment)
        return segment

    def _map_pages(self, block: MemoryBlock, size: int) -> MemoryBlock | None:
        """Map the first `size` bytes in whole pages and return them as a free block; models `map_block`."""
        pool = block.pool
        size = round_up(size, pool.page_bytes)
        if self.reserved_bytes + size > self._capacity_bytes:
            return None
        pool.discard(block)
        if size < block.size:
            rest, block = block, block.cut_front(size)
            pool.add(rest)
        block.mapped = True
        self._add_reserved_bytes(size)
        self.segments += 1 - _mapped_neighbor_count(block)
        block.absorb(block.previous)
        block.absorb(block.next)
        pool.add(block)
        return block

    def _unmap_pages(self, block: MemoryBlock) -> None:
        """Unmap the whole pages of a free block; models `unmap_block` and `release_expandable_segment`."""
        pool = block.pool
        begin = round_up(block.address, pool.page_bytes)
        end = (block.address + block.size) // pool.page_bytes * pool.page_bytes
        if begin >= end:
            return
        pool.discard(block)
        if begin > block.address:
            pool.add(block.cut_front(begin - block.address))
        if end < block.address + block.size:
            rest, block = block, block.cut_front(end - begin)
            pool.add(rest)
        block.mapped = False
        self.reserved_bytes -= end - begin
        self.segments += _mapped_neighbor_count(block) - 1
        block.absorb(block.previous)
        block.absorb(block.next)
        if block.is_split:
            pool.add(block)


def _has_room(first: MemoryBlock, size: int) -> bool:
    """Return whether `first` and the free or unmapped blocks after it have at least `size` bytes together."""
    block: MemoryBlock | None = first
    while size > 0 and block is not None and not block.allocated:
        size -= block.size
        block = block.next
    return size <= 0


def _mapped_neighbor_count(block: MemoryBlock) -> int:
    """Return how many of the two neighboring blocks are mapped."""
    return sum(neighbour is not None and neighbour.mapped for neighbour in (block.previous, block.next))
