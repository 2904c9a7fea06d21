"""The plots by keyboard."""

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent

from planner.gui.monitor.plots.view import TimeView

_STEP: Final = 0.01
_PAN: Final = 0.1
_ZOOM: Final = 0.8
_SIDES: Final = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
_ZOOMS: Final = {Qt.Key.Key_Plus: _ZOOM, Qt.Key.Key_Equal: _ZOOM, Qt.Key.Key_Minus: 1 / _ZOOM}


def handle_key(event: QKeyEvent, view: TimeView) -> bool:
    """Move the cursor (arrows), the span (with Shift), zoom (+, −) or go to an end; return whether the key does any."""
    key = Qt.Key(event.key())
    middle = (view.start + view.end) / 2
    if key in _SIDES and event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
        view.pan(_SIDES[key] * _PAN * view.span)
    elif key in _SIDES:
        at = (view.end if view.cursor is None else view.cursor) + _SIDES[key] * _STEP * view.span
        view.point_at(min(max(at, view.start), view.end))
    elif key in _ZOOMS:
        view.zoom(_ZOOMS[key], middle if view.cursor is None else view.cursor)
    elif key == Qt.Key.Key_Home:
        view.pan(-float("inf"))
    elif key == Qt.Key.Key_End:
        view.set_follow(True)
    elif key == Qt.Key.Key_Escape and view.cursor is not None:
        view.point_at(None)
    else:
        return False
    return True
