"""Live memory over a recording, the allocations alive at the peak, and the modules that hold them."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import lru_cache
from itertools import accumulate
from operator import itemgetter
from typing import Final, NamedTuple

from planner.trace.recording import CATEGORIES, NEVER_FREED, Allocations, RecordedPhase, TraceRecording
from planner.trace.result import CategorySeries, LiveAllocationGroup, ModuleShare, PeakMoment


class LiveMemory(NamedTuple):
    """Live bytes after each allocation and free, in order, as columns of equal length.

    Index 0 is before the first event, when nothing is alive yet. `origins` holds the latest allocation, as its index in
    the recording, or None before the first.
    """

    times: tuple[int, ...]
    totals: tuple[int, ...]
    origins: tuple[int | None, ...]

    def peak_index_between(self, start: int, end: int) -> int:
        """Return the index of the event with the most live bytes, from event `start` up to, but excluding, event `end`.

        The earliest of equal events; the event before the range if the range has none.
        """
        first, last = bisect_left(self.times, start), bisect_left(self.times, end)
        if first >= last:
            return max(first - 1, 0)
        return max(range(first, last), key=self.totals.__getitem__)

    def peak_index(self) -> int:
        """Return the index of the event with the most live bytes in the whole run."""
        return max(range(len(self.totals)), key=self.totals.__getitem__)


# A recording with a million allocations takes seconds, and every card that the user looks at needs this result.
@lru_cache(maxsize=2)
def live_memory(allocations: Allocations) -> LiveMemory:
    """Return the live bytes after each allocation and free."""
    made = zip(allocations.made, allocations.bytes, range(len(allocations.bytes)), strict=True)
    freed = zip(allocations.freed, allocations.bytes, strict=True)
    events: list[tuple[int, int, int | None]] = [
        *made,
        *((time, -size, None) for time, size in freed if time != NEVER_FREED),
    ]
    events.sort(key=itemgetter(0))
    origins: list[int | None] = [None]
    for _, _, allocation in events:
        origins.append(origins[-1] if allocation is None else allocation)
    return LiveMemory(
        times=(-1, *(event[0] for event in events)),
        totals=tuple(accumulate((event[1] for event in events), initial=0)),
        origins=tuple(origins),
    )


def alive_at(allocations: Allocations, time: int) -> list[int]:
    """Return the indices of the allocations alive right after the event at `time`."""
    return [
        index
        for index, (made, freed) in enumerate(zip(allocations.made, allocations.freed, strict=True))
        if made <= time and not NEVER_FREED < freed <= time
    ]


def phase_at(spans: tuple[RecordedPhase, ...], time: int) -> RecordedPhase:
    """Return the phase at `time`: the one that began last, or the first phase before any has begun."""
    return spans[max(bisect_right(spans, time, key=lambda span: span.start) - 1, 0)]


class AllocationOrigin(NamedTuple):
    """Operator, module and source line of an allocation; unknown parts are empty."""

    operator: str = ""
    module: str = ""
    line: str = ""

    def __str__(self) -> str:
        """Return `aten.mm in layers.0 at model.py:12`, without the file's folders."""
        within = f" in {self.module}" if self.module else ""
        place = re.split(r"[/\\]", self.line)[-1]
        return f"{self.operator}{within}{f' at {place}' if place else ''}"


def allocation_origin(recording: TraceRecording, index: int | None) -> AllocationOrigin:
    """Return the origin of the allocation at `index`; every part is empty for None."""
    if index is None:
        return AllocationOrigin()
    columns = recording.allocations
    return AllocationOrigin(
        recording.operators[columns.operator[index]],
        recording.module_paths[columns.module[index]],
        recording.lines[columns.line[index]],
    )


_MAX_GROUPS: Final = 200
_OTHER_OPERATORS: Final = "other"

_GroupKey = tuple[int, int, int, int, int]
"""Key of a group of allocations: category, module, operator, line and shape, as indices into the recording's lists."""


