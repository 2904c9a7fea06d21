"""Where a replay is, and how fast it goes."""

from typing import Final

from PySide6.QtCore import QSignalBlocker, Qt, Slot
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QSlider, QWidget

from planner.gui.monitor.replay import SPEEDS, Replay
from planner.gui.theme import Theme
from planner.gui.widgets.icon_button import IconButton
from planner.gui.widgets.label import make_label
from planner.present.monitor.events import clock, elapsed

# Steps of a tenth of a second; a day of them is well within what a slider can hold.
_STEPS: Final = 10
_PAGE_SECONDS: Final = 60


class ReplayBar(QWidget):
    """A slider through the recording, its time, and the speed; hidden while this machine is shown."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._replay: Replay | None = None
        self.play = IconButton(theme, "play", "Play")
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setAccessibleName("Time in the recording")
        self.slider.setPageStep(_PAGE_SECONDS * _STEPS)
        self.slider.setSingleStep(_STEPS)
        self.speed = QComboBox()
        self.speed.setAccessibleName("Speed")
        for speed in SPEEDS:
            self.speed.addItem(f"{speed:g} ×", speed)
        self.time = make_label(role="muted")
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.spacing.small)
        layout.addWidget(self.play)
        layout.addWidget(self.slider, 1)
        layout.addWidget(self.time)
        layout.addWidget(self.speed)
        self.play.clicked.connect(self.toggle)
        self.slider.valueChanged.connect(self._on_slid)
        self.speed.activated.connect(self._on_speed)
        self.hide()

    def set_replay(self, replay: Replay | None) -> None:
        """Stand for this replay, or for none."""
        self._replay = replay
        self.setVisible(replay is not None)
        if replay is not None:
            with QSignalBlocker(self.slider):
                self.slider.setRange(0, round(replay.length * _STEPS))
            self.speed.setCurrentIndex(self.speed.findData(1.0))
            self.refresh()

    def refresh(self) -> None:
        """Show where the replay is."""
        replay = self._replay
        if replay is None:
            return
        with QSignalBlocker(self.slider):
            self.slider.setValue(round(replay.seconds * _STEPS))
        at = clock(replay.history.wall_of(replay.now))
        self.time.setText(f"{at}  ·  {elapsed(replay.seconds)} of {elapsed(replay.length)}")
        self.play.set_icon("pause" if replay.is_playing else "play")
        self.play.set_words("Pause" if replay.is_playing else "Play")

    @Slot()
    def toggle(self) -> None:
        """Go on, or stand still."""
        if self._replay is not None and self._replay.is_playing:
            self._replay.stop()
        elif self._replay is not None:
            self._replay.play()

    @Slot(int)
    def _on_slid(self, step: int) -> None:
        if self._replay is not None:
            self._replay.seek(step / _STEPS)

    @Slot()
    def _on_speed(self) -> None:
        if self._replay is not None:
            self._replay.set_speed(self.speed.currentData())
