"""Catalog filters as immutable values, with conditions that can be named, counted and removed one by one."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import floor, log10
from operator import attrgetter, itemgetter
from typing import Any, ClassVar, Final, Self

from pydantic import Field, field_validator

from planner.base import Spec
from planner.hardware.query import CatalogQuery, GpuQuery, facet_counts, select
from planner.hardware.query_fields import GPU_QUERY_SCHEMA
from planner.hardware.query_schema import Facet, QuerySchema, SearchableRecord, has_word
from planner.present import format as fmt
from planner.present.catalog.gpu_columns import GPU_COLUMNS, SEGMENT_TITLES
from planner.present.catalog.search_query import ParsedSearch, SearchBound, parse_search
from planner.present.columns import Column

_STEPS: Final = (1, 1.5, 2, 3, 4, 5, 6, 8)
_MONEY_COLUMNS: Final = frozenset(("buy", "price", "street", "used", "rent"))
FITTING_VERDICTS: Final = ("fits", "tight")
_UNVERIFIED_CERTAINTIES: Final = ("single-source", "conflicting", "yours")
_RENT_STOPS: Final = (
    *(0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75),
    *(1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0),
)
"""Stops of the slider for rental prices, in USD per card and hour; the numbers are not actual prices."""


@dataclass(frozen=True, eq=False)
class RecordKind:
    """Kind of catalog record, card or system: its columns, and its query schema with facets.

    `ranges` lists the columns with range sliders. `record_of` returns the record in a table row. `first` lists the
    facets above the ranges. `scales` has slider stops for columns without values at first; `like` maps a column to
    another column with the same stops. `value_words` replaces facet values by display names. `prefix` starts the keys
    in the settings.
    """

    noun: str
    columns: Mapping[str, Column[Any]]
    words: QuerySchema[Any]
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
        """Return the factor that converts each numeric column's display unit to its base unit, by column key."""
        return {key: column.per_unit for key, column in self.columns.items() if column.is_number}

    def facet_value_text(self, facet: str, value: str | None) -> str:
        """Return the display name for a value of a facet."""
        return fmt.UNKNOWN if value is None else self.value_words.get(facet, {}).get(value, value)

    def amount_text(self, key: str, value: float) -> str:
        """Format a column value with its unit: `24 GiB`, `$1,000`, `2022`."""
        if key == "year":
            return f"{value:.0f}"
        unit = self.columns[key].unit
        return fmt.money(value) if key in _MONEY_COLUMNS else fmt.quantity(value, unit) if unit else fmt.plain(value)

    def range_text(self, key: str, low: float | None, high: float | None) -> str:
        """Format the bounds of a column: `from 24 GiB`."""
        return range_text(low, high, lambda value: self.amount_text(key, value))

    def bounds_text(self, key: str, low: float | None, high: float | None) -> str:
        """Format the bounds of a column with its title: `Memory from 24 GiB`."""
        return f"{self.columns[key].title} {self.range_text(key, low, high)}"


def range_text(low: float | None, high: float | None, show: Callable[[float], str]) -> str:
    """Format a range: `from 24 GiB`, `up to 2020`, `24 – 80`, `8` if both ends are equal, or empty if they are open."""
    if low is not None and high is not None:
        return show(low) if low == high else f"{show(low)} – {show(high)}"
    if low is not None:
        return f"from {show(low)}"
    return "" if high is None else f"up to {show(high)}"


CARDS: Final = RecordKind(
    noun="accelerator",
    columns={column.key: column for column in GPU_COLUMNS},
    words=GPU_QUERY_SCHEMA,
    ranges=("buy", "memory", "bandwidth", "bf16", "power", "price", "street", "used", "rent", "year"),
    record_of=attrgetter("gpu"),
    first=("vendor", "segment"),
    scales={"rent": _RENT_STOPS},
    like={"buy": "price", "street": "price", "used": "price"},
    value_words={"segment": SEGMENT_TITLES},
)
"""Accelerators as a kind of record; the sliders of all prices have the stops of the launch price."""


class ValueRange(Spec):
    """Lowest and highest value of a column, in the column's unit; None is an open bound."""

    low: float | None = None
    high: float | None = None


