"""Dialog with the commands that measure a plan, and the comparison of its estimate with what they print."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QMimeData, QSize, QTimer, Signal, Slot
from PySide6.QtGui import QFontDatabase, QGuiApplication, QShowEvent
from PySide6.QtWidgets import (
    QDialog,
    QFileDialog,
    QPlainTextEdit,
    QPushButton,
    QWidget,
)

from planner.errors import PlannerError, SpecError
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import check_box, push_button
from planner.gui.widgets.dialogs import closing_buttons
from planner.gui.widgets.inputs.choice_field import ChoiceBox
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import STRETCH, in_column, in_row
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.tables.record_table import RecordTable, show_rows
from planner.gui.workspace import Workspace
from planner.launch.verify import plan_checks
from planner.memory.corrections import Correction, with_correction
from planner.memory.logs.read import read_log
from planner.memory.logs.reading import LogReading
from planner.performance.setting import MeasuredSpeed
from planner.plan.catalog import Catalog
from planner.plan.evaluate import evaluate
from planner.plan.logs.comparison import compare_plan, speed_to_keep, without_measurements
from planner.plan.logs.files import Log, corrections_file, load_corrections, open_log, pasted_log, save_correction
from planner.plan.logs.log_amounts import suggest_correction
from planner.plan.plan import Plan
from planner.present import format as fmt
from planner.present.columns import Column, text_column
from planner.present.memory.log_comparison import CheckView, LogRow, LogView, check_views, log_view

_LOG_FILES: Final = "Logs (*.log *.txt *.json *.csv *.out);;All files (*)"
_TASK: Final = "read-log"
_CHECKS_TASK: Final = "plan-checks"
_EMPTY: Final = (
    "Run the command on the real GPU, then paste what it prints: measured and estimated figures then appear here side "
    "by side, with the range of the estimate and the likely reason for each difference."
)
_REST_MS: Final = 200
_FIELD_LINES: Final = 6
_COMMAND_LINES: Final = 5
_MAX_SHOWN_LINES: Final = 500
_SIZE: Final = QSize(1060, 700)
_SMALLEST: Final = QSize(640, 520)


def _difference(row: LogRow) -> float | None:
    return row.difference_value


def _value_column(
    key: str,
    title: str,
    get_value: Callable[[LogRow], float | None],
    text: Callable[[LogRow], str],
    about: str,
    width: int,
) -> Column[LogRow]:
    return Column(key, title, get_value, text, align="right", width=width, tooltip=lambda row: row.exact, help=about)


LOG_COLUMNS: Final[tuple[Column[LogRow], ...]] = (
    text_column("part", "Part", lambda row: row.title, width=22, about="Memory or speed that the log reports"),
    _value_column(
        "predicted",
        "Estimated",
        lambda row: row.predicted_value,
        lambda row: row.predicted,
        about="The plan's estimate, with its range",
        width=19,
    ),
    _value_column(
        "actual",
        "Measured",
        lambda row: row.actual_value,
        lambda row: row.actual,
        about="Value in the log",
        width=12,
    ),
    Column(
        "difference",
        "Difference",
        _difference,
        lambda row: row.difference,
        align="right",
        width=10,
        help="Log minus estimate, as a share of the estimate",
    ),
    text_column(
        "in_range",
        "In range",
        lambda row: row.in_range,
        width=10,
        about="Whether the measurement lies within the range of the estimate",
    ),
    text_column(
        "why",
        "Why",
        lambda row: row.why,
        width=17,
        tooltip=lambda row: row.why,
        about="Likely reason for the difference",
    ),
)


class CheckCommands(QWidget):
    """The commands that measure the plan: one is chosen, shown with what it should print, and copied."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._views: tuple[CheckView, ...] = ()
        self.choice = ChoiceBox(theme)
        self.choice.setAccessibleName("What to measure")
        self.choice.setToolTip("Measurement of the plan on the real GPU")
        self.command = QPlainTextEdit(readOnly=True)
        self.command.setAccessibleName("Command")
        self.command.setToolTip("Command that measures the plan")
        self.command.setTabChangesFocus(True)
        self.command.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.command.setMinimumHeight(self.command.fontMetrics().lineSpacing() * _COMMAND_LINES)
        self.expected = make_label(role="muted", font=theme.font("small"), wrap=True, selectable=True)
        self.problem = make_label(role="bad", wrap=True, selectable=True)
        self.problem.hide()
        self.copy = push_button("C&opy command", "Copy the command to the clipboard")
        self.copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self.command.toPlainText()))
        self.choice.currentIndexChanged.connect(self._show_command)
        label = make_label("&Measure")
        label.setBuddy(self.choice)
        space = theme.spacing
        in_column(
            in_row(label, (self.choice, 1), self.copy, spacing=space.small),
            self.problem,
            (self.command, 1),
            self.expected,
            owner=self,
            spacing=space.tiny,
        )

    def set_views(self, views: tuple[CheckView, ...], problem: str = "") -> None:
        """Show commands, or why there are none; the chosen one stays chosen."""
        chosen = max(self.choice.currentIndex(), 0)
        self._views = views
        self.choice.blockSignals(True)
        self.choice.clear()
        self.choice.addItems([view.title for view in views])
        self.choice.setCurrentIndex(min(chosen, len(views) - 1))
        self.choice.blockSignals(False)
        self.problem.setText(problem)
        self.problem.setVisible(bool(problem))
        self._show_command()

    @Slot()
    def _show_command(self) -> None:
        view = self._views[self.choice.currentIndex()] if self._views else None
        self.command.setPlainText("" if view is None else view.command)
        rows = () if view is None else view.expected
        self.expected.setText("Expected: " + ", ".join(f"{row.title} {row.estimated}" for row in rows))
        self.expected.setVisible(bool(rows))
        for part in (self.choice, self.command, self.copy):
            part.setEnabled(view is not None)


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
        self.open_button = push_button("&Open a file…", "Read a log from a file")
        self.paste_button = push_button("Pa&ste", "Paste from the clipboard")
        label = make_label("What it printe&d")
        label.setBuddy(self.field)
        about = make_label(
            (
                "Output of these commands; PyTorch's memory_summary(), memory snapshot as JSON or out-of-memory "
                "message; metrics of the Trainer, PEFT or torchtune."
            ),
            "muted",
            theme.font("small"),
            wrap=True,
        )
        in_column(
            in_row(label, STRETCH, self.paste_button, self.open_button, spacing=theme.spacing.small),
            (self.field, 1),
            about,
            owner=self,
            spacing=theme.spacing.tiny,
        )
        self._rest = QTimer(self, singleShot=True, interval=_REST_MS)
        self._rest.timeout.connect(self._read_pasted_log)
        self.field.textChanged.connect(self._rest.start)
        self.field.dropped.connect(self.open_file)
        self.open_button.clicked.connect(self._choose_log_file)
        self.paste_button.clicked.connect(self._paste)

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
    def _paste(self) -> None:
        self.field.selectAll()
        self.field.paste()
        self.field.setFocus()

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


