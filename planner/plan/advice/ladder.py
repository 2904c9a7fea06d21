"""A change that looks for a number.

A ladder has its rungs from the mildest to the hardest; each needs no more memory than the one before, so that the first
one that fits is found by bisection.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from planner.plan.advice.change import Change


@dataclass(frozen=True, slots=True)
class Ladder:
    """The values of one number, and the change that each of them is; `lever` is what it turns."""

    lever: str
    values: Sequence[int]
    change: Callable[[int], Change]
