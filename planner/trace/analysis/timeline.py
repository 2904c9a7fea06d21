"""The course of live bytes by category, in few enough points to be drawn."""

from bisect import bisect_left
from itertools import accumulate
from typing import Final

from planner.trace.analysis.course import Course, maker_of
from planner.trace.recording import CATEGORIES, NEVER_FREED, Allocations, Recording
from planner.trace.result import Series, Timeline
from planner.units import ceil_div

_MOST_POINTS: Final = 800


def timeline_of(recording: Recording, course: Course) -> Timeline:
    """Return at most 800 points of `course`: the highest of each of as many stretches of equal length."""
    places = _highest_places(course)
    times = [course.times[place] for place in places]
    makers = [maker_of(recording, course.makers[place]) for place in places]
    return Timeline(
        times=tuple(times),
        series=_series(recording.allocations, times),
        operators=tuple(maker.operator for maker in makers),
        modules=tuple(maker.module for maker in makers),
        lines=tuple(maker.line for maker in makers),
        spans=recording.spans,
    )


def _highest_places(course: Course) -> list[int]:
    count = len(course.times)
    stretch = max(ceil_div(count - 1, _MOST_POINTS), 1)
    return [
        max(range(start, min(start + stretch, count)), key=course.totals.__getitem__)
        for start in range(1, count, stretch)
    ]


def _series(allocations: Allocations, times: list[int]) -> tuple[Series, ...]:
    """Return the live bytes of each category at `times`: what was made up to each of them, less what was freed."""
    changes = [[0] * (len(times) + 1) for _ in CATEGORIES]
    columns = (allocations.category, allocations.bytes, allocations.made, allocations.freed)
    for category, size, made, freed in zip(*columns, strict=True):
        changes[category][bisect_left(times, made)] += size
        if freed != NEVER_FREED:
            changes[category][bisect_left(times, freed)] -= size
    return tuple(
        Series(category=category, bytes=tuple(accumulate(change[:-1])))
        for category, change in zip(CATEGORIES, changes, strict=True)
        if any(change)
    )
