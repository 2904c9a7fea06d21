"""The dialog that shows an estimate beside what a real run printed."""

from typing import Final

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QCheckBox, QDialog, QPushButton, QVBoxLayout, QWidget

from planner.errors import PlannerError
from planner.gui.memory.log.columns import LOG_COLUMNS
from planner.gui.memory.log.source import LogSource
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.widgets.closing_buttons import closing_buttons
from planner.gui.widgets.label import make_label
from planner.gui.widgets.record_model import RecordTableModel
from planner.gui.widgets.record_table import RecordTable
from planner.gui.widgets.row_room import show_rows
from planner.gui.workspace import Workspace
from planner.memory.corrections import Correction
from planner.memory.logs.reading import LogReading
from planner.plan.evaluate import evaluate
from planner.plan.logs.comparison import compare_plan
from planner.plan.logs.corrected import correction_key, with_correction
from planner.plan.logs.corrections import suggest_correction
from planner.plan.logs.files import Log, corrections_file, keep_correction, load_corrections
from planner.present import format as fmt
from planner.present.memory.log_comparison import LogRow, LogView, log_view

_SIZE: Final = QSize(920, 640)
_SMALLEST: Final = QSize(640, 520)


class LogDialog(QDialog):
    """Follows the plan while it is open, and does not block the window."""

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
        self.table = RecordTable(self._model, theme)
        self.table.setAccessibleName("The estimate beside the log")
        self.reason = make_label(wrap=True)
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
        """Compare the plan as it is now with the log, and offer the correction that is kept where there is no log."""
        self.view = None
        self._suggested = None
        with self._workspace.reporting():
            plain = self._workspace.plan.evolve(corrections=())
            evaluation = evaluate(plain, self._workspace.catalog)
            if self._found is None:
                key = correction_key(evaluation)
                kept = load_corrections(corrections_file())
                self._suggested = next((item for item in kept if item.key == key), None)
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
        """Put the comparison on the clipboard as text."""
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
        """Keep the correction and put it into the plan, or take it out of the plan."""
        suggested = self._suggested
        if suggested is None:
            return
        self._workspace.end_gesture()
        with self._workspace.reporting():
            others = self._workspace.plan.corrections
            if on:
                keep_correction(corrections_file(), suggested)
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
        self.about.setText(self._switch_words(suggested))

    def _switch_words(self, suggested: Correction | None) -> str:
        if suggested is not None:
            made = "" if self._found else f" Kept from your log of {fmt.date(suggested.date)}."
            return f"{suggested.changes}. Kept on this computer, it counts only where it is switched on.{made}"
        if self._found is None:
            return "A log of the plan's engine on the plan's card can correct the estimate."
        return "Nothing in this log can correct the estimate: that takes a card, the plan's engine, and a run like it."

    def _lay_out(self, theme: Theme) -> None:
        space = theme.spacing
        buttons = closing_buttons(self, self._copy)
        for button in self.findChildren(QPushButton):
            button.setAutoDefault(False)
        self.reason.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.problem.hide()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(*(space.large,) * 4)
        layout.setSpacing(space.small)
        above: tuple[QWidget, ...] = (self.source, self.problem, self.sentence, self._subject)
        below: tuple[QWidget, ...] = (self.reason, self._notes, self.use, self.about)
        for widget in above:
            layout.addWidget(widget)
        self.table.horizontalHeader().setStretchLastSection(True)
        layout.addWidget(self.table)
        for widget in below:
            layout.addWidget(widget)
        layout.addStretch(1)
        layout.addWidget(buttons)
