"""Verdicts as spans on the time line."""

from collections.abc import Callable, Mapping
from typing import Final

from planner.monitor.diagnosis.verdict import Kind, Verdict
from planner.monitor.events import Event, EventKind, Moment

# What says nothing, and what the time line shows already.
_LEFT_OUT: Final = frozenset({Kind.TOO_EARLY, Kind.UNKNOWN, Kind.LOST, Kind.ASLEEP})


def span_changes(
    before: Mapping[str, Verdict], after: Mapping[str, Verdict], wall_of: Callable[[float], float]
) -> tuple[Event, ...]:
    """Return the spans that end and begin between two looks at all cards, by their UUIDs.

    A span begins with its verdict and ends with that of the next, or where it was seen last if the next look is at an
    earlier time. `wall_of` tells the seconds since 1970 at a monotonic time.
    """
    ended = tuple(
        _span(uuid, verdict, wall_of, _end(verdict, after.get(uuid)))
        for uuid, verdict in before.items()
        if _is_shown(verdict) and not _goes_on(verdict, after.get(uuid))
    )
    begun = tuple(
        _span(uuid, verdict, wall_of, None)
        for uuid, verdict in after.items()
        if _is_shown(verdict) and not _goes_on(verdict, before.get(uuid))
    )
    return ended + begun


def _is_shown(verdict: Verdict) -> bool:
    return verdict.kind not in _LEFT_OUT


def _goes_on(verdict: Verdict, other: Verdict | None) -> bool:
    return other is not None and (other.kind, other.since) == (verdict.kind, verdict.since)


def _end(verdict: Verdict, following: Verdict | None) -> float:
    if following is None or following.at < verdict.at:
        return verdict.at
    return max(verdict.since, following.since)


def _span(uuid: str, verdict: Verdict, wall_of: Callable[[float], float], end: float | None) -> Event:
    began = Moment(verdict.since, wall_of(verdict.since))
    ended = None if end is None else Moment(end, wall_of(end))
    # Two verdicts of a kind differ in their titles; the first of them names the span.
    return Event(EventKind.DIAGNOSIS, began, ended, uuid, verdict.kind.value)
