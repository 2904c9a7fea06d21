"""The left column of the Memory tab: all questions about the plan, and buttons to find cards and to compare."""

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtWidgets import QFileDialog, QFrame, QHBoxLayout, QMenu, QPushButton, QScrollArea, QVBoxLayout, QWidget

from planner.gui.choices import SEARCH_MODELS, card_choices, choose_model, hub_choice, model_choices, model_detail
from planner.gui.memory.cards_questions import CardsQuestions
from planner.gui.memory.questions import Questions, bind, button_row, new_form
from planner.gui.memory.trace.controller import TracedRunForm
from planner.gui.theme import Theme, set_style_role
from planner.gui.widgets.buttons import link_button, push_button
from planner.gui.widgets.inputs.choice_field import PickerField, RadioField
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import in_column
from planner.gui.widgets.popover import Choice, Popover, SearchPopover
from planner.gui.workspace import Workspace
from planner.plan.evaluate import Evaluation
from planner.plan.files import load_plan
from planner.plan.plan import ModelChoice, Plan
from planner.workload.choices import Goal, Task
from planner.workload.fields import TASKS
from planner.workload.presentation import GROUPS, Group
from planner.workload.workload import Inference, Training, Workload

if TYPE_CHECKING:
    from planner.gui.memory.fitting_cards import FittingCards
    from planner.plan.recipes import Preset

_RECIPES_WIDTH = 620
_LIST_WIDTH, _LIST_HEIGHT = 860, 460
_PLAN_FILES: Final = "Plans (*.json);;All files (*)"


class PresetButton(QPushButton):
    """Button that opens the list of recipes; the chosen recipe becomes the plan as one undo step."""

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self.setText("Start from a recipe…")
        self.setToolTip("Published training and inference setups, with their sources.")
        set_style_role(self, "link")
        self._workspace, self._theme = workspace, theme
        self.clicked.connect(self.open)
        workspace.navigator.preset_requested.connect(self.open)

    @cached_property
    def popover(self) -> SearchPopover:
        """Return the list of recipes, built on first use."""
        popover = SearchPopover(self, self._theme, "Search recipes")
        popover.chosen.connect(self._apply_preset)
        return popover

    @Slot()
    def open(self) -> None:
        """Open the list of recipes below the button."""
        # Imported here and below, on first use, to keep the start of the window fast.
        from planner.plan.recipes import load_presets
        from planner.present.plan.starting_points import preset_detail

        hardware = self._workspace.catalog.hardware
        choices = [
            Choice(preset, preset.title, preset_detail(preset, hardware), words=f"{preset.id} {preset.summary}")
            for preset in load_presets()
        ]
        self.popover.offer(self, choices, width=_RECIPES_WIDTH)

    @Slot(object)
    def _apply_preset(self, preset: "Preset") -> None:
        from planner.plan.recipes import with_preset
        from planner.present.plan.starting_points import preset_notes

        workspace = self._workspace
        with workspace.reporting():
            model = preset.own_model
            plan = with_preset(workspace.plan if model is None else workspace.plan.evolve(model=model), preset)
            workspace.end_gesture()
            workspace.apply(preset.title, model=plan.model, workload=plan.workload, gpu=plan.gpu, count=plan.count)
            workspace.end_gesture()
            first, *others = preset_notes(preset)
            workspace.noticed.emit(first, " ".join((*others, ", ".join(preset.sources))))


GOALS: Final[tuple[tuple[Goal, str], ...]] = (("fine-tune", "Fine-tune"), ("train", "Train"), ("run", "Run"))


