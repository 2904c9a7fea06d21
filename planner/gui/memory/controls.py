"""The left column: every question about the plan."""

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from planner.gui.memory.fitting_cards import FindCardsButton
from planner.gui.memory.questions.cards import CardsQuestions
from planner.gui.memory.questions.inference import InferenceQuestions
from planner.gui.memory.questions.questions import Questions
from planner.gui.memory.questions.sharing import SharingQuestions
from planner.gui.memory.questions.training import TrainingQuestions
from planner.gui.memory.subject import Subject
from planner.gui.memory.trace.what_if import WhatIf
from planner.gui.memory.versus.button import CompareButton
from planner.gui.theme import Theme
from planner.gui.workspace import Workspace
from planner.plan.evaluate import Evaluation
from planner.workload.workload import Inference, Training


class Controls(QScrollArea):
    """Scrolls up and down only. What `copy` offers is set from outside."""

    def __init__(self, workspace: Workspace, theme: Theme, what_if: WhatIf, width: int) -> None:
        super().__init__()
        self._workspace = workspace
        self.what_if = what_if
        self.subject = Subject(workspace, theme)
        self.training = TrainingQuestions(workspace, theme)
        self.questions: dict[str, Questions] = {
            "training": self.training,
            "inference": InferenceQuestions(workspace, theme),
        }
        self.cards = CardsQuestions(workspace, theme)
        self.sharing: dict[str, Questions] = {
            "training": SharingQuestions(workspace, theme, Training()),
            "inference": SharingQuestions(workspace, theme, Inference()),
        }
        self.find_cards = FindCardsButton(workspace, theme)
        self._reset = QPushButton(self.tr("Re&set"))
        self._reset.setToolTip(self.tr("Set every question about the workload back to its default."))
        self.copy = QPushButton(self.tr("Cop&y"))
        self.copy.setToolTip(self.tr("Copy or save the answer."))
        self.compare = CompareButton(workspace, theme)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidgetResizable(True)
        self.setFixedWidth(width)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._lay_out(theme)
        self._reset.clicked.connect(self.reset)
        self.subject.goal_chosen.connect(lambda: self.refresh(workspace.evaluation))

    def refresh(self, evaluation: Evaluation) -> None:
        """Show the plan; only the questions of its task, or those about a traced module, are asked."""
        task = evaluation.plan.workload.task
        self.subject.refresh(evaluation)
        self.cards.refresh(evaluation)
        self.training.asks_method = self.subject.goal == "fine-tune"
        for asked in (self.questions, self.sharing):
            for name, questions in asked.items():
                if name == task:
                    questions.refresh(evaluation)
                questions.setVisible(name == task and evaluation.traced is None)
        self.what_if.refresh(evaluation)
        self.what_if.setVisible(evaluation.traced is not None)
        self._reset.setVisible(evaluation.traced is None)
        self._reset.setEnabled(evaluation.plan.workload not in (Training(), Inference()))

    @Slot()
    def reset(self) -> None:
        """Set every question about the workload back to its default, as one step."""
        fresh = Training() if self._workspace.plan.workload.task == "training" else Inference()
        self._workspace.end_gesture()
        with self._workspace.reporting():
            self._workspace.apply("reset", workload=fresh)

    def minimumSizeHint(self) -> QSize:
        """Ask for no height of its own."""
        return QSize(self.width(), 0)

    def _lay_out(self, theme: Theme) -> None:
        body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(*(theme.spacing.medium,) * 4)
        column.setSpacing(theme.spacing.small)
        column.addWidget(self.subject)
        column.addSpacing(theme.spacing.small)
        for widget in (*self.questions.values(), self.what_if, self.cards, *self.sharing.values()):
            column.addWidget(widget)
        column.addSpacing(theme.spacing.small)
        buttons = QHBoxLayout()
        for button in (self.find_cards, self._reset, self.copy):
            buttons.addWidget(button)
        buttons.addStretch(1)
        column.addLayout(buttons)
        column.addWidget(self.compare, 0, Qt.AlignmentFlag.AlignLeft)
        column.addStretch(1)
        self.setWidget(body)
