"""Schema of catalog queries: the fields that can be filtered and sorted by, and the facets that are counted."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, Literal, Protocol, TypeVar

Kind = Literal["text", "number", "flag", "version"]
Value = str | float | bool | tuple[int, ...] | None
Prices = Mapping[str, Mapping[str, float]]
_SUGGESTIONS: Final = 3
_VERSION: Final = re.compile(r"\d+(\.\d+)*")


class SearchableRecord(Protocol):
    """A record that queries can search."""

    @property
    def id(self) -> str:
        """Return the unique id."""

    @property
    def search_text(self) -> str:
        """Return the text that a search matches, in lower case."""


AnyRecord = TypeVar("AnyRecord", bound=SearchableRecord)


@dataclass(frozen=True, slots=True)
class PlanOutcome:
    """The plan's result on one record: verdict, hours and cost of the job; None where unknown."""

    verdict: str | None = None
    hours: float | None = None
    job_cost_usd: float | None = None
    usd_per_million_tokens: float | None = None


PlanOutcomes = Mapping[str, PlanOutcome]
"""The plan's result on each record, by record id."""
_NOT_JUDGED: Final = PlanOutcome()


@dataclass(frozen=True)
class QueryContext:
    """Data outside the records, by record id: the plan's results, and prices in USD by query field."""

    fits: PlanOutcomes = field(default_factory=dict)
    prices: Prices = field(default_factory=dict)

    def judged(self, record: SearchableRecord) -> PlanOutcome:
        """Return the plan's result on a record, with unknown figures if the record was not evaluated."""
        return self.fits.get(record.id, _NOT_JUDGED)

    def price(self, record: SearchableRecord, word: str) -> float | None:
        """Return the price of a record in the field `word`, or None if unknown."""
        return self.prices.get(record.id, {}).get(word)


@dataclass(frozen=True)
class QueryField(Generic[AnyRecord]):
    """A field of the query language; `read` returns None where the figure is unknown."""

    name: str
    title: str
    unit: str
    help: str
    kind: Kind
    read: Callable[[AnyRecord, QueryContext], Value]


class FieldFactory(Generic[AnyRecord]):
    """Factory of the query fields of one kind of record."""

    def text(self, name: str, title: str, said: str, read: Callable[[AnyRecord], str | None]) -> QueryField[AnyRecord]:
        """Return a text field."""
        return QueryField(name, title, "", said, "text", lambda record, _: read(record))

    def flag(self, name: str, title: str, said: str, read: Callable[[AnyRecord], bool | None]) -> QueryField[AnyRecord]:
        """Return a field that is true or false."""
        return QueryField(name, title, "", said, "flag", lambda record, _: read(record))

    def number(
        self, name: str, title: str, unit: str, said: str, read: Callable[[AnyRecord], float | None], per: float = 1
    ) -> QueryField[AnyRecord]:
        """Return a number field that is read in base units and shown in `unit`, which is `per` base units."""

        def scaled(record: AnyRecord, _: QueryContext) -> Value:
            value = read(record)
            return value if value is None or per == 1 else value / per

        return QueryField(name, title, unit, said, "number", scaled)

    def price(self, name: str, title: str, said: str) -> QueryField[AnyRecord]:
        """Return the field of a price that is not part of the record."""
        return QueryField(name, title, "USD", said, "number", lambda record, known: known.price(record, name))

    def verdict(self) -> QueryField[AnyRecord]:
        """Return the field of the plan's verdict."""
        said = "the plan's verdict: fits, tight or does-not-fit"
        return QueryField("fits", "Fits", "", said, "text", lambda record, known: known.judged(record).verdict)

    def judged(
        self, name: str, title: str, unit: str, said: str, read: Callable[[PlanOutcome], float | None]
    ) -> QueryField[AnyRecord]:
        """Return the field of a figure of the plan's result."""
        return QueryField(name, title, unit, said, "number", lambda record, known: read(known.judged(record)))


@dataclass(frozen=True)
class Facet(Generic[AnyRecord]):
    """A field whose values are counted for filters; `chosen` is the attribute of a query with the selected values."""

    name: str
    title: str
    chosen: str
    read: Callable[[AnyRecord], str | None]


@dataclass(frozen=True, eq=False)
class QuerySchema(Generic[AnyRecord]):
    """The query fields and facets of one kind of record, called `noun`.

    `judged` are the fields that need a plan, `priced` those that need prices. Schemas compare by identity, so that
    parsed expressions can be cached by schema.
    """

    noun: str
    fields: Mapping[str, QueryField[AnyRecord]]
    facets: Mapping[str, Facet[AnyRecord]]
    judged: tuple[str, ...]
    priced: tuple[str, ...]

    def missing(self, word: str) -> str:
        """Return the hint for an unknown field: similar names, and the list of all fields."""
        from difflib import get_close_matches  # 2 ms to import at every start, and rarely needed

        parts = [name for name in self.fields if word in name.split("_") or name in word.split("_")]
        alike = tuple(dict.fromkeys((*get_close_matches(word, self.fields, _SUGGESTIONS), *parts)))[:_SUGGESTIONS]
        meant = f" Did you mean {' or '.join(alike)}?" if alike else ""
        return f"There is no {word!r} of {self.noun}.{meant} Fields: {' '.join(self.fields)}."


def parse_version(text: str) -> tuple[int, ...] | None:
    """Parse a version such as "8.9" into comparable numbers; None for other text ("gfx942")."""
    if not _VERSION.fullmatch(text):
        return None
    parts = tuple(int(part) for part in text.split("."))
    return parts if len(parts) > 1 else (*parts, 0)
