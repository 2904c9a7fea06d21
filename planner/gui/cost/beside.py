"""The pinned plan beside the present one: time, rent, owning and the difference."""

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from planner.gui.cost.figures import FigureGrid
from planner.gui.theme import Theme, mark
from planner.gui.widgets.label import make_label
from planner.gui.workspace import Workspace
from planner.present.ways import Scenario, scenario_rows


class Beside(QWidget):
    """Shown while a plan is pinned."""

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self._workspace = workspace
        self.figures = FigureGrid(theme, (self.tr("This plan"), self.tr("Pinned"), self.tr("Difference")))
        self.subject = make_label(wrap=True)
        self.sentence = make_label(role="muted", wrap=True)
        self.swap = self._link(self.tr("Swap"), self.tr("Plan with the pinned one, and pin this one."))
        self.unpin = self._link(self.tr("Unpin"), self.tr("Show the plan alone again."))
        self.copy = self._link(self.tr("Copy"), self.tr("Copy both as a table."))
        self.swap.clicked.connect(self._swap)
        self.unpin.clicked.connect(self._unpin)
        self.copy.clicked.connect(self.copy_table)
        self._lay_out(theme)
        self.hide()

    def show_scenarios(self, mine: Scenario, other: Scenario, subject: str, sentence: str) -> None:
        """Show the pinned plan, which is of `subject` and whose own answer is `sentence`, beside the present one."""
        self.subject.setText(subject)
        self.sentence.setText(sentence)
        self.figures.show_rows(scenario_rows(mine, other))
        self.swap.setEnabled(self._workspace.plan != self._workspace.pin.plan)
        self.show()

    @Slot()
    def copy_table(self) -> None:
        """Put both plans' figures on the clipboard, separated by tabs."""
        rows = ((row.title, *(cell.text for cell in row.cells)) for row in self.figures.rows)
        header = ("", "This plan", "Pinned", "Difference")
        QGuiApplication.clipboard().setText("\n".join("\t".join(row) for row in (header, *rows)))

    def _link(self, words: str, tooltip: str) -> QPushButton:
        button = QPushButton(words)
        button.setToolTip(tooltip)
        mark(button, "link")
        return button

    @Slot()
    def _swap(self) -> None:
        with self._workspace.reporting():
            self._workspace.pin.swap()

    @Slot()
    def _unpin(self) -> None:
        self._workspace.pin.put(None)

    def _lay_out(self, theme: Theme) -> None:
        self.sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        head = QHBoxLayout()
        head.setSpacing(theme.spacing.small)
        head.addWidget(make_label(self.tr("Beside the pinned plan"), font=theme.font(bold=True)), 1)
        for button in (self.swap, self.unpin, self.copy):
            head.addWidget(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.spacing.tiny)
        column.addLayout(head)
        for widget in (self.subject, self.sentence, self.figures):
            column.addWidget(widget)
