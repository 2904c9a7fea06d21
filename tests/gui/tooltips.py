"""Which controls and table columns of a widget have no tooltip."""

from collections.abc import Iterator

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSlider,
    QAbstractSpinBox,
    QComboBox,
    QDialogButtonBox,
    QLineEdit,
    QPlainTextEdit,
    QScrollBar,
    QTableView,
    QWidget,
)

from planner.gui.catalog.compare_page import CompareTable
from planner.gui.widgets.tables.cell_view import PinnedColumn

CONTROLS = (QAbstractButton, QAbstractSlider, QAbstractSpinBox, QComboBox, QLineEdit, QPlainTextEdit)
PLAIN = ("Close", "Cancel", "OK", "&Close", "&Cancel", "&OK", "Copy", "&Copy", "Save", "&Save")
"""Texts of buttons that everybody knows."""


def controls_without_tooltip(root: QWidget) -> list[str]:
    """Return a name for each control and each table column inside `root` that has no tooltip."""
    return [*_controls(root), *_columns(root)]


def _controls(root: QWidget) -> Iterator[str]:
    for control in root.findChildren(QWidget):
        if isinstance(control, QScrollBar) or not isinstance(control, CONTROLS) or _is_inner(control):
            continue
        if isinstance(control.parentWidget(), QDialogButtonBox) and control.text() in PLAIN:
            continue
        if not tooltip_of(control, root).strip():
            yield _name(control, root)


def _columns(root: QWidget) -> Iterator[str]:
    for table in root.findChildren(QTableView):
        if isinstance(table, PinnedColumn | CompareTable):  # of the same model as its table, and with a column a record
            continue
        model = table.model()
        for position in range(model.columnCount() if model else 0):
            title = str(model.headerData(position, Qt.Orientation.Horizontal) or "")
            hint = str(model.headerData(position, Qt.Orientation.Horizontal, Qt.ItemDataRole.ToolTipRole) or "")
            if hint.strip() in ("", title):
                yield f"column {title!r} of {_name(table, root)}"


def tooltip_of(control: QWidget, root: QWidget) -> str:
    """Return the tooltip that hovering `control` shows: its own, or else that of the nearest widget around it."""
    widget: QWidget | None = control
    while widget is not None and widget is not root:
        if widget.toolTip():
            return widget.toolTip()
        widget = widget.parentWidget()
    return ""


def _is_inner(control: QWidget) -> bool:
    """Return whether Qt made `control` as a part of another control, such as the clear button of a line edit."""
    parent = control.parentWidget()
    return isinstance(parent, (QLineEdit, QComboBox, QAbstractSpinBox, QTableView)) or control.objectName().startswith(
        "qt_"
    )


def _name(control: QWidget, root: QWidget) -> str:
    text = control.accessibleName() or (control.text() if isinstance(control, QAbstractButton) else "")
    widget, inside = control.parentWidget(), []
    while widget is not None and widget is not root:
        if type(widget).__module__.startswith("planner"):
            inside.append(type(widget).__name__)
        widget = widget.parentWidget()
    return f"{type(control).__name__} {text!r} in {' < '.join(inside[:3])}"
