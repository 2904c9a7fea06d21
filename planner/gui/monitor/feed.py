"""Source of the Monitor tab's readings: this machine live, or a replayed recording; and their diagnosis."""

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Event, Thread
from time import monotonic, thread_time
from typing import Final, NamedTuple

from PySide6.QtCore import QObject, Qt, Signal, Slot

from planner.errors import RecordingError
from planner.gui.monitor.replay import LoadedRecording, RecordingReplay
from planner.monitor.alerts import AlertWatch
from planner.monitor.diagnosis.checklist import consistent_with_verdict, evaluate_checklist
from planner.monitor.diagnosis.diagnose import diagnose_all
from planner.monitor.diagnosis.tracker import VerdictTimeline
from planner.monitor.diagnosis.verdict import Verdict, VerdictKind
from planner.monitor.history import History
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.latest import Latest
from planner.monitor.recording.recorder import Recorder
from planner.monitor.recording.records import RecordedPlan
from planner.monitor.series import Series
from planner.monitor.settings import AlertRules, SamplerSettings, Timeouts
from planner.monitor.supervisor.remote import REMOTE_TIMEOUTS, RemoteAddress
from planner.monitor.supervisor.supervisor import Supervisor, Update
from planner.plan.plan import Plan
from planner.present.monitor.diagnosis import ChecklistRow, DiagnosisView, checklist_rows, diagnosis_view
from planner.present.trackers.tracking import LiveTracking

_log = logging.getLogger(__name__)
# Not more, or the longer interval would look like missing readings.
_UNSEEN: Final = 2.0
_KEPT: Final = "The part that was written before can be replayed."


class LiveSource(QObject):
    """Reads this machine, or that at `address`; `arrived` carries updates, oldest first, on the window's thread.

    The supervisor starts and stops in a thread of its own, so that only `stop` waits for it, with a timeout.
    """

    arrived = Signal(object)
    _queued = Signal()

    def __init__(
        self,
        settings: SamplerSettings,
        timeouts: Timeouts | None = None,
        environment: Mapping[str, str] | None = None,
        address: RemoteAddress | None = None,
    ) -> None:
        super().__init__()
        self._updates: deque[Update] = deque()
        self._is_announced = False
        self._over = Event()
        self._timeouts = timeouts or (Timeouts() if address is None else REMOTE_TIMEOUTS)
        self.supervisor = Supervisor(self._enqueue, settings, self._timeouts, environment, address)
        self._thread = Thread(target=self._run_supervisor, name="live", daemon=True)
        self._queued.connect(self._emit_queued, Qt.ConnectionType.QueuedConnection)

    def start(self) -> None:
        """Start reading this machine; may be called only once."""
        self._thread.start()

    def stop(self) -> None:
        """Stop reading, and wait for the supervisor's thread with a timeout; a hanging thread ends with the process."""
        self.begin_stop()
        if self._thread.is_alive():
            # Longer than the supervisor's own timeout, which should expire first.
            self._thread.join(2 * self._timeouts.stop)
            if self._thread.is_alive():
                _log.warning("The monitor did not end within %g seconds", 2 * self._timeouts.stop)

    def begin_stop(self) -> None:
        """Stop reading without waiting for the supervisor's thread; no more updates arrive."""
        self._over.set()
        self._updates.clear()

    def _run_supervisor(self) -> None:
        with self.supervisor:
            self._over.wait()

    def _enqueue(self, update: Update) -> None:
        if self._over.is_set():
            return
        self._updates.append(update)
        # One event for all updates until it is delivered, so that a busy window is not flooded.
        if not self._is_announced:
            self._is_announced = True
            self._queued.emit()

    @Slot()
    def _emit_queued(self) -> None:
        self._is_announced = False
        updates = []
        while self._updates:
            updates.append(self._updates.popleft())
        if updates and not self._over.is_set():
            self.arrived.emit(tuple(updates))


class DisplayedReadings(NamedTuple):
    """Readings at the displayed time, with the series before it, as a source for the diagnosis."""

    latest: Latest
    inventory: Inventory
    end: float | None
    series: Callable[[str, str], Series]


