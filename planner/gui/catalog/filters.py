"""What the catalog is narrowed to, as a value: conditions that can be named, counted and lifted one by one."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import floor, log10
from operator import attrgetter, itemgetter
from typing import Any, ClassVar, Final, Self

from pydantic import Field, field_validator

from planner.base import Spec
from planner.hardware.fields import GPU_WORDS
from planner.hardware.query import GpuQuery, Query, facet_counts, select
from planner.hardware.vocabulary import Facet, Record, Vocabulary
from planner.present import format as fmt
from planner.present.catalog.gpu_columns import GPU_COLUMNS, SEGMENT_WORDS
from planner.present.catalog.search_query import ParsedSearch, SearchBound, parse_search
from planner.present.columns import Column

_STEPS: Final = (1, 1.5, 2, 3, 4, 5, 6, 8)
_MONEY: Final = frozenset(("price", "street", "used", "rent"))
_FITTING: Final = ("fits", "tight")
_UNVERIFIED: Final = ("single-source", "conflicting", "yours")
_RENTS: Final = (
    *(0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75),
    *(1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0),
)
"""USD for a card and hour; a scale to drag along, not prices."""


@dataclass(frozen=True, eq=False)
class Narrowed:
    """The kind of record that `noun` calls: its columns, its words with their facets, and the ranges that are offered.

    `record_of` returns what the words read of a row. `first` are the facets above the ranges. `scales` are where the
    sliders of columns halt that have no values to begin with; one that follows another column's is in `like`.
    `value_words` calls the values of a facet otherwise than the records do. `prefix` is that of remembered keys.
    """

    noun: str
    things: str
    columns: Mapping[str, Column[Any]]
    words: Vocabulary[Any]
    ranges: Sequence[str]
    record_of: Callable[[Any], Any]
    first: Sequence[str]
    scales: Mapping[str, Sequence[float]] = field(default_factory=dict)
    like: Mapping[str, str] = field(default_factory=dict)
    value_words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    prefix: str = ""

    @property
    def facets(self) -> Mapping[str, Facet[Any]]:
        """Return the facets by name."""
        return self.words.facets

    @cached_property
    def units(self) -> Mapping[str, float]:
        """Return how many base units a unit of each column of numbers has."""
        return {key: column.per_unit for key, column in self.columns.items() if column.is_number}

    def facet_words(self, facet: str, value: str | None) -> str:
        """Return how a facet's value is called."""
        return fmt.UNKNOWN if value is None else self.value_words.get(facet, {}).get(value, value)

    def amount_words(self, key: str, value: float) -> str:
        """Return an amount of a column: `24 GiB`, `$1,000`, `2022`."""
        if key == "year":
            return f"{value:.0f}"
        unit = self.columns[key].unit
        return fmt.money(value) if key in _MONEY else fmt.quantity(value, unit) if unit else fmt.plain(value)

    def range_words(self, key: str, low: float | None, high: float | None) -> str:
        """Return bounds of a column: `from 24 GiB`."""
        return range_words(low, high, lambda value: self.amount_words(key, value))

    def bound_words(self, key: str, low: float | None, high: float | None) -> str:
        """Return bounds with what they are of: `Memory from 24 GiB`."""
        return f"{self.columns[key].title} {self.range_words(key, low, high)}"


def range_words(low: float | None, high: float | None, show: Callable[[float], str]) -> str:
    """Return `from 24 GiB`, `up to 2020`, `24 – 80`, or nothing where neither end is set."""
    if low is not None and high is not None:
        return f"{show(low)} – {show(high)}"
    if low is not None:
        return f"from {show(low)}"
    return "" if high is None else f"up to {show(high)}"


CARDS: Final = Narrowed(
    noun="accelerator",
    things="cards",
    columns={column.key: column for column in GPU_COLUMNS},
    words=GPU_WORDS,
    ranges=("memory", "bandwidth", "bf16", "power", "price", "street", "used", "rent", "year"),
    record_of=attrgetter("gpu"),
    first=("vendor", "segment"),
    scales={"rent": _RENTS},
    like={"street": "price", "used": "price"},
    value_words={"segment": SEGMENT_WORDS},
)
"""What accelerators can be narrowed by; shops and second hand prices are dragged along those at launch."""


