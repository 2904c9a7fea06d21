"""The thin line between two parts of the window."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from planner.gui.theme import mark


def hairline(orientation: Qt.Orientation) -> QWidget:
    """Return a line of one pixel."""
    line = QWidget()
    line.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
    mark(line, "hairline")
    if orientation == Qt.Orientation.Vertical:
        line.setFixedWidth(1)
    else:
        line.setFixedHeight(1)
    return line