class SubjectForm(QWidget):
    """Form for the model with its size, buttons for other starting points, and the task.

    Full fine-tuning and training from scratch take the same memory and are the same plan; `goal` remembers which of
    the two the user chose last. `goal_chosen` is emitted when only the goal changed.
    """

    goal_chosen = Signal()

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self.model = PickerField(
            theme,
            lambda: model_choices(workspace),
            lambda value: str(value).rpartition("/")[2],
            SEARCH_MODELS,
            partial(hub_choice, workspace),
        )
        self.goal: Goal = "fine-tune"
        self.task = RadioField(theme, GOALS)
        self._detail = make_label(role="muted", font=theme.font("small"), wrap=True)
        self.presets = PresetButton(workspace, theme)
        self._open = link_button(
            "&Open file…",
            "Plan for your own model: its configuration, its weights, or a network in a .py file, which is traced. You "
            "can also drop the file or the model's folder into the window; File › Open model's folder… asks for one.",
        )
        self._trace = link_button(
            "Trace yo&ur code…",
            "Trace the memory of any PyTorch module or script. You can also drop a .py file into the window.",
        )
        self._form = form = new_form(theme)
        form.add("&Model", self.model, hint="The model to plan for.")
        form.add_below(self._detail)
        form.add_across(button_row(self.presets, self._open, self._trace))
        form.add(
            "I want &to", self.task, hint="Fine-tune the model, train it from scratch, or run inference.", wide=True
        )
        in_column(form, owner=self)
        bind(workspace, self.model, partial(self._choose_model, workspace))
        bind(workspace, self.task, partial(self._set_goal, workspace))
        self._open.clicked.connect(workspace.navigator.model_file_requested)
        self._trace.clicked.connect(partial(workspace.navigator.trace_requested.emit, None))

    def _choose_model(self, workspace: Workspace, key: object) -> None:
        choose_model(workspace, key)
        # A model from the Hub enters the plan only after its files were read.
        self.model.set_value(workspace.plan.model.id)

    def _set_goal(self, workspace: Workspace, goal: object) -> None:
        self.goal = cast("Goal", goal)
        workspace.set_goal(self.goal)
        self.goal_chosen.emit()

    def refresh(self, evaluation: Evaluation) -> None:
        """Show the model and the task of the plan."""
        choice = evaluation.plan.model
        self.model.set_value(choice.id)
        self._detail.setText(model_detail(evaluation.parameters, evaluation.max_context))
        self._detail.setToolTip(choice.path or choice.id)
        self.goal = _goal_of_workload(evaluation.plan.workload, self.goal)
        self.task.set_value(self.goal)
        self._form.set_row_visible(self.task, evaluation.traced is None)


def _goal_of_workload(workload: Workload, chosen: Goal) -> Goal:
    if not isinstance(workload, Training):
        return "run"
    return chosen if chosen == "train" and not workload.trains_part else "fine-tune"


class FindCardsButton(QPushButton):
    """Button that opens the list of fitting cards; the list is built on first use to keep the start fast.

    `advice_requested` is emitted when no card fits and the user asks what would help.
    """

    advice_requested = Signal()

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self.setText("Find GPUs that fit…")
        self.setToolTip("List the GPUs that this plan fits on")
        self._workspace, self._theme = workspace, theme
        self.clicked.connect(self.open)

    @cached_property
    def cards(self) -> "FittingCards":
        """Return the list of fitting cards."""
        from planner.gui.memory.fitting_cards import FittingCards

        cards = FittingCards(self._workspace, self._theme)
        cards.advice_requested.connect(self.advice_requested)
        return cards

    @cached_property
    def popover(self) -> Popover:
        """Return the popover with the list of fitting cards."""
        new_popover = Popover(self, self._theme, self.cards)
        self.cards.done.connect(new_popover.close)
        return new_popover

    @Slot()
    def open(self) -> None:
        """Find the cards on which the plan fits, and show the list."""
        self.cards.refresh()
        height = _LIST_HEIGHT if self.cards.model.records else self.popover.height_for(_LIST_WIDTH)
        self.popover.open_below(self, _LIST_WIDTH, height)


