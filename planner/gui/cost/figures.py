"""Figures in columns beside each other, each with its origin on hover."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from planner.gui.theme import Theme
from planner.gui.widgets.label import make_label
from planner.present.cost.rent_or_buy import FigureRow

_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class FigureGrid(QWidget):
    """A title and right-aligned figures a row, under the names of the columns."""

    def __init__(self, theme: Theme, columns: tuple[str, ...]) -> None:
        super().__init__()
        self._columns = columns
        self._rows: tuple[FigureRow, ...] = ()
        self._lines: list[tuple[QLabel, ...]] = []
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(theme.spacing.large)
        self._grid.setVerticalSpacing(theme.spacing.tiny)
        self._grid.setColumnStretch(0, 1)
        for at, name in enumerate(columns, start=1):
            heading = make_label(name, font=theme.font(bold=True))
            self._grid.addWidget(heading, 0, at, _RIGHT)

    @property
    def rows(self) -> tuple[FigureRow, ...]:
        """Return what is shown."""
        return self._rows

    def show_rows(self, rows: tuple[FigureRow, ...]) -> None:
        """Show other figures."""
        self._rows = rows
        while len(self._lines) < len(rows):
            self._add_line()
        for at, line in enumerate(self._lines):
            row = rows[at] if at < len(rows) else None
            for label in line:
                label.setVisible(row is not None)
            if row is not None:
                line[0].setText(row.title)
                for label, cell in zip(line[1:], row.cells, strict=True):
                    label.setText(cell.text)
                    label.setToolTip(cell.origin)
        self.setAccessibleName("; ".join(_words(row, self._columns) for row in rows))

    def _add_line(self) -> None:
        at = len(self._lines) + 1
        line = (make_label(role="muted"), *(make_label() for _ in self._columns))
        for column, label in enumerate(line):
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            self._grid.addWidget(label, at, column, _RIGHT if column else Qt.AlignmentFlag.AlignLeft)
        self._lines.append(line)


def _words(row: FigureRow, columns: tuple[str, ...]) -> str:
    told = (f"{name.lower()} {cell.text}" for name, cell in zip(columns, row.cells, strict=True) if cell.text)
    return f"{row.title}: {', '.join(told)}"
