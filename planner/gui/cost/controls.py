"""The left column: the job, and how the cards are rented and owned."""

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from planner.cost.terms import CostTerms
from planner.gui.cost.buy import BuyQuestions
from planner.gui.cost.job import JobQuestions
from planner.gui.cost.questions import MoneyQuestions
from planner.gui.cost.rent import RentQuestions
from planner.gui.theme import Theme
from planner.gui.workspace import Workspace


class Controls(QScrollArea):
    """Scrolls up and down only. What the buttons do is set from outside, but for `reset`."""

    def __init__(self, workspace: Workspace, theme: Theme, width: int) -> None:
        super().__init__()
        self._workspace = workspace
        self.job = JobQuestions(workspace, theme)
        self.rent = RentQuestions(workspace, theme)
        self.buy = BuyQuestions(workspace, theme)
        self.recommend = QPushButton(self.tr("C&hoose for me…"))
        self.recommend.setToolTip(self.tr("Look at every card, number and offer for this job."))
        self.prices = QPushButton(self.tr("&Prices…"))
        self.prices.setToolTip(self.tr("How old they are, fresh ones on request, and offers of your own."))
        self.copy = QPushButton(self.tr("Cop&y"))
        self.copy.setToolTip(self.tr("Copy or save the answer."))
        self._reset = QPushButton(self.tr("Re&set"))
        self._reset.setToolTip(self.tr("Set every question about money back to its default."))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidgetResizable(True)
        self.setFixedWidth(width)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._lay_out(theme)
        self._reset.clicked.connect(self.reset)

    @property
    def questions(self) -> tuple[MoneyQuestions, ...]:
        """Return the three groups of questions."""
        return self.job, self.rent, self.buy

    def refresh(self) -> None:
        """Show the plan's terms."""
        for questions in self.questions:
            questions.refresh()
        self._reset.setEnabled(self._workspace.plan.cost != CostTerms())

    @Slot()
    def reset(self) -> None:
        """Set every question about money back to its default, as one step."""
        self._workspace.end_gesture()
        with self._workspace.reporting():
            self._workspace.apply("reset money", cost=CostTerms())

    def minimumSizeHint(self) -> QSize:
        """Ask for no height of its own."""
        return QSize(self.width(), 0)

    def _lay_out(self, theme: Theme) -> None:
        body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(*(theme.spacing.medium,) * 4)
        column.setSpacing(theme.spacing.small)
        for questions in self.questions:
            column.addWidget(questions)
        column.addSpacing(theme.spacing.small)
        for pair in ((self.recommend, self.prices), (self._reset, self.copy)):
            buttons = QHBoxLayout()
            for button in pair:
                buttons.addWidget(button)
            buttons.addStretch(1)
            column.addLayout(buttons)
        column.addStretch(1)
        self.setWidget(body)
