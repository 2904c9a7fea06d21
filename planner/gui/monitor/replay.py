"""A recording that is played: the whole of it in the plots at once, and a time in it that moves."""

from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import Final, NamedTuple

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from planner.gui.monitor.verdict_timeline import RecordingDiagnosis
from planner.monitor.history import History
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.sample import Sample
from planner.monitor.recording.logs.importing import open_recording
from planner.monitor.recording.player import Player
from planner.monitor.recording.recording import Recording
from planner.monitor.supervisor.gathering import note

SPEEDS: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 60.0)

_TICK_MS: Final = 100
_DAY_SECONDS: Final = 86_400.0
# Where the demo has something to say at once.
_DEMO_BEGINS_SECONDS: Final = 150.0
# Beside its span, so that its first reading is not yet forgotten when its last is taken over.
_SLACK_SECONDS: Final = 60.0


class LoadedRecording(NamedTuple):
    """A recording and everything that is in it; `is_demo` says that its readings are invented."""

    recording: Recording
    history: History
    is_demo: bool = False

    @property
    def title(self) -> str:
        """Return what is played, as its heading says."""
        return "Demo: invented readings" if self.is_demo else f"Replay of {self.recording.path.name}"


class RecordingLoader:
    """Reads a recording, or another program's log, in the background; `stop` makes it end early."""

    def __init__(self, path: Path, *, is_demo: bool = False) -> None:
        self._path, self._is_demo = path, is_demo
        self._is_stopped = False

    def stop(self) -> None:
        """End soon; what is returned then is not to be used."""
        self._is_stopped = True

    def load(self) -> LoadedRecording:
        """Return the recording with its whole history, and what was to be said of it all along.

        Raises:
            RecordingError: If it cannot be read.
        """
        recording = open_recording(self._path)
        history = History(max(_DAY_SECONDS, recording.seconds + _SLACK_SECONDS))
        look_back = RecordingDiagnosis(history, recording.seconds)
        for update in recording:
            if self._is_stopped:
                break
            history.note(update)
            look_back.note()
        for mark in recording.marks:
            history.add_mark(mark.monotonic_seconds, mark.text)
        return LoadedRecording(recording, history, self._is_demo)


class RecordingReplay(QObject):
    """Moves through a recording at a speed; `moved` says that another time is shown, or that it goes on or stands."""

    moved = Signal()

    def __init__(self, loaded: LoadedRecording, clock: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self.loaded, self.history = loaded, loaded.history
        self.latest = Latest()
        self._clock = clock
        self._player = Player(loaded.recording)
        self._looked_at = 0.0
        self._timer = QTimer(self, interval=_TICK_MS)
        self._timer.timeout.connect(self._go_on)
        self.seek(_DEMO_BEGINS_SECONDS if loaded.is_demo else 0.0)

    @property
    def seconds(self) -> float:
        """Return how far into the recording the time is that is shown."""
        return self._player.position

    @property
    def length(self) -> float:
        """Return how long the recording is, in seconds."""
        return self.loaded.recording.seconds

    @property
    def now(self) -> float:
        """Return the time that is shown, by the clock of the recording."""
        return self.loaded.recording.start + self.seconds

    @property
    def is_playing(self) -> bool:
        """Return whether time goes on."""
        return self._timer.isActive()

    def set_speed(self, speed: float) -> None:
        """Play so many times as fast as it happened."""
        self._player.speed = speed

    def play(self) -> None:
        """Go on from here, or from the beginning once the end is reached."""
        if self._player.is_over:
            self.seek(0.0)
        self._looked_at = self._clock()
        self._timer.start()
        self.moved.emit()

    def stop(self) -> None:
        """Stand still."""
        self._timer.stop()
        self.moved.emit()

    def seek(self, seconds: float) -> None:
        """Show what stood so far into the recording."""
        self.latest = Latest()
        self._take(self._player.seek(seconds))

    @Slot()
    def _go_on(self) -> None:
        before, self._looked_at = self._looked_at, self._clock()
        self._take(self._player.advance(self._looked_at - before))
        if self._player.is_over:
            self.stop()

    def _take(self, updates: Sequence[Inventory | Sample]) -> None:
        for update in updates:
            note(self.latest, update)
        self.moved.emit()