class RecordFilter(Spec):
    """Conditions that a catalog record must meet to be shown: a query, bounds by column, and three switches.

    `only_fitting` hides records on which the plan does not fit, `confirmed` records whose figures are not confirmed
    by a second document, `released` announced records whose figures may still change.
    """

    kind: ClassVar[RecordKind]
    query: CatalogQuery
    bounds: dict[str, ValueRange] = Field(default_factory=dict)
    only_fitting: bool = False
    confirmed: bool = False
    released: bool = False

    @field_validator("bounds")
    @classmethod
    def _check_bound_columns(cls, bounds: dict[str, ValueRange]) -> dict[str, ValueRange]:
        unknown = [key for key in bounds if key not in cls.kind.units]
        if unknown:
            raise ValueError(f"there is no column of numbers called {', '.join(unknown)}")
        return bounds

    @cached_property
    def parsed(self) -> ParsedSearch:
        """Return the parsed search text of the query."""
        return parse_search(self.query.text, self.kind.units)

    @property
    def is_empty(self) -> bool:
        """Return whether all records pass."""
        return self == type(self).model_validate({})

    @property
    def bounded_keys(self) -> tuple[str, ...]:
        """Return the keys of the columns that the filter bounds, without repetition."""
        return tuple(dict.fromkeys((*self.bounds, *(bound.key for bound in self.parsed.bounds))))

    @property
    def by_name_only(self) -> bool:
        """Return whether the filter has only search words: no bounds, facets or switches."""
        return not self.parsed.bounds and self.with_query(text="").is_empty

    def with_query(self, **changes: object) -> Self:
        """Return a copy of the filter with the query fields in `changes` replaced."""
        return self.evolve(query=self.query.evolve(**changes))

    def with_bounds(self, key: str, low: float | None, high: float | None) -> Self:
        """Return a copy of the filter with the bounds `low` and `high` for the column `key`."""
        others = {name: bounds for name, bounds in self.bounds.items() if name != key}
        new_bounds = {} if low is None and high is None else {key: ValueRange(low=low, high=high)}
        return self.evolve(bounds={**others, **new_bounds})

    def passing(self, rows: Sequence[Any]) -> frozenset[str]:
        """Return the ids of the rows that pass the filter."""
        query = self.query.evolve(text=self.parsed.words)
        return frozenset(record.id for record in select(self._records_within_bounds(rows), query))

    def counts(self, rows: Sequence[Any]) -> Mapping[str, Mapping[str | None, int]]:
        """Return the number of rows that each facet value would show, by facet and value."""
        return facet_counts(self._records_within_bounds(rows), self.query.evolve(text=self.parsed.words))

    def _records_within_bounds(self, rows: Sequence[Any]) -> list[Any]:
        """Return the records that pass the switches and bounds, before the query is applied."""
        record_of = self.kind.record_of
        if self.only_fitting:
            rows = [row for row in rows if row.verdict in FITTING_VERDICTS]
        if self.confirmed:
            rows = [row for row in rows if record_of(row).provenance.certainty not in _UNVERIFIED_CERTAINTIES]
        if self.released:
            rows = [row for row in rows if not record_of(row).preliminary]
        for key, bounds in self.bounds.items():
            rows = self._rows_within(rows, key, bounds.low, bounds.high)
        for bound in self.parsed.bounds:
            rows = self._rows_within(rows, bound.key, bound.low, bound.high)
        return list(map(record_of, rows))

    def _rows_within(self, rows: Sequence[Any], key: str, low: float | None, high: float | None) -> list[Any]:
        """Return the rows whose value is known and within the bounds."""
        column = self.kind.columns[key]
        # Scale the two bounds to base units instead of thousands of values to the display unit.
        read, scale = column.value, column.per_unit
        least = float("-inf") if low is None else low * scale
        most = float("inf") if high is None else high * scale
        return [row for row in rows if isinstance(value := read(row), int | float) and least <= value <= most]


class CatalogFilter(RecordFilter):
    """Conditions that an accelerator must meet to be shown in the catalog."""

    kind = CARDS
    query: GpuQuery = GpuQuery()


class NameSearch:
    """Index of the records' search texts, which makes searching fast enough to follow each keystroke."""

    def __init__(self, records: Sequence[SearchableRecord]) -> None:
        self._texts = tuple((record.id, record.search_text, record.kind_words) for record in records)
        self._kinds = frozenset(kind_words for _, _, kind_words in self._texts)

    def ids_containing(self, text: str) -> frozenset[str]:
        """Return the ids of the records that contain every word of `text`, by the rules of the function `select`."""
        found: Sequence[tuple[str, str, frozenset[str]]] = self._texts
        for word in text.lower().split():
            kinds = {kind for kind in self._kinds if has_word(word, "", kind)}  # of which many records have the same
            found = [each for each in found if word in each[1] or each[2] in kinds]
        return frozenset(map(itemgetter(0), found))


