"""What the pointer does over a time axis: move the cursor, pan by dragging, zoom with Ctrl and the wheel."""

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QWidget

from planner.gui.monitor.plots.view import TimeView

_ZOOM_A_NOTCH: Final = 0.8
_NOTCH: Final = 120
_PAN_A_NOTCH: Final = 0.1


class Gestures(QObject):
    """Turns what happens over `surface` into moves of `view`; `time_at` tells the time at a horizontal place.

    `double_clicked` carries the time. The wheel alone is left to what scrolls.
    """

    double_clicked = Signal(float)

    def __init__(self, surface: QWidget, view: TimeView, time_at: Callable[[float], float]) -> None:
        super().__init__(surface)
        self._view, self._time_at = view, time_at
        self._pressed: float | None = None
        self._is_dragging = False
        surface.setMouseTracking(True)
        surface.installEventFilter(self)

    def eventFilter(self, _surface: QObject, event: QEvent) -> bool:
        """Take the events of the pointer; leave all others."""
        if isinstance(event, QWheelEvent):
            return self._wheel(event)
        if isinstance(event, QMouseEvent):
            return self._mouse(event)
        if event.type() == QEvent.Type.Leave:
            self._view.point_at(None)
        return False

    def _wheel(self, event: QWheelEvent) -> bool:
        notches, sideways = event.angleDelta().y() / _NOTCH, event.angleDelta().x() / _NOTCH
        held = event.modifiers()
        if held & Qt.KeyboardModifier.ControlModifier:
            self._view.zoom(_ZOOM_A_NOTCH**notches, self._time_at(event.position().x()))
        elif sideways or held & Qt.KeyboardModifier.ShiftModifier:
            self._view.pan(-(sideways or notches) * _PAN_A_NOTCH * self._view.span)
        else:
            # Filtered but not accepted: it goes on to what scrolls, not to the plot.
            event.ignore()
            return True
        event.accept()
        return True

    def _mouse(self, event: QMouseEvent) -> bool:
        x = event.position().x()
        if event.type() == QEvent.Type.MouseMove:
            self._move(x, event)
        elif event.button() != Qt.MouseButton.LeftButton:
            return False
        elif event.type() == QEvent.Type.MouseButtonPress:
            self._pressed, self._is_dragging = x, False
        elif event.type() == QEvent.Type.MouseButtonRelease:
            self._pressed = None
        elif event.type() == QEvent.Type.MouseButtonDblClick:
            self.double_clicked.emit(self._time_at(x))
        return True

    def _move(self, x: float, event: QMouseEvent) -> None:
        if self._pressed is not None and event.buttons() & Qt.MouseButton.LeftButton:
            self._is_dragging |= abs(x - self._pressed) >= QApplication.startDragDistance()
            if self._is_dragging:
                self._view.pan(self._time_at(self._pressed) - self._time_at(x))
                self._pressed = x
        self._view.point_at(self._time_at(x))
