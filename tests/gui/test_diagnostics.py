"""Unexpected errors are logged and shown in a dialog."""

import logging
import subprocess
import sys
import threading

import pytest
from PySide6.QtCore import qWarning
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QMessageBox
from pytestqt.qtbot import QtBot

from planner.gui.diagnostics import Diagnostics, report_dialog

CRASH = "import faulthandler, sys; from pathlib import Path; from PySide6.QtWidgets import QApplication; \
app = QApplication([]); from planner.gui.diagnostics import Diagnostics; \
d = Diagnostics(Path(sys.argv[1])); d.install(); faulthandler._sigsegv()"


@pytest.fixture
def diagnostics(qapp, tmp_path):
    made = Diagnostics(tmp_path / "logs")
    yield made
    made.uninstall()


def test_without_a_folder_the_log_goes_to_stderr(qapp, tmp_path, capsys):
    (tmp_path / "file").touch()
    diagnostics = Diagnostics(tmp_path / "file" / "logs")
    diagnostics.install()
    logging.getLogger("planner").warning("seen there")
    diagnostics.uninstall()
    assert not diagnostics.crashed_before
    assert "seen there" in capsys.readouterr().err


def dialogs() -> list[QMessageBox]:
    return [
        widget for widget in QApplication.topLevelWidgets() if isinstance(widget, QMessageBox) and widget.isVisible()
    ]


def test_an_unexpected_error_is_logged_and_shown_once(diagnostics, qtbot: QtBot):
    saved = []
    diagnostics.save_work = lambda: saved.append(True)
    diagnostics.install()
    error = ZeroDivisionError("told once")
    for _ in range(20):
        sys.excepthook(type(error), error, None)
    assert dialogs() == [], "a dialog must not open within the failing call"
    qtbot.waitUntil(lambda: len(saved) == 20)
    assert len(dialogs()) == 1
    assert "told once" in dialogs()[0].detailedText()
    assert (diagnostics.folder / "gpu-planner.log").read_text().count("ZeroDivisionError: told once") == 20
    dialogs()[0].close()


def test_an_error_on_another_thread_is_shown_on_the_windows_thread(diagnostics, qtbot: QtBot):
    diagnostics.install()

    def fail():
        raise LookupError("elsewhere")

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    qtbot.waitUntil(lambda: len(dialogs()) == 1)
    assert "elsewhere" in dialogs()[0].detailedText()
    dialogs()[0].close()


def test_qt_messages_are_logged(diagnostics, caplog):
    diagnostics.install()
    qWarning("something odd")
    qWarning("This plugin does not support raise()")
    diagnostics.uninstall()
    assert [(record.name, record.levelno, record.message) for record in caplog.records] == [
        ("qt", logging.WARNING, "something odd")
    ]


def test_uninstalling_removes_all_hooks(diagnostics):
    diagnostics.install()
    diagnostics.uninstall()
    assert sys.excepthook is sys.__excepthook__
    assert threading.excepthook is threading.__excepthook__


def test_the_details_can_be_copied(qtbot: QtBot, tmp_path):
    box = report_dialog("the details", tmp_path)
    qtbot.addWidget(box)
    next(button for button in box.buttons() if button.text() == "Copy details").click()
    assert QGuiApplication.clipboard().text() == "the details"


def test_a_crash_leaves_its_trace_for_the_next_start(qapp, tmp_path):
    done = subprocess.run([sys.executable, "-c", CRASH, str(tmp_path)], capture_output=True, timeout=60)
    assert done.returncode != 0
    after = Diagnostics(tmp_path)
    assert after.crashed_before
    assert "Segmentation fault" in (tmp_path / "crash-last.log").read_text()
    after.uninstall()
    again = Diagnostics(tmp_path)
    assert not again.crashed_before
    again.uninstall()
