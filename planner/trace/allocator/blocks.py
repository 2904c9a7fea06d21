"""The blocks of memory that the caching allocator keeps, and its two pools of them.

**Source**: `Block`, `BlockPool`, `get_free_block` and `try_merge_blocks` in `c10/cuda/CUDACachingAllocator.cpp`,
PyTorch 2.13 (main at commit 0919d01f216c).
"""

from bisect import bisect_left, insort
from typing import Final


class Block:
    """A range of addresses within a segment: handed out, free, or (`mapped` is false) not backed by memory."""

    __slots__ = ("address", "allocated", "born", "mapped", "next", "pool", "previous", "size")

    def __init__(self, pool: "Pool", address: int, size: int, mapped: bool = True) -> None:
        self.pool: Final = pool
        self.address = address
        self.size = size
        self.mapped = mapped
        self.allocated = False
        self.born = 0
        """How many searches the pool had seen when the block became free."""
        self.previous: Block | None = None
        self.next: Block | None = None

    @property
    def is_split(self) -> bool:
        """Return whether it is a part of its segment only."""
        return self.previous is not None or self.next is not None

    def cut_front(self, size: int) -> "Block":
        """Take the first `size` bytes off, and return them as a block of their own before this one."""
        front = Block(self.pool, self.address, size, self.mapped)
        front.previous, front.next = self.previous, self
        if front.previous is not None:
            front.previous.next = front
        self.previous = front
        self.address += size
        self.size -= size
        return front

    def absorb(self, other: "Block | None") -> None:
        """Merge with a neighbour, if it is free and mapped or not like this one."""
        if other is None or other.allocated or other.mapped != self.mapped:
            return
        other.pool.discard(other)
        self.size += other.size
        if other is self.previous:
            self.address = other.address
            self.previous = other.previous
            if self.previous is not None:
                self.previous.next = self
        else:
            self.next = other.next
            if self.next is not None:
                self.next.previous = self


class Pool:
    """The free blocks of one of the two pools, smallest first, and those without memory, lowest address first.

    **Assumes** that a new segment lies above all older ones: where the driver places it cannot be known, and only
    the choice between free blocks of equal size depends on it.
    """

    __slots__ = ("free", "page_bytes", "searches", "top", "unmapped")

    def __init__(self, page_bytes: int) -> None:
        self.page_bytes: Final = page_bytes
        """What an expandable segment of this pool grows by."""
        self.free: list[tuple[int, int, Block]] = []
        self.unmapped: list[tuple[int, Block]] = []
        self.searches = 0
        self.top = 0

    def place(self, size: int, mapped: bool = True) -> Block:
        """Return a new segment as one block, which is not in the pool yet."""
        block = Block(self, self.top, size, mapped)
        self.top += size
        return block

    def add(self, block: Block) -> None:
        """Keep a block that became free, or lost its memory."""
        if block.mapped:
            block.born = self.searches
            insort(self.free, (block.size, block.address, block))
        else:
            insort(self.unmapped, (block.address, block))

    def discard(self, block: Block) -> None:
        """Forget a block that is in the pool."""
        if block.mapped:
            del self.free[bisect_left(self.free, (block.size, block.address))]
        else:
            del self.unmapped[bisect_left(self.unmapped, (block.address,))]

    def age(self, block: Block) -> int:
        """Return how many searches the pool has seen since the block became free."""
        return self.searches - block.born

    def best_fit(self, size: int) -> int | None:
        """Return the place of the smallest free block of at least `size` bytes.

        Of expandable segments, a block that can still grow counts with what it can grow to: so a larger block that
        cannot is taken before it.
        """
        free = self.free
        at = bisect_left(free, (size,))
        if at == len(free):
            return None
        while at + 1 < len(free) and _growable_size(free[at + 1][2]) < _growable_size(free[at][2]):
            at += 1
        return at


def _growable_size(block: Block) -> int:
    following = block.next
    return block.size if following is None or following.mapped else block.size + following.size
