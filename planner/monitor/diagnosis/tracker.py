"""Verdicts that stay while what they say stays, and their spans on the time line."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from planner.monitor.diagnosis.diagnose import diagnose_all
from planner.monitor.diagnosis.verdict import Kind, Verdict
from planner.monitor.diagnosis.window import SECONDS
from planner.monitor.readings.events import Event, EventKind, Moment
from planner.monitor.readings.protocols import Past

# A verdict at the border of a threshold would change with each look.
_LOOKS: Final = 2
# What says nothing yet gives way at once, and what the driver itself tells is beyond doubt.
_NOTHING_YET: Final = frozenset({Kind.TOO_EARLY, Kind.UNKNOWN})
_TOLD: Final = frozenset({Kind.LOST, Kind.ASLEEP})
# The first reading of the minutes that are looked at comes up to an interval after they begin.
_MOST_OF_THE_WINDOW: Final = 0.9


class Tracker:
    """Keeps the verdicts of all cards from look to look.

    A new kind takes the place of the old one when it was found twice on end, or at once where that leaves no doubt;
    `since` is when the kind was found first.
    """

    def __init__(self) -> None:
        self._standing: dict[str, Verdict] = {}
        self._doubted: dict[str, tuple[Kind, int]] = {}

    def note(self, past: Past, at: float | None = None) -> Mapping[str, Verdict]:
        """Return what stands at a time, by default the last reading, for each card of the inventory."""
        found = diagnose_all(past, at)
        self._standing = {uuid: self._settle(uuid, verdict) for uuid, verdict in found.items()}
        return self._standing

    def _settle(self, uuid: str, verdict: Verdict) -> Verdict:
        standing = self._standing.get(uuid)
        if standing is None or standing.at > verdict.at:
            return verdict
        if standing.kind is verdict.kind:
            self._doubted.pop(uuid, None)
            return replace(verdict, since=standing.since)
        if standing.kind in _NOTHING_YET or verdict.kind in _TOLD:
            self._doubted.pop(uuid, None)
            return _begun_after(verdict, standing)
        kind, looks = self._doubted.get(uuid, (verdict.kind, 0))
        looks = looks + 1 if kind is verdict.kind else 1
        if looks < _LOOKS:
            self._doubted[uuid] = verdict.kind, looks
            return standing
        del self._doubted[uuid]
        return _begun_after(verdict, standing)


def _begun_after(verdict: Verdict, before: Verdict) -> Verdict:
    """Return a verdict that begins no earlier than another kind was found last.

    Where its work began within the minutes that are looked at, that time is known better.
    """
    is_known = verdict.at - verdict.since < _MOST_OF_THE_WINDOW * SECONDS
    return verdict if is_known else replace(verdict, since=max(verdict.since, before.at))


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
