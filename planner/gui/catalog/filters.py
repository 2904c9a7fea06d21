"""What the catalog is narrowed to, as a value: conditions that can be named, counted and lifted one by one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Final

from pydantic import Field, field_validator

from planner.base import Spec
from planner.hardware.gpu import Gpu
from planner.hardware.query import Facet, GpuQuery, facet_counts, select
from planner.present import format as fmt
from planner.present.asked import Asked, AskedBound, read_asked
from planner.present.columns import Column
from planner.present.gpus import GPU_COLUMNS, SEGMENT_WORDS, GpuRow

FACET_FIELDS: Final[dict[Facet, str]] = {
    "vendor": "vendors",
    "segment": "segments",
    "architecture": "architectures",
}
FACET_TITLES: Final[dict[Facet, str]] = {"vendor": "Vendor", "segment": "Segment", "architecture": "Architecture"}
COLUMNS: Final[dict[str, Column[GpuRow]]] = {column.key: column for column in GPU_COLUMNS}
_MONEY: Final = frozenset(("price", "street", "used", "rent"))
_FITTING: Final = ("fits", "tight")
_SEEN_ONCE: Final = ("single-source", "conflicting")


class Bounds(Spec):
    """The lowest and the highest value of a column, in its unit, each of which may be open."""

    low: float | None = None
    high: float | None = None


class CatalogFilter(Spec):
    """A query, bounds by column, and which cards are left out whatever their figures.

    `only_fitting` leaves those out that the plan does not fit on, `confirmed` those whose figures no second document
    confirms, `released` those whose figures may still change.
    """

    query: GpuQuery = GpuQuery()
    bounds: dict[str, Bounds] = Field(default_factory=dict)
    only_fitting: bool = False
    confirmed: bool = False
    released: bool = False

    @field_validator("bounds")
    @classmethod
    def _of_known_columns(cls, bounds: dict[str, Bounds]) -> dict[str, Bounds]:
        unknown = [key for key in bounds if key not in COLUMNS or not COLUMNS[key].is_number]
        if unknown:
            raise ValueError(f"there is no column of numbers called {', '.join(unknown)}")
        return bounds

    @cached_property
    def asked(self) -> Asked:
        """Return what the text of the query asks for."""
        return read_asked(self.query.text)

    @property
    def by_name_only(self) -> bool:
        """Return whether nothing but words of the name is asked for."""
        return not self.asked.bounds and self.with_query(text="") == CatalogFilter()

    def with_query(self, **changes: object) -> "CatalogFilter":
        """Return this filter with fields of its query changed."""
        return self.evolve(query=self.query.evolve(**changes))

    def with_bounds(self, key: str, low: float | None, high: float | None) -> "CatalogFilter":
        """Return this filter with other bounds of one column."""
        others = {name: bounds for name, bounds in self.bounds.items() if name != key}
        mine = {} if low is None and high is None else {key: Bounds(low=low, high=high)}
        return self.evolve(bounds={**others, **mine})

    def passing(self, rows: Sequence[GpuRow]) -> frozenset[str]:
        """Return the ids of the rows that pass."""
        query = self.query.evolve(text=self.asked.words)
        return frozenset(gpu.id for gpu in select([row.gpu for row in self._candidates(rows)], query))

    def counts(self, rows: Sequence[GpuRow]) -> Mapping[Facet, Mapping[str, int]]:
        """Return how many rows each value of a facet would show."""
        query = self.query.evolve(text=self.asked.words)
        return facet_counts([row.gpu for row in self._candidates(rows)], query)

    def _candidates(self, rows: Sequence[GpuRow]) -> Sequence[GpuRow]:
        if self.only_fitting:
            rows = [row for row in rows if row.verdict in _FITTING]
        if self.confirmed:
            rows = [row for row in rows if row.gpu.provenance.certainty not in _SEEN_ONCE]
        if self.released:
            rows = [row for row in rows if not row.gpu.preliminary]
        for key, bounds in self.bounds.items():
            rows = _within(rows, key, bounds.low, bounds.high)
        for asked in self.asked.bounds:
            rows = _within(rows, asked.key, asked.low, asked.high)
        return rows


class NameSearch:
    """The texts that a search looks at, side by side: read card by card they take most of a keystroke."""

    def __init__(self, gpus: Sequence[Gpu]) -> None:
        self._texts = tuple((gpu.id, gpu.search_text) for gpu in gpus)

    def having(self, text: str) -> frozenset[str]:
        """Return the ids of the cards that `select` finds for `text`: those that have every word."""
        found: Sequence[tuple[str, str]] = self._texts
        for word in text.lower().split():
            found = [pair for pair in found if word in pair[1]]
        return frozenset(map(itemgetter(0), found))


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that the catalog is narrowed by, in words, and the filter without it."""

    key: str
    words: str
    lifted: CatalogFilter


