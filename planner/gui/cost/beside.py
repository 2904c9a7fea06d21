"""The pinned plan beside the present one: time, rent, owning and the difference."""

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from planner.gui.cost.figures import FigureGrid
from planner.gui.theme import Theme
from planner.gui.widgets.label import make_label
from planner.gui.widgets.link_button import link_button
from planner.gui.widgets.pin_buttons import PinButtons
from planner.gui.workspace import Workspace
from planner.present.cost.rent_or_buy import Scenario, scenario_rows


class Beside(QWidget):
    """Shown while a plan is pinned."""

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self.figures = FigureGrid(theme, ("This plan", "Pinned", "Difference"))
        self.subject = make_label(wrap=True)
        self.sentence = make_label(role="muted", wrap=True)
        self.copy = link_button("Copy", "Copy both as a table.")
        self.pin_buttons = PinButtons(workspace, theme, self.copy)
        self.copy.clicked.connect(self.copy_table)
        self._lay_out(theme)
        self.hide()

    def show_scenarios(self, mine: Scenario, other: Scenario, subject: str, sentence: str) -> None:
        """Show the pinned plan, which is of `subject` and whose own answer is `sentence`, beside the present one."""
        self.subject.setText(subject)
        self.sentence.setText(sentence)
        self.figures.show_rows(scenario_rows(mine, other))
        self.pin_buttons.refresh()
        self.show()

    @Slot()
    def copy_table(self) -> None:
        """Put both plans' figures on the clipboard, separated by tabs."""
        rows = ((row.title, *(cell.text for cell in row.cells)) for row in self.figures.rows)
        header = ("", "This plan", "Pinned", "Difference")
        QGuiApplication.clipboard().setText("\n".join("\t".join(row) for row in (header, *rows)))

    def _lay_out(self, theme: Theme) -> None:
        self.sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        head = QHBoxLayout()
        head.setSpacing(theme.spacing.small)
        head.addWidget(make_label("Beside the pinned plan", font=theme.font(bold=True)), 1)
        head.addWidget(self.pin_buttons, 0, Qt.AlignmentFlag.AlignVCenter)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.spacing.tiny)
        column.addLayout(head)
        for widget in (self.subject, self.sentence, self.figures):
            column.addWidget(widget)
