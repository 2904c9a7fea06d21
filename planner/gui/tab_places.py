"""The tabs that the window has, each built when it is first shown."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Final

from planner.gui.tab import Tab
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.workspace import Workspace


@dataclass(frozen=True, slots=True)
class TabPlace:
    """Where a tab's class is; it is imported and built when the tab is first shown."""

    key: str
    title: str
    icon: str
    module: str
    name: str

    def build(self, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> Tab:
        """Import the class and make the tab."""
        make: Callable[[Workspace, Theme, TaskRunner], Tab] = getattr(import_module(self.module), self.name)
        return make(workspace, theme, tasks)


TABS: Final = (
    TabPlace("catalog", "Catalog", "catalog", "planner.gui.catalog.tab", "CatalogTab"),
    TabPlace("memory", "Memory", "memory", "planner.gui.memory.tab", "MemoryTab"),
    TabPlace("cost", "Cost", "cost", "planner.gui.cost.tab", "CostTab"),
    TabPlace("monitor", "Monitor", "monitor", "planner.gui.monitor.tab", "MonitorTab"),
)
