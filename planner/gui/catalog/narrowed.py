"""What records of one kind can be narrowed by, and how it is called: declared once for each kind."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from planner.hardware.vocabulary import Facet, Vocabulary
from planner.present import format as fmt
from planner.present.columns import Column

_MONEY: Final = frozenset(("price", "street", "used", "rent"))


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
