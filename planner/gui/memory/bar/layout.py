"""Layout of the stacked bar in pixels, without painting."""

from dataclasses import dataclass
from math import ceil, log2
from typing import Final

from planner.gui.plot.ticks import Ticks
from planner.present import format as fmt
from planner.present.memory.view import MemoryView, Segment
from planner.units import GIB, MIB

_TICKS_WANTED: Final = 7
_MARGIN: Final = 1.02


@dataclass(frozen=True, slots=True)
class Piece:
    """A segment and its extent in pixels."""

    segment: Segment
    left: float
    right: float


@dataclass(frozen=True, slots=True)
class BarLayout:
    """The bar in pixels; `edge` is the end of the card's usable memory, None if that is unknown."""

    pieces: tuple[Piece, ...]
    ticks: Ticks
    low: float
    total: float
    high: float
    edge: float | None
    width: float

    @property
    def card_right(self) -> float:
        """Return the right end of the card, or of the bar if the capacity is unknown."""
        return self.width if self.edge is None else self.edge

    def at(self, x: float) -> Piece | None:
        """Return the piece at `x`, also beyond the card's edge."""
        return next((piece for piece in self.pieces if piece.left <= x < piece.right), None)


def longest(view: MemoryView) -> int:
    """Return the bytes at the end of the bar of `view`, including the upper end of its uncertainty."""
    held = view.total_bytes + sum(segment.bytes for segment in view.segments if segment.kind == "other")
    return max(view.bar_bytes, held + view.high_bytes - view.total_bytes)


def lay_out(view: MemoryView, width: float, shared_bytes: int | None = None) -> BarLayout:
    """Scale the segments of `view` to `width` pixels, including the upper end of the uncertainty.

    `shared_bytes` is the end of the longest of several bars that are compared on one scale.
    """
    capacity = view.capacity_bytes
    if shared_bytes is not None:
        whole = shared_bytes * _MARGIN
    else:
        reached = longest(view)
        whole = reached if capacity is not None and reached <= capacity else reached * _MARGIN
    per_byte = width / whole
    return BarLayout(
        pieces=tuple(
            Piece(segment, segment.start_bytes * per_byte, (segment.start_bytes + segment.bytes) * per_byte)
            for segment in view.segments
        ),
        ticks=_ticks(whole, width),
        low=view.low_bytes * per_byte,
        total=view.total_bytes * per_byte,
        high=view.high_bytes * per_byte,
        edge=None if capacity is None else capacity * per_byte,
        width=width,
    )


def _ticks(whole: float, width: float) -> Ticks:
    """Return ticks along the bar at multiples of a power of two."""
    step = 2 ** max(0, ceil(log2(whole / _TICKS_WANTED)))
    unit, factor = ("GiB", GIB) if step >= GIB / 2 else ("MiB", MIB)
    sizes = range(0, int(whole) + 1, step)
    return [(size * width / whole, fmt.quantity(size / factor, unit)) for size in sizes]
