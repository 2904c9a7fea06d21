"""The plan as a sentence above the tabs; each part opens its own picker, and clicked again leads to its tab."""

from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QWidget

from planner.gui.choices import card_choices, choose_model, hub_choice, model_choices
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme, mark
from planner.gui.widgets.labelled_form import LabelledForm
from planner.gui.widgets.number_field import NumberField
from planner.gui.widgets.part_button import PartButton
from planner.gui.widgets.popover import Popover, SearchPopover
from planner.gui.widgets.verdict_badge import verdict_mark
from planner.gui.widgets.workload_summary import WorkloadSummary
from planner.gui.workspace import Workspace
from planner.present.cost.time import pace_phrase
from planner.present.memory.verdict import cannot_run, verdict_phrase
from planner.present.plan.parallel import cards_phrase
from planner.present.plan.phrase import work_phrase

if TYPE_CHECKING:
    from planner.plan.money import PlanCost

REST_MS: Final = 120
_MONEY: Final = "plan bar"


class PlanBar(QWidget):
    """Model, workload, cards, verdict; and, where they are known, time and cost, which follow when the plan rests.

    `priced` says that prices have been read.
    """

    tab_wanted = Signal(str)
    priced = Signal()

    def __init__(self, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> None:
        super().__init__()
        self._workspace, self._theme, self._tasks = workspace, theme, tasks
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        mark(self, "sunken")
        self._model, self._workload = PartButton(theme, "Model"), PartButton(theme, "Workload")
        self._cards, self._verdict = PartButton(theme, "Cards"), PartButton(theme, "Verdict")
        self._time, self._cost = PartButton(theme, "Time"), PartButton(theme, "Cost")
        self._rest = QTimer(self, singleShot=True, interval=REST_MS)
        self._lay_out(theme)
        self._connect()
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        """Say the plan as it is now."""
        workspace = self._workspace
        plan, memory = workspace.plan, workspace.evaluation.memory
        self._model.say(plan.model.id.rpartition("/")[2], ("model", "muted"), plan.model.id)
        phrase = work_phrase(workspace.evaluation)
        self._workload.say(f"{phrase[:1].upper()}{phrase[1:]}", ("swap", "muted"))
        name = None if plan.gpu is None else self._card_name(plan.gpu)
        cards = cards_phrase(plan.workload, plan.count, name, workspace.catalog.hardware)
        self._cards.say(cards or "Choose a card", ("card", "muted"))
        self._verdict.say(verdict_phrase(memory), verdict_mark(memory.verdict))
        runs = not cannot_run(memory)
        self._say_time(pace_phrase(workspace.evaluation.time) if runs else "")
        self._show_part(self._cost, "")
        self._tasks.cancel(_MONEY)
        self._rest.stop()
        if plan.gpu is not None and runs:
            self._rest.start()

    @Slot()
    def find_cost(self) -> None:
        """Find what the plan costs, in the background: prices are read when they are first asked for."""
        evaluation, catalog = self._workspace.evaluation, self._workspace.catalog
        today = datetime.now(UTC).date()

        def work() -> "PlanCost":
            from planner.plan.money import evaluate_cost  # the window opens without it

            return evaluate_cost(evaluation, catalog, today)

        self._tasks.run(_MONEY, work, self._take_cost, self._fail)

    @Slot()
    def pick_model(self) -> None:
        """Open the list of models."""
        self._models.offer(self._model, model_choices(self._workspace), self._workspace.plan.model.id)

    @Slot()
    def pick_card(self) -> None:
        """Open the list of cards, each with its verdict for the plan."""
        self._count.set_value(self._workspace.plan.count)
        self._gpus.offer(self._cards, card_choices(self._workspace), self._workspace.plan.gpu)

    @Slot()
    def edit_workload(self) -> None:
        """Open the questions about the workload; a traced module has none, and is traced again in its tab."""
        if self._workspace.evaluation.traced is not None:
            self._want_memory()
            return
        self._summary.refresh()
        self._questions.open_below(self._workload, 380, self._questions.sizeHint().height())

    # The pickers are made when they are first opened: together they would cost a tenth of the start.

    @cached_property
    def _models(self) -> SearchPopover:
        popover = SearchPopover(self, self._theme, "Search models, or hf:owner/name", typed=hub_choice)
        popover.chosen.connect(self._choose_model)
        popover.anchor_clicked.connect(self._want_memory)
        return popover

    @cached_property
    def _gpus(self) -> SearchPopover:
        form = LabelledForm(self._theme)
        form.add("&Number of cards", self._count, lambda: 1)
        popover = SearchPopover(self, self._theme, "Search cards", header=form)
        popover.chosen.connect(self._choose_card)
        popover.anchor_clicked.connect(self._want_catalog)
        return popover

    @cached_property
    def _count(self) -> NumberField:
        field = NumberField(1, 100_000)
        field.edited.connect(self._choose_count)
        field.finished.connect(self._workspace.end_gesture)
        return field

    @cached_property
    def _summary(self) -> WorkloadSummary:
        return WorkloadSummary(self._workspace, self._theme)

    @cached_property
    def _questions(self) -> Popover:
        popover = Popover(self, self._theme, self._summary)
        popover.anchor_clicked.connect(self._want_memory)
        self._summary.more_wanted.connect(popover.close)
        self._summary.more_wanted.connect(self._want_memory)
        return popover

    def _take_cost(self, found: "PlanCost") -> None:
        from planner.present.cost.summary import hours_phrase, money_phrase

        hours, money = hours_phrase(found.estimate), money_phrase(found.estimate)
        if hours:
            self._say_time(hours)
        self._cost.say(money, ("cost", "muted"))
        self._show_part(self._cost, money)
        self.priced.emit()

    def _fail(self, error: BaseException) -> None:
        raise error

    def _say_time(self, words: str) -> None:
        self._time.say(words, ("time", "muted"))
        self._show_part(self._time, words)

    def _show_part(self, part: PartButton, words: str) -> None:
        part.setVisible(bool(words))
        self._lines[part].setVisible(bool(words))

    def _card_name(self, gpu: str) -> str:
        return self._workspace.catalog.hardware.gpu(gpu).name

    @Slot(object)
    def _choose_model(self, key: object) -> None:
        with self._workspace.reporting():
            choose_model(self._workspace, key)

    @Slot(object)
    def _choose_card(self, key: object) -> None:
        with self._workspace.reporting():
            self._workspace.answer("card", {"gpu": key})

    @Slot(object)
    def _choose_count(self, count: object) -> None:
        with self._workspace.reporting():
            self._workspace.answer("number of cards", {"count": count})

    @Slot()
    def _want_memory(self) -> None:
        self.tab_wanted.emit("memory")

    @Slot()
    def _want_cost(self) -> None:
        self.tab_wanted.emit("cost")

    @Slot()
    def _want_catalog(self) -> None:
        self.tab_wanted.emit("catalog")

    def _connect(self) -> None:
        self._model.clicked.connect(self.pick_model)
        self._workload.clicked.connect(self.edit_workload)
        self._cards.clicked.connect(self.pick_card)
        self._verdict.clicked.connect(self._want_memory)
        for part in (self._time, self._cost):
            part.clicked.connect(self._want_cost)
        self._rest.timeout.connect(self.find_cost)
        self._workspace.changed.connect(self.refresh)

    def _lay_out(self, theme: Theme) -> None:
        layout = QHBoxLayout(self)
        layout.setContentsMargins(*(theme.spacing.small, theme.spacing.tiny) * 2)
        layout.setSpacing(theme.spacing.tiny)
        for part in (self._verdict, self._time, self._cost):
            # The answers are said in full; the questions before them give way.
            part.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._lines: dict[PartButton, QFrame] = {}
        for part in (self._model, self._workload, self._cards, self._verdict, self._time, self._cost):
            if part is not self._model:
                self._lines[part] = _line()
                layout.addWidget(self._lines[part])
            layout.addWidget(part)
        layout.addStretch(1)


def _line() -> QFrame:
    line = QFrame()
    mark(line, "hairline")
    line.setFixedWidth(1)
    return line