class Bounds(Spec):
    """The lowest and the highest value of a column, in its unit, each of which may be open."""

    low: float | None = None
    high: float | None = None


class RecordFilter(Spec):
    """A query, bounds by column, and which records are left out whatever their figures.

    `only_fitting` leaves those out that the plan does not fit on, `confirmed` those whose figures no second document
    confirms, `released` those whose figures may still change.
    """

    of: ClassVar[Narrowed]
    query: Query
    bounds: dict[str, Bounds] = Field(default_factory=dict)
    only_fitting: bool = False
    confirmed: bool = False
    released: bool = False

    @field_validator("bounds")
    @classmethod
    def _of_known_columns(cls, bounds: dict[str, Bounds]) -> dict[str, Bounds]:
        unknown = [key for key in bounds if key not in cls.of.units]
        if unknown:
            raise ValueError(f"there is no column of numbers called {', '.join(unknown)}")
        return bounds

    @cached_property
    def asked(self) -> ParsedSearch:
        """Return what the text of the query asks for."""
        return parse_search(self.query.text, self.of.units)

    @property
    def is_empty(self) -> bool:
        """Return whether everything passes."""
        return self == type(self).model_validate({})

    @property
    def by_name_only(self) -> bool:
        """Return whether nothing but words of the name is asked for."""
        return not self.asked.bounds and self.with_query(text="").is_empty

    def with_query(self, **changes: object) -> Self:
        """Return this filter with fields of its query changed."""
        return self.evolve(query=self.query.evolve(**changes))

    def with_bounds(self, key: str, low: float | None, high: float | None) -> Self:
        """Return this filter with other bounds of one column."""
        others = {name: bounds for name, bounds in self.bounds.items() if name != key}
        mine = {} if low is None and high is None else {key: Bounds(low=low, high=high)}
        return self.evolve(bounds={**others, **mine})

    def passing(self, rows: Sequence[Any]) -> frozenset[str]:
        """Return the ids of the rows that pass."""
        query = self.query.evolve(text=self.asked.words)
        return frozenset(record.id for record in select(self._candidates(rows), query))

    def counts(self, rows: Sequence[Any]) -> Mapping[str, Mapping[str | None, int]]:
        """Return how many rows each value of a facet would show."""
        return facet_counts(self._candidates(rows), self.query.evolve(text=self.asked.words))

    def _candidates(self, rows: Sequence[Any]) -> list[Any]:
        """Return the records of the rows that pass everything but the query."""
        record_of = self.of.record_of
        if self.only_fitting:
            rows = [row for row in rows if row.verdict in _FITTING]
        if self.confirmed:
            rows = [row for row in rows if record_of(row).provenance.certainty not in _UNVERIFIED]
        if self.released:
            rows = [row for row in rows if not record_of(row).preliminary]
        for key, bounds in self.bounds.items():
            rows = self._within(rows, key, bounds.low, bounds.high)
        for asked in self.asked.bounds:
            rows = self._within(rows, asked.key, asked.low, asked.high)
        return list(map(record_of, rows))

    def _within(self, rows: Sequence[Any], key: str, low: float | None, high: float | None) -> list[Any]:
        """Return the rows whose value is known and within bounds."""
        column = self.of.columns[key]
        # The bounds are brought to the unit of the values, not thousands of values to theirs.
        read, scale = column.value, column.per_unit
        least = float("-inf") if low is None else low * scale
        most = float("inf") if high is None else high * scale
        return [row for row in rows if isinstance(value := read(row), int | float) and least <= value <= most]


class CatalogFilter(RecordFilter):
    """What the accelerators are narrowed to."""

    of = CARDS
    query: GpuQuery = GpuQuery()


class NameSearch:
    """The texts that a search looks at, side by side: read record by record they take most of a keystroke."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._texts = tuple((record.id, record.search_text) for record in records)

    def having(self, text: str) -> frozenset[str]:
        """Return the ids of the records that `select` finds for `text`: those that have every word."""
        found: Sequence[tuple[str, str]] = self._texts
        for word in text.lower().split():
            found = [pair for pair in found if word in pair[1]]
        return frozenset(map(itemgetter(0), found))


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that the catalog is narrowed by, in words, and the filter without it."""

    key: str
    words: str
    lifted: RecordFilter


