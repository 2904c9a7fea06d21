"""Verdicts from look to look, put on a time line."""

from collections.abc import Mapping
from typing import Final

from planner.monitor.diagnosis.tracker import Tracker, span_changes
from planner.monitor.diagnosis.verdict import Verdict
from planner.monitor.history import History
from planner.monitor.readings.protocols import Past

_LEAST_SECONDS: Final = 5.0
# A look at a card takes a millisecond: with so many, a day of eight cards takes three seconds.
_MOST_LOOKS: Final = 360


class VerdictTimeline:
    """Follows the verdicts on all cards; what changes becomes an event of `history`, where one is given."""

    def __init__(self, history: History | None) -> None:
        self._history, self._tracker = history, Tracker()
        self.verdicts: Mapping[str, Verdict] = {}

    def look(self, past: Past, at: float) -> Mapping[str, Verdict]:
        """Return the verdicts that stand at a time."""
        before, self.verdicts = self.verdicts, self._tracker.note(past, at)
        if self._history is not None:
            for event in span_changes(before, self.verdicts, self._history.wall_of):
                self._history.add_event(event)
        return self.verdicts


class RecordingDiagnosis:
    """Diagnoses a recording of so many seconds while its history is read in, so that its whole time line is told."""

    def __init__(self, history: History, seconds: float) -> None:
        self._history, self._chronicle = history, VerdictTimeline(history)
        self._every = max(_LEAST_SECONDS, seconds / _MOST_LOOKS)
        self._due = float("-inf")

    def note(self) -> None:
        """Look, if it is time to."""
        end = self._history.end
        if end is not None and end >= self._due:
            self._due = end + self._every
            self._chronicle.look(self._history, end)
