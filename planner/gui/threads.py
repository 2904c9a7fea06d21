"""Background imports, work in steps and in later turns, and garbage collection on the window's thread."""

import gc
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from math import inf
from threading import Thread
from time import perf_counter, thread_time
from types import ModuleType
from typing import Final

from PySide6 import QtCore, QtGui, QtWidgets
from PySide6.QtCore import QAbstractEventDispatcher, QObject, QTimer, QTimerEvent, Slot

# Enough time to find a module that was imported before, and short enough for the window to wait.
_MOMENT_SECONDS: Final = 0.005
_QT: Final = (QtCore, QtGui, QtWidgets)
_EVERY_MS: Final = 1000
_STEP_MS: Final = 2
_LAST: Final = object()
_MOST_LONG_TURNS: Final = 10


class CalmTimer(QTimer):
    """Single-shot timer that waits for a turn of the event loop in which little was done before, such as painting.

    What different timers and events begin would otherwise add up in one turn, in which nothing is drawn and no key is
    read. After a few long turns in a row, it waits no longer.
    """

    def __init__(self, parent: QObject, interval: int = 0) -> None:
        super().__init__(parent, singleShot=True, interval=interval)
        self._turn = _turn()
        self._waited = 0

    def timerEvent(self, event: QTimerEvent) -> None:
        """Emit `timeout`, or stay active until a later turn."""
        if self._turn.seconds > _MOMENT_SECONDS and self._waited < _MOST_LONG_TURNS:
            self._waited += 1
            return
        self._waited = 0
        super().timerEvent(event)


def run_when_idle(steps: Iterator[object], parent: QtCore.QObject) -> None:
    """Take one of `steps` after another, with the window's events in between, for as long as `parent` lives."""
    timer = CalmTimer(parent, _STEP_MS)

    def take_step() -> None:
        if next(steps, _LAST) is _LAST:
            timer.deleteLater()
        else:
            timer.start()

    timer.timeout.connect(take_step)
    timer.start()


class _Turn(QObject):
    """Current turn of the event loop."""

    def __init__(self) -> None:
        super().__init__()
        self._began = thread_time()
        QAbstractEventDispatcher.instance().awake.connect(self._begin)

    @property
    def seconds(self) -> float:
        """Return the processor time that the window's thread has spent in this turn."""
        return thread_time() - self._began

    @Slot()
    def _begin(self) -> None:
        self._began = thread_time()


@cache
def _turn() -> _Turn:
    """Return the shared clock of turns."""
    return _Turn()


def import_steps(modules: Sequence[str]) -> Iterator[None]:
    """Import `modules` in a thread, once Qt's classes have been created in small batches, and wait for it."""
    while not create_qt_classes(_MOMENT_SECONDS):
        yield
    importing = _started_import_thread(tuple(modules))
    while importing.is_alive():
        yield


def import_finished(module: str) -> bool:
    """Return whether `module` is imported; the first call starts to import the module in a thread.

    A failed import counts as finished: the caller's own import then raises the error.
    """
    create_qt_classes()
    importing = _started_import_thread((module,))
    importing.join(_MOMENT_SECONDS)
    return not importing.is_alive()


def create_qt_classes(seconds: float = inf) -> bool:
    """Create PySide6's lazily created classes for about `seconds`; return whether all are created.

    All of them take a tenth of a second. They must be created on the window's thread before another thread imports a
    module that uses Qt.
    """
    until = perf_counter() + seconds
    for module, name in _uncreated_qt_classes():
        getattr(module, name)
        if perf_counter() > until:
            return False
    return True


@cache
def _uncreated_qt_classes() -> Iterator[tuple[ModuleType, str]]:
    """Return the shared iterator over module and name of the Qt classes that are not created yet."""
    return iter([(module, name) for module in _QT for name in dir(module)])


@cache
def _started_import_thread(modules: tuple[str, ...]) -> Thread:
    thread = Thread(target=_import_modules, args=(modules,), name="imports")
    thread.start()
    return thread


def _import_modules(modules: tuple[str, ...]) -> None:
    for module in modules:
        import_module(module)


class GarbageCollector(QObject):
    """Runs Python's garbage collection on the window's thread, about as often as Python itself would.

    Python itself collects in whichever thread allocates the object that exceeds the threshold. A widget in a cycle
    would then be destroyed in another thread, which can deadlock: one thread holds the interpreter's lock and waits for
    a lock of Qt, the other the reverse.
    """

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        gc.disable()
        self._timer = QTimer(self, interval=_EVERY_MS)
        self._timer.timeout.connect(self.collect)
        self._timer.start()

    @Slot()
    def collect(self) -> None:
        """Collect the oldest generation of objects that exceeds its threshold, and all younger generations."""
        grown = [count > threshold for count, threshold in zip(gc.get_count(), gc.get_threshold(), strict=True)]
        if any(grown):
            gc.collect(max(generation for generation, is_grown in enumerate(grown) if is_grown))

    @Slot()
    def close(self) -> None:
        """Stop this collector, and let Python run its garbage collection itself again."""
        self._timer.stop()
        gc.enable()