def conditions(current: RecordFilter) -> tuple[Condition, ...]:
    """Return what `current` asks for, each value of a facet and each bound by itself."""
    asked = current.asked
    found = []
    if asked.words:
        rest = " ".join(bound.words for bound in asked.bounds)
        found.append(Condition("text", f"“{asked.words}”", current.with_query(text=rest)))
    found.extend(_asked_condition(current, number, bound) for number, bound in enumerate(asked.bounds))
    for toggle, (words, _) in TOGGLES.items():
        if getattr(current, toggle):
            found.append(Condition(toggle, words, current.evolve(**{toggle: False})))
    for facet in current.of.facets:
        found.extend(_facet_conditions(current, facet))
    for key, bounds in current.bounds.items():
        words = current.of.bound_words(key, bounds.low, bounds.high)
        found.append(Condition(key, words, current.with_bounds(key, None, None)))
    return tuple(found)


TOGGLES: Final = {
    "only_fitting": ("Fits my model", "&Only {} that fit"),
    "confirmed": ("Confirmed", "Hide un&verified"),
    "released": ("Not preliminary", "Hide &preliminary"),
}
"""What is left out whatever its figures: by field, how it is called as a condition and as a choice."""

TOGGLE_TIPS: Final = {
    "only_fitting": "Leave out what the plan does not fit on",
    "confirmed": "Leave out what no second source confirms, or what sources disagree about",
    "released": "Leave out what is announced, whose figures may still change",
}
"""What each of the toggles leaves out."""


def groups(current: RecordFilter) -> tuple[Condition, ...]:
    """Return what `current` asks for, all values of a facet as one."""
    found: dict[str, Condition] = {}
    for condition in conditions(current):
        key = condition.key.partition(":")[0]
        known = found.get(key)
        words = f"{known.words} or {condition.words}" if known else condition.words
        found[key] = Condition(key, words, _without(current, key) if known else condition.lifted)
    return tuple(found.values())


def culprit(current: RecordFilter, rows: Sequence[Any], latest: str) -> tuple[Condition, int] | None:
    """Return the condition whose lifting shows rows again, and how many; the `latest` one first if it does."""
    candidates = sorted(groups(current), key=lambda condition: condition.key != latest)
    counted = ((condition, len(condition.lifted.passing(rows))) for condition in candidates)
    return next(((condition, count) for condition, count in counted if count), None)


def _asked_condition(current: RecordFilter, number: int, bound: SearchBound) -> Condition:
    lifted = current.with_query(text=bound.rest)
    return Condition(f"asked-{number}", current.of.bound_words(bound.key, bound.low, bound.high), lifted)


def _facet_conditions(current: RecordFilter, facet: str) -> list[Condition]:
    field = current.of.facets[facet].chosen
    chosen: tuple[str | None, ...] = getattr(current.query, field)
    return [
        Condition(
            f"{facet}:{value}",
            _value_words(current.of, facet, value),
            current.with_query(**{field: tuple(other for other in chosen if other != value)}),
        )
        for value in chosen
    ]


def _value_words(of: Narrowed, facet: str, value: str | None) -> str:
    """Return how a value is called by itself: what is unknown needs to say what of."""
    words = of.facet_words(facet, value)
    return f"{of.facets[facet].title} {words}" if value is None else words


def _without(current: RecordFilter, facet: str) -> RecordFilter:
    return current.with_query(**{current.of.facets[facet].chosen: ()})


def round_stops(values: Sequence[float]) -> tuple[float, ...]:
    """Return round numbers from below the smallest of `values` to above the largest, evenly spaced by ratio."""
    known = [value for value in values if value > 0]
    if not known:
        return 0.0, 1.0
    low, high = floor(log10(min(known))), floor(log10(max(known)))
    rounds = [step * 10.0**exponent for exponent in range(low, high + 1) for step in _STEPS] + [10.0 ** (high + 1)]
    first = max(0, bisect_right(rounds, min(known)) - 1)
    return tuple(rounds[first : bisect_left(rounds, max(known)) + 1])
