"""Every control and every table column of the tabs and dialogs says in a tooltip what it is or does.

A failing test prints the list of those that do not; `tooltips.controls_without_tooltip` makes it for any widget.
"""

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication, QDialog, QFileDialog, QLabel, QPushButton, QWidget
from pytestqt.qtbot import QtBot
from tooltips import controls_without_tooltip, tooltip_of

import planner.gui
import planner.present
from planner.gui.tab import START, TABS
from planner.gui.window import MainWindow
from planner.gui.workspace import Workspace
from planner.present.columns import Column

DIALOGS = (
    "plan.trace",
    "plan.compare-log",
    "plan.launch",
    "plan.recommend",
    "plan.prices",
    "catalog.change",
    "catalog.new-card",
    "monitor.speed",
    "monitor.settings",
    "monitor.doctor",
    "help.manual",
    "help.basics",
    "help.shortcuts",
)
"""Commands that open a dialog of the window; Qt's own dialogs explain themselves."""
ONLY_IN_A_TERMINAL = ("BARRED_CARD_COLUMNS",)


@pytest.fixture
def whole_window(qtbot: QtBot, workspace: Workspace, theme, tasks) -> MainWindow:
    """The window with its real tabs."""
    made = MainWindow(workspace, theme, tasks, TABS)
    qtbot.addWidget(made, before_close_func=lambda _window: workspace.undo_stack.setClean())
    made.show()
    return made


@pytest.mark.parametrize("task", ["inference", "training"])
@pytest.mark.parametrize("key", [entry.key for entry in (START, *TABS)])
def test_every_control_of_a_tab_has_a_tooltip(whole_window, key, task):
    whole_window.workspace.answer("task", {"workload.task": task})
    whole_window.show_tab(key)
    QApplication.processEvents()
    assert controls_without_tooltip(whole_window) == []


@pytest.mark.parametrize("command", DIALOGS)
def test_every_control_of_a_dialog_has_a_tooltip(whole_window, command, qtbot):
    whole_window.show_tab(command.partition(".")[0] if command.startswith(("catalog", "monitor")) else "memory")
    QApplication.processEvents()
    dialogs = opened_by(whole_window.commands[command].trigger, qtbot)
    for dialog in dialogs:
        assert controls_without_tooltip(dialog) == []
        dialog.close()


def opened_by(trigger: Callable[[], object], qtbot: QtBot) -> list[QDialog]:
    def shown() -> list[QDialog]:
        widgets = QApplication.topLevelWidgets()
        return [widget for widget in widgets if isinstance(widget, QDialog) and widget.isVisible()]

    trigger()
    qtbot.waitUntil(lambda: bool(shown()))
    return [dialog for dialog in shown() if not isinstance(dialog, QFileDialog)]


def test_a_control_without_a_tooltip_is_named(qtbot):
    root = QWidget()
    qtbot.addWidget(root)
    group = QWidget(root)
    group.setToolTip("Both buttons")
    inside, outside = QPushButton("In", group), QPushButton("Out", root)
    QLabel("Text", root)
    assert tooltip_of(inside, root) == "Both buttons"
    assert controls_without_tooltip(root) == ["QPushButton 'Out' in "]
    outside.setToolTip("Alone")
    assert controls_without_tooltip(root) == []


def declared_columns() -> dict[str, Column[Any]]:
    """Return the columns of each table that a module declares, by module, name and key."""
    found = {}
    for package in (planner.gui, planner.present):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for name, value in vars(importlib.import_module(module.name)).items():
                if name in ONLY_IN_A_TERMINAL:
                    continue
                if isinstance(value, tuple) and value and all(isinstance(part, Column) for part in value):
                    found |= {f"{module.name}.{name}: {column.key}": column for column in value}
    return found


def test_every_declared_column_says_what_it_is():
    columns = declared_columns()
    assert len(columns) > 150
    assert [name for name, column in columns.items() if not column.help] == []
