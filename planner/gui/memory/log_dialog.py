"""Dialog that compares an estimate with the log of a real run."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QMimeData, QSize, QTimer, Signal, Slot
from PySide6.QtGui import QFontDatabase, QGuiApplication
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QFileDialog,
    QPlainTextEdit,
    QPushButton,
    QWidget,
)

from planner.errors import PlannerError
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.widgets.dialogs import closing_buttons
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import STRETCH, in_column, in_row
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.tables.record_table import RecordTable, show_rows
from planner.gui.workspace import Workspace
from planner.memory.corrections import Correction
from planner.memory.logs.read import read_log
from planner.memory.logs.reading import LogReading
from planner.plan.evaluate import evaluate
from planner.plan.logs.applied_corrections import correction_key, with_correction
from planner.plan.logs.comparison import compare_plan
from planner.plan.logs.corrections import suggest_correction
from planner.plan.logs.files import Log, corrections_file, load_corrections, open_log, pasted_log, save_correction
from planner.present import format as fmt
from planner.present.columns import Column, text_column
from planner.present.memory.log_comparison import LogRow, LogView, log_view

_FILES: Final = "Logs (*.log *.txt *.json *.csv *.out);;All files (*)"
_TASK: Final = "read-log"
_REST_MS: Final = 200
_LINES: Final = 6
_SHOWN_LINES: Final = 500
_SIZE: Final = QSize(920, 640)
_SMALLEST: Final = QSize(640, 520)


def _difference(row: LogRow) -> int | None:
    return row.difference_bytes


def _amount(key: str, title: str, get: Callable[[LogRow], int | None], text: Callable[[LogRow], str]) -> Column[LogRow]:
    return Column(key, title, get, text, align="right", width=12, tooltip=lambda row: row.exact)


LOG_COLUMNS: Final[tuple[Column[LogRow], ...]] = (
    text_column("part", "Part", lambda row: row.title, width=25),
    _amount("predicted", "Estimated", lambda row: row.predicted_bytes, lambda row: row.predicted),
    _amount("actual", "Measured", lambda row: row.actual_bytes, lambda row: row.actual),
    Column("difference", "Difference", _difference, lambda row: row.difference, align="right", width=10),
    text_column("why", "Why", lambda row: row.why, width=24, tooltip=lambda row: row.why),
)


class LogSource(QWidget):
    """Field for pasting or opening a log; `read` carries the log and its reading, `refused` an error."""

    read = Signal(object, object)
    refused = Signal(object)

    def __init__(self, theme: Theme, tasks: TaskRunner) -> None:
        super().__init__()
        self._tasks = tasks
        self.field = _Field()
        self.field.setAccessibleName("Output of the run")
        self.field.setPlaceholderText("Paste the output of a run, or drop a log file here.")
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
        in_column(
            self.field,
            in_row((about, 1), self.open_button, spacing=theme.spacing.medium),
            owner=self,
            spacing=theme.spacing.tiny,
        )
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
            log = pasted_log(text, datetime.now().astimezone().date())
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
    """Text field that also accepts dropped files."""

    dropped = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.setTabChangesFocus(True)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))  # logs are tables

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        """Accept files as well as text."""
        return source.hasUrls() or super().canInsertFromMimeData(source)

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Emit the path of a dropped file, or insert text."""
        urls = source.urls()
        if urls and urls[0].isLocalFile():
            self.dropped.emit(Path(urls[0].toLocalFile()))
        else:
            super().insertFromMimeData(source)


def _read(log: Log) -> tuple[Log, LogReading]:
    return log, read_log(log.text)


def _read_file(path: Path) -> tuple[Log, LogReading]:
    return _read(open_log(path))


