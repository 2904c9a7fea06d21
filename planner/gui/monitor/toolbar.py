"""Toolbar of the Monitor tab, and the controls of a replay."""

from typing import Final

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QComboBox, QMenu, QPushButton, QSlider, QStyle, QStyleOptionSlider, QWidget

from planner.gui.monitor.replay import SPEEDS, RecordingReplay
from planner.gui.monitor.settings import MonitorSettings
from planner.gui.theme import Theme, set_style_role
from planner.gui.widgets.buttons import IconButton, push_button
from planner.gui.widgets.inputs.choice_field import ChoiceBox
from planner.gui.widgets.labels import ElidedLabel, make_label
from planner.gui.widgets.layout import in_row
from planner.present import format as fmt
from planner.present.monitor.events import clock_time, duration_text, elapsed_text

SPANS: Final[tuple[tuple[str, float | None], ...]] = (
    ("1 minute", 60.0),
    ("5 minutes", 300.0),
    ("10 minutes", 600.0),
    ("30 minutes", 1800.0),
    ("1 hour", 3600.0),
    ("6 hours", 21_600.0),
    ("24 hours", 86_400.0),
    ("everything", None),
)
INTERVALS: Final = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
# Slider steps per second; a day of them is well within the range of a slider.
_STEPS: Final = 10
_PAGE_SECONDS: Final = 60


class Toolbar(QWidget):
    """Toolbar of the tab; `span_chosen` and `interval_chosen` carry seconds, and a span of None means everything."""

    span_chosen = Signal(object)
    interval_chosen = Signal(float)

    def __init__(self, theme: Theme, settings: MonitorSettings, more: QMenu) -> None:
        super().__init__()
        self._theme = theme
        self.source = make_label(font=theme.font(bold=True))
        self.cost = ElidedLabel(role="muted", is_live=True)
        self.fleet = push_button("Fleet…", "Show the GPUs of many machines, from a Prometheus or from exporters.")
        self.live = QPushButton("Back to live")
        self.live.setToolTip("Close the recording, and show this machine's readings")
        self.pause = IconButton(theme, "pause", "Pause")
        self.span = _choice_box(theme, "Displayed time span")
        self.interval = _choice_box(theme, "Interval between readings")
        self.record = QPushButton("&Record")
        self.record.setToolTip("Write all readings to a file, until stopped")
        self.open = push_button("&Open…", "Replay a recording, or a log of nvidia-smi, dmon, nvtop, DCGM or amd-smi.")
        self.note = IconButton(theme, "flag", "Mark this moment with a note")
        self.alerts = IconButton(theme, "bell", "Alerts")
        self._more = IconButton(theme, "more", "More")
        self._more.set_menu(more)
        self._fill_choices(settings)
        self._every = make_label("every", "muted")
        in_row(
            self.source,
            self.fleet,
            self.live,
            (self.cost, 1),
            self.pause,
            make_label("show", "muted"),
            self.span,
            self._every,
            self.interval,
            self.record,
            self.open,
            self.note,
            self.alerts,
            self._more,
            owner=self,
            spacing=self._theme.spacing.small,
        )
        self._connect()
        theme.changed.connect(self._update_record_icon)
        self.set_recording(is_on=False)

    def set_source(self, name: str, *, is_live: bool) -> None:
        """Show the name of the displayed source; pause, interval and recording are visible for live readings only."""
        self.source.setText(name)
        set_style_role(self.source, "" if is_live else "warn")
        self.live.setVisible(not is_live)
        for widget in (self.pause, self.interval, self._every, self.record):
            widget.setVisible(is_live)

    def choose_span(self, seconds: float | None) -> None:
        """Select the time span of `seconds` in the box, None for everything."""
        self.span.setCurrentIndex(max(0, self.span.findData(seconds)))

    def show_span(self, seconds: float | None, until: str | None) -> None:
        """Say which time span is displayed, None for everything; `until` is its end unless it ends now."""
        row = -1 if until else self.span.findData(seconds)
        if row < 0 and seconds is not None:
            length = duration_text(seconds)
            self.span.setPlaceholderText(f"{length} until {until}" if until else length)
        if row != self.span.currentIndex():
            self.span.setCurrentIndex(row)

    def set_paused(self, is_paused: bool) -> None:
        """Show on the pause button whether the view is paused."""
        self.pause.set_icon("play" if is_paused else "pause")
        self.pause.set_text("Resume" if is_paused else "Pause")

    def set_recording(self, *, is_on: bool) -> None:
        """Show on the record button whether readings are being recorded."""
        self._is_recording = is_on
        self.record.setText("Stop &recording" if is_on else "&Record")
        self._update_record_icon()

    def set_alerts(self, *, is_on: bool) -> None:
        """Show on the alerts button whether alerts are on."""
        self.alerts.set_icon("bell", "accent" if is_on else "muted")
        self.alerts.set_text("Alerts: on" if is_on else "Alerts: off")

    def _fill_choices(self, settings: MonitorSettings) -> None:
        for title, seconds in SPANS:
            self.span.addItem(title, seconds)
        for interval in INTERVALS:
            self.interval.addItem(f"{interval:g}{fmt.THIN}s", interval)
        self.choose_span(settings.span_seconds)
        self.interval.setCurrentIndex(max(0, self.interval.findData(settings.interval_seconds)))
        self.set_alerts(is_on=settings.alerts.is_on)

    def _connect(self) -> None:
        self.span.activated.connect(lambda _row: self.span_chosen.emit(self.span.currentData()))
        self.interval.activated.connect(lambda _row: self.interval_chosen.emit(self.interval.currentData()))

    @Slot()
    def _update_record_icon(self) -> None:
        self.record.setIcon(self._theme.icon("stop" if self._is_recording else "record", "bad"))


