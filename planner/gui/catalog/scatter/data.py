"""What a scatter plot draws: places, sizes and classes of the rows that have both figures. Arithmetic only."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log10
from typing import Any, Final

from planner.gui.catalog.settings import PlotChoice
from planner.present import format as fmt
from planner.present.better import unbeaten
from planner.present.columns import Column

SIZES: Final = (6, 8, 10, 13, 16)
MOST_CLASSES: Final = 8
_OTHERS: Final = "others"
_STEPS: Final = 5
Columns = Mapping[str, Column[Any]]


@dataclass(frozen=True, slots=True)
class ScatterData:
    """One entry a point in each of the sequences; places are on the axes, powers of ten where an axis is logarithmic.

    `classes` say which of `class_names` a point is of; they are `ordered` where they are steps of a number. `left_out`
    counts the rows without a place.
    """

    ids: tuple[str, ...]
    xs: tuple[float, ...]
    ys: tuple[float, ...]
    sizes: tuple[int, ...]
    classes: tuple[int, ...]
    class_names: tuple[str, ...]
    ordered: bool
    front: tuple[int, ...]
    left_out: int


def scatter_data(rows: Sequence[Any], columns: Columns, choice: PlotChoice) -> ScatterData:
    """Return what to draw of `rows`: those with both figures, positive where the axis is logarithmic."""
    x_of, y_of = columns[choice.x].number, columns[choice.y].number
    placed = [
        (row, x, y)
        for row in rows
        if (x := _place(x_of(row), choice.log_x)) is not None and (y := _place(y_of(row), choice.log_y)) is not None
    ]
    shown = [row for row, _, _ in placed]
    class_names, classes, ordered = _classes(shown, columns.get(choice.color))
    points = [(x, y) for _, x, y in placed]
    return ScatterData(
        ids=tuple(row.id for row in shown),
        xs=tuple(x for x, _ in points),
        ys=tuple(y for _, y in points),
        sizes=_sizes(shown, columns.get(choice.size)),
        classes=classes,
        class_names=class_names,
        ordered=ordered,
        front=unbeaten(points, (choice.x, choice.y)) if choice.pareto else (),
        left_out=len(rows) - len(shown),
    )


def axis_range(values: Sequence[float], logarithmic: bool) -> tuple[float, float]:
    """Return an axis's ends with room for the points and their names."""
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    room = _ROOM * max(high - low, 0.3 if logarithmic else abs(high) * 0.1 or 1.0)
    return low - room, high + room


_ROOM: Final = 0.05


def linear_ticks(low: float, high: float, most: int, words: Callable[[float], str]) -> list[tuple[float, str]]:
    """Return round marks between `low` and `high`, at most `most` of them."""
    rough = (high - low) / max(1, most)
    power = 10.0 ** int(f"{rough:e}".partition("e")[2])
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    first = int(low // step) + 1
    marks = [step * number for number in range(first, int(high // step) + 1)]
    return [(mark, words(mark)) for mark in marks]


def _place(value: float | None, logarithmic: bool) -> float | None:
    if value is None or not logarithmic:
        return value
    return log10(value) if value > 0 else None


def _sizes(rows: Sequence[Any], column: Column[Any] | None) -> tuple[int, ...]:
    """Return a size a row, in steps of the ratio of its value to the largest; the smallest where it is unknown."""
    if column is None:
        return (SIZES[1],) * len(rows)
    return tuple(SIZES[0] if step is None else SIZES[step] for step in _steps([column.number(row) for row in rows]))


def _steps(values: Sequence[float | None]) -> list[int | None]:
    """Return the step of each value, of as many as there are, evenly spaced by ratio."""
    known = [log10(value) for value in values if value is not None and value > 0]
    low, high = min(known, default=0.0), max(known, default=0.0)
    scale = _STEPS / (high - low) if high > low else 0.0
    return [
        None if value is None or value <= 0 else min(_STEPS - 1, int((log10(value) - low) * scale)) for value in values
    ]


def _classes(rows: Sequence[Any], column: Column[Any] | None) -> tuple[tuple[str, ...], tuple[int, ...], bool]:
    if column is None:
        return ("",), (0,) * len(rows), False
    if column.is_number:
        return _number_classes([column.number(row) for row in rows], column)
    texts = [column.text(row) for row in rows]
    named = [text for text, _ in Counter(texts).most_common()]
    names = tuple(named) if len(named) <= MOST_CLASSES else (*named[: MOST_CLASSES - 1], _OTHERS)
    places = {name: place for place, name in enumerate(names)}
    return names, tuple(places.get(text, len(names) - 1) for text in texts), False


def _number_classes(
    values: Sequence[float | None], column: Column[Any]
) -> tuple[tuple[str, ...], tuple[int, ...], bool]:
    """Return steps of a number, from small to large, and last what is unknown."""
    steps = _steps(values)
    names = []
    for step in range(_STEPS):
        mine = [value for value, found in zip(values, steps, strict=True) if found == step and value is not None]
        names.append(_span(min(mine), max(mine), column.key) if mine else "")
    return (*names, fmt.UNKNOWN), tuple(_STEPS if step is None else step for step in steps), True


def _span(low: float, high: float, key: str) -> str:
    show = (lambda value: f"{value:.0f}") if key == "year" else fmt.plain
    return show(low) if show(low) == show(high) else f"{show(low)} – {show(high)}"
