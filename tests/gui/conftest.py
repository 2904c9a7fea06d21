"""Fixtures for the window's tests, and the check that nothing is left running after one."""

import gc
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import shiboken6
from PySide6.QtCore import QEvent, QTimer
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot
from pytestqt.wait_signal import MultiSignalBlocker, SignalBlocker
from shell_fakes import PLACES

from planner.gui.settings import SettingsStore
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.threads import import_finished
from planner.gui.window import MainWindow
from planner.gui.workspace import Workspace
from planner.plan.catalog import Catalog

_WAIT_MS: Final = 60_000
"""How long a test waits for what will happen: the default of five seconds is not enough on a loaded machine."""


class PatientQtBot(QtBot):
    """A `QtBot` whose waiting ends late, and that dresses a window before it is shown, as the application does."""

    def __init__(self, request: pytest.FixtureRequest, theme: Theme) -> None:
        super().__init__(request)
        self._theme = theme

    def addWidget(self, widget: QWidget, **options: Any) -> None:  # noqa: N802  # pytest-qt's name
        self._theme.apply_style_sheet(widget)
        super().addWidget(widget, **options)

    def waitUntil(self, callback: Callable[[], bool | None], *, timeout: int = _WAIT_MS) -> None:  # noqa: N802  # pytest-qt's name
        super().waitUntil(callback, timeout=timeout)

    def waitSignal(self, signal: Any, *, timeout: int = _WAIT_MS, **options: Any) -> SignalBlocker:  # noqa: N802  # pytest-qt's name
        return super().waitSignal(signal, timeout=timeout, **options)

    def waitSignals(self, signals: list[Any], *, timeout: int = _WAIT_MS, **options: Any) -> MultiSignalBlocker:  # noqa: N802  # pytest-qt's name
        return super().waitSignals(signals, timeout=timeout, **options)


@pytest.fixture
def qtbot(theme: Theme, request: pytest.FixtureRequest) -> PatientQtBot:
    """pytest-qt's helper, patient."""
    return PatientQtBot(request, theme)


@pytest.fixture(scope="session")
def theme(qapp: QApplication) -> Theme:
    """The light look; tests that switch it switch it back."""
    return Theme(qapp, "light")


@pytest.fixture(scope="session", autouse=True)
def plots_imported() -> None:
    """Import what the plots draw with before the first test, which may be over before its thread is."""
    while not import_finished("planner.gui.monitor.plots.metric_plot"):
        continue


@pytest.fixture
def workspace(qapp: QApplication, catalog: Catalog, tmp_path: Path) -> Iterator[Workspace]:
    """A workspace with the sample plan."""
    settings = SettingsStore(tmp_path / "settings.json")
    made = Workspace(catalog, settings)
    yield made
    made.end_gesture()
    settings.flush()


@pytest.fixture
def tasks(qapp: QApplication) -> Iterator[TaskRunner]:
    """A task runner that is shut down at the end."""
    runner = TaskRunner()
    yield runner
    runner.shutdown()


@pytest.fixture
def window(
    qtbot: QtBot,
    workspace: Workspace,
    theme: Theme,
    tasks: TaskRunner,
) -> MainWindow:
    """The window around plain tabs, shown."""
    made = MainWindow(workspace, theme, tasks, PLACES)
    qtbot.addWidget(made, before_close_func=lambda _window: workspace.undo_stack.setClean())
    made.show()
    return made


@pytest.fixture(autouse=True)
def collected_on_this_thread() -> None:
    """Let no other thread destroy the widgets of an earlier test, as `Collector` sees to in the application."""
    gc.disable()


def pytest_runtest_logfinish() -> None:
    """Collect what a test made when it no longer holds it: what is looked at too early stays for many tests."""
    gc.collect(0)
    gc.enable()


@pytest.fixture(autouse=True)
def nothing_left_running() -> Iterator[None]:
    """Fail a test that leaves a thread or a timer behind."""
    threads = set(threading.enumerate())
    yield
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    left = [thread.name for thread in threading.enumerate() if thread not in threads and thread.is_alive()]
    timers = [wrapped for wrapped in shiboken6.getAllValidWrappers() if isinstance(wrapped, QTimer)]
    ticking = [timer for timer in timers if timer.isActive()]
    assert not left, f"threads still running: {left}"
    assert not ticking, f"timers still running, of {[timer.parent() for timer in ticking]}"
