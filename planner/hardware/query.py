"""Filtering, sorting and counting of catalog records, shared by the window and the command line."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, ClassVar

from pydantic import Field, field_validator

from planner.base import Spec
from planner.errors import SpecError
from planner.hardware.expression import parse_expression
from planner.hardware.gpu import Gpu, Segment, Vendor
from planner.hardware.query_fields import GPU_QUERY_FIELDS, GPU_QUERY_SCHEMA, SYSTEM_QUERY_SCHEMA
from planner.hardware.query_schema import (
    AnyRecord,
    PlanOutcomes,
    Prices,
    QueryContext,
    QueryField,
    QuerySchema,
    Value,
    has_word,
)
from planner.hardware.system import PriceKind, SystemKind, Topology

__all__ = ["GPU_QUERY_FIELDS", "CatalogQuery", "GpuQuery", "QueryField", "facet_counts", "select", "used_fields"]

_Test = Callable[[Any], bool]


class CatalogQuery(Spec):
    """Filter and sort order of catalog records; an empty query selects all records in the catalog's order.

    All conditions must hold. A subclass for each kind of record defines its schema in `words` and an attribute for the
    selected values of each facet. An invalid expression or sort key raises SpecError when the query is created.
    """

    words: ClassVar[QuerySchema[Any]]
    text: str = Field(default="", description="words that must occur in name, aliases, vendor, architecture or kind")
    where: str = Field(default="", description='expression such as memory_gib >= 24 and vendor == "NVIDIA"')
    sort: tuple[str, ...] = Field(default=(), description="fields to sort by; a leading - sorts descending")

    @field_validator("where")
    @classmethod
    def _check_expression(cls, text: str) -> str:
        if text.strip():
            parse_expression(text, cls.words)
        return text

    @field_validator("sort")
    @classmethod
    def _check_sort_keys(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        for key in keys:
            word = key.removeprefix("-")
            if word not in cls.words.fields:
                hint = f"{cls.words.unknown_field_hint(word)} A leading - sorts descending."
                raise SpecError("sort", f"there is no field {word!r}", hint=hint)
        return keys

    def range_tests(self) -> list[_Test]:
        """Return a test for each range in the query, such as of release years; the base class has none."""
        return []


class GpuQuery(CatalogQuery):
    """A search for accelerators: words, an expression, filters, and the order of the results."""

    words = GPU_QUERY_SCHEMA
    vendors: tuple[Vendor, ...] = ()
    segments: tuple[Segment, ...] = ()
    architectures: tuple[str, ...] = ()
    memory_min_bytes: int | None = Field(default=None, ge=0)
    memory_max_bytes: int | None = Field(default=None, ge=0)
    year_min: int | None = None
    year_max: int | None = None

    def range_tests(self) -> list[_Test]:
        """Return the tests that memory and release year lie in the ranges of the query."""
        ranges: tuple[tuple[Callable[[Gpu], int | None], int | None, int | None], ...] = (
            (lambda gpu: gpu.memory_bytes, self.memory_min_bytes, self.memory_max_bytes),
            (lambda gpu: gpu.year, self.year_min, self.year_max),
        )
        return [_range_test(read, low, high) for read, low, high in ranges if low is not None or high is not None]


class SystemQuery(CatalogQuery):
    """A search for whole systems; None among the values of a filter matches systems whose value is unknown."""

    words = SYSTEM_QUERY_SCHEMA
    vendors: tuple[str, ...] = ()
    kinds: tuple[SystemKind, ...] = ()
    price_kinds: tuple[PriceKind | None, ...] = ()
    topologies: tuple[Topology | None, ...] = ()
    architectures: tuple[str | None, ...] = ()


def select(
    records: Iterable[AnyRecord], query: CatalogQuery, fits: PlanOutcomes | None = None, prices: Prices | None = None
) -> tuple[AnyRecord, ...]:
    """Return the accelerators or systems that match `query`, sorted.

    `fits` are the plan's results and `prices` the prices by field, both by record id.

    Unknown and unordered values sort last in both directions; the sort is stable.

    Raises:
        SpecError: If the query uses a field that needs `fits` or `prices`, which is None.
    """
    known = _query_context(query, fits, prices)
    named = _records_with_words(records, query.text)
    found = _passing_records(named, (*_common_tests(query, known), *_facet_tests(query).values()))
    for key in reversed(query.sort):
        found = _sorted_records(found, query.words.fields[key.removeprefix("-")], key.startswith("-"), known)
    return tuple(found)


def facet_counts(records: Iterable[AnyRecord], query: CatalogQuery) -> Mapping[str, Mapping[str | None, int]]:
    """Return the number of matching records per value of each facet, ignoring the selection in that facet.

    Records with an unknown value count under None.

    Raises:
        SpecError: If the query uses a field that needs a plan or prices.
    """
    tests = _common_tests(query, _query_context(query, None, None))
    found = _passing_records(_records_with_words(records, query.text), tests)
    chosen = _facet_tests(query)
    counts: dict[str, Mapping[str | None, int]] = {}
    for name, facet in query.words.facets.items():
        others = [test for other, test in chosen.items() if other != name]
        counts[name] = Counter(map(facet.read, _passing_records(found, others)))
    return counts


def used_fields(query: CatalogQuery) -> frozenset[str]:
    """Return the names of the fields that the query filters or sorts by."""
    used = {key.removeprefix("-") for key in query.sort}
    return frozenset(used | parse_expression(query.where, query.words).fields if query.where.strip() else used)


def _query_context(query: CatalogQuery, fits: PlanOutcomes | None, prices: Prices | None) -> QueryContext:
    """Return the data that `query` needs beyond the records; missing plan results or prices are an error."""
    used = used_fields(query)
    if fits is None and (words := used.intersection(query.words.plan_fields)):
        raise SpecError(min(words), "needs a model", hint=f"Name a model, or remove `{min(words)}`.")
    if prices is None and (words := used.intersection(query.words.price_fields)):
        reason = f"needs the prices of {query.words.noun}"
        raise SpecError(min(words), reason, hint="`price` works without them.")
    return QueryContext(fits or {}, prices or {})


def _passing_records(records: Iterable[AnyRecord], tests: Sequence[_Test]) -> list[AnyRecord]:
    found = list(records)
    for test in tests:
        found = [record for record in found if test(record)]
    return found


def _common_tests(query: CatalogQuery, context: QueryContext) -> list[_Test]:
    """Return the tests of a query's ranges and expression, which apply to all facets."""
    tests = query.range_tests()
    if query.where.strip():
        passes = parse_expression(query.where, query.words).test
        tests.append(lambda record: passes(record, context) is True)
    return tests


