"""Live memory over a recording, the allocations alive at the peak, and the modules that hold them."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import lru_cache
from itertools import accumulate
from operator import itemgetter
from typing import Final, NamedTuple

from planner.trace.facts import CATEGORIES
from planner.trace.recording import NEVER_FREED, Allocations, Span, TraceRecording
from planner.trace.result import CategorySeries, LiveGroup, ModuleShare, PeakMoment


class LiveMemory(NamedTuple):
    """Live bytes after each event, in order, as columns.

    Index 0 is before the first event, when nothing is alive yet. `origins` holds the latest allocation, as its index in
    the recording, or None before the first.
    """

    times: tuple[int, ...]
    totals: tuple[int, ...]
    origins: tuple[int | None, ...]

    def highest(self, start: int, end: int) -> int:
        """Return the index of the most live bytes among the events from `start` up to, but excluding, `end`.

        The earliest of equals; the preceding event if there is none in the range.
        """
        first, last = bisect_left(self.times, start), bisect_left(self.times, end)
        if first >= last:
            return max(first - 1, 0)
        return max(range(first, last), key=self.totals.__getitem__)

    def peak(self) -> int:
        """Return the index of the most live bytes overall."""
        return max(range(len(self.totals)), key=self.totals.__getitem__)


# A recording of a million allocations takes seconds, and is judged anew for every card that is looked at.
@lru_cache(maxsize=2)
def live_memory(allocations: Allocations) -> LiveMemory:
    """Return the live bytes over time."""
    made = zip(allocations.made, allocations.bytes, range(len(allocations.bytes)), strict=True)
    freed = zip(allocations.freed, allocations.bytes, strict=True)
    events: list[tuple[int, int, int | None]] = [
        *made,
        *((time, -size, None) for time, size in freed if time != NEVER_FREED),
    ]
    events.sort(key=itemgetter(0))
    origins: list[int | None] = [None]
    for _, _, made_now in events:
        origins.append(origins[-1] if made_now is None else made_now)
    return LiveMemory(
        times=(-1, *(event[0] for event in events)),
        totals=tuple(accumulate((event[1] for event in events), initial=0)),
        origins=tuple(origins),
    )


def alive_at(allocations: Allocations, time: int) -> list[int]:
    """Return the indices of the allocations alive right after the event at `time`."""
    return [
        number
        for number, (made, freed) in enumerate(zip(allocations.made, allocations.freed, strict=True))
        if made <= time and not NEVER_FREED < freed <= time
    ]


def span_at(spans: tuple[Span, ...], time: int) -> Span:
    """Return the phase at `time`: the last that has begun, else the first."""
    return spans[max(bisect_right(spans, time, key=lambda span: span.start) - 1, 0)]


class AllocationOrigin(NamedTuple):
    """Operator, module and source line of an allocation; empty if there is none."""

    operator: str = ""
    module: str = ""
    line: str = ""

    def __str__(self) -> str:
        """Return `aten.mm in layers.0 at model.py:12`, without the file's folders."""
        within = f" in {self.module}" if self.module else ""
        place = re.split(r"[/\\]", self.line)[-1]
        return f"{self.operator}{within}{f' at {place}' if place else ''}"


def allocation_origin(recording: TraceRecording, number: int | None) -> AllocationOrigin:
    """Return the origin of the allocation with index `number`."""
    if number is None:
        return AllocationOrigin()
    columns = recording.allocations
    return AllocationOrigin(
        recording.operators[columns.operator[number]],
        recording.module_paths[columns.module[number]],
        recording.lines[columns.line[number]],
    )


_MOST_GROUPS: Final = 200
_OTHERS: Final = "other"

_Group = tuple[int, int, int, int, int]
"""Category, module, operator, line and shape, as indices into the recording's lists."""


def peak_moment(recording: TraceRecording, course: LiveMemory) -> PeakMoment:
    """Return the time of the most live bytes, the earliest of equals."""
    place = course.peak()
    time = course.times[place]
    span = span_at(recording.spans, time)
    origin = allocation_origin(recording, course.origins[place])
    return PeakMoment(
        bytes=course.totals[place],
        time=time,
        step=span.step,
        phase=span.name,
        operator=origin.operator,
        module=origin.module,
        line=origin.line,
        alive=_groups(recording, alive_at(recording.allocations, time)),
    )


def module_shares(recording: TraceRecording, time: int) -> tuple[ModuleShare, ...]:
    """Return the memory of each module with its submodules at `time`; the root has an empty path.

    Gradients and optimizer states belong to the module of their parameter, activations to the one that made them.
    """
    held = _held_by_path(recording, time)
    parameters = Counter[str]()
    for module in recording.modules:
        for path in _with_ancestors(module.path):
            parameters[path] += module.parameters
    return tuple(
        ModuleShare(
            path=module.path,
            class_name=module.class_name,
            parameters=parameters[module.path],
            bytes=held[module.path].total(),
            shares=tuple(
                CategorySeries(category=category, bytes=(size,))
                for index, category in enumerate(CATEGORIES)
                if (size := held[module.path][index])
            ),
        )
        for module in recording.modules
    )


def _groups(recording: TraceRecording, alive: Iterable[int]) -> tuple[LiveGroup, ...]:
    """Return live allocations grouped by category and origin, the largest group first."""
    columns = recording.allocations
    keys = list(zip(columns.category, columns.module, columns.operator, columns.line, columns.shape, strict=True))
    sizes, counts = Counter[_Group](), Counter[_Group]()
    for number in alive:
        sizes[keys[number]] += columns.bytes[number]
        counts[keys[number]] += 1
    ordered = sorted(sizes.items(), key=lambda item: -item[1])
    groups = [_group(recording, key, size, counts[key]) for key, size in ordered[:_MOST_GROUPS]]
    rest = [key for key, _ in ordered[_MOST_GROUPS:]]
    return (*groups, *_others(sizes, counts, rest))


def _group(recording: TraceRecording, key: _Group, size: int, count: int) -> LiveGroup:
    category, module, operator, line, shape = key
    return LiveGroup(
        bytes=size,
        count=count,
        category=CATEGORIES[category],
        module=recording.module_paths[module],
        operator=recording.operators[operator],
        line=recording.lines[line],
        shape=recording.shapes[shape],
    )


def _others(sizes: Counter[_Group], counts: Counter[_Group], rest: list[_Group]) -> tuple[LiveGroup, ...]:
    """Return all groups of `rest` merged into one per category, so that categories still add up."""
    by_category: dict[int, list[_Group]] = defaultdict(list)
    for key in rest:
        by_category[key[0]].append(key)
    return tuple(
        LiveGroup(
            bytes=sum(sizes[key] for key in keys),
            count=sum(counts[key] for key in keys),
            category=CATEGORIES[category],
            module="",
            operator=_OTHERS,
            line="",
            shape="",
        )
        for category, keys in sorted(by_category.items())
    )


def _held_by_path(recording: TraceRecording, time: int) -> dict[str, Counter[int]]:
    columns = recording.allocations
    own: dict[int, Counter[int]] = defaultdict(Counter)
    for number in alive_at(columns, time):
        own[columns.module[number]][columns.category[number]] += columns.bytes[number]
    held: dict[str, Counter[int]] = defaultdict(Counter)
    for module, sizes in own.items():
        for path in _with_ancestors(recording.module_paths[module]):
            held[path].update(sizes)
    return held


def _with_ancestors(path: str) -> tuple[str, ...]:
    """Return the root and every module on the way to `path`, inclusive: `""`, `"a"`, `"a.b"`."""
    return ("", *accumulate(path.split("."), "{}.{}".format)) if path else ("",)
