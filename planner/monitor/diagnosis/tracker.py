"""Verdicts over time: stable against flickering, and shown as spans on the timeline."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from planner.monitor.diagnosis.card_window import WINDOW_SECONDS
from planner.monitor.diagnosis.diagnose import diagnose_all
from planner.monitor.diagnosis.verdict import Verdict, VerdictKind
from planner.monitor.readings.events import Event, EventKind, Timestamp
from planner.monitor.readings.protocols import DiagnosisSource

# A verdict at the border of a threshold would change with each look.
_NEEDED_IN_A_ROW: Final = 2
# What says nothing yet gives way at once, and what the driver itself tells is beyond doubt.
_NOTHING_YET: Final = frozenset({VerdictKind.TOO_EARLY, VerdictKind.UNKNOWN})
_CERTAIN: Final = frozenset({VerdictKind.LOST, VerdictKind.ASLEEP})
# The first reading of the minutes that are looked at comes up to an interval after they begin.
_MOST_OF_THE_WINDOW: Final = 0.9


class VerdictTracker:
    """Keeps the verdicts of all cards from one diagnosis to the next.

    A new kind replaces the old one once it was found twice in a row, or at once if it leaves no doubt; `since` is when
    the kind was first found.
    """

    def __init__(self) -> None:
        self._current: dict[str, Verdict] = {}
        self._doubted: dict[str, tuple[VerdictKind, int]] = {}

    def note(self, past: DiagnosisSource, at: float | None = None) -> Mapping[str, Verdict]:
        """Return the verdict on each card of the inventory at a time, by default that of the last reading."""
        found = diagnose_all(past, at)
        self._current = {uuid: self._stabilized(uuid, verdict) for uuid, verdict in found.items()}
        return self._current

    def _stabilized(self, uuid: str, verdict: Verdict) -> Verdict:
        current = self._current.get(uuid)
        if current is None or current.at > verdict.at:
            return verdict
        if current.kind is verdict.kind:
            self._doubted.pop(uuid, None)
            return replace(verdict, since=current.since)
        if current.kind in _NOTHING_YET or verdict.kind in _CERTAIN:
            self._doubted.pop(uuid, None)
            return _begun_after(verdict, current)
        kind, count = self._doubted.get(uuid, (verdict.kind, 0))
        count = count + 1 if kind is verdict.kind else 1
        if count < _NEEDED_IN_A_ROW:
            self._doubted[uuid] = verdict.kind, count
            return current
        del self._doubted[uuid]
        return _begun_after(verdict, current)


def _begun_after(verdict: Verdict, before: Verdict) -> Verdict:
    """Return the verdict with a start no earlier than the last verdict of the previous kind.

    If its work began within the diagnosed window, that start is known exactly and stays.
    """
    is_known = verdict.at - verdict.since < _MOST_OF_THE_WINDOW * WINDOW_SECONDS
    return verdict if is_known else replace(verdict, since=max(verdict.since, before.at))


# What says nothing, and what the time line shows already.
_NOT_SHOWN: Final = frozenset({VerdictKind.TOO_EARLY, VerdictKind.UNKNOWN, VerdictKind.LOST, VerdictKind.ASLEEP})


def span_changes(
    before: Mapping[str, Verdict], after: Mapping[str, Verdict], wall_of: Callable[[float], float]
) -> tuple[Event, ...]:
    """Return the timeline spans that end and begin between two diagnoses of all cards, by UUID.

    A span runs from its verdict's start to the start of the next one, or to its last sighting if the next diagnosis is
    of an earlier time. `wall_of` converts a monotonic time to seconds since 1970.
    """
    ended = tuple(
        _span(uuid, verdict, wall_of, _end(verdict, after.get(uuid)))
        for uuid, verdict in before.items()
        if _is_shown(verdict) and not _continues(verdict, after.get(uuid))
    )
    begun = tuple(
        _span(uuid, verdict, wall_of, None)
        for uuid, verdict in after.items()
        if _is_shown(verdict) and not _continues(verdict, before.get(uuid))
    )
    return ended + begun


def _is_shown(verdict: Verdict) -> bool:
    return verdict.kind not in _NOT_SHOWN


def _continues(verdict: Verdict, other: Verdict | None) -> bool:
    return other is not None and (other.kind, other.since) == (verdict.kind, verdict.since)


def _end(verdict: Verdict, following: Verdict | None) -> float:
    if following is None or following.at < verdict.at:
        return verdict.at
    return max(verdict.since, following.since)


def _span(uuid: str, verdict: Verdict, wall_of: Callable[[float], float], end: float | None) -> Event:
    began = Timestamp(verdict.since, wall_of(verdict.since))
    ended = None if end is None else Timestamp(end, wall_of(end))
    # Two verdicts of a kind differ in their titles; the first of them names the span.
    return Event(EventKind.DIAGNOSIS, began, ended, uuid, verdict.kind.value)
