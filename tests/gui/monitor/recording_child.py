"""Records in a Monitor tab of its own until it is killed; says once that it records. Arguments: file, settings."""

import sys
from pathlib import Path

from PySide6.QtWidgets import QApplication

from planner.gui.monitor.feed import Feed
from planner.gui.monitor.tab import MonitorTab
from planner.gui.settings import SettingsStore
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.workspace import Workspace
from planner.monitor.settings import AlertRules
from planner.plan.catalog import load_catalog

MARK = "recorded before the end"


def main() -> None:
    """Record, and mark the first moment at which something was read."""
    recording, settings = map(Path, sys.argv[1:])
    app = QApplication(["gpu-planner"])
    workspace = Workspace(load_catalog(), SettingsStore(settings, app), parent=app)
    tab = MonitorTab(workspace, Theme(app, "light"), TaskRunner(), Feed(0.1, AlertRules()))
    seen = [0]

    def hear() -> None:
        seen[0] += 1
        if seen[0] == 1:
            tab.controller.record_to(recording)
        elif seen[0] == 10:
            tab.feed.mark_live(tab.feed.now or 0.0, MARK)
        elif seen[0] == 20:
            sys.stdout.write(f"{tab.feed.recording_path}\n")
            sys.stdout.flush()

    tab.feed.updated.connect(hear)
    tab.show()
    app.exec()


if __name__ == "__main__":
    main()
