"""The allocator that lays out ggml's compute buffers, replayed on sizes.

A compute buffer is as long as the furthest byte that any tensor of the graph was given. Holes that freed tensors leave
make it longer than the sum of what is alive, so that the layout must be replayed to know it.

**Source**: llama.cpp 0.5.0, ggml/src/ggml-alloc.c: ggml_dyn_tallocr_alloc and ggml_dyn_tallocr_free_bytes.
"""

from typing import Final

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
    """Places of tensors in one buffer: the smallest hole that is large enough, else the end."""

    def __init__(self) -> None:
        self.furthest = 0
        self._free: list[list[int]] = [[0, _ENDLESS]]

    def take(self, size: int) -> Place:
        """Return the place of a new tensor of `size` bytes; of holes of the same size the last is taken."""
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
        """Give back the tensors at `places`, in this order, joined with the holes beside them."""
        for offset, size in places:
            self._give_back(offset, size)

    def _give_back(self, offset: int, size: int) -> None:
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
