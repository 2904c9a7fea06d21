"""The breakdown: every term of the peak, each of which opens in place."""

from functools import partial

from PySide6.QtCore import QSize, Slot
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from planner.gui.memory.terms.columns import CERTAINTY, GIB, HOW, SHARE, Columns, place_columns
from planner.gui.memory.terms.detail import TermDetail
from planner.gui.memory.terms.row import TermButton, paint_cells, row_height
from planner.gui.theme import Theme
from planner.present import format as fmt
from planner.present.memory.view import MemoryView, TermRow

Cells = tuple[str, str, str, str, str]


class Breakdown(QWidget):
    """A line a term between a heading and the total. What is open stays open while the plan changes."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._rows: tuple[TermRow, ...] = ()
        self._lines: list[tuple[TermButton, TermDetail]] = []
        self._open: set[str] = set()
        self._head = _Line(theme, "muted", bold=False)
        self._total = _Line(theme, "text", bold=True)
        self._head.set_cells(("Term", GIB, SHARE, HOW, CERTAINTY))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(0)
        self._layout.addWidget(self._head)
        self._layout.addWidget(self._total)
        theme.changed.connect(self._place)

    @property
    def lines(self) -> tuple[TermButton, ...]:
        """Return the buttons of the terms, in their order."""
        return tuple(button for button, _ in self._lines[: len(self._rows)])

    def detail(self, name: str) -> TermDetail | None:
        """Return what the term called `name` shows, if it is open."""
        names = [row.name for row in self._rows]
        return self._lines[names.index(name)][1] if name in names and name in self._open else None

    def set_view(self, view: MemoryView) -> None:
        """Show the terms of another result."""
        self._rows = view.terms
        while len(self._lines) < len(self._rows):
            self._add_line()
        for number, (button, detail) in enumerate(self._lines):
            row = self._rows[number] if number < len(self._rows) else None
            button.setVisible(row is not None)
            self._show_detail(detail, row)
            if row is not None:
                button.set_row(row)
                button.setChecked(row.name in self._open)
        self._total.set_cells(("Total", fmt.gib(view.total_bytes), fmt.percent(1), "", ""))
        self._total.setToolTip(fmt.exact_bytes(view.total_bytes))

    def open_term(self, name: str) -> None:
        """Open the term called `name` and put the keyboard there."""
        for row, button in zip(self._rows, self.lines, strict=True):
            if row.name == name:
                button.setChecked(True)
                self._toggle(self.lines.index(button))
                button.setFocus()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copy all lines, wherever the keyboard is in them."""
        if event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText("".join("\t".join(cells) + "\n" for cells in self._cells()))
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Place the columns over the new width."""
        super().resizeEvent(event)
        self._place()

    def _cells(self) -> list[Cells]:
        rows = [(row.title, row.gib, row.share_text, row.how, row.certainty) for row in self._rows]
        return [self._head.cells, *rows, self._total.cells]

    @Slot()
    def _place(self) -> None:
        columns = place_columns(self._theme, self.width())
        for line in (self._head, self._total):
            line.set_columns(columns)
        for button, _detail in self._lines:
            button.set_columns(columns)

    def _add_line(self) -> None:
        number = len(self._lines)
        button, detail = TermButton(self._theme), TermDetail(self._theme)
        button.set_columns(place_columns(self._theme, self.width()))
        button.clicked.connect(partial(self._toggle, number))
        button.stepped.connect(partial(self._step, number))
        self._lines.append((button, detail))
        for widget in (button, detail):
            self._layout.insertWidget(self._layout.count() - 1, widget)

    def _toggle(self, number: int, _checked: bool = False) -> None:
        button, detail = self._lines[number]
        row = self._rows[number]
        (self._open.add if button.isChecked() else self._open.discard)(row.name)
        self._show_detail(detail, row)

    def _show_detail(self, detail: TermDetail, row: TermRow | None) -> None:
        shown = row is not None and row.name in self._open
        if shown and row is not None:
            detail.set_row(row)
        detail.setVisible(shown)

    def _step(self, number: int, by: int) -> None:
        if 0 <= number + by < len(self._rows):
            self._lines[number + by][0].setFocus()


class _Line(QWidget):
    """The heading, or the total."""

    def __init__(self, theme: Theme, role: str, bold: bool) -> None:
        super().__init__()
        self._theme, self._role, self._bold = theme, role, bold
        self.cells: Cells = ("", "", "", "", "")
        self._columns: Columns | None = None
        self.setFixedHeight(row_height(theme))

    def set_cells(self, cells: Cells) -> None:
        """Show other words."""
        self.cells = cells
        self.update()

    def set_columns(self, columns: Columns) -> None:
        """Stand in these columns."""
        self._columns = columns
        self.update()

    def sizeHint(self) -> QSize:
        """Return one line."""
        return QSize(0, row_height(self._theme))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the words, over a hairline for the heading."""
        if self._columns is None:
            return
        painter = QPainter(self)
        painter.setFont(self._theme.font("body" if self._bold else "small", bold=self._bold))
        painter.setPen(QPen(self._theme.color(self._role)))
        paint_cells(painter, self._columns, self.height(), self.cells)
        if not self._bold:
            painter.setPen(self._theme.color("border"))
            painter.drawLine(0, self.height() - 1, self.width(), self.height() - 1)
        painter.end()
