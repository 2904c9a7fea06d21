"""Diagnoses of a whole recording: its history with the verdicts as events, and the time that each verdict lasted."""

from collections.abc import Callable
from typing import Final, NamedTuple

from planner.monitor.diagnosis.tracker import VerdictTimeline
from planner.monitor.history import History
from planner.monitor.readings.events import EventKind
from planner.monitor.recording.recording import MonitorRecording

_LEAST_INTERVAL_SECONDS: Final = 5.0
# A diagnosis of a card takes a millisecond: with this many, a day of eight cards takes three seconds.
_MOST_DIAGNOSES: Final = 360
_DAY_SECONDS: Final = 86_400.0
# Added to the recording's length, so that the history still has the first reading when the last is loaded.
_SLACK_SECONDS: Final = 60.0


class DiagnosedTime(NamedTuple):
    """A kind of verdict in a recording: its seconds, summed over the cards, the cards, and when it was first found."""

    kind: str
    seconds: float
    uuids: tuple[str, ...]
    first_wall_seconds: float


def diagnosed_history(recording: MonitorRecording, is_stopped: Callable[[], bool] = lambda: False) -> History:
    """Return the history of a recording with its diagnoses and marks; incomplete if `is_stopped` becomes true."""
    history = History(max(_DAY_SECONDS, recording.seconds + _SLACK_SECONDS))
    timeline, due = VerdictTimeline(history), float("-inf")
    interval = max(_LEAST_INTERVAL_SECONDS, recording.seconds / _MOST_DIAGNOSES)
    for update in recording:
        if is_stopped():
            break
        history.note(update)
        if history.end is not None and history.end >= due:
            due = history.end + interval
            timeline.diagnose(history, history.end)
    for mark in recording.marks:
        history.add_mark(mark.monotonic_seconds, mark.text)
    return history


def diagnosed_times(history: History) -> tuple[DiagnosedTime, ...]:
    """Return how long each kind of verdict lasted, the longest first; a lost card is not a span and not included."""
    if history.start is None or history.end is None:
        return ()
    found: dict[str, DiagnosedTime] = {}
    for event in history.events(history.start, history.end):
        if event.kind is not EventKind.DIAGNOSIS:
            continue
        end = history.end if event.ended is None else event.ended.monotonic_seconds
        before = found.get(event.what, DiagnosedTime(event.what, 0.0, (), event.began.wall_seconds))
        found[event.what] = before._replace(
            seconds=before.seconds + end - event.began.monotonic_seconds,
            uuids=tuple(dict.fromkeys((*before.uuids, event.uuid))),
        )
    return tuple(sorted(found.values(), key=lambda each: -each.seconds))
