"""Dialog that searches the hardware on which the plan's service meets its latency targets."""

from collections.abc import Callable
from datetime import date
from functools import partial
from typing import Final

from PySide6.QtCore import QSize, Slot
from PySide6.QtWidgets import QWidget

from planner.cost.terms import Service
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import check_box
from planner.gui.widgets.dialogs import closing_buttons
from planner.gui.widgets.hardware_search import CARD_COUNTS, RENT_OR_OWN_CHOICES, HardwareSearchDialog
from planner.gui.widgets.inputs.choice_field import ChoiceField
from planner.gui.widgets.inputs.labelled_form import LabelledForm
from planner.gui.widgets.inputs.number_field import DecimalField
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import STRETCH, in_column, in_row
from planner.gui.workspace import Workspace
from planner.numbers import MONEY
from planner.plan.serving.answer import ServingAnswer, ServingOption, ServingWish
from planner.plan.serving.find_service import plan_serving
from planner.plan.serving.service_simulation import job_targets, job_traffic
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
from planner.serving.targets import Targets
from planner.serving.traffic import Traffic, load_traffic_presets

_CHOICE_WIDTH: Final = 160
_WIDTH: Final = 1200
_HEIGHT: Final = 640
_SMALLEST: Final = QSize(820, 560)
_OBJECTIVES: Final = tuple(OBJECTIVES.items())
_DEFAULTS: Final = ServingWish()
_NO_TARGETS: Final = (
    "This service has no latency targets. Enter them in the Cost tab, under Traffic and latency: the first token, the "
    "time per token, or end to end."
)


class ServingSearchDialog(HardwareSearchDialog):
    """Non-modal dialog that simulates the service on hardware, and again when a choice changes.

    `traffic` are requests that take the place of the plan's.
    """

    task_key = "serving search"

    def __init__(
        self,
        workspace: Workspace,
        theme: Theme,
        tasks: TaskRunner,
        parent: QWidget,
        today: Callable[[], date],
        traffic: Traffic | None = None,
    ) -> None:
        name = "Hardware that meets the targets, the best first"
        super().__init__(workspace, theme, tasks, parent, today, SERVING_COLUMNS, name)
        self.answer: ServingAnswer | None = None
        job = workspace.plan.cost.job
        assert isinstance(job, Service)  # the dialog is offered for services only
        self._traffic: Traffic = traffic or job_traffic(job, load_traffic_presets())
        self._targets: Targets = job_targets(job)
        self.objective = ChoiceField(theme, _OBJECTIVES)
        self.having = ChoiceField(theme, RENT_OR_OWN_CHOICES)
        self.per_replica = ChoiceField(theme, CARD_COUNTS)
        self.budget = DecimalField(0.01, 1e9, placeholder="no limit", kind=MONEY)
        self.surely = check_box(
            "Only if sure to meet the &targets",
            "Only hardware on which the slow end of each latency's range is within its target.",
        )
        self._question = make_label(wrap=True, selectable=True)
        self._details = make_label(wrap=True, selectable=True)
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
        self._question.setText(
            f"For a peak load of {traffic_sentence(self._traffic)}; {targets_phrase(self._targets)}."
        )
        if not self._targets.limits:
            self._tell(_NO_TARGETS, "warn")
            self._set_busy(busy=False)
            return
        self._tell("Simulating the first GPUs…", "muted")
        self._set_busy(busy=True)
        plan, catalog = self._workspace.plan, self._workspace.catalog
        work = partial(plan_serving, plan, catalog, self._traffic, self._targets, self._today(), self.wish)
        self._tasks.run_in_rounds(
            self.task_key, lambda stop: work(stop=stop), self._show_answer, self._finish, self._show_error
        )

    @Slot(object)
    def use(self, option: ServingOption) -> None:
        """Make an option the plan in one undo step, and close."""
        with self._workspace.step():
            plan = option.plan
            self._workspace.apply("hardware of the service", gpu=plan.gpu, count=plan.count, workload=plan.workload)
        self.accept()

    def texts(self) -> tuple[str, ...]:
        """Return the question, the best option, and what is known of it."""
        return self._question.text(), self.sentence.text(), self._details.text()

    @property
    def has_found(self) -> bool:
        """Return whether the search has found an option so far."""
        return self.answer is not None and bool(self.answer.options)

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
        self.about.setText(left_out_sentence(answer))
        shown = answer.best or answer.nearest
        if shown is None:
            self._tell(search_sentence(answer), "bad")
        else:
            row = serving_row(shown, self._workspace.catalog.hardware)
            option = f"{option_sentence(row)}, with {program_title(shown.plan)}."
            if answer.best is None:
                self._tell(f"{search_sentence(answer)} Closest: {option}", "bad")
            else:
                self._tell(f"Best: {option} {search_sentence(answer)}", "")
            self._describe(row)
        self.search_finished.emit()

    @Slot(object)
    def _choose(self, row: ServingRow | None) -> None:
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

    def _set_busy(self, *, busy: bool) -> None:
        super()._set_busy(busy=busy)
        if busy:
            self._details.setText("")
            self.about.setText("")

    def _connect(self) -> None:
        for field in (self.objective, self.having, self.per_replica, self.budget):
            field.edited.connect(self._rest.start)
        self.surely.clicked.connect(self._rest.start)
        self.table.current_changed.connect(self._choose)
        self._keep_enter_from_buttons()

    def _form(self) -> QWidget:
        space = self._theme.spacing
        first, second = LabelledForm(self._theme), LabelledForm(self._theme)
        for choice in (self.objective, self.having, self.per_replica):
            choice.setMinimumWidth(_CHOICE_WIDTH)
        first.add("&Best is", self.objective, lambda: _DEFAULTS.objective, "What the options are ranked by.")
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
            self.sentence,
            self._details,
            (self.table, 1),
            self.about,
            closing_buttons(self, self._use, self._copy),
            owner=self,
            margins=None,
            spacing=self._theme.spacing.medium,
        )
