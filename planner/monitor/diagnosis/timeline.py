"""Changes of verdicts as events in a history."""

from collections.abc import Mapping

from planner.monitor.diagnosis.tracker import VerdictTracker, span_changes
from planner.monitor.diagnosis.verdict import Verdict
from planner.monitor.history import History
from planner.monitor.readings.protocols import DiagnosisSource


class VerdictTimeline:
    """Diagnoses all cards and adds changed verdicts as events to `history`; a `history` of None gets no events."""

    def __init__(self, history: History | None) -> None:
        self._history, self._tracker = history, VerdictTracker()
        self.verdicts: Mapping[str, Verdict] = {}

    def diagnose(self, past: DiagnosisSource, at: float) -> Mapping[str, Verdict]:
        """Diagnose all cards at time `at`, add changed verdicts as events, and return the verdicts by UUID."""
        before, self.verdicts = self.verdicts, self._tracker.note(past, at)
        if self._history is not None:
            for event in span_changes(before, self.verdicts, self._history.wall_of):
                self._history.add_event(event)
        return self.verdicts
