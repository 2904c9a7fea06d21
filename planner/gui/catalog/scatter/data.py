"""What a scatter plot draws: places, sizes and classes of the rows that have both figures. Arithmetic only."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from planner.gui.catalog.settings import PlotChoice
from planner.gui.plot.ticks import Ticks, log_ticks, round_ticks
from planner.present import format as fmt
from planner.present.catalog.gpu_columns import lower_is_better
from planner.present.columns import Column, unbeaten

SIZES: Final = (6.0, 8.0, 10.0, 13.0, 16.0)
MOST_CLASSES: Final = 8
_OTHERS: Final = "others"
_STEPS: Final = 5
_ROOM: Final = 0.05
_BEST: Final = 14
Floats = NDArray[np.float64]
Ints = NDArray[np.int_]
Numbers = Callable[[str], Mapping[str, float | None]]
Words = Callable[[str], Mapping[str, str]]


@dataclass(frozen=True, eq=False)
class ScatterData:
    """One entry a point in each of the sequences; places are on the axes, powers of ten where an axis is logarithmic.

    `size_ends` are the smallest and the largest of `sizes` with what they stand for, none where they say nothing.
    `classes` say which of `class_names` a point is of; they are `ordered` where they are steps of a number. No other
    point beats those of the `front`. `left_out` counts the rows without a place.
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
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.ids)}

    def places_of(self, names: Iterable[str]) -> list[int]:
        """Return the positions of `names`, without those that have no point, in the order of the points."""
        return sorted(self._places[name] for name in names if name in self._places)


SYMBOLS: Final = ("o", "s", "t", "d", "+", "star", "h", "t1")


def symbol_of(place: int, ordered: bool) -> str:
    """Return the shape of a class; steps of a number are circles, and a cross is what is unknown."""
    return ("+" if place == _STEPS else "o") if ordered else SYMBOLS[place]


def scatter_data(
    names: Sequence[str], columns: Mapping[str, Column[Any]], numbers: Numbers, words: Words, choice: PlotChoice
) -> ScatterData:
    """Return what to draw of the rows called `names`: those with both figures, positive where the axis is logarithmic.

    `numbers` returns the values of a column by the rows' names, in base units, and `words` its texts.
    """

    def values(key: str) -> Floats:
        return np.array([*map(numbers(key).__getitem__, names)], dtype=float) / columns[key].per_unit

    xs, ys = _places(values(choice.x), choice.log_x), _places(values(choice.y), choice.log_y)
    placed = np.isfinite(xs) & np.isfinite(ys)
    ids = tuple(compress(names, placed.tolist()))
    sized, size_ends = _sizes(values(choice.size)[placed], choice.size) if choice.size else (np.ones(len(ids), int), ())
    column = columns.get(choice.color)
    class_names: tuple[str, ...] = ("",)
    classes = np.zeros(len(ids), dtype=int)
    if column is not None and column.is_number:
        class_names, classes = _number_classes(values(column.key)[placed], column.key)
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
        front=unbeaten(points, (lower_is_better(choice.x), lower_is_better(choice.y))),
        left_out=len(names) - len(ids),
    )


def foremost(data: ScatterData, keys: tuple[str, str]) -> list[int]:
    """Return the positions of the points that one looks for on axes of the columns `keys`, the foremost first.

    These are the ones that no other beats, and the best of all in what goes up. Where neither way is better along an
    axis, as with years, they are the best at each of its values.
    """
    ways = [lower_is_better(key) for key in keys]
    across, up = (values if lower else -values for values, lower in zip((data.xs, data.ys), ways, strict=True))
    if None not in ways:
        return [*data.front, *np.argsort(up, kind="stable")[:_BEST].tolist()]
    groups, judged = (data.ys, across) if ways[1] is None else (data.xs, up)
    order = np.lexsort((judged, groups))
    firsts = order[np.diff(groups[order], prepend=np.nan) != 0]
    best: list[int] = firsts[np.argsort(judged[firsts], kind="stable")].tolist()
    return best


def axis_range(values: Floats, logarithmic: bool) -> tuple[float, float]:
    """Return an axis's ends with room for the points and their names."""
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    alone = 0.3 if logarithmic else abs(high) * 0.1 or 1.0
    room = _ROOM * (high - low or alone)
    return low - room, high + room


def axis_ticks(ends: tuple[float, float], most: int, logarithmic: bool, is_year: bool) -> Ticks:
    """Return round ticks between the ends of an axis, at most about `most` of them."""
    if logarithmic:
        return log_ticks(*ends, most)
    return round_ticks(*ends, most, _year_words if is_year else fmt.plain, whole=is_year)


def _year_words(value: float) -> str:
    return f"{value:.0f}"


def _places(values: Floats, logarithmic: bool) -> Floats:
    if not logarithmic:
        return values
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log10(np.where(values > 0, values, np.nan))


def _steps(values: Floats) -> Ints:
    """Return the step of each value, evenly spaced by ratio; the number of steps where it is unknown."""
    places = _places(values, logarithmic=True)
    known = np.isfinite(places)
    steps = np.full(len(values), _STEPS)
    if known.any():
        low, high = places[known].min(), places[known].max()
        scale = _STEPS / (high - low) if high > low else 0.0
        steps[known] = np.minimum(_STEPS - 1, ((places[known] - low) * scale).astype(int))
    return steps


def _sizes(values: Floats, key: str) -> tuple[Ints, tuple[tuple[float, str], ...]]:
    """Return the step of each value, the smallest where it is unknown; and the ends of those that there are."""
    steps = _steps(values)
    unknown = steps == _STEPS
    used = np.unique(steps[~unknown]).tolist()
    ends = {SIZES[step]: [_span(values[steps == step], key)] for step in (*used[:1], *used[-1:])}
    if unknown.any():
        ends[SIZES[0]] = [*ends.get(SIZES[0], []), fmt.UNKNOWN]
    return np.where(unknown, 0, steps), tuple((size, " or ".join(words)) for size, words in ends.items())


def _text_classes(texts: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    """Return the texts, the most frequent first and the rarest together, and the place of each of them."""
    named = [text for text, _ in Counter(texts).most_common()]
    names = tuple(named) if len(named) <= MOST_CLASSES else (*named[: MOST_CLASSES - 1], _OTHERS)
    places = {name: place for place, name in enumerate(names)}
    return names, np.array([places.get(text, len(names) - 1) for text in texts], dtype=int)


def _number_classes(values: Floats, key: str) -> tuple[tuple[str, ...], Ints]:
    """Return steps of a number, from small to large, and last what is unknown."""
    steps = _steps(values)
    names = [_span(values[steps == step], key) if (steps == step).any() else "" for step in range(_STEPS)]
    return (*names, fmt.UNKNOWN), steps


def _span(values: Floats, key: str) -> str:
    words = _year_words if key == "year" else fmt.plain
    low, high = words(values.min()), words(values.max())
    return low if low == high else f"{low} – {high}"
