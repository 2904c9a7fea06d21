"""Two plain tabs, so that the shell is tested without the real ones."""

from PySide6.QtWidgets import QLabel, QLineEdit, QVBoxLayout

from planner.gui.tab import Tab, TabEntry
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.workspace import Workspace
from planner.plan.evaluate import Evaluation


class PlainTab(Tab):
    """Counts how often it was drawn."""

    def __init__(self, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> None:
        super().__init__(workspace, theme, tasks)
        self.drawn: list[Evaluation] = []
        self.search = QLineEdit()
        self.search.setAccessibleName("Search")
        layout = QVBoxLayout(self)
        layout.addWidget(QLabel(self.title))
        layout.addWidget(self.search)

    def refresh(self, evaluation: Evaluation) -> None:
        self.drawn.append(evaluation)

    def copy_result(self) -> str:
        return f"{self.title}: {self.workspace.evaluation.memory.total_bytes}"

    def focus_search(self) -> None:
        self.search.setFocus()


class CardsTab(PlainTab):
    key, title, icon_name = "catalog", "Catalog", "catalog"

    def __init__(self, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> None:
        super().__init__(workspace, theme, tasks)
        self.only_fitting = False

    def show_fitting_cards(self) -> None:
        self.only_fitting = True


class BytesTab(PlainTab):
    key, title, icon_name = "memory", "Memory", "memory"
    primary_action = "Find cards"

    def __init__(self, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> None:
        super().__init__(workspace, theme, tasks)
        self.ran = 0

    def run_primary_action(self) -> None:
        self.ran += 1


PLACES = (
    TabEntry("catalog", "Catalog", "catalog", "shell_fakes", "CardsTab"),
    TabEntry("memory", "Memory", "memory", "shell_fakes", "BytesTab"),
)
