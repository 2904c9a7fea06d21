"""What the Monitor tab shows: this machine as it is, or a recording; the one place that the views look at."""

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Event, Thread
from typing import Final, NamedTuple

from PySide6.QtCore import QObject, Qt, Signal, Slot

from planner.errors import RecordingError
from planner.gui.monitor.replay import LoadedRecording, RecordingReplay
from planner.monitor.alert_rules import AlertRules
from planner.monitor.alerts import AlertWatch
from planner.monitor.history import History, Series
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.latest import Latest
from planner.monitor.recording.recorder import Recorder
from planner.monitor.settings import Settings, Timeouts
from planner.monitor.supervisor.supervisor import Supervisor, Update
from planner.plan.plan import Plan

_log = logging.getLogger(__name__)
_KEPT: Final = "What was written until then can be replayed."


class LiveSource(QObject):
    """Watches this machine. `arrived` carries updates, oldest first, on the window's thread.

    Nothing here but `stop` waits for the driver or for a process, and that not for ever: starting and stopping happen
    in the thread that holds the supervisor.
    """

    arrived = Signal(object)
    _came = Signal()

    def __init__(
        self,
        settings: Settings,
        timeouts: Timeouts | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        self._updates: deque[Update] = deque()
        self._is_announced = False
        self._over = Event()
        self._timeouts = timeouts or Timeouts()
        self._supervisor = Supervisor(self._hear, settings, self._timeouts, environment)
        self._thread = Thread(target=self._hold, name="live", daemon=True)
        self._came.connect(self._deliver, Qt.ConnectionType.QueuedConnection)

    def start(self) -> None:
        """Begin; once only."""
        self._thread.start()

    def stop(self) -> None:
        """Let go of everything, and wait until it is gone; what is held up for good is left to the process's end."""
        self.begin_stop()
        if self._thread.is_alive():
            # Longer than the supervisor waits itself, so that it is it that gives up.
            self._thread.join(2 * self._timeouts.stop)
            if self._thread.is_alive():
                _log.warning("The monitor did not end within %g seconds", 2 * self._timeouts.stop)

    def begin_stop(self) -> None:
        """Let go of everything without waiting; nothing arrives any more."""
        self._over.set()
        self._updates.clear()

    def set_interval(self, seconds: float) -> None:
        """Read every so many seconds from now on."""
        self._supervisor.set_interval(seconds)

    def release(self) -> None:
        """Let the driver go; the machine itself is still read."""
        self._supervisor.release()

    def resume(self) -> None:
        """Take the driver up again."""
        self._supervisor.resume()

    def _hold(self) -> None:
        with self._supervisor:
            self._over.wait()

    def _hear(self, update: Update) -> None:
        if self._over.is_set():
            return
        self._updates.append(update)
        # One event for whatever has come by the time it is delivered: a busy window is not flooded.
        if not self._is_announced:
            self._is_announced = True
            self._came.emit()

    @Slot()
    def _deliver(self) -> None:
        self._is_announced = False
        updates = []
        while self._updates:
            updates.append(self._updates.popleft())
        if updates and not self._over.is_set():
            self.arrived.emit(tuple(updates))


class DisplayedReadings(NamedTuple):
    """What stands at the time that is shown, and everything read around it; a diagnosis asks for no more."""

    latest: Latest
    inventory: Inventory
    end: float | None
    series: Callable[[str, str], Series]


class Feed(QObject):
    """Live readings go on being kept while a recording is played, so that going back to live finds no gap.

    `updated` says that what stands is other than before, `switched` that the source is another, `alerted` carries an
    `Alert`, `recording_changed` says that writing began or ended, `failed` carries a `PlannerError`.
    """

    updated = Signal()
    switched = Signal()
    alerted = Signal(object)
    recording_changed = Signal()
    failed = Signal(object)

    def __init__(
        self,
        interval_seconds: float,
        rules: AlertRules,
        timeouts: Timeouts | None = None,
        environment: Mapping[str, str] | None = None,
        pace: Settings | None = None,
    ) -> None:
        super().__init__()
        self.replay: RecordingReplay | None = None
        self.is_released = False
        self._history = History()
        self._watch = AlertWatch(rules)
        self._recorder: Recorder | None = None
        self._is_started = False
        self._live = LiveSource((pace or Settings())._replace(fast_seconds=interval_seconds), timeouts, environment)
        self._live.arrived.connect(self._take)

    @property
    def is_live(self) -> bool:
        """Return whether this machine is shown, and not a recording."""
        return self.replay is None

    @property
    def history(self) -> History:
        """Return everything that the plots can show."""
        return self._history if self.replay is None else self.replay.history

    @property
    def latest(self) -> Latest:
        """Return what stands at the time that is shown."""
        return self._history.latest if self.replay is None else self.replay.latest

    @property
    def live_latest(self) -> Latest:
        """Return what stands on this machine, whatever is shown."""
        return self._history.latest

    @property
    def now(self) -> float | None:
        """Return the time that is shown, by the monotonic clock; none before there is anything."""
        return self._history.end if self.replay is None else self.replay.now

    @property
    def shown(self) -> DisplayedReadings:
        """Return what a diagnosis looks at."""
        return DisplayedReadings(self.latest, self.latest.inventory, self.now, self.history.series)

    @property
    def is_busy_unseen(self) -> bool:
        """Return whether the driver is needed although nobody looks: for a recording, or for alerts."""
        return self.recorded_to is not None or self._watch.rules.is_on

    @property
    def recorded_to(self) -> Path | None:
        """Return the file that is written, none while none is."""
        return None if self._recorder is None else self._recorder.path

    def start(self) -> None:
        """Watch this machine, unless that goes on already."""
        if not self._is_started:
            self._is_started = True
            self._live.start()

    def stop(self) -> None:
        """Put everything away; for good."""
        self.end_replay()
        if self._is_started:
            self._live.stop()
        self.stop_recording()

    def set_interval(self, seconds: float) -> None:
        """Read every so many seconds from now on."""
        self._live.set_interval(seconds)

    def set_rules(self, rules: AlertRules) -> None:
        """Speak up about other things from now on."""
        self._watch = AlertWatch(rules)

    def release(self) -> None:
        """Let the driver go, so that it can be unloaded or the card can sleep."""
        self.is_released = True
        self._live.release()
        self.updated.emit()

    def resume(self) -> None:
        """Take the driver up again."""
        self.is_released = False
        self._live.resume()
        self.updated.emit()

    def record_to(self, path: Path) -> None:
        """Write everything that is read to `path` from now on, over what is there.

        Raises:
            RecordingError: If the file cannot be written.
        """
        self._recorder = Recorder(path, replace=True)
        self._recorder.note(self._history.inventory)
        self.recording_changed.emit()

    def note_plan(self, plan: Plan) -> None:
        """Write the plan that stands beside the readings into the file that is written, if one is."""
        if self._recorder is not None:
            self._recorder.note_plan(plan.model_dump(mode="json"))

    @Slot()
    def stop_recording(self) -> None:
        """Close the file that is written."""
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            recorder.close()
            if recorder.failure is not None:
                self.failed.emit(RecordingError(recorder.path, recorder.failure, _KEPT))
            self.recording_changed.emit()

    def play(self, loaded: LoadedRecording) -> None:
        """Show a recording from its beginning."""
        self.end_replay()
        self.replay = RecordingReplay(loaded)
        # Before anyone listens: the views draw the switch, and need not draw the same again for the first move.
        self.replay.play()
        self.replay.moved.connect(self.updated)
        self.switched.emit()

    def go_live(self) -> None:
        """Show this machine again."""
        if self.replay is not None:
            self.end_replay()
            self.switched.emit()

    def end_replay(self) -> None:
        """Put the recording away."""
        if self.replay is not None:
            self.replay.stop()
            self.replay = None

    def add_mark(self, time: float, text: str) -> None:
        """Put a note at a time of what is shown."""
        if self.is_live:
            self.mark_live(time, text)
        else:
            self.history.add_mark(time, text)
        self.updated.emit()

    def mark_live(self, time: float, text: str) -> None:
        """Put a note on the time line of this machine, also into the file that is written."""
        self._history.add_mark(time, text)
        if self._recorder is not None:
            self._recorder.mark(text)

    @Slot(object)
    def _take(self, updates: Sequence[Update]) -> None:
        for update in updates:
            self._history.note(update)
            if self._recorder is not None:
                self._recorder.note(update)
            for alert in self._watch.note(update, self._history.latest):
                self.alerted.emit(alert)
        if self._recorder is not None and self._recorder.failure is not None:
            self.stop_recording()
        if self.is_live:
            self.updated.emit()
