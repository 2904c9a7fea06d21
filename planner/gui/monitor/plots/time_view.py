"""The displayed time span and the cursor, shared by all plots, with their mouse and keyboard control."""

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QFontMetrics, QKeyEvent, QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QWidget

from planner.gui.plot.ticks import Ticks, clock_ticks
from planner.gui.theme import Theme

NARROWEST_SECONDS: Final = 2.0
_INITIAL_SPAN_SECONDS: Final = 600.0
_CLOCK_TEXT: Final = "00:00:00"
_WIDEST_TICK: Final = "1,000\u2009MB/s"
_ZOOM: Final = 0.8
_NOTCH: Final = 120
_PAN: Final = 0.1
_CURSOR_STEP: Final = 0.01
_KEY_DIRECTIONS: Final = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
_KEY_ZOOM_FACTORS: Final = {Qt.Key.Key_Plus: _ZOOM, Qt.Key.Key_Equal: _ZOOM, Qt.Key.Key_Minus: 1 / _ZOOM}


class TimeSpanView(QObject):
    """Displayed time span: `span` seconds up to `end`, which is the time of the latest reading if `follow` is set.

    A span that is longer than the readings begins before them. `shows_all` is whether the span grows with them.

    `moved` is emitted when the span changes, and `cursor_moved` with the time of the cursor or None.
    """

    moved = Signal()
    cursor_moved = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._first, self._last = 0.0, _INITIAL_SPAN_SECONDS
        self.end = _INITIAL_SPAN_SECONDS
        self.span = _INITIAL_SPAN_SECONDS
        self.shows_all = False
        self.follow = True
        self.cursor: float | None = None
        self._ticks: dict[tuple[float, float, int, float], Ticks] = {}

    @property
    def start(self) -> float:
        """Return the start of the displayed time span."""
        return self.end - self.span

    def set_follow(self, follow: bool) -> None:
        """Set whether the displayed span moves with the latest reading."""
        if follow != self.follow:
            self.follow = follow
            self._follow_readings()

    def set_reading_times(self, first: float, last: float) -> None:
        """Set the times of the first and the last reading."""
        self._first, self._last = first, last
        if self.follow:
            self._follow_readings()

    def set_span(self, seconds: float | None) -> None:
        """Show the latest `seconds`, None for everything, and follow the latest reading."""
        self.shows_all = seconds is None
        span = seconds or self._full_seconds
        self._set_clamped_span(self._last - span, span)
        self.set_follow(True)

    def show(self, start: float, end: float) -> None:
        """Show the time from `start` to `end` without following the latest reading."""
        self.set_follow(False)
        self._set_clamped_span(start, end - start)

    def zoom(self, factor: float, at: float) -> None:
        """Scale the span by `factor` around the time `at`, or around the latest reading if it is followed."""
        self.shows_all = False
        span = min(max(self.span * factor, NARROWEST_SECONDS), max(self._full_seconds, self.span))
        if self.follow:
            self._set_clamped_span(self._last - span, span)
        else:
            self._set_clamped_span(at - (at - self.start) * span / self.span, span)

    def pan(self, seconds: float) -> None:
        """Move the displayed span by `seconds`, and stop following the latest reading."""
        self.set_follow(False)
        self._set_clamped_span(self.start + seconds, self.span)

    def move_cursor(self, time: float | None) -> None:
        """Move the cursor to a time; None hides the cursor."""
        if time != self.cursor:
            self.cursor = time
            self.cursor_moved.emit(time)

    def ticks(self, count: int, wall_of: Callable[[float], float]) -> Ticks:
        """Return about `count` ticks with clock times over the span; plots of one width share them."""
        key = self.start, self.end, count, wall_of(self.start)
        if key not in self._ticks:
            self._ticks = {key: clock_ticks(self.start, self.end, count, wall_of)}
        return self._ticks[key]

    @property
    def _full_seconds(self) -> float:
        # A history of a few seconds is shown on an axis of a minute.
        return max(self._last - self._first, 60.0)

    def _follow_readings(self) -> None:
        span = self._full_seconds if self.shows_all else self.span
        start = self._last - span if self.follow else self.start
        self._set_clamped_span(start, span)

    def _set_clamped_span(self, start: float, span: float) -> None:
        """Display `span` seconds from `start` on, moved so that the span lies within the readings."""
        earliest = min(self._first, self._last - span)
        start = min(max(start, earliest), self._last - span)
        if (start + span, span) != (self.end, self.span):
            self.end, self.span = start + span, span
            self.moved.emit()


