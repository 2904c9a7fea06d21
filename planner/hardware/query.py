"""Filtering and sorting accelerators; the window and the command line both use it."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Final, Literal

from pydantic import Field, field_validator

from planner.base import Spec
from planner.errors import SpecError
from planner.hardware.expression import parse_expression
from planner.hardware.fields import JUDGED_FIELDS, PRICE_WORDS, QUERY_FIELDS, Fits, Known, Prices, QueryField, Value
from planner.hardware.gpu import Gpu, Segment, Vendor

__all__ = ["FACETS", "QUERY_FIELDS", "Facet", "GpuQuery", "QueryField", "facet_counts", "select", "used_words"]

Facet = Literal["vendor", "segment", "architecture"]

FACETS: Final[tuple[Facet, ...]] = ("vendor", "segment", "architecture")


class GpuQuery(Spec):
    """What to look for. Everything that is set must hold; an empty query finds everything in the catalog's order.

    A bad expression or sort key raises SpecError when the query is made.
    """

    text: str = Field(default="", description="words that name, alias, vendor or architecture must contain")
    vendors: tuple[Vendor, ...] = ()
    segments: tuple[Segment, ...] = ()
    architectures: tuple[str, ...] = ()
    memory_min_bytes: int | None = Field(default=None, ge=0)
    memory_max_bytes: int | None = Field(default=None, ge=0)
    year_min: int | None = None
    year_max: int | None = None
    where: str = Field(default="", description='such as memory_gib >= 24 and vendor == "NVIDIA"')
    sort: tuple[str, ...] = Field(default=(), description="query words, - before one for descending")

    @field_validator("where")
    @classmethod
    def _parses(cls, text: str) -> str:
        if text.strip():
            parse_expression(text)
        return text

    @field_validator("sort")
    @classmethod
    def _sorts_by_fields(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        for key in keys:
            if key.removeprefix("-") not in QUERY_FIELDS:
                hint = f"Fields: {' '.join(QUERY_FIELDS)}; - before one for descending."
                raise SpecError("sort", f"there is no field {key.removeprefix('-')!r}", hint=hint)
        return keys


def select(
    records: Iterable[Gpu], query: GpuQuery, fits: Fits | None = None, prices: Prices | None = None
) -> tuple[Gpu, ...]:
    """Return the records that pass `query`, sorted.

    `fits` says what a plan comes to on each card, by its id, `prices` what it is sold and rented for by price word.

    Unknown values, and those without an order, come last both ways; equal records stay in their order.

    Raises:
        SpecError: If the query uses a word that needs a plan, or prices, and `fits` or `prices` is not given.
    """
    known = _known(query, fits, prices)
    named = _with_words(records, query.text)
    found = _passing(named, (*_common_tests(query, known), *_facet_tests(query).values()))
    for key in reversed(query.sort):
        found = _sorted(found, QUERY_FIELDS[key.removeprefix("-")], key.startswith("-"), known)
    return tuple(found)


def facet_counts(
    records: Iterable[Gpu], query: GpuQuery, fits: Fits | None = None, prices: Prices | None = None
) -> Mapping[Facet, Mapping[str, int]]:
    """Return how many records each value of a facet would show, as if nothing were chosen in that facet itself.

    Raises:
        SpecError: If the query uses a word that needs a plan, or prices, and `fits` or `prices` is not given.
    """
    found = _passing(_with_words(records, query.text), _common_tests(query, _known(query, fits, prices)))
    chosen = _facet_tests(query)
    counts: dict[Facet, Mapping[str, int]] = {}
    for facet in FACETS:
        others = [test for name, test in chosen.items() if name != facet]
        counts[facet] = Counter(getattr(gpu, facet) for gpu in _passing(found, others))
    return counts


_Test = Callable[[Gpu], bool]


def used_words(query: GpuQuery) -> frozenset[str]:
    """Return the words that the query filters or sorts by."""
    used = {key.removeprefix("-") for key in query.sort}
    return frozenset(used | parse_expression(query.where).fields if query.where.strip() else used)


def _known(query: GpuQuery, fits: Fits | None, prices: Prices | None) -> Known:
    used = used_words(query)
    if fits is None and (words := used.intersection(JUDGED_FIELDS)):
        raise SpecError(min(words), "needs a model to judge by", hint=f"Name a model, or leave `{min(words)}` out.")
    if prices is None and (words := used & PRICE_WORDS.keys()):
        raise SpecError(min(words), "needs the prices of cards", hint="`price`, at launch, is known without them.")
    return Known(fits or {}, prices or {})


def _passing(records: Iterable[Gpu], tests: Sequence[_Test]) -> list[Gpu]:
    found = list(records)
    for test in tests:
        found = [gpu for gpu in found if test(gpu)]
    return found


def _common_tests(query: GpuQuery, known: Known) -> list[_Test]:
    tests: list[_Test] = []
    if query.memory_min_bytes is not None or query.memory_max_bytes is not None:
        tests.append(_between(lambda gpu: gpu.memory_bytes, query.memory_min_bytes, query.memory_max_bytes))
    if query.year_min is not None or query.year_max is not None:
        tests.append(_between(lambda gpu: gpu.year, query.year_min, query.year_max))
    if query.where.strip():
        passes = parse_expression(query.where).test
        tests.append(lambda gpu: passes(gpu, known) is True)
    return tests


def _facet_tests(query: GpuQuery) -> dict[Facet, _Test]:
    tests: dict[Facet, _Test] = {}
    if vendors := frozenset(query.vendors):
        tests["vendor"] = lambda gpu: gpu.vendor in vendors
    if segments := frozenset(query.segments):
        tests["segment"] = lambda gpu: gpu.segment in segments
    if architectures := frozenset(query.architectures):
        tests["architecture"] = lambda gpu: gpu.architecture in architectures
    return tests


def _with_words(records: Iterable[Gpu], text: str) -> list[Gpu]:
    """Return the records whose text has every word; a plain loop, since this runs with every letter typed."""
    found = list(records)
    for word in text.lower().split():
        found = [gpu for gpu in found if word in gpu.search_text]
    return found


def _between(read: Callable[[Gpu], int | None], low: int | None, high: int | None) -> _Test:
    def test(gpu: Gpu) -> bool:
        value = read(gpu)
        return value is not None and (low is None or value >= low) and (high is None or value <= high)

    return test


def _sorted(records: list[Gpu], field: QueryField, descending: bool, known: Known) -> list[Gpu]:
    keyed = [(_order(field, field.read(gpu, known)), gpu) for gpu in records]
    placed = [pair for pair in keyed if pair[0] is not None]
    placed.sort(key=itemgetter(0), reverse=descending)
    return [gpu for _, gpu in placed] + [gpu for key, gpu in keyed if key is None]


def _order(field: QueryField, value: Value) -> Value:
    """Return what `value` sorts by: text without regard to case, and no place for what is not a version."""
    if not isinstance(value, str):
        return value
    return None if field.kind == "version" else value.lower()
