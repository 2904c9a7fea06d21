"""Where a log comes from: pasted, opened or dropped."""

from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QMimeData, QTimer, Signal, Slot
from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from planner.errors import PlannerError
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.widgets.label import make_label
from planner.memory.logs.read import read_log
from planner.memory.logs.reading import LogReading
from planner.plan.logs.files import Log, log_of_text, open_log

_FILES: Final = "Logs (*.log *.txt *.json *.csv *.out);;All files (*)"
_TASK: Final = "read-log"
_REST_MS: Final = 200
_LINES: Final = 6
_SHOWN_LINES: Final = 500


class LogSource(QWidget):
    """A field to paste into, which shows what was read of a file; `read` carries the log and its reading."""

    read = Signal(object, object)
    refused = Signal(object)

    def __init__(self, theme: Theme, tasks: TaskRunner) -> None:
        super().__init__()
        self._tasks = tasks
        self.field = _Field()
        self.field.setAccessibleName("What the run printed")
        self.field.setPlaceholderText("Paste what a run printed, or drop its file here.")
        self.field.setFixedHeight(self.field.fontMetrics().lineSpacing() * _LINES + 2 * theme.spacing.small)
        self.open_button = QPushButton("&Open a file…")
        about = make_label(
            (
                "PyTorch's memory_summary(), memory_stats(), snapshot as JSON or out-of-memory message; start-up lines "
                "of vLLM or llama.cpp; nvidia-smi; metrics of the Trainer, PEFT or torchtune."
            ),
            "muted",
            theme.font("small"),
            wrap=True,
        )
        foot = QHBoxLayout()
        foot.setSpacing(theme.spacing.medium)
        foot.addWidget(about, 1)
        foot.addWidget(self.open_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.spacing.tiny)
        layout.addWidget(self.field)
        layout.addLayout(foot)
        self._rest = QTimer(self, singleShot=True, interval=_REST_MS)
        self._rest.timeout.connect(self._read_field)
        self.field.textChanged.connect(self._rest.start)
        self.field.dropped.connect(self.open_file)
        self.open_button.clicked.connect(self._choose)

    @Slot(object)
    def open_file(self, path: Path) -> None:
        """Read the log in the file at `path`."""
        self._rest.stop()
        self._tasks.run(_TASK, partial(_read_file, path), self._take_file, self._on_error)

    @Slot()
    def _read_field(self) -> None:
        text = self.field.toPlainText()
        if text.strip():
            log = log_of_text(text, datetime.now().astimezone().date())
            self._tasks.run(_TASK, partial(_read, log), self._take, self._on_error)

    @Slot()
    def _choose(self) -> None:
        name, _ = QFileDialog.getOpenFileName(self, "Open a log", "", _FILES)
        if name:
            self.open_file(Path(name))

    def _take(self, found: tuple[Log, LogReading]) -> None:
        self.read.emit(*found)

    def _take_file(self, found: tuple[Log, LogReading]) -> None:
        lines = dict.fromkeys((item.line, item.text) for item in found[1].measured)
        shown = "\n".join([f"{found[0].name}:", *(text for _, text in list(lines)[:_SHOWN_LINES])])
        self.field.blockSignals(True)
        self.field.setPlainText(shown)
        self.field.blockSignals(False)
        self._take(found)

    def _on_error(self, error: BaseException) -> None:
        if not isinstance(error, PlannerError):
            raise error
        self.refused.emit(error)


class _Field(QPlainTextEdit):
    """Takes text as it is, and files that are dropped."""

    dropped = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.setTabChangesFocus(True)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))  # logs are tables

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        """Accept files beside text."""
        return source.hasUrls() or super().canInsertFromMimeData(source)

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Take the path of a file, else the text."""
        urls = source.urls()
        if urls and urls[0].isLocalFile():
            self.dropped.emit(Path(urls[0].toLocalFile()))
        else:
            super().insertFromMimeData(source)


def _read(log: Log) -> tuple[Log, LogReading]:
    return log, read_log(log.text)


def _read_file(path: Path) -> tuple[Log, LogReading]:
    return _read(open_log(path))