def _choice_box(theme: Theme, name: str) -> ChoiceBox:
    box = ChoiceBox(theme)
    box.setAccessibleName(name)
    box.setToolTip(name)
    box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
    return box


class _TimeSlider(QSlider):
    """Slider that jumps to a click; Qt's moves by a page."""

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Move the handle under the pointer, and start dragging it."""
        option, style = QStyleOptionSlider(), self.style()
        self.initStyleOption(option)
        slider, part = QStyle.ComplexControl.CC_Slider, QStyle.SubControl
        handle = style.subControlRect(slider, option, part.SC_SliderHandle, self)
        if event.button() == Qt.MouseButton.LeftButton and not handle.contains(event.position().toPoint()):
            groove = style.subControlRect(slider, option, part.SC_SliderGroove, self)
            x = round(event.position().x()) - groove.left() - handle.width() // 2
            length = groove.width() - handle.width()
            self.setValue(QStyle.sliderValueFromPosition(self.minimum(), self.maximum(), x, length))
        super().mousePressEvent(event)


class ReplayBar(QWidget):
    """Controls of a replay: position, time and speed; hidden while live readings are displayed."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._replay: RecordingReplay | None = None
        self.play = IconButton(theme, "play", "Play")
        self.slider = _TimeSlider(Qt.Orientation.Horizontal)
        self.slider.setAccessibleName("Time in the recording")
        self.slider.setToolTip("Click or drag to a time in the recording")
        self.slider.setPageStep(_PAGE_SECONDS * _STEPS)
        self.slider.setSingleStep(_STEPS)
        self.speed = _choice_box(theme, "Speed")
        self.speed.setToolTip("Speed at which the recording is played")
        for speed in SPEEDS:
            self.speed.addItem(f"{speed:g} ×", speed)
        self.time = make_label(role="muted")
        in_row(self.play, (self.slider, 1), self.time, self.speed, owner=self, spacing=theme.spacing.small)
        self.play.clicked.connect(self.toggle)
        self.slider.valueChanged.connect(self._seek_to_step)
        self.speed.activated.connect(self._set_chosen_speed)
        self.hide()

    def set_replay(self, replay: RecordingReplay | None) -> None:
        """Control the replay `replay`; None hides the bar of controls."""
        self._replay = replay
        self.setVisible(replay is not None)
        if replay is not None:
            with QSignalBlocker(self.slider):
                self.slider.setRange(0, round(replay.length * _STEPS))
            self.speed.setCurrentIndex(self.speed.findData(1.0))
            self.refresh()

    def refresh(self) -> None:
        """Show the position and the state of the replay."""
        replay = self._replay
        if replay is None:
            return
        with QSignalBlocker(self.slider):
            self.slider.setValue(round(replay.seconds * _STEPS))
        at = clock_time(replay.history.wall_of(replay.now))
        self.time.setText(f"{at}  ·  {elapsed_text(replay.seconds)} of {elapsed_text(replay.length)}")
        self.play.set_icon("pause" if replay.is_playing else "play")
        self.play.set_text("Pause" if replay.is_playing else "Play")

    @Slot()
    def toggle(self) -> None:
        """Play or pause the replay."""
        if self._replay is not None and self._replay.is_playing:
            self._replay.stop()
        elif self._replay is not None:
            self._replay.play()

    @Slot(int)
    def _seek_to_step(self, step: int) -> None:
        if self._replay is not None:
            self._replay.seek(step / _STEPS)

    @Slot()
    def _set_chosen_speed(self) -> None:
        if self._replay is not None:
            self._replay.set_speed(self.speed.currentData())
