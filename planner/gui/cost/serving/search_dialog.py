"""Dialog that searches the hardware on which the plan's service meets its latency targets."""

from collections.abc import Callable
from datetime import date
from functools import partial
from typing import Final

from PySide6.QtCore import QSize, QTimer, Signal, Slot
from PySide6.QtGui import QCloseEvent, QGuiApplication
from PySide6.QtWidgets import QCheckBox, QDialog, QProgressBar, QPushButton, QWidget

from planner.cost.job import Service
from planner.errors import PlannerError
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme, set_style_role
from planner.gui.widgets.dialogs import closing_buttons
from planner.gui.widgets.focus import InReadingOrder
from planner.gui.widgets.inputs.choice_field import ChoiceField
from planner.gui.widgets.inputs.labelled_form import LabelledForm
from planner.gui.widgets.inputs.number_field import DecimalField
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import STRETCH, in_column, in_row
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.tables.record_table import RecordTable
from planner.gui.workspace import Workspace
from planner.numbers import MONEY
from planner.plan.serving.answer import ServingAnswer, ServingOption, ServingWish
from planner.plan.serving.find_service import plan_serving
from planner.plan.serving.job_traffic import job_targets, job_traffic
from planner.present.columns import rows_to_csv
from planner.present.serving.options import (
    OBJECTIVES,
    SERVING_COLUMNS,
    ServingRow,
    consequence_sentence,
    left_out_sentence,
    option_sentence,
    program_title,
    search_sentence,
    serving_row,
    serving_rows,
)
from planner.present.serving.simulation import load_sentence, target_rows
from planner.present.serving.traffic import targets_phrase, traffic_sentence
from planner.serving.presets import load_traffic_presets
from planner.serving.targets import Targets
from planner.serving.traffic import Traffic

_KEY: Final = "serving search"
REST_MS: Final = 250
_CHOICE_WIDTH: Final = 160
_WIDTH: Final = 1120
_HEIGHT: Final = 640
_SMALLEST: Final = QSize(820, 560)
_OBJECTIVES: Final = tuple(OBJECTIVES.items())
_HAVING: Final = ((("rent", "own"), "rented or owned"), (("rent",), "rented"), (("own",), "owned"))
_PER_REPLICA: Final = (
    ((1,), "one"),
    ((1, 2), "up to 2"),
    ((1, 2, 4), "up to 4"),
    ((1, 2, 4, 8), "up to 8"),
)
_DEFAULTS: Final = ServingWish()
_NO_TARGETS: Final = (
    "This service has no latency targets. Enter them in the Cost tab, under Traffic and latency: the first token, the "
    "time per token, or end to end."
)


