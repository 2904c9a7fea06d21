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
from planner.gui.widgets.layout import in_column, in_row
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.tables.record_table import RecordTable, show_rows
from planner.gui.workspace import Workspace
from planner.memory.corrections import Correction, with_correction
from planner.memory.logs.read import read_log
from planner.memory.logs.reading import LogReading
from planner.plan.evaluate import evaluate
from planner.plan.logs.comparison import compare_plan
from planner.plan.logs.corrections import suggest_correction
from planner.plan.logs.files import Log, corrections_file, load_corrections, open_log, pasted_log, save_correction
from planner.present import format as fmt
from planner.present.columns import Column, text_column
from planner.present.memory.log_comparison import LogRow, LogView, log_view

_LOG_FILES: Final = "Logs (*.log *.txt *.json *.csv *.out);;All files (*)"
_TASK: Final = "read-log"
_REST_MS: Final = 200
_FIELD_LINES: Final = 6
_MAX_SHOWN_LINES: Final = 500
_SIZE: Final = QSize(920, 640)
_SMALLEST: Final = QSize(640, 520)


def _difference_bytes(row: LogRow) -> int | None:
    return row.difference_bytes


def _size_column(
    key: str, title: str, get_bytes: Callable[[LogRow], int | None], text: Callable[[LogRow], str], about: str
) -> Column[LogRow]:
    return Column(key, title, get_bytes, text, align="right", width=12, tooltip=lambda row: row.exact, help=about)


LOG_COLUMNS: Final[tuple[Column[LogRow], ...]] = (
    text_column("part", "Part", lambda row: row.title, width=25, about="Part of the memory that the log reports"),
    _size_column(
        "predicted",
        "Estimated",
        lambda row: row.predicted_bytes,
        lambda row: row.predicted,
        about="Size in the plan's estimate",
    ),
    _size_column("actual", "Measured", lambda row: row.actual_bytes, lambda row: row.actual, about="Size in the log"),
    Column(
        "difference",
        "Difference",
        _difference_bytes,
        lambda row: row.difference,
        align="right",
        width=10,
        help="Log minus estimate, as a share of the estimate",
    ),
    text_column(
        "why",
        "Why",
        lambda row: row.why,
        width=24,
        tooltip=lambda row: row.why,
        about="Likely reason for the difference",
    ),
)


class LogSource(QWidget):
    """Field to paste or open the log of a run; `read` carries the log and its parsed content, `refused` an error."""

    read = Signal(object, object)
    refused = Signal(object)

    def __init__(self, theme: Theme, tasks: TaskRunner) -> None:
        super().__init__()
        self._tasks = tasks
        self.field = _LogField()
        self.field.setAccessibleName("Output of the run")
        self.field.setToolTip("Paste what the run printed")
        self.field.setPlaceholderText("Paste the output of a run, or drop a log file here.")
        self.field.setMinimumHeight(self.field.fontMetrics().lineSpacing() * _FIELD_LINES + 2 * theme.spacing.small)
        self.open_button = QPushButton("&Open a file…")
        self.open_button.setToolTip("Read a log from a file")
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
        self._rest.timeout.connect(self._read_pasted_log)
        self.field.textChanged.connect(self._rest.start)
        self.field.dropped.connect(self.open_file)
        self.open_button.clicked.connect(self._choose_log_file)

    @Slot(object)
    def open_file(self, path: Path) -> None:
        """Read the log in the file at `path`."""
        self._rest.stop()
        self._tasks.run(_TASK, partial(_log_file_with_reading, path), self._show_and_emit_log, self._on_error)

    @Slot()
    def _read_pasted_log(self) -> None:
        text = self.field.toPlainText()
        if text.strip():
            log = pasted_log(text, datetime.now().astimezone().date())
            self._tasks.run(_TASK, partial(_log_with_reading, log), self._emit_log, self._on_error)

    @Slot()
    def _choose_log_file(self) -> None:
        name, _ = QFileDialog.getOpenFileName(self, "Open a log", "", _LOG_FILES)
        if name:
            self.open_file(Path(name))

    def _emit_log(self, log_and_reading: tuple[Log, LogReading]) -> None:
        self.read.emit(*log_and_reading)

    def _show_and_emit_log(self, log_and_reading: tuple[Log, LogReading]) -> None:
        lines = dict.fromkeys((item.line, item.text) for item in log_and_reading[1].measured)
        shown_text = "\n".join([f"{log_and_reading[0].name}:", *(text for _, text in list(lines)[:_MAX_SHOWN_LINES])])
        self.field.blockSignals(True)
        self.field.setPlainText(shown_text)
        self.field.blockSignals(False)
        self._emit_log(log_and_reading)

    def _on_error(self, error: BaseException) -> None:
        if not isinstance(error, PlannerError):
            raise error
        self.refused.emit(error)


class _LogField(QPlainTextEdit):
    """Text field for a log that also accepts dropped log files."""

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