def _facet_tests(query: CatalogQuery) -> dict[str, _Test]:
    chosen = {name: (frozenset(getattr(query, each.chosen)), each.read) for name, each in query.words.facets.items()}
    return {name: _membership_test(values, read) for name, (values, read) in chosen.items() if values}


def _membership_test(values: frozenset[str | None], read: Callable[[Any], str | None]) -> _Test:
    return lambda record: read(record) in values


def _records_with_words(records: Iterable[AnyRecord], text: str) -> list[AnyRecord]:
    """Return the records whose search text or kind has every word in `text`."""
    found = list(records)
    for word in text.lower().split():
        found = [record for record in found if has_word(word, record.search_text, record.kind_words)]
    return found


def _range_test(read: Callable[[Gpu], int | None], low: int | None, high: int | None) -> _Test:
    """Return a test that the number read from a card lies from `low` to `high`; None is no limit."""

    def is_in_range(gpu: Gpu) -> bool:
        value = read(gpu)
        return value is not None and (low is None or value >= low) and (high is None or value <= high)

    return is_in_range


def _sorted_records(
    records: list[AnyRecord], field: QueryField[AnyRecord], descending: bool, context: QueryContext
) -> list[AnyRecord]:
    keyed = [(_sort_key(field, field.read(record, context)), record) for record in records]
    placed = [pair for pair in keyed if pair[0] is not None]
    placed.sort(key=itemgetter(0), reverse=descending)
    return [record for _, record in placed] + [record for key, record in keyed if key is None]


def _sort_key(field: QueryField[AnyRecord], value: Value) -> Value:
    """Return the sort key of `value`: text in lower case; None for text in a version field."""
    if not isinstance(value, str):
        return value
    return None if field.kind == "version" else value.lower()