class ServingSearchDialog(InReadingOrder, QDialog):
    """Non-modal dialog that searches again when a choice changes; `search_finished` follows each search."""

    search_finished = Signal()

    def __init__(
        self, workspace: Workspace, theme: Theme, tasks: TaskRunner, parent: QWidget, today: Callable[[], date]
    ) -> None:
        super().__init__(parent)
        self._workspace, self._theme, self._tasks, self._today = workspace, theme, tasks, today
        self.answer: ServingAnswer | None = None
        job = workspace.plan.cost.job
        assert isinstance(job, Service)  # the dialog is offered for services only
        self._traffic: Traffic = job_traffic(job, load_traffic_presets())
        self._targets: Targets = job_targets(job)
        self.objective = ChoiceField(theme, _OBJECTIVES)
        self.having = ChoiceField(theme, _HAVING)
        self.per_replica = ChoiceField(theme, _PER_REPLICA)
        self.budget = DecimalField(0.01, 1e9, placeholder="no limit", kind=MONEY)
        self.surely = QCheckBox("Meet them over the &whole range")
        self.surely.setToolTip("Only hardware on which the upper ends of all ranges are within the targets.")
        self._question = make_label(wrap=True, selectable=True)
        self._found = make_label(font=theme.font(bold=True), wrap=True, selectable=True)
        self._details = make_label(wrap=True, selectable=True)
        self._about = make_label(role="muted", font=theme.font("small"), wrap=True, selectable=True)
        self.progress = QProgressBar()
        self.progress.setTextVisible(False)
        self.progress.setFixedHeight(theme.spacing.small)
        self.progress.setAccessibleName("Simulating")
        self.stop = QPushButton("St&op")
        self.stop.setToolTip("Stop the search and keep what it found")
        self.model = RecordTableModel(SERVING_COLUMNS, lambda row: row.id, self)
        self.table = RecordTable(self.model, theme, name="Hardware that meets the targets, the best first")
        self._use = QPushButton("&Use the selected option")
        self._use.setToolTip("Make the selected option the plan")
        self._use.setEnabled(False)
        self._copy = QPushButton("&Copy")
        self._rest = QTimer(self, singleShot=True, interval=REST_MS)
        self.setWindowTitle("Find GPUs for this service")
        self.setMinimumSize(_SMALLEST)
        self.resize(_WIDTH, _HEIGHT)
        self._lay_out()
        self._connect()
        self.search()

    @property
    def wish(self) -> ServingWish:
        """Return the choices of the form."""
        return ServingWish.model_validate(
            {
                "objective": self.objective.value,
                "having": self.having.value,
                "cards_per_replica": self.per_replica.value,
                "budget_usd": self.budget.value,
                "surely": self.surely.isChecked(),
            }
        )

    @Slot()
    def search(self) -> None:
        """Search again in the background; options are shown as they are found."""
        self.answer = None
        self.model.set_records(())
        self._question.setText(f"For {traffic_sentence(self._traffic)} at peak load; {targets_phrase(self._targets)}.")
        if not self._targets.limits:
            self._tell(_NO_TARGETS, "warn")
            self._set_busy(busy=False)
            return
        self._tell("Simulating the first cards…", "muted")
        self._set_busy(busy=True)
        plan, catalog = self._workspace.plan, self._workspace.catalog
        work = partial(plan_serving, plan, catalog, self._traffic, self._targets, self._today(), self.wish)
        self._tasks.run_in_rounds(_KEY, lambda stop: work(stop=stop), self._show_answer, self._finish, self._show_error)

    @Slot(object)
    def use(self, option: ServingOption) -> None:
        """Make an option the plan in one undo step, and close."""
        with self._workspace.step():
            plan = option.plan
            self._workspace.apply("hardware of the service", gpu=plan.gpu, count=plan.count, workload=plan.workload)
        self.accept()

    @Slot()
    def copy(self) -> None:
        """Copy the question, the best option and the table to the clipboard."""
        columns = self.table.visible_columns
        rows = [tuple(column.header for column in columns)]
        rows += [tuple(column.text(row) for column in columns) for row in self.model.records]
        texts = (label.text() for label in (self._question, self._found, self._details))
        QGuiApplication.clipboard().setText("\n\n".join(filter(None, (*texts, rows_to_csv(rows)))))

    @Slot()
    def end(self) -> None:
        """Cancel the search; what was found stays."""
        self._rest.stop()
        self._tasks.cancel(_KEY)
        self._set_busy(busy=False)
        if self.answer is None or not self.answer.options:
            self._tell("The search was stopped before anything was found.", "muted")

    def closeEvent(self, event: QCloseEvent) -> None:
        """Cancel the search."""
        self.end()
        super().closeEvent(event)

    def done(self, result: int) -> None:
        """Cancel the search."""
        self.end()
        super().done(result)

    def _show_answer(self, answer: ServingAnswer) -> None:
        known = () if self.answer is None else self.answer.options
        self.answer = answer
        self.progress.setRange(0, answer.total)
        self.progress.setValue(answer.done)
        if answer.options != known:
            self._list_options(answer)

    def _list_options(self, answer: ServingAnswer) -> None:
        rows = serving_rows(answer, self._workspace.catalog.hardware)
        self.model.set_records(rows)
        if rows and self.table.current_id is None:
            self._describe(rows[0])
        self._tell(f"Best so far: {option_sentence(rows[0])}." if rows else "", "")

    def _finish(self, _nothing: None) -> None:
        self._set_busy(busy=False)
        answer = self.answer
        if answer is None:
            return
        self._list_options(answer)
        self._about.setText(f"{search_sentence(answer)} {left_out_sentence(answer)}".strip())
        shown = answer.best or answer.nearest
        if shown is None:
            self._tell(search_sentence(answer), "bad")
        else:
            row = serving_row(shown, self._workspace.catalog.hardware)
            title = "Best" if answer.best is not None else f"{search_sentence(answer)} Closest"
            self._tell(
                f"{title}: {option_sentence(row)}, with {program_title(shown.plan)}.", "" if answer.best else "bad"
            )
            self._describe(row)
        self.search_finished.emit()

    def _show_error(self, error: BaseException) -> None:
        self._set_busy(busy=False)
        if not isinstance(error, PlannerError):
            raise error
        self._tell(f"{error.message} {error.hint}".strip(), "bad")
        self.search_finished.emit()

    @Slot(object)
    def _choose(self, row: ServingRow | None) -> None:
        self._use.setEnabled(row is not None)
        if row is not None:
            self._describe(row)

    def _describe(self, row: ServingRow) -> None:
        """Show the targets of an option, what limits it, and what would change it."""
        targets = [f"{target.title}: {target.figure}, {target.word}." for target in target_rows(row.option.simulation)]
        lines = [*targets, load_sentence(row.option.simulation)]
        if row.option.consequences:
            lines += ["", "What would change it:"]
            lines += [f"• {consequence_sentence(one)}" for one in row.option.consequences]
        self._details.setText("\n".join(lines))

    @Slot()
    def _use_selected(self) -> None:
        row = self.model.find(self.table.current_id)
        if row is not None:
            self.use(row.option)

    def _tell(self, text: str, role: str) -> None:
        set_style_role(self._found, role)
        self._found.setText(text)
        self._found.setVisible(bool(text))

    def _set_busy(self, *, busy: bool) -> None:
        if busy:
            self.progress.setRange(0, 0)
            self._details.setText("")
            self._about.setText("")
        for part in (self.progress, self.stop):
            part.setVisible(busy)

    def _connect(self) -> None:
        self._rest.timeout.connect(self.search)
        for field in (self.objective, self.having, self.per_replica, self.budget):
            field.edited.connect(self._rest.start)
        self.surely.clicked.connect(self._rest.start)
        self.stop.clicked.connect(self.end)
        self.table.record_activated.connect(lambda row: self.use(row.option))
        self.table.current_changed.connect(self._choose)
        self._use.clicked.connect(self._use_selected)
        self._copy.clicked.connect(self.copy)
        for button in self.findChildren(QPushButton):
            button.setAutoDefault(False)  # Enter in a field searches; it neither takes an option nor closes

    def _form(self) -> QWidget:
        space = self._theme.spacing
        first, second = LabelledForm(self._theme), LabelledForm(self._theme)
        for choice in (self.objective, self.having, self.per_replica):
            choice.setMinimumWidth(_CHOICE_WIDTH)
        first.add("&Best is", self.objective, lambda: _DEFAULTS.objective, "What the best option needs least of.")
        first.add("&Rent or own", self.having, lambda: _DEFAULTS.having, "Consider rented GPUs, owned GPUs, or both.")
        hint = "GPUs that share one copy of the model."
        second.add("&GPUs per replica", self.per_replica, lambda: _DEFAULTS.cards_per_replica, hint)
        second.add("Bud&get, $ per month", self.budget, lambda: None, "Maximum cost per month, rented or owned.")
        for field, value in (
            (self.objective, _DEFAULTS.objective),
            (self.having, _DEFAULTS.having),
            (self.per_replica, _DEFAULTS.cards_per_replica),
        ):
            field.set_value(value)
        form = QWidget()
        in_row(first, second, self.surely, STRETCH, owner=form, spacing=space.huge)
        return form

    def _lay_out(self) -> None:
        in_column(
            self._question,
            self._form(),
            in_row((self.progress, 1), self.stop),
            self._found,
            self._details,
            (self.table, 1),
            self._about,
            closing_buttons(self, self._use, self._copy),
            owner=self,
            margins=None,
            spacing=self._theme.spacing.medium,
        )