def _log_with_reading(log: Log) -> tuple[Log, LogReading]:
    return log, read_log(log.text)


def _log_file_with_reading(path: Path) -> tuple[Log, LogReading]:
    return _log_with_reading(open_log(path))


class LogDialog(QDialog):
    """Non-modal dialog that compares the plan's estimate with the log of a run, and follows changes of the plan."""

    def __init__(self, workspace: Workspace, theme: Theme, tasks: TaskRunner, parent: QWidget) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._log_and_reading: tuple[Log, LogReading] | None = None
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
        self.use.setToolTip("Correct the plan's estimate with the log's figures")
        self.about = make_label(role="muted", font=theme.font("small"), wrap=True)
        self._copy = QPushButton("&Copy")
        self.setWindowTitle("Compare with a log")
        self.setMinimumSize(_SMALLEST)
        self._lay_out(theme)
        self.resize(_SIZE)
        self.source.read.connect(self._compare_log)
        self.source.refused.connect(self._show_error)
        self.table.current_changed.connect(self._show_difference_reason)
        self.use.clicked.connect(self._switch_correction)
        self._copy.clicked.connect(self.copy)
        workspace.changed.connect(self.compare)
        self.compare()

    @Slot()
    def compare(self) -> None:
        """Compare the current plan with the log; without a log, offer the stored correction."""
        self.view = None
        self._suggested = None
        with self._workspace.reporting():
            uncorrected_plan = self._workspace.plan.evolve(corrections=())
            evaluation = evaluate(uncorrected_plan, self._workspace.catalog)
            if self._log_and_reading is None:
                key = evaluation.correction_key
                stored = load_corrections(corrections_file())
                self._suggested = next((item for item in stored if item.key == key), None)
            else:
                log, reading = self._log_and_reading
                try:
                    comparison = compare_plan(uncorrected_plan, self._workspace.catalog, reading)
                except PlannerError as error:
                    self._show_error(error)
                else:
                    self.view = log_view(comparison)
                    self._suggested = suggest_correction(comparison, evaluation, log.date, log.digest)
        self._show_comparison()

    @Slot()
    def copy(self) -> None:
        """Copy the comparison to the clipboard as text."""
        if self.view is not None:
            QGuiApplication.clipboard().setText(self.view.as_text())

    @Slot(object, object)
    def _compare_log(self, log: Log, reading: LogReading) -> None:
        self._log_and_reading = (log, reading)
        self.problem.hide()
        self.compare()

    @Slot(object)
    def _show_error(self, error: PlannerError) -> None:
        self.problem.setText(f"{error.message[:1].upper()}{error.message[1:]}. {error.hint}")
        self.problem.show()

    @Slot(object)
    def _show_difference_reason(self, row: object) -> None:
        self.reason.setText(f"{row.title}: {row.why}" if isinstance(row, LogRow) else "")
        self.reason.setVisible(isinstance(row, LogRow))

    @Slot(bool)
    def _switch_correction(self, is_on: bool) -> None:
        """Store the correction and apply it to the plan, or remove it from the plan."""
        correction = self._suggested
        if correction is None:
            return
        with self._workspace.step():
            others = self._workspace.plan.corrections
            if is_on:
                save_correction(corrections_file(), correction)
                self._workspace.apply("correction", corrections=with_correction(others, correction))
            else:
                other_corrections = tuple(item for item in others if item.key != correction.key)
                self._workspace.apply("correction", corrections=other_corrections)

    def _show_comparison(self) -> None:
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
        self._show_difference_reason(None if view is None else self.table.current_record or view.rows[0])
        self._show_correction()

    def _show_correction(self) -> None:
        correction = self._suggested
        self.use.setEnabled(correction is not None)
        self.use.setChecked(correction is not None and correction in self._workspace.plan.corrections)
        self.about.setText(self._correction_text(correction))

    def _correction_text(self, correction: Correction | None) -> str:
        if correction is not None:
            stored_text = "" if self._log_and_reading else f" Stored from your log of {fmt.date(correction.date)}."
            return (
                f"{correction.changes}. It is stored on this computer and applies only to plans that use it."
                f"{stored_text}"
            )
        if self._log_and_reading is None:
            return "A log from the plan's engine on the plan's card can correct the estimate."
        return (
            "This log cannot correct the estimate: a correction needs a card, a log from the plan's engine "
            "and a comparable run."
        )

    def _lay_out(self, theme: Theme) -> None:
        space = theme.spacing
        buttons = closing_buttons(self, self._copy)
        for button in self.findChildren(QPushButton):
            button.setAutoDefault(False)
        self.problem.hide()
        self.table.horizontalHeader().setStretchLastSection(True)
        above = ((self.source, 1), self.problem, self.sentence, self._subject)
        below = (self.reason, self._notes, self.use, self.about)
        in_column(*above, self.table, *below, buttons, owner=self, margins=space.large, spacing=space.small)
