"""Modules that are imported beside the window's thread, which they would hold up for some tenths of a second."""

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from threading import Thread
from typing import Final

# A module that was imported before is found by then; the window may wait for so long.
_MOMENT_SECONDS: Final = 0.005


def import_soon(modules: Sequence[str]) -> None:
    """Import `modules` one after the other, in a thread that the program's end waits for."""
    _importing(tuple(modules))


def is_imported(module: str) -> bool:
    """Return whether `module` can be had without waiting; the first time that it is asked for begins to import it.

    One that cannot be imported counts as well: whoever goes on to import it is told why.
    """
    importing = _importing((module,))
    importing.join(_MOMENT_SECONDS)
    return not importing.is_alive()


@cache
def _importing(modules: tuple[str, ...]) -> Thread:
    thread = Thread(target=_import_all, args=(modules,), name="imports")
    thread.start()
    return thread


def _import_all(modules: tuple[str, ...]) -> None:
    for module in modules:
        import_module(module)
