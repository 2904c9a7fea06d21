"""Verdicts over time: stabilized against flickering, and as spans on the timeline."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from planner.monitor.diagnosis.card_window import WINDOW_SECONDS
from planner.monitor.diagnosis.diagnose import diagnose_all
from planner.monitor.diagnosis.verdict import Verdict, VerdictKind
from planner.monitor.history import History
from planner.monitor.readings.events import Event, EventKind, Timestamp
from planner.monitor.readings.protocols import DiagnosisSource

# A value near a threshold would change the verdict at every diagnosis.
_REQUIRED_DIAGNOSES: Final = 2
# A verdict without a finding is replaced at once; a state that the driver reports is certain.
_WITHOUT_FINDING: Final = frozenset({VerdictKind.TOO_EARLY, VerdictKind.UNKNOWN})
_CERTAIN_KINDS: Final = frozenset({VerdictKind.LOST, VerdictKind.ASLEEP})
# The first reading of the diagnosed window may come one sampling interval after the window begins.
_NEARLY_FULL_WINDOW: Final = 0.9


class VerdictTracker:
    """Verdicts on all GPUs, kept from one diagnosis to the next.

    A new kind of verdict replaces the previous kind after two diagnoses in a row, or at once if it is certain; `since`
    is when the new kind was first diagnosed.
    """

    def __init__(self) -> None:
        self._current: dict[str, Verdict] = {}
        self._candidates: dict[str, tuple[VerdictKind, int]] = {}

    def note(self, source: DiagnosisSource, at: float | None = None) -> Mapping[str, Verdict]:
        """Diagnose all GPUs at `at` (by default the last reading); return the stabilized verdicts by UUID."""
        verdicts = diagnose_all(source, at)
        self._current = {uuid: self._stabilized_verdict(uuid, verdict) for uuid, verdict in verdicts.items()}
        return self._current

    def _stabilized_verdict(self, uuid: str, verdict: Verdict) -> Verdict:
        """Return the previous or the new verdict on a GPU; a new kind of verdict must persist to replace another."""
        current = self._current.get(uuid)
        if current is None or current.at > verdict.at:
            return verdict
        if current.kind is verdict.kind:
            self._candidates.pop(uuid, None)
            return replace(verdict, since=current.since)
        if current.kind in _WITHOUT_FINDING or verdict.kind in _CERTAIN_KINDS:
            self._candidates.pop(uuid, None)
            return _with_start_after(verdict, current)
        kind, count = self._candidates.get(uuid, (verdict.kind, 0))
        count = count + 1 if kind is verdict.kind else 1
        if count < _REQUIRED_DIAGNOSES:
            self._candidates[uuid] = verdict.kind, count
            return current
        del self._candidates[uuid]
        return _with_start_after(verdict, current)


def _with_start_after(verdict: Verdict, before: Verdict) -> Verdict:
    """Return `verdict` with a start no earlier than the time of `before`, a verdict of another kind.

    If its readings began within the diagnosed window, the start is known exactly and is kept.
    """
    is_known = verdict.at - verdict.since < _NEARLY_FULL_WINDOW * WINDOW_SECONDS
    return verdict if is_known else replace(verdict, since=max(verdict.since, before.at))


# Verdicts without a finding, and states that the timeline already shows.
_HIDDEN_KINDS: Final = frozenset({VerdictKind.TOO_EARLY, VerdictKind.UNKNOWN, VerdictKind.LOST, VerdictKind.ASLEEP})


def span_changes(
    before: Mapping[str, Verdict], after: Mapping[str, Verdict], wall_of: Callable[[float], float]
) -> tuple[Event, ...]:
    """Return the timeline spans that end and begin between two diagnoses of all GPUs, by UUID.

    A span runs from its verdict's start to the start of the next verdict, or to its own last diagnosis if the next
    diagnosis is of an earlier time. `wall_of` converts a monotonic time to seconds since 1970.
    """
    ended = tuple(
        _verdict_span_event(uuid, verdict, wall_of, _span_end_seconds(verdict, after.get(uuid)))
        for uuid, verdict in before.items()
        if _is_shown(verdict) and not _is_continued_by(verdict, after.get(uuid))
    )
    begun = tuple(
        _verdict_span_event(uuid, verdict, wall_of, None)
        for uuid, verdict in after.items()
        if _is_shown(verdict) and not _is_continued_by(verdict, before.get(uuid))
    )
    return ended + begun


def _is_shown(verdict: Verdict) -> bool:
    return verdict.kind not in _HIDDEN_KINDS


def _is_continued_by(verdict: Verdict, other: Verdict | None) -> bool:
    """Return whether the `other` verdict belongs to the same timeline span: same kind and start."""
    return other is not None and (other.kind, other.since) == (verdict.kind, verdict.since)


def _span_end_seconds(verdict: Verdict, following: Verdict | None) -> float:
    if following is None or following.at < verdict.at:
        return verdict.at
    return max(verdict.since, following.since)


def _verdict_span_event(uuid: str, verdict: Verdict, wall_of: Callable[[float], float], end: float | None) -> Event:
    began = Timestamp(verdict.since, wall_of(verdict.since))
    ended = None if end is None else Timestamp(end, wall_of(end))
    # Two verdicts of a kind differ in their titles; the first of them names the span.
    return Event(EventKind.DIAGNOSIS, began, ended, uuid, verdict.kind.value)


class VerdictTimeline:
    """Diagnoses all GPUs and adds changed verdicts as events to `history`; a `history` of None gets no events."""

    def __init__(self, history: History | None) -> None:
        self._history, self._tracker = history, VerdictTracker()
        self.verdicts: Mapping[str, Verdict] = {}

    def diagnose(self, past: DiagnosisSource, at: float) -> Mapping[str, Verdict]:
        """Diagnose all GPUs at time `at`, add changed verdicts as events, and return the verdicts by UUID."""
        before, self.verdicts = self.verdicts, self._tracker.note(past, at)
        if self._history is not None:
            for event in span_changes(before, self.verdicts, self._history.wall_of):
                self._history.add_event(event)
        return self.verdicts
