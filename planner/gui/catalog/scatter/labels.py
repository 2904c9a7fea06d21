"""Where names beside points have room: arithmetic only, on a grid, since thousands of points are in the way."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

_CELL: Final = 6
_GAPS: Final = (7.0, 14.0)
# Where a name stands from its point, in its own sizes: right, left, above, below, then slanting.
_SIDES: Final = (
    (0.0, -0.5, 1, 0),
    (-1.0, -0.5, -1, 0),
    (-0.5, -1.0, 0, -1),
    (-0.5, 0.0, 0, 1),
    (0.0, -1.0, 1, -1),
    (0.0, 0.0, 1, 1),
    (-1.0, -1.0, -1, -1),
    (-1.0, 0.0, -1, 1),
)


class Box(NamedTuple):
    """A rectangle in pixels, y downwards."""

    left: float
    top: float
    width: float
    height: float

    def meets(self, other: "Box") -> bool:
        """Return whether two rectangles have a pixel in common."""
        return (
            self.left < other.left + other.width
            and other.left < self.left + self.width
            and self.top < other.top + other.height
            and other.top < self.top + self.height
        )


class Crowd:
    """How many points lie within a rectangle, from sums over a grid."""

    def __init__(self, xs: NDArray[np.float64], ys: NDArray[np.float64], width: float, height: float) -> None:
        columns, rows = int(width // _CELL) + 1, int(height // _CELL) + 1
        inside = (xs >= 0) & (xs < width) & (ys >= 0) & (ys < height)
        cells = (ys[inside] // _CELL).astype(int) * columns + (xs[inside] // _CELL).astype(int)
        counts = np.bincount(cells, minlength=rows * columns).reshape(rows, columns)
        self._sums = np.zeros((rows + 1, columns + 1), dtype=int)
        self._sums[1:, 1:] = counts.cumsum(axis=0).cumsum(axis=1)

    def within(self, box: Box) -> int:
        """Return how many points lie within `box`, give or take a cell."""
        rows, columns = self._sums.shape
        left, right = int(box.left // _CELL), min(columns - 1, int((box.left + box.width) // _CELL) + 1)
        top, bottom = int(box.top // _CELL), min(rows - 1, int((box.top + box.height) // _CELL) + 1)
        sums = self._sums
        return int(sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left])


def place_names(
    points: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    crowd: Crowd,
    area: tuple[float, float],
    needed: int,
) -> list[Box | None]:
    """Return where the names of `points` stand, the first ones first; none where there is no room left.

    No two meet and each lies within `area`. The first `needed` take the places that hide the fewest points, the others
    only such as hide none.
    """
    taken: list[Box] = []
    places: list[Box | None] = []
    for number, (point, size) in enumerate(zip(points, sizes, strict=True)):
        place = _best(point, size, crowd, area, taken, may_hide=number < needed)
        places.append(place)
        if place is not None:
            taken.append(place)
    return places


def _best(
    point: tuple[float, float],
    size: tuple[float, float],
    crowd: Crowd,
    area: tuple[float, float],
    taken: Sequence[Box],
    *,
    may_hide: bool,
) -> Box | None:
    best, fewest = None, -1
    for gap in _GAPS:
        for across, down, x, y in _SIDES:
            box = Box(point[0] + gap * x + size[0] * across, point[1] + gap * y + size[1] * down, *size)
            outside = box.left < 0 or box.top < 0 or box.left + size[0] > area[0] or box.top + size[1] > area[1]
            if outside or any(box.meets(other) for other in taken):
                continue
            hidden = crowd.within(box)
            if hidden == 0:
                return box
            if may_hide and (fewest < 0 or hidden < fewest):
                best, fewest = box, hidden
    return best
