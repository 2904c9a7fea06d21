"""What has to happen on the window's thread: Qt's classes are made there, and what nobody holds is collected."""

import gc
from collections.abc import Iterator, Sequence
from functools import cache, partial
from importlib import import_module
from math import inf
from threading import Thread
from time import perf_counter
from types import ModuleType
from typing import Final

from PySide6 import QtCore, QtGui, QtWidgets
from PySide6.QtCore import QObject, QTimer, Slot

# A module that was imported before is found by then; the window may wait for so long.
_MOMENT_SECONDS: Final = 0.005
_QT: Final = (QtCore, QtGui, QtWidgets)
_EVERY_MS: Final = 1000


def import_soon(modules: Sequence[str], parent: QtCore.QObject) -> None:
    """Import `modules` one after the other, in a thread that the program's end waits for.

    It begins when Qt's classes are made, which are made a few at a time while nothing else waits.
    """
    timer = QtCore.QTimer(parent)
    timer.timeout.connect(partial(_make_or_import, timer, tuple(modules)))
    timer.start(0)


def is_imported(module: str) -> bool:
    """Return whether `module` can be had without waiting; the first time that it is asked for begins to import it.

    One that cannot be imported counts as well: whoever goes on to import it is told why.
    """
    make_classes()
    importing = _importing((module,))
    importing.join(_MOMENT_SECONDS)
    return not importing.is_alive()


def make_classes(seconds: float = inf) -> bool:
    """Make Qt's classes, for about so long; return whether all are made. They take a tenth of a second together.

    Call it on the window's thread, and have all made before another thread imports a module that uses Qt.
    """
    until = perf_counter() + seconds
    for module, name in _unmade():
        getattr(module, name)
        if perf_counter() > until:
            return False
    return True


@cache
def _unmade() -> Iterator[tuple[ModuleType, str]]:
    """Return what is left to make: there is one iterator, which everybody goes on with."""
    return iter([(module, name) for module in _QT for name in dir(module)])


def _make_or_import(timer: QtCore.QTimer, modules: tuple[str, ...]) -> None:
    if make_classes(_MOMENT_SECONDS):
        timer.stop()
        timer.deleteLater()
        _importing(modules)


@cache
def _importing(modules: tuple[str, ...]) -> Thread:
    thread = Thread(target=_import_all, args=(modules,), name="imports")
    thread.start()
    return thread


def _import_all(modules: tuple[str, ...]) -> None:
    for module in modules:
        import_module(module)


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
