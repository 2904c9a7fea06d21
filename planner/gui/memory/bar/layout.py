"""Layout of the stacked bar in pixels, without painting."""

from dataclasses import dataclass
from math import ceil, log2
from typing import Final

from planner.gui.plot.ticks import Ticks
from planner.present import format as fmt
from planner.present.memory.view import MemoryBarSegment, MemoryView
from planner.units import GIB, MIB

_TICK_COUNT: Final = 7
_MARGIN: Final = 1.02


@dataclass(frozen=True, slots=True)
class Piece:
    """A bar segment and its left and right end in pixels."""

    segment: MemoryBarSegment
    left: float
    right: float


@dataclass(frozen=True, slots=True)
class BarLayout:
    """The memory bar in pixels; `edge` is the end of the card's usable memory, None if that is unknown."""

    pieces: tuple[Piece, ...]
    ticks: Ticks
    low: float
    total: float
    high: float
    edge: float | None
    width: float

    @property
    def card_right(self) -> float:
        """Return the x position where the card's memory ends, or where the bar ends if the capacity is unknown."""
        return self.width if self.edge is None else self.edge

    def piece_at(self, x: float) -> Piece | None:
        """Return the piece at `x`, which may lie beyond the end of the card's memory, or None."""
        return next((piece for piece in self.pieces if piece.left <= x < piece.right), None)


def bar_end_bytes(view: MemoryView) -> int:
    """Return the memory in bytes at the right end of the bar for `view`, including the uncertainty range."""
    held = view.total_bytes + sum(segment.bytes for segment in view.segments if segment.kind == "other")
    return max(view.bar_bytes, held + view.high_bytes - view.total_bytes)


def lay_out(view: MemoryView, width: float, scale_end_bytes: int | None = None) -> BarLayout:
    """Scale the segments of `view` to `width` pixels, including the upper end of the uncertainty range.

    `scale_end_bytes` is the memory at the end of the scale shared by several compared bars.
    """
    capacity = view.capacity_bytes
    if scale_end_bytes is not None:
        whole = scale_end_bytes * _MARGIN
    else:
        reached = bar_end_bytes(view)
        whole = reached if capacity is not None and reached <= capacity else reached * _MARGIN
    per_byte = width / whole
    return BarLayout(
        pieces=tuple(
            Piece(segment, segment.start_bytes * per_byte, (segment.start_bytes + segment.bytes) * per_byte)
            for segment in view.segments
        ),
        ticks=_memory_ticks(whole, width),
        low=view.low_bytes * per_byte,
        total=view.total_bytes * per_byte,
        high=view.high_bytes * per_byte,
        edge=None if capacity is None else capacity * per_byte,
        width=width,
    )


def _memory_ticks(whole: float, width: float) -> Ticks:
    """Return ticks along the memory scale at multiples of a power of two."""
    step = 2 ** max(0, ceil(log2(whole / _TICK_COUNT)))
    unit, factor = ("GiB", GIB) if step >= GIB / 2 else ("MiB", MIB)
    sizes = range(0, int(whole) + 1, step)
    return [(size * width / whole, fmt.quantity(size / factor, unit)) for size in sizes]