class LogDialog(QDialog):
    """Non-modal dialog that follows the plan while it is open."""

    def __init__(self, workspace: Workspace, theme: Theme, tasks: TaskRunner, parent: QWidget) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._found: tuple[Log, LogReading] | None = None
        self._suggested: Correction | None = None
        self.view: LogView | None = None
        self.source = LogSource(theme, tasks)
        self.problem = make_label(role="bad", wrap=True)
        self.sentence = make_label(font=theme.font(bold=True), wrap=True)
        self._subject = make_label(role="muted", font=theme.font("small"), wrap=True)
        self._model = RecordTableModel(LOG_COLUMNS, lambda row: row.title, self)
        self.table = RecordTable(self._model, theme, name="Estimate and log")
        self.reason = make_label(wrap=True, selectable=True)
        self._notes = make_label(role="muted", wrap=True)
        self.use = QCheckBox("&Use this correction in the plan")
        self.about = make_label(role="muted", font=theme.font("small"), wrap=True)
        self._copy = QPushButton("&Copy")
        self.setWindowTitle("Compare with a log")
        self.setMinimumSize(_SMALLEST)
        self._lay_out(theme)
        self.resize(_SIZE)
        self.source.read.connect(self._take)
        self.source.refused.connect(self._refuse)
        self.table.current_changed.connect(self._explain)
        self.use.clicked.connect(self._switch)
        self._copy.clicked.connect(self.copy)
        workspace.changed.connect(self.compare)
        self.compare()

    @Slot()
    def compare(self) -> None:
        """Compare the current plan with the log; without a log, offer the stored correction."""
        self.view = None
        self._suggested = None
        with self._workspace.reporting():
            plain = self._workspace.plan.evolve(corrections=())
            evaluation = evaluate(plain, self._workspace.catalog)
            if self._found is None:
                key = correction_key(evaluation)
                stored = load_corrections(corrections_file())
                self._suggested = next((item for item in stored if item.key == key), None)
            else:
                log, reading = self._found
                try:
                    comparison = compare_plan(plain, self._workspace.catalog, reading)
                except PlannerError as error:
                    self._refuse(error)
                else:
                    self.view = log_view(comparison)
                    self._suggested = suggest_correction(comparison, evaluation, log.date, log.digest)
        self._show()

    @Slot()
    def copy(self) -> None:
        """Copy the comparison to the clipboard as text."""
        if self.view is not None:
            QGuiApplication.clipboard().setText(self.view.as_text())

    @Slot(object, object)
    def _take(self, log: Log, reading: LogReading) -> None:
        self._found = (log, reading)
        self.problem.hide()
        self.compare()

    @Slot(object)
    def _refuse(self, error: PlannerError) -> None:
        self.problem.setText(f"{error.message[:1].upper()}{error.message[1:]}. {error.hint}")
        self.problem.show()

    @Slot(object)
    def _explain(self, row: object) -> None:
        self.reason.setText(f"{row.title}: {row.why}" if isinstance(row, LogRow) else "")
        self.reason.setVisible(isinstance(row, LogRow))

    @Slot(bool)
    def _switch(self, on: bool) -> None:
        """Store the correction and apply it to the plan, or remove it from the plan."""
        suggested = self._suggested
        if suggested is None:
            return
        with self._workspace.step():
            others = self._workspace.plan.corrections
            if on:
                save_correction(corrections_file(), suggested)
                self._workspace.apply("correction", corrections=with_correction(others, suggested))
            else:
                rest = tuple(item for item in others if item.key != suggested.key)
                self._workspace.apply("correction", corrections=rest)

    def _show(self) -> None:
        view = self.view
        for widget in (self.sentence, self._subject, self.table, self._notes):
            widget.setVisible(view is not None)
        self._copy.setEnabled(view is not None)
        if view is not None:
            self.sentence.setText(view.sentence)
            self._subject.setText(view.subject)
            self._model.set_records(view.rows)
            show_rows(self.table, len(view.rows))
            self._notes.setText("\n".join(view.notes))
            self._notes.setVisible(bool(view.notes))
        self._explain(None if view is None else self.table.current_record or view.rows[0])
        self._show_switch()

    def _show_switch(self) -> None:
        suggested = self._suggested
        self.use.setEnabled(suggested is not None)
        self.use.setChecked(suggested is not None and suggested in self._workspace.plan.corrections)
        self.about.setText(self._switch_text(suggested))

    def _switch_text(self, suggested: Correction | None) -> str:
        if suggested is not None:
            made = "" if self._found else f" Stored from your log of {fmt.date(suggested.date)}."
            return f"{suggested.changes}. It is stored on this computer and only applies where it is switched on.{made}"
        if self._found is None:
            return "A log of the plan's engine on the plan's card can correct the estimate."
        return (
            "This log cannot correct the estimate: a correction needs a card, the plan's engine and a comparable run."
        )

    def _lay_out(self, theme: Theme) -> None:
        space = theme.spacing
        buttons = closing_buttons(self, self._copy)
        for button in self.findChildren(QPushButton):
            button.setAutoDefault(False)
        self.problem.hide()
        self.table.horizontalHeader().setStretchLastSection(True)
        above = (self.source, self.problem, self.sentence, self._subject)
        below = (self.reason, self._notes, self.use, self.about)
        in_column(*above, self.table, *below, STRETCH, buttons, owner=self, margins=space.large, spacing=space.small)
