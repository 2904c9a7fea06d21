"""Plan bar above the tabs: a button per part of the plan, which opens a picker and, when clicked again, a tab."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QSignalBlocker, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QLayout, QSizePolicy, QToolButton, QWidget

from planner.errors import SpecError
from planner.gui.choices import SEARCH_MODELS, card_choices, choose_model, hub_choice, model_choices
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme, set_style_role
from planner.gui.widgets.buttons import link_button
from planner.gui.widgets.inputs.choice_field import ChoiceField
from planner.gui.widgets.inputs.field import Field
from planner.gui.widgets.inputs.labelled_form import LabelledForm
from planner.gui.widgets.inputs.number_field import NumberField
from planner.gui.widgets.labels import make_label, verdict_icon
from planner.gui.widgets.layout import hairline, in_column, in_row
from planner.gui.widgets.popover import Popover, SearchPopover
from planner.gui.workspace import Workspace
from planner.numbers import LENGTH
from planner.present.cost.time import pace_explanation, pace_phrase
from planner.present.format import integer
from planner.present.memory.verdict import cannot_run, verdict_phrase
from planner.present.plan.parallel import cards_phrase
from planner.present.plan.phrase import work_phrase
from planner.present.plan.settings import setting_title, title_in_sentence
from planner.workload.choices import Goal
from planner.workload.workload import Training

if TYPE_CHECKING:
    from planner.plan.cost import PlanCost

_SHORTEST = 8
_SHORTER: Final = (
    (" (purchase included)", ""),
    (", rented", ""),
    (", owned", ""),
    (" per ", "/"),
    ("Inference, ", ""),
    ("Inference in ", ""),
    (" tokens", " tok"),
    ("GeForce RTX", "RTX"),
)
"""Words that a narrow window shortens or leaves out, so that names and numbers stay whole."""
_GOALS: Final[tuple[tuple[Goal, str], ...]] = (("run", "Run"), ("fine-tune", "Fine-tune or train"))
_MODEL_LIMIT: Final = "the model's maximum"
REST_MS: Final = 120
_LONG_NAME: Final = 0.25
"""Share of the bar from which a model's name is long."""
_MONEY: Final = "plan bar"
_OWNED_COST: Final = (
    "Total cost of ownership, including depreciation. “Ongoing, per month” on the Cost tab leaves out the purchase."
)


