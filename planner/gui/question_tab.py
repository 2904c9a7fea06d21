"""A tab that asks on the left and answers on the right."""

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from planner.gui.tab import Tab
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.widgets.hairline import hairline
from planner.gui.widgets.result_menu import picture_of
from planner.gui.widgets.scrolled import scrolled
from planner.gui.workspace import Workspace


class QuestionTab(Tab):
    """Questions beside a column that scrolls, which is drawn anew when another plan is pinned.

    Subclasses fill `_column` with the answer and its evidence, and then lay out the tab.
    """

    def __init__(self, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> None:
        super().__init__(workspace, theme, tasks)
        self._body = QWidget()
        self._column = QVBoxLayout(self._body)
        space = theme.spacing
        self._column.setContentsMargins(space.large, space.medium, space.large, space.small)
        self._column.setSpacing(space.medium)
        workspace.pin.changed.connect(self._on_pinned)

    def _lay_out(self, questions: QWidget, *fixed: QWidget) -> None:
        """Set `questions` beside the column; `fixed` stays above it wherever that is scrolled to."""
        self.results = scrolled(self._body)
        right = QVBoxLayout()
        right.setSpacing(0)
        for widget in fixed:
            right.addWidget(widget)
        right.addWidget(self.results, 1)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(questions)
        layout.addWidget(hairline(Qt.Orientation.Vertical))
        layout.addLayout(right, 1)

    def _picture_of(self, first: QWidget, last: QWidget) -> QPixmap:
        """Return the column from `first` to `last` as it is shown."""
        return picture_of(self._body, first.geometry().united(last.geometry()), self.theme.spacing.medium)

    @Slot()
    def _on_pinned(self) -> None:
        self._on_changed(None, None)