def _views_of_checks(plan: Plan, catalog: Catalog) -> tuple[CheckView, ...]:
    return check_views(plan_checks(plan, catalog))


def _log_with_reading(log: Log) -> tuple[Log, LogReading]:
    return log, read_log(log.text)


def _log_file_with_reading(path: Path) -> tuple[Log, LogReading]:
    return _log_with_reading(open_log(path))


class LogDialog(QDialog):
    """Non-modal dialog that verifies the plan's estimate by what a run prints, and follows changes of the plan."""

    def __init__(self, workspace: Workspace, theme: Theme, tasks: TaskRunner, parent: QWidget) -> None:
        super().__init__(parent)
        self._workspace, self._tasks = workspace, tasks
        self._log_and_reading: tuple[Log, LogReading] | None = None
        self._suggested: Correction | None = None
        self._speed: MeasuredSpeed | None = None
        self.commands = CheckCommands(theme)
        self.empty = make_label(_EMPTY, role="muted", wrap=True)
        self.view: LogView | None = None
        self.source = LogSource(theme, tasks)
        self.problem = make_label(role="bad", wrap=True)
        self.sentence = make_label(font=theme.font(bold=True), wrap=True)
        self._subject = make_label(role="muted", font=theme.font("small"), wrap=True)
        self._model = RecordTableModel(LOG_COLUMNS, lambda row: row.title, self)
        self.table = RecordTable(self._model, theme, name="Estimate and log")
        self.reason = make_label(wrap=True, selectable=True)
        self._notes = make_label(role="muted", wrap=True)
        self.use = check_box("&Use this correction in the plan", "Correct the plan's estimate with the log's figures")
        self.about = make_label(role="muted", font=theme.font("small"), wrap=True)
        self.keep_speed = check_box(
            "&Keep the measured speed in the plan", "Scale the plan's times to the measured speed"
        )
        self._copy = push_button("&Copy comparison", "Copy the comparison to the clipboard as text")
        self.setWindowTitle("Verify")
        self.setMinimumSize(_SMALLEST)
        self._lay_out(theme)
        self.resize(_SIZE)
        self.source.read.connect(self._compare_log)
        self.source.refused.connect(self._show_error)
        self.table.current_changed.connect(self._show_difference_reason)
        self.use.clicked.connect(self._switch_correction)
        self.keep_speed.clicked.connect(self._switch_speed)
        self._copy.clicked.connect(self.copy)
        workspace.changed.connect(self.compare)
        self.compare()

    @Slot()
    def compare(self) -> None:
        """Compare the current plan with the log; without a log, offer the stored correction."""
        self.view = None
        self._suggested = self._speed = None
        if self.isVisible():
            self._find_checks()
        with self._workspace.reporting():
            uncorrected_plan = without_measurements(self._workspace.plan)
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
                    self._speed = speed_to_keep(comparison, evaluation, log)
        self._show_comparison()

    def showEvent(self, event: QShowEvent) -> None:
        """Find the commands for the plan as it is."""
        super().showEvent(event)
        self._find_checks()

    def _find_checks(self) -> None:
        work = partial(_views_of_checks, self._workspace.plan, self._workspace.catalog)
        self._tasks.run(_CHECKS_TASK, work, self.commands.set_views, self._show_no_checks)

    def _show_no_checks(self, error: BaseException) -> None:
        if not isinstance(error, SpecError):
            raise error
        self.commands.set_views((), error.explanation)

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

    @Slot(bool)
    def _switch_speed(self, is_on: bool) -> None:
        """Keep the measured speed in the plan, or remove it."""
        with self._workspace.step():
            timing = self._workspace.plan.timing.evolve(measured=self._speed if is_on else None)
            self._workspace.apply("measured speed", timing=timing)

    def _show_comparison(self) -> None:
        view = self.view
        self.empty.setVisible(view is None)
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
        kept = self._workspace.plan.timing.measured
        self.keep_speed.setVisible(self._speed is not None)
        self.keep_speed.setChecked(self._speed is not None and kept == self._speed)

    def _correction_text(self, correction: Correction | None) -> str:
        if correction is not None:
            stored_text = "" if self._log_and_reading else f" Stored from your log of {fmt.date(correction.date)}."
            return (
                f"{correction.changes}. It is stored on this computer and applies only to plans that use it."
                f"{stored_text}"
            )
        if self._log_and_reading is None:
            return "A log from the plan's engine on the plan's GPU can correct the estimate."
        return (
            "This log cannot correct the estimate: a correction needs a GPU, a log from the plan's engine "
            "and a comparable run."
        )

    def _lay_out(self, theme: Theme) -> None:
        space = theme.spacing
        buttons = closing_buttons(self, self._copy)
        for button in self.findChildren(QPushButton):
            button.setAutoDefault(False)
        self.problem.hide()
        self.table.horizontalHeader().setStretchLastSection(True)
        pair = in_row((self.commands, 1), (self.source, 1), spacing=space.large)
        above = ((pair, 1), self.problem, self.empty, self.sentence, self._subject)
        below = (self.reason, self._notes, self.keep_speed, self.use, self.about)
        in_column(*above, self.table, *below, buttons, owner=self, margins=space.large, spacing=space.small)
