"""Modules are imported in the background, after Qt's classes have been created; calm timers wait for calm turns."""

import subprocess
import sys
import threading
from pathlib import Path
from time import thread_time

import pytest
from PySide6.QtCore import QAbstractEventDispatcher, QObject, QTimer

from planner.gui.threads import CalmTimer, import_finished, import_steps, run_when_idle


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that takes until a file appears."""
    text = "import pathlib, time\nwhile not pathlib.Path(__file__).with_name('go').exists():\n    time.sleep(0.001)\n"
    (tmp_path / f"slow_{tmp_path.name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    return f"slow_{tmp_path.name}"


def end_imports() -> None:
    for thread in threading.enumerate():
        if thread.name == "imports":
            thread.join()


def test_a_module_is_finished_once_it_is_imported_in_a_thread(module, tmp_path):
    assert not import_finished(module)
    (tmp_path / "go").touch()
    end_imports()
    assert import_finished(module)
    assert module in sys.modules


def test_imported_modules_are_finished_at_once():
    assert import_finished("json")


def test_modules_are_imported_soon(qapp, qtbot, module, tmp_path):
    (tmp_path / "go").touch()
    run_when_idle(import_steps([module]), qapp)
    qtbot.waitUntil(lambda: module in sys.modules)
    end_imports()


CLASSES = """
import threading
from importlib import import_module
from PySide6 import QtCore, QtGui, QtWidgets
from planner.gui import threads

def unmade():
    return [name for module in (QtCore, QtGui, QtWidgets) for name in dir(module) if name not in vars(module)]

class Watched(threading.Thread):
    def start(self):
        print("begins with", len(unmade()))
        super().start()
        if QtCore.QCoreApplication.instance():
            QtCore.QCoreApplication.quit()

before, threads.Thread = unmade(), Watched
"""
"""Says how many of Qt's classes are not made yet where a thread begins that imports."""


@pytest.mark.parametrize(
    "begin",
    [
        "print(threads.import_finished('json'))",
        "app = QtCore.QCoreApplication([])\nthreads.run_when_idle(threads.import_steps(['json']), app)\n"
        "QtCore.QTimer.singleShot(20_000, app.quit)\napp.exec()",
    ],
    ids=["at once", "soon"],
)
def test_the_import_thread_starts_after_all_qt_classes_are_created(begin):
    program = f"{CLASSES}\nprint(len(before) > 100)\n{begin}"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True)
    assert run.stdout.splitlines()[:2] == ["True", "begins with 0"]


def test_qt_classes_are_created_a_few_at_a_time():
    program = (
        f"{CLASSES}\nprint(threads.create_qt_classes(0.0), len(unmade()) > 100, threads.create_qt_classes(), unmade())"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True)
    assert run.stdout.splitlines() == ["False True True []"]


def work() -> None:
    """Keep the window's thread at work for a hundredth of a second."""
    until = thread_time() + 0.01
    while thread_time() < until:
        pass


def test_a_calm_timer_waits_for_a_turn_without_other_work(qapp, qtbot):
    parent, turns, worked, calm_in = QObject(), [], [], []
    busy, calm = QTimer(parent, singleShot=True), CalmTimer(parent)
    busy.timeout.connect(work)
    busy.timeout.connect(lambda: worked.append(len(turns)))
    calm.timeout.connect(lambda: calm_in.append(len(turns)))
    awake = QAbstractEventDispatcher.instance().awake
    counting = awake.connect(lambda: turns.append(None))
    busy.start(0)
    calm.start()
    qtbot.waitUntil(lambda: calm_in != [])
    awake.disconnect(counting)
    assert worked < calm_in
    assert not calm.isActive()


def test_a_calm_timer_does_not_wait_for_ever(qapp, qtbot):
    parent = QObject()
    busy, calm = QTimer(parent, interval=0), CalmTimer(parent)
    busy.timeout.connect(work)
    busy.start()
    with qtbot.waitSignal(calm.timeout):
        calm.start()