class CompareButton(QPushButton):
    """Menu button that pins a card, a model, a recipe, a saved plan or this plan for comparison."""

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self.setText("Compare &with…")
        self.setToolTip("Pin a plan, and show it beside this one as you change settings")
        self._workspace, self._theme = workspace, theme
        menu = QMenu(self)
        menu.addAction("This plan as it is &now", lambda: self.pin(workspace.plan))
        menu.addAction("Another &GPU…", self._open_card_list)
        menu.addAction("Another &model…", self._open_model_list)
        menu.addAction("A &recipe…", self._open_recipe_list)
        menu.addAction("A saved p&lan…", self.choose_file)
        menu.addSeparator()
        menu.addAction("Lo&g of a run…", partial(workspace.navigator.log_requested.emit, None))
        self.setMenu(menu)

    # Built on first use, to keep the start of the window fast.

    @cached_property
    def cards(self) -> SearchPopover:
        """Return the searchable list of cards."""
        return self._make_popover("Search GPUs", self._pin_card)

    @cached_property
    def models(self) -> SearchPopover:
        """Return the searchable list of models."""
        return self._make_popover("Search models", self._pin_model)

    @cached_property
    def recipes(self) -> SearchPopover:
        """Return the searchable list of recipes."""
        return self._make_popover("Search recipes", self._pin_recipe)

    def pin(self, plan: Plan) -> None:
        """Pin `plan` for comparison."""
        with self._workspace.reporting():
            self._workspace.pin.put(plan)

    @Slot()
    def choose_file(self) -> None:
        """Ask for a plan file and pin its plan."""
        name, _ = QFileDialog.getOpenFileName(self, "Compare with a plan", "", _PLAN_FILES)
        if name:
            with self._workspace.reporting():
                self._workspace.pin.put(load_plan(Path(name)))

    def _make_popover(self, placeholder: str, on_chosen: Callable[[object], None]) -> SearchPopover:
        popover = SearchPopover(self, self._theme, placeholder)
        popover.chosen.connect(on_chosen)
        return popover

    @Slot()
    def _open_card_list(self) -> None:
        self.cards.offer(self, card_choices(self._workspace), self._workspace.plan.gpu)

    @Slot()
    def _open_model_list(self) -> None:
        self.models.offer(self, model_choices(self._workspace), self._workspace.plan.model.id)

    @Slot()
    def _open_recipe_list(self) -> None:
        from planner.plan.recipes import load_presets
        from planner.present.plan.starting_points import preset_detail

        hardware = self._workspace.catalog.hardware
        choices = [Choice(preset.id, preset.title, preset_detail(preset, hardware)) for preset in load_presets()]
        self.recipes.offer(self, choices)

    @Slot(object)
    def _pin_card(self, key: object) -> None:
        plan = self._workspace.plan
        self.pin(plan.evolve(gpu=str(key), workload=plan.workload.evolve(gpus=())))

    @Slot(object)
    def _pin_model(self, key: object) -> None:
        self.pin(self._workspace.plan.evolve(model=ModelChoice(id=str(key))))

    @Slot(object)
    def _pin_recipe(self, key: object) -> None:
        from planner.plan.recipes import find_preset, load_presets, with_preset

        with self._workspace.reporting():
            self._workspace.pin.put(with_preset(self._workspace.plan, find_preset(load_presets(), str(key))))


_AFTER_THE_CARDS: Final[tuple[Group, ...]] = ("sharing", "offload")
_BEFORE_THE_CARDS: Final = tuple(group for group in GROUPS if group not in ("cards", *_AFTER_THE_CARDS))


class QuestionsByTask(dict[Task, Questions]):
    """Question forms by task, built on first access: the window's start waits only for the forms of one task."""

    def __init__(self, make: Callable[[Task], Questions]) -> None:
        super().__init__()
        self.place = QVBoxLayout()
        self._make = make

    def make(self, task: Task) -> Questions:
        """Build the question forms for `task`."""
        new_questions = self[task] = self._make(task)
        self.place.addWidget(new_questions)
        return new_questions

    __missing__ = make


