"""The left column of the Memory tab with all questions about the plan."""

from collections.abc import Callable, Iterator
from typing import Final

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from planner.gui.memory.buttons import CompareButton, FindCardsButton
from planner.gui.memory.questions.cards import CardsQuestions
from planner.gui.memory.questions.questions import Questions
from planner.gui.memory.subject import SubjectForm
from planner.gui.memory.trace.controller import TracedRunForm
from planner.gui.theme import Theme
from planner.gui.widgets.layout import set_tab_order, tab_stops
from planner.gui.workspace import Workspace
from planner.plan.evaluate import Evaluation
from planner.workload.choices import Task
from planner.workload.fields import TASKS
from planner.workload.presentation import GROUPS, Group
from planner.workload.workload import Inference, Training

_AFTER_THE_CARDS: Final[tuple[Group, ...]] = ("sharing", "offload")
_BEFORE_THE_CARDS: Final = tuple(group for group in GROUPS if group not in ("cards", *_AFTER_THE_CARDS))


class QuestionsByTask(dict[Task, Questions]):
    """Question forms by task, built on first access: the window's start waits only for the forms of one task."""

    def __init__(self, make: Callable[[Task], Questions], on_made: Callable[[], None]) -> None:
        super().__init__()
        self.place = QVBoxLayout()
        self._make, self._on_made = make, on_made

    def make(self, task: Task) -> Questions:
        """Build the question forms for `task`."""
        new_questions = self[task] = self._make(task)
        self.place.addWidget(new_questions)
        new_questions.grown.connect(self._on_made)
        self._on_made()
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
        self.questions = QuestionsByTask(self._make_questions_above_cards, self._set_tab_order)
        self.cards = CardsQuestions(workspace, theme)
        self.sharing = QuestionsByTask(self._make_questions_below_cards, self._set_tab_order)
        self.find_cards = FindCardsButton(workspace, theme)
        self._reset = QPushButton("Re&set")
        self._reset.setToolTip("Reset all workload settings to their defaults.")
        self.copy = QPushButton("Cop&y")
        self.copy.setToolTip("Copy or save the answer.")
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
        self._set_tab_order()

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

    def _set_tab_order(self) -> None:
        """Include questions that were built later in the keyboard tab order."""
        set_tab_order(tuple(tab_stops(self._column)))

    def _lay_out(self, theme: Theme) -> None:
        body = QWidget()
        column = self._column = QVBoxLayout(body)
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
