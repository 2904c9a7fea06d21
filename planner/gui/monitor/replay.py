"""Loading and replay of recordings in the Monitor tab."""

from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import Final, NamedTuple

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from planner.errors import RecordingError
from planner.gui.threads import CalmTimer
from planner.monitor.history import History
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.sample import Sample
from planner.monitor.recording.log_import import open_recording
from planner.monitor.recording.player import Player
from planner.monitor.recording.recording import MonitorRecording
from planner.monitor.recording.summary import diagnosed_history
from planner.monitor.supervisor.snapshot import apply_update

SPEEDS: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 60.0)

_TICK_MS: Final = 100
# The demo's first diagnosis.
_DEMO_BEGINS_SECONDS: Final = 150.0


class LoadedRecording(NamedTuple):
    """A recording with its whole history loaded; `is_demo` marks the demo with invented readings.

    `player` is where the replay begins, and `first` is the state there.
    """

    recording: MonitorRecording
    history: History
    player: Player
    first: tuple[Inventory | Sample, ...]
    is_demo: bool = False

    @property
    def title(self) -> str:
        """Return the name of the replayed source for the toolbar."""
        return "Demo: invented readings" if self.is_demo else f"Replay of {self.recording.path.name}"


class RecordingLoader:
    """Loads a recording or another program's log; `stop` may be called from another thread to end loading early."""

    def __init__(self, path: Path, *, is_demo: bool = False) -> None:
        self._path, self._is_demo = path, is_demo
        self._is_stopped = False

    def stop(self) -> None:
        """End the loading early; `load` then returns an incomplete history."""
        self._is_stopped = True

    def load(self) -> LoadedRecording:
        """Load the recording, diagnose its cards over time, and return the recording with its history.

        Raises:
            RecordingError: If the file cannot be read, or has no reading.
        """
        recording = open_recording(self._path)
        history = diagnosed_history(recording, lambda: self._is_stopped)
        if history.end is None and not self._is_stopped:
            raise RecordingError(self._path, "no readings", "The recording ended before its first reading was written.")
        player = Player(recording)
        first = player.seek(_DEMO_BEGINS_SECONDS if self._is_demo else 0.0)
        return LoadedRecording(recording, history, player, first, self._is_demo)


class RecordingReplay(QObject):
    """Replays a recording; `moved` is emitted when the displayed time changes, and on play and stop."""

    moved = Signal()

    def __init__(self, loaded: LoadedRecording, clock: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self.loaded, self.history = loaded, loaded.history
        self.latest = Latest()
        self._clock = clock
        self._player = loaded.player
        self._advanced_at = 0.0
        self._timer = QTimer(self, interval=_TICK_MS)
        self._advance = CalmTimer(self)
        self._timer.timeout.connect(self._advance.start)
        self._advance.timeout.connect(self._advance_displayed_time)
        self._apply_updates(loaded.first)

    @property
    def seconds(self) -> float:
        """Return the displayed time, in seconds from the start of the recording."""
        return self._player.position

    @property
    def length(self) -> float:
        """Return the length of the recording in seconds."""
        return self.loaded.recording.seconds

    @property
    def now(self) -> float:
        """Return the displayed time in monotonic seconds of the recording."""
        return self.loaded.recording.start + self.seconds

    @property
    def is_playing(self) -> bool:
        """Return whether the replay is running."""
        return self._timer.isActive()

    def set_speed(self, speed: float) -> None:
        """Set the replay speed, as a multiple of real time."""
        self._player.speed = speed

    def play(self) -> None:
        """Continue the replay from the displayed time; at the end, start again."""
        if self._player.is_over:
            self.seek(0.0)
        self._advanced_at = self._clock()
        self._timer.start()
        self.moved.emit()

    def stop(self) -> None:
        """Stop the replay at the displayed time; `play` continues from there."""
        self._timer.stop()
        self._advance.stop()
        self.moved.emit()

    def seek(self, seconds: float) -> None:
        """Jump to a time, in seconds from the start of the recording."""
        self.latest = Latest()
        self._apply_updates(self._player.seek(seconds))

    @Slot(float)
    def show_time(self, time: float) -> None:
        """Jump to a time in monotonic seconds of the recording."""
        self.seek(time - self.loaded.recording.start)

    @Slot()
    def _advance_displayed_time(self) -> None:
        before, self._advanced_at = self._advanced_at, self._clock()
        self._apply_updates(self._player.advance(self._advanced_at - before))
        if self._player.is_over:
            self.stop()

    def _apply_updates(self, updates: Sequence[Inventory | Sample]) -> None:
        for update in updates:
            apply_update(self.latest, update)
        self.moved.emit()