class QuestionColumn(QScrollArea):
    """Vertically scrolling column of questions; the Memory tab sets the menu of the `copy` button."""

    def __init__(self, workspace: Workspace, theme: Theme, what_if: TracedRunForm, width: int) -> None:
        super().__init__()
        self._workspace = workspace
        self.what_if = what_if
        self.subject = SubjectForm(workspace, theme)
        self._theme = theme
        self.questions = QuestionsByTask(self._make_questions_above_cards)
        self.cards = CardsQuestions(workspace, theme)
        self.sharing = QuestionsByTask(self._make_questions_below_cards)
        self.find_cards = FindCardsButton(workspace, theme)
        self._reset = push_button("Re&set", "Reset all workload settings to their defaults.")
        self.copy = push_button("Cop&y", "Copy or save the answer.")
        self.compare = CompareButton(workspace, theme)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidgetResizable(True)
        self.setFixedWidth(width)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._lay_out(theme)
        for questions_by_task in (self.questions, self.sharing):
            # Build the visible ones now: creating widgets is faster before the style sheet is applied.
            questions_by_task.make(workspace.plan.workload.task)
        self._reset.clicked.connect(self.reset)
        self.subject.goal_chosen.connect(lambda: self.refresh(workspace.evaluation))

    def prepare(self) -> Iterator[object]:
        """Create the questions of every task."""
        for questions_by_task in (self.questions, self.sharing):
            for task in TASKS:
                questions = questions_by_task[task]
                evaluation = self._workspace.evaluation
                questions.setVisible(task == evaluation.plan.workload.task and evaluation.traced is None)
                yield questions
                yield from questions.prepare()

    def refresh(self, evaluation: Evaluation) -> None:
        """Show the plan with the questions for its task, or with the form for its traced module."""
        task = evaluation.plan.workload.task
        self.subject.refresh(evaluation)
        self.cards.refresh(evaluation)
        for questions_by_task in (self.questions, self.sharing):
            task_questions = questions_by_task[task]
            task_questions.set_goal(self.subject.goal)
            task_questions.refresh(evaluation)
            for questions in questions_by_task.values():
                questions.setVisible(questions is task_questions and evaluation.traced is None)
        self.what_if.refresh(evaluation)
        self.what_if.setVisible(evaluation.traced is not None)
        self._reset.setVisible(evaluation.traced is None)
        self._reset.setEnabled(evaluation.plan.workload not in (Training(), Inference()))

    @Slot(str)
    def focus_setting(self, name: str) -> None:
        """Give the keyboard to the input for the workload field `name`."""
        for questions_by_task in (self.questions, self.sharing):
            questions_by_task[self._workspace.plan.workload.task].focus_field(name)

    @Slot()
    def reset(self) -> None:
        """Reset the workload to its defaults as one undo step."""
        fresh = Training() if self._workspace.plan.workload.task == "training" else Inference()
        self._workspace.end_gesture()
        with self._workspace.reporting():
            self._workspace.apply("reset", workload=fresh)

    def minimumSizeHint(self) -> QSize:
        """Return a minimum height of 0: the column scrolls."""
        return QSize(self.width(), 0)

    def _make_questions_above_cards(self, task: Task) -> Questions:
        return Questions(self._workspace, self._theme, task, _BEFORE_THE_CARDS)

    def _make_questions_below_cards(self, task: Task) -> Questions:
        return Questions(self._workspace, self._theme, task, _AFTER_THE_CARDS)

    def _lay_out(self, theme: Theme) -> None:
        body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(*(theme.spacing.medium,) * 4)
        column.setSpacing(theme.spacing.small)
        column.addWidget(self.subject)
        column.addSpacing(theme.spacing.small)
        column.addLayout(self.questions.place)
        column.addWidget(self.what_if)
        column.addWidget(self.cards)
        column.addLayout(self.sharing.place)
        column.addSpacing(theme.spacing.small)
        buttons = QHBoxLayout()
        for button in (self.find_cards, self._reset, self.copy):
            buttons.addWidget(button)
        buttons.addStretch(1)
        column.addLayout(buttons)
        column.addWidget(self.compare, 0, Qt.AlignmentFlag.AlignLeft)
        column.addStretch(1)
        self.setWidget(body)
