"""Diagnosis of the displayed readings at a limited rate."""

from collections.abc import Mapping
from time import monotonic
from typing import Final

from planner.gui.monitor.feed import Feed
from planner.monitor.diagnosis.checklist import consistent_with_verdict, evaluate_checklist
from planner.monitor.diagnosis.diagnose import diagnose_all
from planner.monitor.diagnosis.tracker import VerdictTimeline
from planner.monitor.diagnosis.verdict import Verdict, VerdictKind
from planner.present.monitor.diagnosis import ChecklistRow, DiagnosisView, checklist_rows, diagnosis_view

# A diagnosis considers minutes, so it need not be repeated more often.
_EVERY_SECONDS: Final = 2.0
# With many cards the interval grows, so that diagnosing takes no more than this share of a core.
_MOST_SHARE: Final = 0.005
_LATEST_SECONDS: Final = 10.0
# A replay may play minutes in a second, so it is diagnosed as often as this share of a core allows.
_MOST_REPLAY_SHARE: Final = 0.1


class Diagnoser:
    """Diagnoses the displayed cards; live readings at intervals and when cards change, with verdicts as events.

    The diagnosis of a replay depends only on the displayed time, not on how that time was reached.
    """

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self.reset()

    def reset(self) -> None:
        """Discard all diagnoses, because another source of readings is displayed now."""
        self._timeline = VerdictTimeline(self._feed.history)
        self.verdicts: Mapping[str, Verdict] = {}
        self._diagnoses: Mapping[str, DiagnosisView] = {}
        self._due = float("-inf")
        self._end: float | None = None
        self._states: tuple[tuple[str, str], ...] = ()

    @property
    def is_under_filled(self) -> bool:
        """Return whether the last diagnosis found a card with spare capacity."""
        return any(verdict.kind is VerdictKind.UNDER_FILLED for verdict in self.verdicts.values())

    def diagnose(self) -> Mapping[str, DiagnosisView]:
        """Return the diagnosis of each card by UUID; empty before the first reading."""
        displayed_readings, now = self._feed.displayed_readings, monotonic()
        end = displayed_readings.end
        if end is None:
            return {}
        states = tuple((device.uuid, device.state) for device in displayed_readings.inventory.devices)
        # The displayed time of a stopped replay stays, so its diagnosis must be exact.
        may_wait = now < self._due if self._feed.is_moving else end == self._end
        if states == self._states and may_wait:
            return self._diagnoses
        self._states, self._end = states, end
        # A recording was already diagnosed as a whole when it was loaded.
        self.verdicts = (
            self._timeline.diagnose(displayed_readings, end)
            if self._feed.is_live
            else diagnose_all(displayed_readings, end)
        )
        self._diagnoses = {uuid: diagnosis_view(verdict) for uuid, verdict in self.verdicts.items()}
        spent = monotonic() - now
        least, share = (_EVERY_SECONDS, _MOST_SHARE) if self._feed.is_live else (0.0, _MOST_REPLAY_SHARE)
        self._due = now + min(max(spent / share, least), _LATEST_SECONDS)
        return self._diagnoses

    def checklist(self, uuid: str) -> tuple[ChecklistRow, ...]:
        """Return the optimization checklist for the displayed card with this UUID."""
        displayed_readings = self._feed.displayed_readings
        checked, verdict = evaluate_checklist(displayed_readings, uuid, displayed_readings.end), self.verdicts.get(uuid)
        return checklist_rows(checked if verdict is None else consistent_with_verdict(checked, verdict))