def peak_moment(recording: TraceRecording, live: LiveMemory) -> PeakMoment:
    """Return the earliest moment with the most live bytes, and the groups of allocations alive then."""
    index = live.peak_index()
    time = live.times[index]
    span = phase_at(recording.spans, time)
    origin = allocation_origin(recording, live.origins[index])
    return PeakMoment(
        bytes=live.totals[index],
        time=time,
        step=span.step,
        phase=span.name,
        operator=origin.operator,
        module=origin.module,
        line=origin.line,
        alive=_live_groups(recording, alive_at(recording.allocations, time)),
    )


def module_shares(recording: TraceRecording, time: int) -> tuple[ModuleShare, ...]:
    """Return the live bytes of each module, with its submodules, at `time`; the root has an empty path.

    Gradients and optimizer states belong to the module of their parameter, activations to the module that made them.
    """
    live_bytes = _live_bytes_by_path(recording, time)
    parameters = Counter[str]()
    for module in recording.modules:
        for path in _module_and_ancestor_paths(module.path):
            parameters[path] += module.parameters
    return tuple(
        ModuleShare(
            path=module.path,
            class_name=module.class_name,
            parameters=parameters[module.path],
            bytes=live_bytes[module.path].total(),
            shares=tuple(
                CategorySeries(category=category, bytes=(size,))
                for index, category in enumerate(CATEGORIES)
                if (size := live_bytes[module.path][index])
            ),
        )
        for module in recording.modules
    )


def _live_groups(recording: TraceRecording, alive: Iterable[int]) -> tuple[LiveAllocationGroup, ...]:
    """Return live allocations grouped by category and origin, the largest group first."""
    columns = recording.allocations
    keys = list(zip(columns.category, columns.module, columns.operator, columns.line, columns.shape, strict=True))
    sizes, counts = Counter[_GroupKey](), Counter[_GroupKey]()
    for index in alive:
        sizes[keys[index]] += columns.bytes[index]
        counts[keys[index]] += 1
    ordered = sorted(sizes.items(), key=lambda item: -item[1])
    groups = [_live_group(recording, key, size, counts[key]) for key, size in ordered[:_MAX_GROUPS]]
    rest = [key for key, _ in ordered[_MAX_GROUPS:]]
    return (*groups, *_merged_groups(sizes, counts, rest))


def _live_group(recording: TraceRecording, key: _GroupKey, size: int, count: int) -> LiveAllocationGroup:
    """Return the group of `count` allocations with a total of `size` bytes and the origin in `key`."""
    category, module, operator, line, shape = key
    return LiveAllocationGroup(
        bytes=size,
        count=count,
        category=CATEGORIES[category],
        module=recording.module_paths[module],
        operator=recording.operators[operator],
        line=recording.lines[line],
        shape=recording.shapes[shape],
    )


def _merged_groups(
    sizes: Counter[_GroupKey], counts: Counter[_GroupKey], rest: list[_GroupKey]
) -> tuple[LiveAllocationGroup, ...]:
    """Return all groups of `rest` merged into one group per category, so that category totals stay right."""
    by_category: dict[int, list[_GroupKey]] = defaultdict(list)
    for key in rest:
        by_category[key[0]].append(key)
    return tuple(
        LiveAllocationGroup(
            bytes=sum(sizes[key] for key in keys),
            count=sum(counts[key] for key in keys),
            category=CATEGORIES[category],
            module="",
            operator=_OTHER_OPERATORS,
            line="",
            shape="",
        )
        for category, keys in sorted(by_category.items())
    )


def _live_bytes_by_path(recording: TraceRecording, time: int) -> dict[str, Counter[int]]:
    """Return the live bytes at `time` by module path and, within it, by category."""
    columns = recording.allocations
    by_module: dict[int, Counter[int]] = defaultdict(Counter)
    for index in alive_at(columns, time):
        by_module[columns.module[index]][columns.category[index]] += columns.bytes[index]
    by_path: dict[str, Counter[int]] = defaultdict(Counter)
    for module, sizes in by_module.items():
        for path in _module_and_ancestor_paths(recording.module_paths[module]):
            by_path[path].update(sizes)
    return by_path


def _module_and_ancestor_paths(path: str) -> tuple[str, ...]:
    """Return the paths from the root to the module at `path`, inclusive: `""`, `"a"`, `"a.b"`."""
    return ("", *accumulate(path.split("."), "{}.{}".format)) if path else ("",)
