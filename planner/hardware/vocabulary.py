"""What queries know of one kind of record: the words for its figures, and the facets that it is counted by."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, Literal, Protocol, TypeVar

Kind = Literal["text", "number", "flag", "version"]
Value = str | float | bool | tuple[int, ...] | None
Prices = Mapping[str, Mapping[str, float]]
_SUGGESTIONS: Final = 3
_VERSION: Final = re.compile(r"\d+(\.\d+)*")


class Record(Protocol):
    """A record that is found by words."""

    @property
    def id(self) -> str:
        """Return the name that no other record has."""

    @property
    def search_text(self) -> str:
        """Return what a word search looks at, in lower case."""


AnyRecord = TypeVar("AnyRecord", bound=Record)


@dataclass(frozen=True, slots=True)
class Judged:
    """What a plan comes to on one record: its verdict, and what its job takes and costs there; none where not known."""

    verdict: str | None = None
    hours: float | None = None
    job_cost_usd: float | None = None
    usd_per_million_tokens: float | None = None


Fits = Mapping[str, Judged]
"""What a plan comes to on each record, by the record's id."""
_NOT_JUDGED: Final = Judged()


@dataclass(frozen=True)
class Known:
    """What is known beside the records, by id: what the plan comes to, and prices by their word, in USD."""

    fits: Fits = field(default_factory=dict)
    prices: Prices = field(default_factory=dict)

    def judged(self, record: Record) -> Judged:
        """Return what the plan comes to on a record; nothing of it is known of one that was not judged."""
        return self.fits.get(record.id, _NOT_JUDGED)

    def price(self, record: Record, word: str) -> float | None:
        """Return the price of a record that `word` stands for, none where it is not known."""
        return self.prices.get(record.id, {}).get(word)


@dataclass(frozen=True)
class QueryField(Generic[AnyRecord]):
    """One word of the query language; `read` gives None where the figure is unknown."""

    name: str
    title: str
    unit: str
    help: str
    kind: Kind
    read: Callable[[AnyRecord, Known], Value]


class FieldFactory(Generic[AnyRecord]):
    """Declares the words of one kind of record."""

    def text(self, name: str, title: str, said: str, read: Callable[[AnyRecord], str | None]) -> QueryField[AnyRecord]:
        """Return a word of text."""
        return QueryField(name, title, "", said, "text", lambda record, _: read(record))

    def flag(self, name: str, title: str, said: str, read: Callable[[AnyRecord], bool | None]) -> QueryField[AnyRecord]:
        """Return a word that is true or false."""
        return QueryField(name, title, "", said, "flag", lambda record, _: read(record))

    def number(
        self, name: str, title: str, unit: str, said: str, read: Callable[[AnyRecord], float | None], per: float = 1
    ) -> QueryField[AnyRecord]:
        """Return a word of a number, read in base units and told in `unit`, of which one is `per` of those."""

        def scaled(record: AnyRecord, _: Known) -> Value:
            value = read(record)
            return value if value is None or per == 1 else value / per

        return QueryField(name, title, unit, said, "number", scaled)

    def price(self, name: str, title: str, said: str) -> QueryField[AnyRecord]:
        """Return the word of a price that is not in a record."""
        return QueryField(name, title, "USD", said, "number", lambda record, known: known.price(record, name))

    def verdict(self) -> QueryField[AnyRecord]:
        """Return the word of the plan's verdict."""
        said = "the plan's verdict: fits, tight or does-not-fit"
        return QueryField("fits", "Fits", "", said, "text", lambda record, known: known.judged(record).verdict)

    def judged(
        self, name: str, title: str, unit: str, said: str, read: Callable[[Judged], float | None]
    ) -> QueryField[AnyRecord]:
        """Return the word of a figure of the plan."""
        return QueryField(name, title, unit, said, "number", lambda record, known: read(known.judged(record)))


@dataclass(frozen=True)
class Facet(Generic[AnyRecord]):
    """A word whose values are counted and chosen from; `chosen` is the field of a query that holds the chosen ones."""

    name: str
    title: str
    chosen: str
    read: Callable[[AnyRecord], str | None]


@dataclass(frozen=True, eq=False)
class Vocabulary(Generic[AnyRecord]):
    """The words and the facets of one kind of record, called `noun`.

    `judged` are the words that need a plan, `priced` those that need prices. Two vocabularies are equal only if they
    are the same object, so that what was parsed may be kept by it.
    """

    noun: str
    fields: Mapping[str, QueryField[AnyRecord]]
    facets: Mapping[str, Facet[AnyRecord]]
    judged: tuple[str, ...]
    priced: tuple[str, ...]

    def missing(self, word: str) -> str:
        """Return what to say of a word that is none of these: which are spelt alike, and which there are."""
        from difflib import get_close_matches  # 2 ms to load, at every start, and seldom needed

        parts = [name for name in self.fields if word in name.split("_") or name in word.split("_")]
        alike = tuple(dict.fromkeys((*get_close_matches(word, self.fields, _SUGGESTIONS), *parts)))[:_SUGGESTIONS]
        meant = f" Did you mean {' or '.join(alike)}?" if alike else ""
        return f"There is no {word!r} of {self.noun}.{meant} Fields: {' '.join(self.fields)}."


def parse_version(text: str) -> tuple[int, ...] | None:
    """Return a version such as "8.9" as numbers that compare, or None for anything else ("gfx942")."""
    if not _VERSION.fullmatch(text):
        return None
    parts = tuple(int(part) for part in text.split("."))
    return parts if len(parts) > 1 else (*parts, 0)
