"""Schema of catalog queries: the fields that can be filtered and sorted by, and the facets that are counted."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final, Generic, Literal, Protocol, TypeVar

from planner.validation import close_names

Kind = Literal["text", "number", "flag", "version"]
Value = str | float | bool | tuple[int, ...] | None
Prices = Mapping[str, Mapping[str, float]]
_SUGGESTIONS: Final = 3
_FEWEST_LETTERS: Final = 4
_VERSION: Final = re.compile(r"\d+(\.\d+)*")


class SearchableRecord(Protocol):
    """A record that queries can search."""

    @property
    def id(self) -> str:
        """Return the unique id."""

    @property
    def search_text(self) -> str:
        """Return the text that a search matches, in lower case."""

    @property
    def kind_words(self) -> frozenset[str]:
        """Return the words for the record's kind that a search finds, too."""


AnyRecord = TypeVar("AnyRecord", bound=SearchableRecord)


@dataclass(frozen=True, slots=True)
class PlanOutcome:
    """The plan's result on one catalog record: verdict, hours and cost of the job; an unknown figure is None."""

    verdict: str | None = None
    hours: float | None = None
    job_cost_usd: float | None = None
    usd_per_million_tokens: float | None = None


PlanOutcomes = Mapping[str, PlanOutcome]
"""The plan's result on each catalog record, by record id."""
_UNKNOWN_OUTCOME: Final = PlanOutcome()


@dataclass(frozen=True)
class QueryContext:
    """Data for queries beyond the records, by record id: the plan's results, and prices in USD by query field."""

    fits: PlanOutcomes = field(default_factory=dict)
    prices: Prices = field(default_factory=dict)

    def outcome_of(self, record: SearchableRecord) -> PlanOutcome:
        """Return the plan's result on `record`; all its figures are None if the plan was not evaluated on it."""
        return self.fits.get(record.id, _UNKNOWN_OUTCOME)

    def price(self, record: SearchableRecord, word: str) -> float | None:
        """Return the price of `record` in the query field `word`, in USD, or None if unknown."""
        return self.prices.get(record.id, {}).get(word)


@dataclass(frozen=True)
class QueryField(Generic[AnyRecord]):
    """A field of the query language; `read` returns its value for a record, or None if unknown."""

    name: str
    title: str
    unit: str
    help: str
    kind: Kind
    read: Callable[[AnyRecord, QueryContext], Value]


class FieldFactory(Generic[AnyRecord]):
    """Factory of the query fields of one kind of record; `read` is a function, or the dotted name of an attribute."""

    def text(
        self, name: str, title: str, help_text: str, read: str | Callable[[AnyRecord], str | None]
    ) -> QueryField[AnyRecord]:
        """Return a query field with text."""
        reader = _attribute_reader(read)
        return QueryField(name, title, "", help_text, "text", lambda record, _: reader(record))

    def flag(
        self, name: str, title: str, help_text: str, read: str | Callable[[AnyRecord], bool | None]
    ) -> QueryField[AnyRecord]:
        """Return a query field that is true or false."""
        reader = _attribute_reader(read)
        return QueryField(name, title, "", help_text, "flag", lambda record, _: reader(record))

    def number(
        self,
        name: str,
        title: str,
        unit: str,
        help_text: str,
        read: str | Callable[[AnyRecord], float | None],
        per: float = 1,
    ) -> QueryField[AnyRecord]:
        """Return a query field with a number; one `unit` is `per` of the units in which `read` returns it."""
        reader = _attribute_reader(read)

        def read_scaled(record: AnyRecord, _: QueryContext) -> Value:
            value: float | None = reader(record)
            return value if value is None or per == 1 else value / per

        return QueryField(name, title, unit, help_text, "number", read_scaled)

    def price(self, name: str, title: str, help_text: str) -> QueryField[AnyRecord]:
        """Return the query field of a price that is not part of the record."""
        return QueryField(name, title, "USD", help_text, "number", lambda record, context: context.price(record, name))

    def verdict(self) -> QueryField[AnyRecord]:
        """Return the query field of the plan's verdict."""
        help_text = "the plan's verdict: fits, tight or does-not-fit"
        return QueryField(
            "fits", "Fits", "", help_text, "text", lambda record, context: context.outcome_of(record).verdict
        )

    def outcome(
        self, name: str, title: str, unit: str, help_text: str, read: str | Callable[[PlanOutcome], float | None]
    ) -> QueryField[AnyRecord]:
        """Return a query field with a number from the plan's result on a record."""
        reader = _attribute_reader(read)
        return QueryField(
            name, title, unit, help_text, "number", lambda record, context: reader(context.outcome_of(record))
        )


def _attribute_reader(read: str | Callable[[Any], Any]) -> Callable[[Any], Any]:
    return attrgetter(read) if isinstance(read, str) else read


@dataclass(frozen=True)
class Facet(Generic[AnyRecord]):
    """A field whose values are counted for filters; `chosen` is the query attribute that holds the selected values."""

    name: str
    title: str
    chosen: str
    read: Callable[[AnyRecord], str | None]


@dataclass(frozen=True, eq=False)
class QuerySchema(Generic[AnyRecord]):
    """The query fields and facets of one kind of record, called `noun`.

    `plan_fields` are the fields that need a plan, `price_fields` the fields that need prices. Schemas compare by
    identity, so that parsed expressions can be cached by schema.
    """

    noun: str
    fields: Mapping[str, QueryField[AnyRecord]]
    facets: Mapping[str, Facet[AnyRecord]]
    plan_fields: tuple[str, ...]
    price_fields: tuple[str, ...]

    def unknown_field_hint(self, word: str) -> str:
        """Return the hint for an error about the unknown field `word`: similar field names, and all fields."""
        parts = [name for name in self.fields if word in name.split("_") or name in word.split("_")]
        alike = tuple(dict.fromkeys((*close_names(word, self.fields, _SUGGESTIONS), *parts)))[:_SUGGESTIONS]
        meant = f"Did you mean {' or '.join(alike)}? " if alike else ""
        return f"{meant}Fields of {self.noun}: {' '.join(self.fields)}."


def has_word(word: str, text: str, kind_words: frozenset[str]) -> bool:
    """Return whether the typed `word`, in lower case, is in `text`, is one of `kind_words`, or starts one of them.

    Fewer than four letters start no word: M4 and Max are names.
    """
    return (
        word in text
        or word in kind_words
        or (len(word) >= _FEWEST_LETTERS and any(each.startswith(word) for each in kind_words))
    )


def parse_version(text: str) -> tuple[int, ...] | None:
    """Parse a version such as "8.9" into comparable numbers; None for other text ("gfx942")."""
    if not _VERSION.fullmatch(text):
        return None
    parts = tuple(int(part) for part in text.split("."))
    return parts if len(parts) > 1 else (*parts, 0)
