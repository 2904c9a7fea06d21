"""Which way a figure is better: for marks in a comparison, and for the line of what nothing beats."""

from collections.abc import Sequence
from typing import Final

from planner.hardware.derived import DERIVED_FIGURES

_LOWER: Final = frozenset(
    (
        *("price", "street", "used", "rent", "paid", "power", "needed", "seconds"),
        *("job_time", "job_cost", "job_cost_tokens"),
        *("rented", "rented_hour", "rented_tokens", "owned", "owned_tokens"),
    )
) | {figure.key for figure in DERIVED_FIGURES.values() if figure.lower_is_better}
_NEITHER: Final = frozenset(("year", "devices", "cards", "ridge_point", "total_power", "total_price"))


def lower_is_better(key: str) -> bool | None:
    """Return whether less is better in the column `key`; none where neither way is."""
    return None if key in _NEITHER else key in _LOWER


def best(key: str, values: Sequence[float | None]) -> float | None:
    """Return the best of `values`; none where neither way is better, or fewer than two are known or differ."""
    known = {value for value in values if value is not None}
    lower = lower_is_better(key)
    if lower is None or len(known) < 2:
        return None
    return min(known) if lower else max(known)


def unbeaten(points: Sequence[tuple[float, float]], keys: tuple[str, str]) -> tuple[int, ...]:
    """Return the positions of the points that no other beats in both figures, in the order of the first.

    There is none where neither way is better in one of the two `keys`.
    """
    ways = [lower_is_better(key) for key in keys]
    if None in ways:
        return ()
    x_sign, y_sign = (1 if lower else -1 for lower in ways)
    front, best_y = [], float("inf")
    for _, y, position in sorted((x_sign * x, y_sign * y, position) for position, (x, y) in enumerate(points)):
        if y < best_y:
            front.append(position)
            best_y = y
    return tuple(front)
