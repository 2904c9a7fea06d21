"""Diagnosis of the displayed readings at a limited rate."""

from collections.abc import Mapping
from time import monotonic
from typing import Final

from planner.gui.monitor.feed import Feed
from planner.gui.monitor.verdict_timeline import VerdictTimeline
from planner.monitor.diagnosis.checklist import consistent_with_verdict, evaluate_checklist
from planner.monitor.diagnosis.verdict import Verdict, VerdictKind
from planner.present.monitor.diagnosis import ChecklistRow, DiagnosisView, checklist_rows, diagnosis_view

# A diagnosis considers minutes, so it need not be repeated more often.
_EVERY_SECONDS: Final = 2.0
# With many cards the interval grows, so that diagnosing takes no more than this share of a core.
_MOST_SHARE: Final = 0.005
_LATEST_SECONDS: Final = 10.0
# After such a jump in a recording, the earlier verdicts no longer apply.
_JUMP_SECONDS: Final = 30.0


class Diagnoser:
    """Diagnoses the displayed cards when their states change or after an interval; verdicts become events."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._diagnoses: Mapping[str, DiagnosisView] = {}
        self.is_under_filled = False
        self.reset()

    def reset(self) -> None:
        """Discard all diagnoses, because another source of readings is displayed now."""
        # A recording was already diagnosed as a whole when it was loaded.
        self._timeline = VerdictTimeline(self._feed.history if self._feed.is_live else None)
        self._due = float("-inf")
        self._end = float("-inf")
        self._states: tuple[tuple[str, str], ...] = ()

    def diagnose(self) -> Mapping[str, DiagnosisView]:
        """Return the diagnosis of each card by UUID; empty before the first reading."""
        displayed_readings, now = self._feed.displayed_readings, monotonic()
        if displayed_readings.end is None:
            return {}
        if not (self._feed.is_live or 0.0 <= displayed_readings.end - self._end <= _JUMP_SECONDS):
            self.reset()
        self._end = displayed_readings.end
        states = tuple((device.uuid, device.state) for device in displayed_readings.inventory.devices)
        if states != self._states or now >= self._due:
            self._states = states
            verdicts = self._timeline.diagnose(displayed_readings, displayed_readings.end)
            self.is_under_filled = any(verdict.kind is VerdictKind.UNDER_FILLED for verdict in verdicts.values())
            self._diagnoses = {uuid: diagnosis_view(verdict) for uuid, verdict in verdicts.items()}
            wait = (monotonic() - now) / _MOST_SHARE
            self._due = now + min(max(wait, _EVERY_SECONDS), _LATEST_SECONDS)
        return self._diagnoses

    @property
    def verdicts(self) -> Mapping[str, Verdict]:
        """Return the verdicts of the last diagnosis by UUID."""
        return self._timeline.verdicts

    def checklist(self, uuid: str) -> tuple[ChecklistRow, ...]:
        """Return the optimization checklist for the displayed card with this UUID."""
        displayed_readings = self._feed.displayed_readings
        checked, verdict = evaluate_checklist(displayed_readings, uuid, displayed_readings.end), self.verdicts.get(uuid)
        return checklist_rows(checked if verdict is None else consistent_with_verdict(checked, verdict))