class PartButton(QToolButton):
    """Button whose text is cut in a window that is too narrow for it; the accessible name is the whole text.

    With `in_phrases` whole phrases between commas are left out before the text is cut, those with numbers last.
    """

    def __init__(self, theme: Theme, part_name: str, *, in_phrases: bool = False) -> None:
        super().__init__()
        self._theme = theme
        self.part_name = part_name
        self._in_phrases = in_phrases
        self._is_cuttable = False
        self._full_text = self._fitting_text = ""
        self._icon: tuple[str, str] | None = None
        self.setAccessibleName(part_name)
        self.setToolTip(part_name)
        set_style_role(self, "part")
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        # Wider than the centered icon, since Qt leaves too little space before the text.
        self.setIconSize(QSize(theme.icon_side + theme.spacing.tiny, theme.icon_side))
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self._update_icon)

    @property
    def full_text(self) -> str:
        """Return the button's text before it is elided."""
        return self._full_text

    def show_text(self, text: str, icon: tuple[str, str] | None = None, tooltip: str = "") -> None:
        """Show `text` after `icon`, a name and a color role."""
        self._full_text, self._fitting_text, self._icon = text, text, icon
        self.setAccessibleName(f"{self.part_name}: {text}")
        self.setToolTip(tooltip or text or self.part_name)
        self._update_icon()
        self.updateGeometry()
        self._elide_text()

    def set_brief(self, is_brief: bool) -> None:
        """Leave out words, or show the whole text."""
        text = self._full_text
        for words, shorter in _SHORTER if is_brief else ():
            text = text.replace(words, shorter)
        if text != self._fitting_text:
            self._fitting_text = text
            self.updateGeometry()
            self._elide_text()

    def set_cuttable(self, is_cuttable: bool) -> int:
        """Let the layout make the button narrower than its text, or not; return how many pixels that can save."""
        if is_cuttable != self._is_cuttable:
            self._is_cuttable = is_cuttable
            self.updateGeometry()
        return self.sizeHint().width() - self.minimumSizeHint().width()

    def sizeHint(self) -> QSize:
        """Return the size that fits the shortened text."""
        width = self.fontMetrics().horizontalAdvance(self._fitting_text)
        return QSize(self._width_without_text_pixels() + width + 1, super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        """Return the width of a few letters, or of the last phrase, if the text may be cut, else of the text."""
        if not self._is_cuttable:
            return self.sizeHint()
        metrics = self.fontMetrics()
        width = self._width_without_text_pixels() + metrics.averageCharWidth() * _SHORTEST
        if self._in_phrases:
            last = _without_phrases(self._fitting_text, lambda _: False)
            width = self._width_without_text_pixels() + metrics.horizontalAdvance(last) + 1
        return QSize(min(width, self.sizeHint().width()), self.sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Elide the text for the new width."""
        super().resizeEvent(event)
        self._elide_text()

    def _width_without_text_pixels(self) -> int:
        # The style sheet's padding and border on both sides, the icon, and Qt's gap after it.
        space = self._theme.spacing
        return self.iconSize().width() + 2 * (space.small + self._theme.tokens.hairline) + space.small

    @Slot()
    def _update_icon(self) -> None:
        if self._icon is not None:
            self.setIcon(self._theme.icon(*self._icon))
            set_style_role(self, self._icon[1], "tone")

    def _elide_text(self) -> None:
        room, metrics = max(self.width() - self._width_without_text_pixels(), 0), self.fontMetrics()
        text = self._fitting_text
        if self._in_phrases:
            text = _without_phrases(text, lambda shorter: metrics.horizontalAdvance(shorter) <= room)
        self.setText(metrics.elidedText(text, Qt.TextElideMode.ElideMiddle, room))


def _without_phrases(text: str, fits: Callable[[str], bool]) -> str:
    """Leave out phrases of `text` from its end until it `fits`, those with a × between numbers and the unit last."""
    shorter, phrases = text, text.split(", ")
    while len(phrases) > 1 and not fits(shorter):
        del phrases[max((at for at, phrase in enumerate(phrases) if "×" not in phrase), default=-1)]
        shorter = f"{', '.join(phrases)}…"
    return shorter if fits(shorter) else f"{phrases[0].rpartition(' ')[0] or phrases[0]}…"


class WorkloadSummary(QWidget):
    """Short workload form: task, number of sequences and their length; `more_requested` requests the full form."""

    more_requested = Signal()

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self._workspace = workspace
        self._task = ChoiceField(theme, _GOALS)
        self._sequences = NumberField(1, 1_000_000)
        self._length = NumberField(1, 100_000_000, placeholder=_MODEL_LIMIT, kind=LENGTH)
        self._form = LabelledForm(theme)
        self._form.add("I want &to", self._task, lambda: "run")
        self._form.add(
            "&Batch size", self._sequences, lambda: 1, hint="Concurrent sequences on each replica of the model"
        )
        self._form.add(
            "&Context length", self._length, lambda: None, hint="Tokens of prompt and output, or of a training sequence"
        )
        more = link_button("All settings…")
        more.clicked.connect(self.more_requested)
        in_column(self._form, more, owner=self, margins=None)
        self.setFocusProxy(self._task)
        self._task.edited.connect(lambda goal: self._apply(self._task, lambda: workspace.set_goal(goal)))
        self._sequences.edited.connect(partial(self._apply_typed_number, self._sequences))
        self._length.edited.connect(partial(self._apply_typed_number, self._length))
        for field in (self._task, self._sequences, self._length):
            field.finished.connect(workspace.end_gesture)
        workspace.changed.connect(self.refresh)
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        """Show the plan's workload."""
        workload, full = self._workspace.plan.workload, self._workspace.evaluation.workload
        training = isinstance(workload, Training)
        with QSignalBlocker(self):
            self._task.set_value("fine-tune" if training else "run")
            self._sequences.set_value(workload.micro_batch if isinstance(workload, Training) else workload.batch)
            own = workload.sequence_length if isinstance(workload, Training) else workload.context_length
            self._length.set_value(own)
            used = full.sequence_length if isinstance(full, Training) else full.context_length
            self._length.set_placeholder(f"{integer(used)} by default" if used else _MODEL_LIMIT)
        self._form.set_label(self._sequences, "Micro-&batch size" if training else "&Batch size")
        self._form.set_label(self._length, "Sequen&ce length" if training else "&Context length")

    def _apply_typed_number(self, field: NumberField, value: object) -> None:
        training = isinstance(self._workspace.plan.workload, Training)
        if field is self._sequences:
            name = "micro_batch" if training else "batch"
        else:
            name = "sequence_length" if training else "context_length"
        step = title_in_sentence(setting_title(name))
        self._apply(field, lambda: self._workspace.answer(step, {f"workload.{name}": value}))

    def _apply(self, field: Field, change: Callable[[], None]) -> None:
        try:
            change()
        except SpecError as error:
            field.show_problem(error.reason)


class PlanBar(QWidget):
    """Bar with the plan's model, workload, cards and verdict, and its time and cost once these are computed.

    `priced` is emitted when prices have been read, and `unpriced` when the plan has no cost.
    """

    priced = Signal()
    unpriced = Signal()

    def __init__(self, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> None:
        super().__init__()
        self._workspace, self._theme, self._tasks = workspace, theme, tasks
        self._navigator = workspace.navigator
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        set_style_role(self, "sunken")
        self._sample = make_label("Sample plan:", "muted")
        self._sample.setContentsMargins(theme.spacing.small, 0, 0, 0)
        self._model, self._workload = PartButton(theme, "Model"), PartButton(theme, "Workload", in_phrases=True)
        self._cards, self._verdict = PartButton(theme, "GPUs"), PartButton(theme, "Verdict")
        self._time, self._cost = PartButton(theme, "Time"), PartButton(theme, "Cost")
        self._rest = QTimer(self, singleShot=True, interval=REST_MS)
        self._lay_out(theme)
        self._connect()
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        """Show the current plan."""
        self._fit_texts()
        workspace = self._workspace
        plan, memory = workspace.plan, workspace.evaluation.memory
        self._model.show_text(plan.model.id.rpartition("/")[2], ("model", "muted"), plan.model.id)
        phrase = work_phrase(workspace.evaluation)
        self._workload.show_text(f"{phrase[:1].upper()}{phrase[1:]}", ("swap", "muted"))
        name = None if plan.gpu is None else self._card_name(plan.gpu)
        cards = cards_phrase(plan.workload, plan.count, name, workspace.catalog.hardware)
        self._cards.show_text(cards or "Choose a GPU", ("card", "muted"))
        self._verdict.show_text(
            verdict_phrase(memory), verdict_icon("does-not-fit" if memory.unsupported else memory.verdict)
        )
        runs = not cannot_run(memory)
        self._show_time_text(pace_phrase(workspace.evaluation.time) if runs else "")
        self._show_part_text(self._cost, "")
        self._tasks.cancel(_MONEY)
        self._rest.stop()
        self._lacks_cost = plan.gpu is not None and runs
        if not self._lacks_cost:
            self.unpriced.emit()
        elif self.isVisible():
            self._rest.start()

    def showEvent(self, event: QShowEvent) -> None:
        """Compute the cost of a plan that changed while the bar was hidden."""
        super().showEvent(event)
        if self._lacks_cost:
            self._rest.start()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leave out as many words as the new width asks for."""
        super().resizeEvent(event)
        self._fit_texts()

    def minimumSizeHint(self) -> QSize:
        """Return no width: the window may be narrower than the texts, which then are cut."""
        return QSize(0, super().minimumSizeHint().height())

    @Slot()
    def _fit_texts(self) -> None:
        """Say whether the plan is the sample, and leave out words until all fit, the least important first.

        Of what then is too long the workload is cut first, then the cards, then the model; a long name goes first.
        """
        parts = (self._cost, self._verdict, self._time, self._workload, self._cards)
        self._sample.setVisible(self._workspace.is_sample)
        for part in parts:
            part.set_brief(False)
        for part in parts:
            if self._row.sizeHint().width() <= self.width():
                return
            part.set_brief(True)
            self._row.invalidate()
        if self._row.sizeHint().width() > self.width():
            self._sample.hide()  # the status line says it, too
        too_wide = self._row.sizeHint().width() - self.width()
        order = [self._workload, self._cards, self._model]
        if self._model.sizeHint().width() > self.width() * _LONG_NAME:
            order = [self._model, self._workload, self._cards]
        for part in order:
            too_wide -= part.set_cuttable(too_wide > 0)

    @Slot()
    def find_cost(self) -> None:
        """Compute the plan's cost in the background, because the first computation reads the price files."""
        self._lacks_cost = False
        if self._workspace.cost is not None:
            self._show_cost(self._workspace.cost)
            return
        evaluation, catalog = self._workspace.evaluation, self._workspace.catalog
        today = datetime.now(UTC).date()

        def compute_plan_cost() -> "PlanCost":
            from planner.plan.cost import evaluate_cost  # not needed to open the window

            return evaluate_cost(evaluation, catalog, today)

        self._tasks.run(_MONEY, compute_plan_cost, self._show_cost)

    @Slot()
    def pick_model(self) -> None:
        """Open the list of models."""
        self._model_popover.offer(self._model, model_choices(self._workspace), self._workspace.plan.model.id)

    @Slot()
    def pick_card(self) -> None:
        """Open the list of cards with their verdicts."""
        self._card_count_field.set_value(self._workspace.plan.count)
        self._card_popover.offer(self._cards, card_choices(self._workspace), self._workspace.plan.gpu)

    @Slot()
    def edit_workload(self) -> None:
        """Open the workload form, or the Memory tab for a traced module, which has no such form."""
        if self._workspace.evaluation.traced is not None:
            self._navigator.show_memory()
            return
        self._workload_summary.refresh()
        self._workload_popover.open_below(self._workload, 380, self._workload_popover.sizeHint().height())

    # The pickers are created when first opened: together they would take a tenth of the start.

    @cached_property
    def _model_popover(self) -> SearchPopover:
        popover = SearchPopover(self, self._theme, SEARCH_MODELS, typed=partial(hub_choice, self._workspace))
        popover.chosen.connect(self._choose_model)
        popover.anchor_clicked.connect(self._navigator.show_memory)
        return popover

    @cached_property
    def _card_popover(self) -> SearchPopover:
        form = LabelledForm(self._theme)
        form.add("&Number of GPUs", self._card_count_field, lambda: 1)
        popover = SearchPopover(self, self._theme, "Search GPUs", header=form)
        popover.chosen.connect(partial(self._apply_plan_change, "GPU", "gpu"))
        popover.anchor_clicked.connect(partial(self._navigator.tab_requested.emit, "catalog"))
        return popover

    @cached_property
    def _card_count_field(self) -> NumberField:
        field = NumberField(1, 100_000)
        field.edited.connect(partial(self._apply_plan_change, "number of GPUs", "count"))
        field.finished.connect(self._workspace.end_gesture)
        return field

    @cached_property
    def _workload_summary(self) -> WorkloadSummary:
        return WorkloadSummary(self._workspace, self._theme)

    @cached_property
    def _workload_popover(self) -> Popover:
        popover = Popover(self, self._theme, self._workload_summary)
        popover.anchor_clicked.connect(self._navigator.show_memory)
        self._workload_summary.more_requested.connect(popover.close)
        self._workload_summary.more_requested.connect(self._navigator.show_questions)
        return popover

    def _show_cost(self, cost: "PlanCost") -> None:
        from planner.present.cost.summary import hours_phrase, money_phrase

        self._workspace.cost = cost
        hours, money = hours_phrase(cost.estimate), money_phrase(cost.estimate)
        if hours:
            self._show_time_text(hours)
        self._cost.show_text(money, ("cost", "muted"), f"{money}. {_OWNED_COST}" if " with purchase" in money else "")
        self._show_part_text(self._cost, money)
        self.priced.emit()

    def _show_time_text(self, text: str) -> None:
        evaluation = self._workspace.evaluation
        tooltip = pace_explanation(evaluation.time, evaluation.workload) if text else ""
        self._time.part_name = "Speed" if text.endswith("/s") else "Time"
        self._time.show_text(text, ("time", "muted"), tooltip)
        self._show_part_text(self._time, text)

    def _show_part_text(self, part: PartButton, text: str) -> None:
        self._theme.catch_up(part)
        part.setVisible(bool(text))
        self._lines[part].setVisible(bool(text))
        self._fit_texts()

    def _card_name(self, gpu: str) -> str:
        return self._workspace.catalog.hardware.gpu(gpu).name

    @Slot(object)
    def _choose_model(self, key: object) -> None:
        with self._workspace.reporting():
            choose_model(self._workspace, key)

    def _apply_plan_change(self, label: str, field: str, value: object) -> None:
        with self._workspace.reporting():
            self._workspace.answer(label, {field: value})

    def _connect(self) -> None:
        self._model.clicked.connect(self.pick_model)
        self._workload.clicked.connect(self.edit_workload)
        self._cards.clicked.connect(self.pick_card)
        self._verdict.clicked.connect(self._navigator.show_memory)
        for part in (self._time, self._cost):
            part.clicked.connect(partial(self._navigator.tab_requested.emit, "cost"))
        self._rest.timeout.connect(self.find_cost)
        self._workspace.changed.connect(self.refresh)
        self._workspace.file_changed.connect(self._fit_texts)

    def _lay_out(self, theme: Theme) -> None:
        space = theme.spacing
        self._row = layout = in_row(owner=self, margins=(space.small, space.tiny), spacing=space.tiny)
        layout.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)
        for part in (self._verdict, self._time, self._cost):
            # Results are never elided; the parts before them are.
            part.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        layout.addWidget(self._sample)
        self._lines: dict[PartButton, QWidget] = {}
        for part in (self._model, self._workload, self._cards, self._verdict, self._time, self._cost):
            if part is not self._model:
                self._lines[part] = hairline(Qt.Orientation.Vertical)
                layout.addWidget(self._lines[part])
            layout.addWidget(part)
        layout.addStretch(1)
