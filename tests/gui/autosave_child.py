"""A window's workspace in a process of its own, changed and then left running until it is killed."""

import sys
from pathlib import Path

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from planner.gui.autosave import Autosave
from planner.gui.settings import SettingsStore
from planner.gui.workspace import Workspace
from planner.plan.catalog import load_catalog


def main(folder: Path, count: int, plan_file: str) -> int:
    """Set the number of cards to `count`, and wait."""
    app = QApplication([])
    workspace = Workspace(load_catalog(), SettingsStore(folder.parent / "child-settings.json"), parent=app)
    autosave = Autosave(workspace, folder, app)

    def work() -> None:
        if plan_file:
            workspace.save_plan(Path(plan_file))
        workspace.apply("number of cards", count=count)

    QTimer.singleShot(0, autosave, work)
    return app.exec()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
