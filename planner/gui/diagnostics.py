"""What happens when something goes wrong that nobody expected: it is written down, and told once."""

import contextlib
import faulthandler
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType
from typing import Final, TextIO

from PySide6.QtCore import QMessageLogContext, QObject, Qt, QtMsgType, Signal, Slot, qInstallMessageHandler
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMessageBox

QUIET_SECONDS: Final = 30
_LOG_BYTES: Final = 1_000_000
_LEVELS: Final = {
    QtMsgType.QtDebugMsg: logging.DEBUG,
    QtMsgType.QtInfoMsg: logging.INFO,
    QtMsgType.QtWarningMsg: logging.WARNING,
    QtMsgType.QtCriticalMsg: logging.ERROR,
    QtMsgType.QtFatalMsg: logging.CRITICAL,
}
# Said about every window by platforms that have no window manager.
_IGNORED: Final = "This plugin does not support"
_log = logging.getLogger(__name__)


class Diagnostics(QObject):
    """Log file, crash file and hooks; `save_work` is called before anything is told."""

    caught = Signal(str)

    def __init__(self, folder: Path) -> None:
        super().__init__()
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.save_work: Callable[[], None] | None = None
        self.crashed_before, self._crash_file = _start_crash_file(folder)
        self._handler = RotatingFileHandler(
            folder / "gpu-planner.log", maxBytes=_LOG_BYTES, backupCount=2, encoding="utf-8", delay=True
        )
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        self._told_at: float | None = None
        self._dialog: QMessageBox | None = None
        # Queued: a painting widget can raise, and a dialog must not open within a paint event or off this thread.
        self.caught.connect(self._tell, Qt.ConnectionType.QueuedConnection)

    def install(self) -> None:
        """Start listening."""
        logging.getLogger().addHandler(self._handler)
        faulthandler.enable(self._crash_file)
        sys.excepthook = self._on_exception
        threading.excepthook = self._on_thread_exception
        qInstallMessageHandler(_on_qt_message)

    def uninstall(self) -> None:
        """Put everything back as it was."""
        qInstallMessageHandler(None)
        sys.excepthook = sys.__excepthook__
        threading.excepthook = threading.__excepthook__
        faulthandler.disable()
        logging.getLogger().removeHandler(self._handler)
        self._handler.close()
        self._crash_file.close()

    def _on_exception(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        sys.__excepthook__(kind, error, trace)
        if issubclass(kind, KeyboardInterrupt):
            return
        _log.error("An unexpected error", exc_info=(kind, error, trace))
        self.caught.emit("".join(traceback.format_exception(kind, error, trace)))

    def _on_thread_exception(self, hook: threading.ExceptHookArgs) -> None:
        if hook.exc_value is not None:
            self._on_exception(hook.exc_type, hook.exc_value, hook.exc_traceback)

    @Slot(str)
    def _tell(self, details: str) -> None:
        if self.save_work is not None:
            self.save_work()
        now = time.monotonic()
        if self._told_at is not None and now - self._told_at < QUIET_SECONDS:
            return
        self._told_at = now
        # Kept, since nothing else owns it: unkept, it would be gone before it is seen.
        self._dialog = report_dialog(details, self.folder)
        self._dialog.open()


def report_dialog(details: str, folder: Path) -> QMessageBox:
    """Return the dialog that tells of an unexpected error; its details can be copied."""
    box = QMessageBox(QMessageBox.Icon.Warning, "GPU Planner", "Something went wrong in GPU Planner.")
    box.setInformativeText(f"Your plan is saved, and you can go on working. The log is in {folder}.")
    box.setDetailedText(details)
    copy = box.addButton("Copy details", QMessageBox.ButtonRole.ActionRole)
    box.addButton(QMessageBox.StandardButton.Close)
    copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(details))
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    return box


def _start_crash_file(folder: Path) -> tuple[bool, TextIO]:
    """Open the file for a fatal signal's traceback; say whether the last run left one, which is set aside.

    It is appended to, since several windows may share it.
    """
    file = folder / "crash.log"
    crashed = file.exists() and file.stat().st_size > 0
    if crashed:
        with contextlib.suppress(OSError):  # Windows does not rename what another window has open
            file.replace(folder / "crash-last.log")
    return crashed, file.open("a", encoding="utf-8")


def _on_qt_message(kind: QtMsgType, context: QMessageLogContext, message: str) -> None:
    if not message.startswith(_IGNORED):
        logging.getLogger("qt").log(_LEVELS[kind], "%s", message)