@dataclass(frozen=True, slots=True)
class FilterCondition:
    """One active condition: its text, and the filter without this condition."""

    key: str
    words: str
    lifted: RecordFilter


def conditions(current: RecordFilter) -> tuple[FilterCondition, ...]:
    """Return the conditions of `current`, one for each facet value and each bound."""
    parsed = current.parsed
    found = []
    if parsed.words:
        rest = " ".join(bound.words for bound in parsed.bounds)
        found.append(FilterCondition("text", f"“{parsed.words}”", current.with_query(text=rest)))
    found.extend(_search_condition(current, number, bound) for number, bound in enumerate(parsed.bounds))
    for toggle, (words, _) in TOGGLES.items():
        if getattr(current, toggle):
            found.append(FilterCondition(toggle, words, current.evolve(**{toggle: False})))
    for facet in current.kind.facets:
        found.extend(_facet_conditions(current, facet))
    for key, bounds in current.bounds.items():
        words = current.kind.bounds_text(key, bounds.low, bounds.high)
        found.append(FilterCondition(key, words, current.with_bounds(key, None, None)))
    return tuple(found)


TOGGLES: Final = {
    "only_fitting": ("Fits my model", "&Only what fits"),
    "confirmed": ("Confirmed", "Hi&de unverified"),
    "released": ("Not preliminary", "Hide preli&minary"),
}
"""For each switch, by filter field: the name of its condition, and the label of its check box."""

TOGGLE_TIPS: Final = {
    "only_fitting": "Hide hardware on which the plan does not fit",
    "confirmed": "Hide hardware whose figures have only one source, or about which sources disagree",
    "released": "Hide announced products, whose figures may still change",
}
"""Tooltips of the switches, by filter field."""


def grouped_conditions(current: RecordFilter) -> tuple[FilterCondition, ...]:
    """Return the conditions of `current`, with all values of a facet as one condition."""
    found: dict[str, FilterCondition] = {}
    for condition in conditions(current):
        key = condition.key.partition(":")[0]
        known = found.get(key)
        words = f"{known.words} or {condition.words}" if known else condition.words
        found[key] = FilterCondition(key, words, _without_facet(current, key) if known else condition.lifted)
    return tuple(found.values())


def blocking_condition(current: RecordFilter, rows: Sequence[Any], latest: str) -> tuple[FilterCondition, int] | None:
    """Return a condition without which rows match, and their number, or None; the condition `latest` is tried first."""
    candidates = sorted(grouped_conditions(current), key=lambda condition: condition.key != latest)
    counted = ((condition, len(condition.lifted.passing(rows))) for condition in candidates)
    return next(((condition, count) for condition, count in counted if count), None)


def _search_condition(current: RecordFilter, number: int, bound: SearchBound) -> FilterCondition:
    lifted = current.with_query(text=bound.rest)
    return FilterCondition(f"asked-{number}", current.kind.bounds_text(bound.key, bound.low, bound.high), lifted)


def _facet_conditions(current: RecordFilter, facet: str) -> list[FilterCondition]:
    field = current.kind.facets[facet].chosen
    chosen: tuple[str | None, ...] = getattr(current.query, field)
    return [
        FilterCondition(
            f"{facet}:{value}",
            _value_title(current.kind, facet, value),
            current.with_query(**{field: tuple(other for other in chosen if other != value)}),
        )
        for value in chosen
    ]


def _value_title(kind: RecordKind, facet: str, value: str | None) -> str:
    """Return a facet value's name for use without its facet's; an unknown value is named with its facet."""
    words = kind.facet_value_text(facet, value)
    return f"{kind.facets[facet].title} {words}" if value is None else words


def _without_facet(current: RecordFilter, facet: str) -> RecordFilter:
    return current.with_query(**{current.kind.facets[facet].chosen: ()})


def round_stops(values: Sequence[float]) -> tuple[float, ...]:
    """Return round slider stops, spaced by ratio, from below the smallest of `values` to above the largest."""
    known = [value for value in values if value > 0]
    if not known:
        return 0.0, 1.0
    low, high = floor(log10(min(known))), floor(log10(max(known)))
    rounds = [step * 10.0**exponent for exponent in range(low, high + 1) for step in _STEPS] + [10.0 ** (high + 1)]
    first = max(0, bisect_right(rounds, min(known)) - 1)
    return tuple(rounds[first : bisect_left(rounds, max(known)) + 1])
