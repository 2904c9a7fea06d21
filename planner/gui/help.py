"""The two pages of the Help menu."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QGridLayout, QMessageBox, QVBoxLayout, QWidget

from planner import __version__
from planner.gui.actions import ActionSet
from planner.gui.theme import Theme
from planner.gui.widgets.closing_buttons import closing_buttons
from planner.gui.widgets.label import make_label
from planner.present.format import integer


def show_shortcuts(actions: ActionSet, theme: Theme, parent: QWidget) -> QDialog:
    """Show every action that has a key, menu by menu."""
    dialog = QDialog(parent)
    dialog.setWindowTitle("Keyboard shortcuts")
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    grid = QGridLayout()
    grid.setHorizontalSpacing(theme.spacing.huge)
    grid.setVerticalSpacing(theme.spacing.tiny)
    menu = ""
    for action in actions.declared:
        if not action.shortcut:
            continue
        if (heading := action.menu.split("/")[0]) != menu:
            menu = heading
            grid.addWidget(make_label(menu, font=theme.font(bold=True)), grid.rowCount(), 0)
        row = grid.rowCount()
        made = actions[action.id]
        grid.addWidget(make_label(made.text().replace("&", "").rstrip("…")), row, 0)
        keys = ", ".join(key.toString(key.SequenceFormat.NativeText) for key in made.shortcuts())
        grid.addWidget(make_label(keys, "muted"), row, 1)
    _finish(dialog, grid)
    return dialog


def show_about(cards: int, models: int, parent: QWidget) -> QMessageBox:
    """Show what the program is and which version this is."""
    text = (
        "Which GPU do I need, and does my model fit it?\n\n"
        f"The catalog holds {integer(cards)} accelerators and {integer(models)} models, "
        "each figure with its source.\n\nApache License 2.0"
    )
    box = QMessageBox(QMessageBox.Icon.NoIcon, "About GPU Planner", f"GPU Planner {__version__}", parent=parent)
    box.setInformativeText(text)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.open()
    return box


def _finish(dialog: QDialog, grid: QGridLayout) -> None:
    layout = QVBoxLayout(dialog)
    layout.addLayout(grid)
    layout.addWidget(closing_buttons(dialog))
    dialog.open()
