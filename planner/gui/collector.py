"""Cycles that nobody holds any more are collected on the window's thread, and on no other."""

import gc
from typing import Final

from PySide6.QtCore import QObject, QTimer, Slot

_EVERY_MS: Final = 1000


class Collector(QObject):
    """Collects as often as Python would by itself, which collects in whatever thread makes the object that is too many.

    A widget in a cycle would then be destroyed beside the window's thread. The two can wait for each other for good:
    one has the interpreter's lock and wants one of Qt's, the other has that one and wants the interpreter's.
    """

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        gc.disable()
        self._timer = QTimer(self, interval=_EVERY_MS)
        self._timer.timeout.connect(self.look)
        self._timer.start()

    @Slot()
    def look(self) -> None:
        """Collect the oldest generation that has grown beyond its threshold, with those below it."""
        grown = [count > threshold for count, threshold in zip(gc.get_count(), gc.get_threshold(), strict=True)]
        if any(grown):
            gc.collect(max(generation for generation, is_grown in enumerate(grown) if is_grown))

    @Slot()
    def close(self) -> None:
        """Let Python collect by itself again."""
        self._timer.stop()
        gc.enable()
