"""Modules that are imported beside the window's thread, which they would hold up for some tenths of a second.

PySide6 makes a class of Qt when it is first asked for, and the program crashes now and then where two threads do so at
once. So all of them are made on the window's thread before another one imports pyqtgraph, which asks for them all.
"""

from collections.abc import Iterator, Sequence
from functools import cache, partial
from importlib import import_module
from math import inf
from threading import Thread
from time import perf_counter
from types import ModuleType
from typing import Final

from PySide6 import QtCore, QtGui, QtWidgets

# A module that was imported before is found by then; the window may wait for so long.
_MOMENT_SECONDS: Final = 0.005
_QT: Final = (QtCore, QtGui, QtWidgets)


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
