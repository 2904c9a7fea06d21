"""Data of a scatter plot: positions, sizes and color classes of the rows that have an x and a y value."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from planner.gui.plot.ticks import Ticks, log_ticks, round_ticks
from planner.gui.settings import PlotChoice
from planner.present import format as fmt
from planner.present.catalog.gpu_columns import lower_is_better
from planner.present.columns import Column, pareto_front

SIZES: Final = (6.0, 8.0, 10.0, 13.0, 16.0)
MOST_CLASSES: Final = 8
_OTHERS: Final = "others"
_STEPS: Final = 5
_MARGIN_FRACTION: Final = 0.05
_MAX_BEST_POINTS: Final = 14
Floats = NDArray[np.float64]
Ints = NDArray[np.int_]
Numbers = Callable[[str], Mapping[str, float | None]]
Words = Callable[[str], Mapping[str, str]]


@dataclass(frozen=True, eq=False)
class ScatterData:
    """Points of a scatter plot, one entry per point in each sequence; `xs` and `ys` are exponents of 10 on log axes.

    `size_ends` are the smallest and largest of `sizes` with the values they represent, empty if all sizes are equal.
    `classes` are indexes into `class_names`, `ordered` if the classes are steps of a number. `front` holds the indexes
    of the points on the Pareto front. `left_out` counts the rows without a position.
    """

    ids: tuple[str, ...]
    xs: Floats
    ys: Floats
    sizes: Floats
    size_ends: tuple[tuple[float, str], ...]
    classes: Ints
    class_names: tuple[str, ...]
    ordered: bool
    front: tuple[int, ...]
    left_out: int

    @cached_property
    def _index_by_id(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.ids)}

    def indexes_of(self, names: Iterable[str]) -> list[int]:
        """Return the sorted indexes of the points called `names`; names without a point are skipped."""
        return sorted(self._index_by_id[name] for name in names if name in self._index_by_id)


SYMBOLS: Final = ("o", "s", "t", "d", "+", "star", "h", "t1")


def symbol_of(class_index: int, ordered: bool) -> str:
    """Return the plot symbol of a color class: a circle for a range of numbers, a cross for an unknown value."""
    return ("+" if class_index == _STEPS else "o") if ordered else SYMBOLS[class_index]


def scatter_data(
    names: Sequence[str], columns: Mapping[str, Column[Any]], numbers: Numbers, words: Words, choice: PlotChoice
) -> ScatterData:
    """Return the points for the rows called `names` with an x and a y value, which are positive on logarithmic axes.

    `numbers` returns the values of a column by row name, in base units, and `words` its texts.
    """

    def column_values(key: str) -> Floats:
        return np.array([*map(numbers(key).__getitem__, names)], dtype=float) / columns[key].per_unit

    xs, ys = (
        _axis_positions(column_values(choice.x), choice.log_x),
        _axis_positions(column_values(choice.y), choice.log_y),
    )
    placed = np.isfinite(xs) & np.isfinite(ys)
    ids = tuple(compress(names, placed.tolist()))
    sized, size_ends = (
        _size_steps(column_values(choice.size)[placed], choice.size) if choice.size else (np.ones(len(ids), int), ())
    )
    column = columns.get(choice.color)
    class_names: tuple[str, ...] = ("",)
    classes = np.zeros(len(ids), dtype=int)
    if column is not None and column.is_number:
        class_names, classes = _number_classes(column_values(column.key)[placed], column.key)
    elif column is not None:
        class_names, classes = _text_classes([*map(words(column.key).__getitem__, ids)])
    xs, ys = xs[placed], ys[placed]
    points = list(zip(xs.tolist(), ys.tolist(), strict=True))
    return ScatterData(
        ids=ids,
        xs=xs,
        ys=ys,
        sizes=np.array(SIZES)[sized],
        size_ends=size_ends,
        classes=classes,
        class_names=class_names,
        ordered=column is not None and column.is_number,
        front=pareto_front(points, (lower_is_better(choice.x), lower_is_better(choice.y))),
        left_out=len(names) - len(ids),
    )


def points_to_name(data: ScatterData, keys: tuple[str, str]) -> list[int]:
    """Return the indexes of the points worth a name label on axes of the columns `keys`, most important first.

    These are the Pareto front and the best points by y. If neither direction of an axis is better, as with years,
    they are the best point at each of its values.
    """
    lower_first = [lower_is_better(key) for key in keys]
    across, up = (values if lower else -values for values, lower in zip((data.xs, data.ys), lower_first, strict=True))
    if None not in lower_first:
        return [*data.front, *np.argsort(up, kind="stable")[:_MAX_BEST_POINTS].tolist()]
    groups, scores = (data.ys, across) if lower_first[1] is None else (data.xs, up)
    order = np.lexsort((scores, groups))
    firsts = order[np.diff(groups[order], prepend=np.nan) != 0]
    best: list[int] = firsts[np.argsort(scores[firsts], kind="stable")].tolist()
    return best


def padded_range(values: Floats, logarithmic: bool) -> tuple[float, float]:
    """Return the axis range of `values` with a margin for the points and their names."""
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    alone = 0.3 if logarithmic else abs(high) * 0.1 or 1.0
    margin = _MARGIN_FRACTION * (high - low or alone)
    return low - margin, high + margin


def scatter_ticks(ends: tuple[float, float], max_ticks: int, logarithmic: bool, is_year: bool) -> Ticks:
    """Return at most about `max_ticks` round ticks of an axis."""
    if logarithmic:
        return log_ticks(*ends, max_ticks)
    return round_ticks(*ends, max_ticks, _year_text if is_year else fmt.plain, whole=is_year)


def _year_text(value: float) -> str:
    return f"{value:.0f}"


def _axis_positions(values: Floats, logarithmic: bool) -> Floats:
    if not logarithmic:
        return values
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log10(np.where(values > 0, values, np.nan))


def _ratio_steps(values: Floats) -> Ints:
    """Return the color step (0 to `_STEPS` − 1, spaced by ratio) of each value; `_STEPS` for an unknown value."""
    places = _axis_positions(values, logarithmic=True)
    known = np.isfinite(places)
    steps = np.full(len(values), _STEPS)
    if known.any():
        low, high = places[known].min(), places[known].max()
        scale = _STEPS / (high - low) if high > low else 0.0
        steps[known] = np.minimum(_STEPS - 1, ((places[known] - low) * scale).astype(int))
    return steps


def _size_steps(values: Floats, key: str) -> tuple[Ints, tuple[tuple[float, str], ...]]:
    """Return each value's symbol size step (0 if unknown), and the legend of the smallest and largest used size."""
    steps = _ratio_steps(values)
    unknown = steps == _STEPS
    used_steps = sorted(set(steps[~unknown].tolist()))  # np.unique would import masked arrays, which takes long
    ends = {SIZES[step]: [_step_range_text(values[steps == step], key)] for step in (*used_steps[:1], *used_steps[-1:])}
    if unknown.any():
        ends[SIZES[0]] = [*ends.get(SIZES[0], []), fmt.UNKNOWN]
    return np.where(unknown, 0, steps), tuple((size, " or ".join(words)) for size, words in ends.items())


def _text_classes(texts: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    """Return the class names by frequency, with the rarest merged into one, and the class index of each text."""
    class_texts = [text for text, _ in Counter(texts).most_common()]
    names = tuple(class_texts) if len(class_texts) <= MOST_CLASSES else (*class_texts[: MOST_CLASSES - 1], _OTHERS)
    places = {name: place for place, name in enumerate(names)}
    return names, np.array([places.get(text, len(names) - 1) for text in texts], dtype=int)


def _number_classes(values: Floats, key: str) -> tuple[tuple[str, ...], Ints]:
    """Return the names of a numeric column's color steps, ending with `unknown`, and the step index of each value."""
    steps = _ratio_steps(values)
    names = [_step_range_text(values[steps == step], key) if (steps == step).any() else "" for step in range(_STEPS)]
    return (*names, fmt.UNKNOWN), steps


def _step_range_text(values: Floats, key: str) -> str:
    words = _year_text if key == "year" else fmt.plain
    low, high = words(values.min()), words(values.max())
    return low if low == high else f"{low} – {high}"