class Feed(QObject):
    """Displayed readings, live or replayed; live readings are also stored during a replay, so that no gap results.

    `updated` is emitted when the displayed readings change, `switched` when their source does, `recording_changed` when
    a recording starts or ends; `alerted` carries an `Alert`, `failed` a `PlannerError`, `tracking_ended` the run of an
    experiment tracker that is still to be closed.
    """

    updated = Signal()
    switched = Signal()
    alerted = Signal(object)
    recording_changed = Signal()
    failed = Signal(object)
    tracking_ended = Signal(object)

    def __init__(
        self,
        interval_seconds: float,
        rules: AlertRules,
        timeouts: Timeouts | None = None,
        environment: Mapping[str, str] | None = None,
        pace: SamplerSettings | None = None,
    ) -> None:
        super().__init__()
        self.replay: RecordingReplay | None = None
        self.machine: RemoteAddress | None = None
        self.is_released = False
        self._history = History()
        self._watch = AlertWatch(rules)
        self._recorder: Recorder | None = None
        self._tracking: LiveTracking | None = None
        self._is_started, self._is_seen = False, True
        self._settings = (pace or SamplerSettings())._replace(fast_seconds=interval_seconds)
        self._timeouts, self._environment = timeouts, environment
        self._left: list[LiveSource] = []
        self._live = LiveSource(self._settings, timeouts, environment)
        self._live.arrived.connect(self._store_updates)

    @property
    def is_live(self) -> bool:
        """Return whether live readings of this machine are displayed instead of a recording."""
        return self.replay is None

    @property
    def is_moving(self) -> bool:
        """Return whether the displayed time moves by itself: live, or in a replay that is playing."""
        return self.replay is None or self.replay.is_playing

    @property
    def history(self) -> History:
        """Return the history of the displayed source, which the plots show."""
        return self._history if self.replay is None else self.replay.history

    @property
    def latest(self) -> Latest:
        """Return the readings at the displayed time."""
        return self._history.latest if self.replay is None else self.replay.latest

    @property
    def live_latest(self) -> Latest:
        """Return the latest live readings, even during a replay."""
        return self._history.latest

    @property
    def now(self) -> float | None:
        """Return the displayed time in monotonic seconds, None before the first reading."""
        return self._history.end if self.replay is None else self.replay.now

    @property
    def displayed_readings(self) -> DisplayedReadings:
        """Return the displayed readings as a source for the diagnosis."""
        return DisplayedReadings(self.latest, self.latest.inventory, self.now, self.history.series)

    @property
    def needs_driver_while_hidden(self) -> bool:
        """Return whether a recording or alerts need the driver even while the tab is hidden."""
        return self.recording_path is not None or self._watch.rules.is_on

    @property
    def recording_path(self) -> Path | None:
        """Return the path of the recording in progress, None without one."""
        return None if self._recorder is None else self._recorder.path

    @property
    def is_tracked(self) -> bool:
        """Return whether the recording in progress is also written to an experiment tracker."""
        return self._tracking is not None

    def start(self) -> None:
        """Start reading this machine, unless already started."""
        if not self._is_started:
            self._is_started = True
            self._live.start()

    def stop(self) -> None:
        """End the replay, the live readings and the recording; the feed cannot be started again."""
        self.end_replay()
        if self._is_started:
            self._live.stop()
        for source in self._left:
            source.stop()
        if self._tracking is not None:
            self._tracking.close()
            self._tracking = None
        self.stop_recording()

    def watch(self, machine: RemoteAddress | None) -> None:
        """Read another machine from now on, or this one (None), and display it; its readings begin anew."""
        self.stop_recording()
        self.end_replay()
        self._live.arrived.disconnect(self._store_updates)
        self._live.begin_stop()
        self._left.append(self._live)
        self.machine, self.is_released = machine, False
        self._history, self._watch = History(), AlertWatch(self._watch.rules)
        if machine is not None:  # named from the first moment on, not only once it answers
            self._history.note(Inventory(machine=machine.host))
        self._live = LiveSource(self._settings, self._timeouts, self._environment, machine)
        self._live.arrived.connect(self._store_updates)
        if self._is_started:
            self._live.start()
        self.switched.emit()

    def set_interval(self, seconds: float) -> None:
        """Set the sampling interval of live readings, in seconds."""
        self._settings = self._settings._replace(fast_seconds=seconds)
        self._apply_interval()

    def set_seen(self, is_seen: bool) -> None:
        """Read half as often while nobody looks, unless a recording or alerts need every reading."""
        self._is_seen = is_seen
        self._apply_interval()

    def set_rules(self, rules: AlertRules) -> None:
        """Replace the alert rules."""
        self._watch = AlertWatch(rules)
        self._apply_interval()

    def _apply_interval(self) -> None:
        is_needed = self._is_seen or self.needs_driver_while_hidden
        self._live.supervisor.set_interval(self._settings.fast_seconds * (1 if is_needed else _UNSEEN))

    def release(self) -> None:
        """Disconnect from the driver, so that the driver can be unloaded or the card can sleep."""
        self.is_released = True
        self._live.supervisor.release()
        self.updated.emit()

    def resume(self) -> None:
        """Reconnect to the driver, or to another machine at once."""
        self.is_released = False
        self._live.supervisor.resume()
        self.updated.emit()

    def record_to(self, path: Path) -> None:
        """Record all live readings to `path`, replacing an existing file.

        Raises:
            RecordingError: If the file cannot be written.
        """
        self._recorder = Recorder(path, replace=True)
        self._recorder.note(self._history.inventory)
        self._apply_interval()
        self.recording_changed.emit()

    def note_plan(self, plan: Plan) -> None:
        """Add `plan` to the current recording, if there is one."""
        if self._recorder is not None:
            fields = plan.model_dump(mode="json")
            self._recorder.note_plan(fields)
            if self._tracking is not None:
                self._tracking.note(RecordedPlan(fields))

    def track(self, tracking: LiveTracking, plan: Plan) -> None:
        """Write the readings, marks and plans of the recording to a tracker's run, too, until the recording ends."""
        if self._recorder is None or self._tracking is not None:
            self.tracking_ended.emit(tracking)
            return
        tracking.note(self._history.inventory)
        tracking.note(RecordedPlan(plan.model_dump(mode="json")))
        self._tracking = tracking

    def _end_tracking(self) -> None:
        tracking, self._tracking = self._tracking, None
        if tracking is not None:
            self.tracking_ended.emit(tracking)

    @Slot()
    def stop_recording(self) -> None:
        """Stop the current recording, if there is one."""
        recorder, self._recorder = self._recorder, None
        self._end_tracking()
        if recorder is not None:
            recorder.close()
            if recorder.failure is not None:
                self.failed.emit(RecordingError(recorder.path, recorder.failure, _KEPT))
            self._apply_interval()
            self.recording_changed.emit()

    def play(self, loaded: LoadedRecording) -> None:
        """Replay a recording from its start."""
        self.end_replay()
        self.replay = RecordingReplay(loaded)
        # Before `moved` is connected: the views draw on `switched` and need not draw the first position twice.
        self.replay.play()
        self.replay.moved.connect(self.updated)
        self.switched.emit()

    def go_live(self) -> None:
        """End the replay and display the live readings."""
        if self.replay is not None:
            self.end_replay()
            self.switched.emit()

    def end_replay(self) -> None:
        """End the replay, if there is one, without announcing the change of source."""
        if self.replay is not None:
            self.replay.stop()
            self.replay = None

    def add_mark(self, time: float, text: str) -> None:
        """Add a mark to the displayed timeline; during live readings also to the current recording."""
        if self.is_live:
            self.mark_live(time, text)
        else:
            self.history.add_mark(time, text)
        self.updated.emit()

    def mark_live(self, time: float, text: str) -> None:
        """Add a mark to the live timeline and to the current recording."""
        self._history.add_mark(time, text)
        if self._recorder is not None:
            mark = self._recorder.mark(text)
            if self._tracking is not None:
                self._tracking.note(mark)

    @Slot(object)
    def _store_updates(self, updates: Sequence[Update]) -> None:
        for update in updates:
            self._history.note(update)
            if self._recorder is not None:
                self._recorder.note(update)
            if self._tracking is not None:
                self._tracking.note(update)
            for alert in self._watch.note(update, self._history.latest):
                self.alerted.emit(alert)
        if self._recorder is not None and self._recorder.failure is not None:
            self.stop_recording()
        if self._tracking is not None and self._tracking.failure is not None:
            self._end_tracking()
        if self.is_live:
            self.updated.emit()


# A diagnosis considers minutes, so it need not be repeated more often.
_EVERY_SECONDS: Final = 2.0
# With many cards the interval grows, so that diagnosing takes no more than this share of a core.
_MOST_SHARE: Final = 0.002
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
        displayed_readings, now, began = self._feed.displayed_readings, monotonic(), thread_time()
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
        spent = thread_time() - began
        least, share = (_EVERY_SECONDS, _MOST_SHARE) if self._feed.is_live else (0.0, _MOST_REPLAY_SHARE)
        self._due = now + min(max(spent / share, least), _LATEST_SECONDS)
        return self._diagnoses

    def checklist(self, uuid: str) -> tuple[ChecklistRow, ...]:
        """Return the optimization checklist for the displayed card with this UUID."""
        displayed_readings = self._feed.displayed_readings
        checked, verdict = evaluate_checklist(displayed_readings, uuid, displayed_readings.end), self.verdicts.get(uuid)
        return checklist_rows(checked if verdict is None else consistent_with_verdict(checked, verdict))
