"""Recording of changing verdicts as events of a history."""

from collections.abc import Mapping
from typing import Final

from planner.monitor.diagnosis.tracker import Tracker, span_changes
from planner.monitor.diagnosis.verdict import Verdict
from planner.monitor.history import History
from planner.monitor.readings.protocols import Past

_LEAST_SECONDS: Final = 5.0
# A diagnosis of a card takes a millisecond: with this many, a day of eight cards takes three seconds.
_MOST_DIAGNOSES: Final = 360


class VerdictTimeline:
    """Diagnoses all cards and adds changed verdicts as events to `history`, if given."""

    def __init__(self, history: History | None) -> None:
        self._history, self._tracker = history, Tracker()
        self.verdicts: Mapping[str, Verdict] = {}

    def diagnose(self, past: Past, at: float) -> Mapping[str, Verdict]:
        """Return the verdicts at a time, by UUID."""
        before, self.verdicts = self.verdicts, self._tracker.note(past, at)
        if self._history is not None:
            for event in span_changes(before, self.verdicts, self._history.wall_of):
                self._history.add_event(event)
        return self.verdicts


class RecordingDiagnosis:
    """Diagnoses a recording while its history is loaded, so that the whole timeline has verdicts."""

    def __init__(self, history: History, seconds: float) -> None:
        self._history, self._timeline = history, VerdictTimeline(history)
        self._every = max(_LEAST_SECONDS, seconds / _MOST_DIAGNOSES)
        self._due = float("-inf")

    def note(self) -> None:
        """Diagnose the cards if the last diagnosis is old enough."""
        end = self._history.end
        if end is not None and end >= self._due:
            self._due = end + self._every
            self._timeline.diagnose(self._history, end)
