"""What the catalog is narrowed to, as a value: conditions that can be named, counted and lifted one by one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

from planner.base import Spec
from planner.hardware.gpu import Gpu
from planner.hardware.query import Facet, GpuQuery, facet_counts, select
from planner.present import format as fmt
from planner.present.gpus import SEGMENT_WORDS, GpuRow

FACET_FIELDS: Final[dict[Facet, str]] = {
    "vendor": "vendors",
    "segment": "segments",
    "architecture": "architectures",
}
FACET_TITLES: Final[dict[Facet, str]] = {"vendor": "Vendor", "segment": "Segment", "architecture": "Architecture"}
_FITTING: Final = ("fits", "tight")


class CatalogFilter(Spec):
    """A query, and whether only cards that the plan fits on are shown."""

    query: GpuQuery = GpuQuery()
    only_fitting: bool = False

    def with_query(self, **changes: object) -> "CatalogFilter":
        """Return this filter with fields of its query changed."""
        return self.evolve(query=self.query.evolve(**changes))

    def passing(self, rows: Sequence[GpuRow]) -> frozenset[str]:
        """Return the ids of the rows that pass."""
        return frozenset(gpu.id for gpu in select([row.gpu for row in self._candidates(rows)], self.query))

    def counts(self, rows: Sequence[GpuRow]) -> Mapping[Facet, Mapping[str, int]]:
        """Return how many rows each value of a facet would show."""
        return facet_counts([row.gpu for row in self._candidates(rows)], self.query)

    def _candidates(self, rows: Sequence[GpuRow]) -> Sequence[GpuRow]:
        return [row for row in rows if row.verdict in _FITTING] if self.only_fitting else rows


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
    """Return what `current` asks for, each value of a facet by itself."""
    query = current.query
    found = []
    if query.text.strip():
        found.append(Condition("text", f"“{query.text.strip()}”", current.with_query(text="")))
    if current.only_fitting:
        found.append(Condition("fits", "Fits my model", current.evolve(only_fitting=False)))
    for facet in FACET_FIELDS:
        found.extend(_facet_conditions(current, facet))
    memory = range_words(query.memory_min_bytes, query.memory_max_bytes, fmt.size)
    if memory:
        lifted = current.with_query(memory_min_bytes=None, memory_max_bytes=None)
        found.append(Condition("memory", f"Memory {memory}", lifted))
    years = range_words(query.year_min, query.year_max, str)
    if years:
        found.append(Condition("year", f"Year {years}", current.with_query(year_min=None, year_max=None)))
    return tuple(found)


def groups(current: CatalogFilter) -> tuple[Condition, ...]:
    """Return what `current` asks for, all values of a facet as one."""
    found: dict[str, Condition] = {}
    for condition in conditions(current):
        key = condition.key.partition(":")[0]
        known = found.get(key)
        words = f"{known.words} or {condition.words}" if known else condition.words
        found[key] = Condition(key, words, _without(current, key) if known else condition.lifted)
    return tuple(found.values())


def facet_words(facet: Facet, value: str) -> str:
    """Return how a facet's value is called."""
    return SEGMENT_WORDS[value] if facet == "segment" else value


def range_words(low: int | None, high: int | None, show: Callable[[int], str]) -> str:
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
