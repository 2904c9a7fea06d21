"""The highest moment of a recording: what is alive then, and which modules hold it."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import accumulate
from typing import Final

from planner.trace.analysis.course import Course, alive_at, maker_of, span_at
from planner.trace.recording import CATEGORIES, Recording
from planner.trace.result import Alive, ModuleShare, PeakMoment, Series

_MOST_GROUPS: Final = 200
_OTHERS: Final = "other"

_Group = tuple[int, int, int, int, int]
"""Category, module, operator, line and shape, as places in the recording's lists."""


def peak_moment(recording: Recording, course: Course) -> PeakMoment:
    """Return the highest moment of `recording`, the earliest of equals."""
    place = course.peak()
    time = course.times[place]
    span = span_at(recording.spans, time)
    maker = maker_of(recording, course.makers[place])
    return PeakMoment(
        bytes=course.totals[place],
        time=time,
        step=span.step,
        phase=span.name,
        operator=maker.operator,
        module=maker.module,
        line=maker.line,
        alive=_groups(recording, alive_at(recording.allocations, time)),
    )


def module_shares(recording: Recording, time: int) -> tuple[ModuleShare, ...]:
    """Return what each module, with all inside it, holds at `time`; the root is the module without a path.

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
                Series(category=category, bytes=(size,))
                for index, category in enumerate(CATEGORIES)
                if (size := held[module.path][index])
            ),
        )
        for module in recording.modules
    )


def _groups(recording: Recording, alive: Iterable[int]) -> tuple[Alive, ...]:
    """Return the allocations called `alive` by what they are and where they are from, the largest group first."""
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


def _group(recording: Recording, key: _Group, size: int, count: int) -> Alive:
    category, module, operator, line, shape = key
    return Alive(
        bytes=size,
        count=count,
        category=CATEGORIES[category],
        module=recording.module_paths[module],
        operator=recording.operators[operator],
        line=recording.lines[line],
        shape=recording.shapes[shape],
    )


def _others(sizes: Counter[_Group], counts: Counter[_Group], rest: list[_Group]) -> tuple[Alive, ...]:
    """Return all groups of `rest` as one for each category, so that categories still sum to what is alive."""
    by_category: dict[int, list[_Group]] = defaultdict(list)
    for key in rest:
        by_category[key[0]].append(key)
    return tuple(
        Alive(
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


def _held_by_path(recording: Recording, time: int) -> dict[str, Counter[int]]:
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
    """Return the root, and each module on the way to `path` with `path` itself: `""`, `"a"`, `"a.b"`."""
    return ("", *accumulate(path.split("."), "{}.{}".format)) if path else ("",)
