"""Print every text of the window: what each tab and dialog shows, and what its tooltips and accessible names say.

python benchmarks/window_texts.py            texts by place
python benchmarks/window_texts.py --count    number of texts and words of each place
"""

import argparse
import os
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING

from screenshots import opened_dialogs, sample_costs, sample_plans, settle

if TYPE_CHECKING:
    from PySide6.QtWidgets import QAbstractItemView, QWidget

    from planner.gui.window import MainWindow

_ROWS = 2
"""Rows of a table whose cells are printed."""


def main() -> None:
    """Print the texts of a window at its first start."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", action="store_true", help="print only how many there are in each place")
    arguments = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    with tempfile.TemporaryDirectory() as home:
        os.environ["GPU_PLANNER_HOME"] = home
        from planner.gui.app import create

        app, window = create(["gpu-planner"])
        known: set[str] = set()
        for place, texts in texts_by_place(window):
            new = [text for text in dict.fromkeys(texts) if text not in known]
            known.update(new)
            words = sum(len(text.split()) for text in new)
            print(f"\n# {place}: {len(new)} texts, {words} words")
            if not arguments.count:
                print(*new, sep="\n")
        window.close()
        app.aboutToQuit.emit()


def texts_by_place(window: "MainWindow") -> "Iterator[tuple[str, list[str]]]":
    """Yield each place of the window with its texts: menus, tabs, tabs with plans of every kind, and dialogs."""
    commands = (window.commands[action.id] for action in window.commands.declared)
    yield "menus", [command.text().replace("&", "") for command in commands]
    for place in window.places:
        window.show_tab(place.key)
        settle(window)
        yield f"tab {place.title}", list(texts_of(window))
    for tab, plans in (("memory", sample_plans()), ("cost", sample_costs())):
        window.show_tab(tab)
        for name, plan in plans.items():
            window.workspace.replace(plan, None)
            settle(window)
            yield f"tab {tab}, plan {name}", list(texts_of(window))
    monitor = window.monitor()
    monitor.controller.show_demo()
    settle(window)
    yield "tab monitor, demo", list(texts_of(window))
    window.workspace.replace(sample_costs()["run"], None)
    for _, dialog in opened_dialogs(window):
        yield f"dialog {dialog.windowTitle()}", list(texts_of(dialog))


def texts_of(shown: "QWidget") -> Iterator[str]:
    """Yield the texts of `shown` and of all that it contains, hidden parts included."""
    from PySide6.QtWidgets import (
        QAbstractButton,
        QAbstractItemView,
        QComboBox,
        QLabel,
        QLineEdit,
        QPlainTextEdit,
        QTextEdit,
        QWidget,
    )

    for widget in (shown, *shown.findChildren(QWidget)):
        yield from filter(None, (widget.toolTip(), widget.accessibleName(), widget.accessibleDescription()))
        match widget:
            case QLabel() | QAbstractButton():
                yield widget.text().replace("&", "")
            case QLineEdit():
                yield widget.placeholderText()
            case QComboBox():
                yield from (widget.itemText(at) for at in range(widget.count()))
            case QTextEdit() | QPlainTextEdit():
                yield widget.toPlainText()
            case QAbstractItemView():
                yield from _table_texts(widget)


def _table_texts(view: "QAbstractItemView") -> Iterator[str]:
    """Yield the headers, and the cells of the first rows, with their tooltips."""
    from PySide6.QtCore import QAbstractListModel, Qt

    model = view.model()
    if model is None:
        return
    columns = 1 if isinstance(model, QAbstractListModel) else model.columnCount()
    for column in range(columns):
        for role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            yield str(model.headerData(column, Qt.Orientation.Horizontal, role) or "")
            for row in range(min(_ROWS, model.rowCount())):
                yield str(model.index(row, column).data(role) or "")


if __name__ == "__main__":
    main()
