"""Handling of unexpected errors: they are logged and shown in a dialog."""

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
# Logged for every window by platforms without a window manager.
_IGNORED: Final = "This plugin does not support"
_log = logging.getLogger(__name__)


class Diagnostics(QObject):
    """Log file, crash file and hooks for unexpected errors; `save_work` is called before the error dialog opens."""

    caught = Signal(str)

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.save_work: Callable[[], None] | None = None
        self.crashed_before, self._crash_file, self._handler = _open_logs(folder)
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        self._shown_at_seconds: float | None = None
        self._dialog: QMessageBox | None = None
        # Queued: a paint event or another thread can raise, and neither must open a dialog.
        self.caught.connect(self._show_report, Qt.ConnectionType.QueuedConnection)

    def install(self) -> None:
        """Install the log handler and the error hooks."""
        logging.getLogger().addHandler(self._handler)
        if self._crash_file is not None:
            faulthandler.enable(self._crash_file)
        sys.excepthook = self._on_exception
        threading.excepthook = self._on_thread_exception
        qInstallMessageHandler(_on_qt_message)

    def uninstall(self) -> None:
        """Remove the log handler and the error hooks."""
        qInstallMessageHandler(None)
        sys.excepthook = sys.__excepthook__
        threading.excepthook = threading.__excepthook__
        faulthandler.disable()
        logging.getLogger().removeHandler(self._handler)
        with contextlib.suppress(OSError):  # a full disk
            self._handler.close()
        if self._crash_file is not None:
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
    def _show_report(self, details: str) -> None:
        if self.save_work is not None:
            self.save_work()
        now = time.monotonic()
        if self._shown_at_seconds is not None and now - self._shown_at_seconds < QUIET_SECONDS:
            return
        self._shown_at_seconds = now
        # Nothing else owns the dialog, so without this reference it would be destroyed before it is seen.
        self._dialog = report_dialog(details, self.folder)
        self._dialog.open()


def report_dialog(details: str, folder: Path) -> QMessageBox:
    """Return the dialog about an unexpected error; its details can be copied."""
    box = QMessageBox(QMessageBox.Icon.Warning, "GPU Planner", "Something went wrong in GPU Planner.")
    box.setInformativeText(f"Your plan is saved, and you can continue working. The log is in {folder}.")
    box.setDetailedText(details)
    copy = box.addButton("Copy details", QMessageBox.ButtonRole.ActionRole)
    box.addButton(QMessageBox.StandardButton.Close)
    copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(details))
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    return box


def _open_logs(folder: Path) -> tuple[bool, TextIO | None, logging.Handler]:
    """Return whether the last run crashed, the crash file and the log's handler.

    Where no file can be written, there is no crash file, and the log goes to stderr.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        crashed, crash_file = _open_crash_file(folder)
    except OSError:
        return False, None, logging.StreamHandler()
    log = _LogFile(folder / "gpu-planner.log", maxBytes=_LOG_BYTES, backupCount=2, encoding="utf-8", delay=True)
    return crashed, crash_file, log


class _LogFile(RotatingFileHandler):
    """Log file that drops its lines while the disk is full, without a traceback on stderr."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Print a traceback unless the disk is the reason."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)


def _open_crash_file(folder: Path) -> tuple[bool, TextIO]:
    """Open the crash file for the traceback of a fatal signal; return whether the last run crashed, and the file.

    The file is opened for appending, since several windows may share it.
    """
    file = folder / "crash.log"
    crashed = file.exists() and file.stat().st_size > 0
    if crashed:
        with contextlib.suppress(OSError):  # Windows cannot rename a file that another window has open
            file.replace(folder / "crash-last.log")
    return crashed, file.open("a", encoding="utf-8")


def _on_qt_message(kind: QtMsgType, context: QMessageLogContext, message: str) -> None:
    if not message.startswith(_IGNORED):
        logging.getLogger("qt").log(_LEVELS[kind], "%s", message)