class Gestures(QObject):
    """Mouse control of `view` by events over `surface`; `time_at` returns the time at an x position.

    `clicked` and `double_clicked` carry the time at the pointer. The wheel without a modifier is left to the scroll
    area.
    """

    clicked = Signal(float)
    double_clicked = Signal(float)

    def __init__(self, surface: QWidget, view: TimeSpanView, time_at: Callable[[float], float]) -> None:
        super().__init__(surface)
        self._view, self._time_at = view, time_at
        self._pressed: float | None = None
        self._is_dragging = False
        surface.setMouseTracking(True)
        surface.installEventFilter(self)

    def eventFilter(self, _surface: QObject, event: QEvent) -> bool:
        """Handle mouse events: zoom, drag, move the cursor."""
        if isinstance(event, QWheelEvent):
            return self._handle_wheel(event)
        if isinstance(event, QMouseEvent):
            return self._handle_mouse(event)
        if event.type() == QEvent.Type.Leave:
            self._view.move_cursor(None)
        return False

    def _handle_wheel(self, event: QWheelEvent) -> bool:
        notches, sideways = event.angleDelta().y() / _NOTCH, event.angleDelta().x() / _NOTCH
        held = event.modifiers()
        if held & Qt.KeyboardModifier.ControlModifier:
            self._view.zoom(_ZOOM**notches, self._time_at(event.position().x()))
        elif sideways or held & Qt.KeyboardModifier.ShiftModifier:
            self._view.pan(-(sideways or notches) * _PAN * self._view.span)
        else:
            # Filtered but not accepted: the event goes to the scroll area, not to the plot.
            event.ignore()
            return True
        event.accept()
        return True

    def _handle_mouse(self, event: QMouseEvent) -> bool:
        x = event.position().x()
        if event.type() == QEvent.Type.MouseMove:
            self._handle_move(x, event)
        elif event.button() != Qt.MouseButton.LeftButton:
            return False
        elif event.type() == QEvent.Type.MouseButtonPress:
            self._pressed, self._is_dragging = x, False
        elif event.type() == QEvent.Type.MouseButtonRelease:
            if self._pressed is not None and not self._is_dragging:
                self.clicked.emit(self._time_at(x))
            self._pressed = None
        elif event.type() == QEvent.Type.MouseButtonDblClick:
            self.double_clicked.emit(self._time_at(x))
        return True

    def _handle_move(self, x: float, event: QMouseEvent) -> None:
        if self._pressed is not None and event.buttons() & Qt.MouseButton.LeftButton:
            self._is_dragging |= abs(x - self._pressed) >= QApplication.startDragDistance()
            if self._is_dragging:
                self._view.pan(self._time_at(self._pressed) - self._time_at(x))
                self._pressed = x
        self._view.move_cursor(self._time_at(x))


def handle_key(event: QKeyEvent, view: TimeSpanView) -> bool:
    """Handle the keys for the cursor (arrows), the span (Shift and arrows), zoom (+, −) and the ends (Home, End).

    Returns:
        Whether the key was handled.
    """
    key = Qt.Key(event.key())
    middle = (view.start + view.end) / 2
    if key in _KEY_DIRECTIONS and event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
        view.pan(_KEY_DIRECTIONS[key] * _PAN * view.span)
    elif key in _KEY_DIRECTIONS:
        at = (view.end if view.cursor is None else view.cursor) + _KEY_DIRECTIONS[key] * _CURSOR_STEP * view.span
        view.move_cursor(min(max(at, view.start), view.end))
    elif key in _KEY_ZOOM_FACTORS:
        view.zoom(_KEY_ZOOM_FACTORS[key], middle if view.cursor is None else view.cursor)
    elif key == Qt.Key.Key_Home:
        view.pan(-float("inf"))
    elif key == Qt.Key.Key_End:
        view.set_follow(True)
    elif key == Qt.Key.Key_Escape and view.cursor is not None:
        view.move_cursor(None)
    else:
        return False
    return True


def axis_width(theme: Theme) -> int:
    """Return the width of the y axis in pixels, the same for all plots so that the time axes are aligned."""
    return QFontMetrics(theme.font("small")).horizontalAdvance(_WIDEST_TICK) + theme.spacing.small


def time_ticks(view: TimeSpanView, theme: Theme, width: float, wall_of: Callable[[float], float]) -> Ticks:
    """Return the ticks of the time axis for an axis of `width` pixels."""
    clock = QFontMetrics(theme.font("small")).horizontalAdvance(_CLOCK_TEXT)
    return view.ticks(int(width / (2 * clock)), wall_of)