def conditions(current: CatalogFilter) -> tuple[Condition, ...]:
    """Return what `current` asks for, each value of a facet and each bound by itself."""
    query, asked = current.query, current.asked
    found = []
    if asked.words:
        rest = " ".join(bound.words for bound in asked.bounds)
        found.append(Condition("text", f"“{asked.words}”", current.with_query(text=rest)))
    found.extend(_asked_condition(current, number, bound) for number, bound in enumerate(asked.bounds))
    for field, (words, _) in TOGGLES.items():
        if getattr(current, field):
            found.append(Condition(field, words, current.evolve(**{field: False})))
    for facet in FACET_FIELDS:
        if getattr(query, FACET_FIELDS[facet]):
            found.extend(_facet_conditions(current, facet))
    for key, bounds in current.bounds.items():
        words = bound_words(key, bounds.low, bounds.high)
        found.append(Condition(key, words, current.with_bounds(key, None, None)))
    return tuple(found)


TOGGLES: Final = {
    "only_fitting": ("Fits my model", "&Only cards that fit"),
    "confirmed": ("Confirmed", "Hide un&verified"),
    "released": ("Not preliminary", "Hide &preliminary"),
}
"""What is left out whatever its figures: by field, how it is called as a condition and as a choice."""
TOGGLE_TIPS: Final = {
    "only_fitting": "Leave out what the plan does not fit on",
    "confirmed": "Leave out what only one source tells of, or what sources disagree about",
    "released": "Leave out what is announced, whose figures may still change",
}
"""What each of the toggles leaves out."""


def groups(current: CatalogFilter) -> tuple[Condition, ...]:
    """Return what `current` asks for, all values of a facet as one."""
    found: dict[str, Condition] = {}
    for condition in conditions(current):
        key = condition.key.partition(":")[0]
        known = found.get(key)
        words = f"{known.words} or {condition.words}" if known else condition.words
        found[key] = Condition(key, words, _without(current, key) if known else condition.lifted)
    return tuple(found.values())


def amount_words(key: str, value: float) -> str:
    """Return an amount of a column: `24 GiB`, `$1,000`, `2022`."""
    if key == "year":
        return f"{value:.0f}"
    unit = COLUMNS[key].unit
    return fmt.money(value) if key in _MONEY else fmt.quantity(value, unit) if unit else fmt.plain(value)


def bound_words(key: str, low: float | None, high: float | None) -> str:
    """Return bounds with what they are of: `Memory from 24 GiB`."""
    return f"{COLUMNS[key].title} {range_words(low, high, lambda value: amount_words(key, value))}"


def facet_words(facet: Facet, value: str) -> str:
    """Return how a facet's value is called."""
    return SEGMENT_WORDS[value] if facet == "segment" else value


def range_words(low: float | None, high: float | None, show: Callable[[float], str]) -> str:
    """Return `from 24 GiB`, `up to 2020`, `24 – 80`, or nothing where neither end is set."""
    if low is not None and high is not None:
        return f"{show(low)} – {show(high)}"
    if low is not None:
        return f"from {show(low)}"
    return "" if high is None else f"up to {show(high)}"


def culprit(current: CatalogFilter, rows: Sequence[GpuRow], latest: str) -> tuple[Condition, int] | None:
    """Return the condition whose lifting shows rows again, and how many; the `latest` one first if it does."""
    candidates = sorted(groups(current), key=lambda condition: condition.key != latest)
    counted = ((condition, len(condition.lifted.passing(rows))) for condition in candidates)
    return next(((condition, count) for condition, count in counted if count), None)


def _within(rows: Sequence[GpuRow], key: str, low: float | None, high: float | None) -> list[GpuRow]:
    """Return the rows whose value is known and within bounds."""
    column = COLUMNS[key]
    # The bounds are brought to the unit of the values, not thousands of values to theirs.
    read, scale = column.value, column.per_unit
    least = float("-inf") if low is None else low * scale
    most = float("inf") if high is None else high * scale
    return [row for row in rows if isinstance(value := read(row), int | float) and least <= value <= most]


def _asked_condition(current: CatalogFilter, number: int, bound: AskedBound) -> Condition:
    lifted = current.with_query(text=bound.rest)
    return Condition(f"asked-{number}", bound_words(bound.key, bound.low, bound.high), lifted)


def _facet_conditions(current: CatalogFilter, facet: Facet) -> list[Condition]:
    field = FACET_FIELDS[facet]
    chosen: tuple[str, ...] = getattr(current.query, field)
    return [
        Condition(
            f"{facet}:{value}",
            facet_words(facet, value),
            current.with_query(**{field: tuple(other for other in chosen if other != value)}),
        )
        for value in chosen
    ]


def _without(current: CatalogFilter, facet: str) -> CatalogFilter:
    return current.with_query(**{field: () for name, field in FACET_FIELDS.items() if name == facet})
