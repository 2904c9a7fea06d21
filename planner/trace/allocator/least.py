"""The smallest card that a run gets through on: there the allocator gives back what it only keeps for later."""

from typing import Final

from planner.trace.allocator.replay import replay
from planner.trace.allocator.settings import AllocatorSettings
from planner.trace.recording import Allocations

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
