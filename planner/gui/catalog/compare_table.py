"""Comparison table: one column per card or system, one row per figure, with bars and a mark on the best value."""

from collections.abc import Sequence
from typing import Final, TypeGuard

from PySide6.QtCore import (
    QAbstractTableModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRect,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QFontMetrics, QKeyEvent, QPainter, QPixmap, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from planner.gui.theme import Theme
from planner.present.catalog.comparison import ComparedCell, ComparedFigureRow, ComparisonEntry
from planner.present.format import NO_FIGURES

_BAR: Final = 3
_TITLE_WIDTH: Final = 225
_NARROWEST: Final = 120
_PICTURE_SCALE: Final = 2
_COUNTS: Final = {Qt.Key.Key_Plus: 1, Qt.Key.Key_Equal: 1, Qt.Key.Key_Minus: -1}
_MIDDLE: Final = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_PADDING: Final = 14
_HEADER_MARGIN: Final = 8  # free space that the style adds beside a title
_TALL: Final = 1_000
_NO_PARENT: Final = QModelIndex()
Index = QModelIndex | QPersistentModelIndex


class CompareModel(QAbstractTableModel):
    """Table model with a heading row for each group of figures; the first column holds the titles."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bold = theme.font(bold=True)
        self.entries: tuple[ComparisonEntry, ...] = ()
        self._lines: tuple[ComparedFigureRow | str, ...] = ()

    def show_rows(self, entries: Sequence[ComparisonEntry], rows: Sequence[ComparedFigureRow]) -> None:
        """Replace the entries and rows."""
        self.beginResetModel()
        self.entries = tuple(entries)
        lines: list[ComparedFigureRow | str] = []
        group = ""
        for row in rows:
            if row.group != group:
                group = row.group
                lines.append(group)
            lines.append(row)
        self._lines = tuple(lines)
        self.endResetModel()

    def row_or_heading(self, row_number: int) -> ComparedFigureRow | str:
        """Return the figures in a table row, or the text of a group heading."""
        return self._lines[row_number]

    def cell(self, index: Index) -> ComparedCell | None:
        """Return the figure at `index`, or None for a title or heading."""
        line = self._lines[index.row()]
        return None if isinstance(line, str) or index.column() == 0 else line.cells[index.column() - 1]

    def rowCount(self, parent: Index = _NO_PARENT) -> int:
        """Return the number of rows and headings."""
        return 0 if parent.isValid() else len(self._lines)

    def columnCount(self, parent: Index = _NO_PARENT) -> int:
        """Return the number of columns: one per entry, and one for the titles."""
        return 0 if parent.isValid() else len(self.entries) + 1

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return a figure's text, tooltip with the source, or text for screen readers, depending on `role`."""
        if not index.isValid():
            return None
        line, cell = self._lines[index.row()], self.cell(index)
        if role == Qt.ItemDataRole.DisplayRole:
            title = line if isinstance(line, str) else line.title
            return cell.text if cell is not None else title if index.column() == 0 else ""
        if role == Qt.ItemDataRole.ToolTipRole and cell is not None:
            return cell.tooltip or cell.text
        if role == Qt.ItemDataRole.AccessibleTextRole and cell is not None and isinstance(line, ComparedFigureRow):
            best = ", best" if cell.is_best else ""
            return f"{line.title} of {self.entries[index.column() - 1].title}: {cell.text}{best}"
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return the titles of the compared entries."""
        if orientation == Qt.Orientation.Vertical or not 1 <= section <= len(self.entries):
            return None
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return self.entries[section - 1].title
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(_MIDDLE) | Qt.TextFlag.TextWordWrap
        if role == Qt.ItemDataRole.FontRole:
            return self._bold
        return None


def _may_wrap(cell: ComparedCell | None) -> TypeGuard[ComparedCell]:
    """Return whether a cell's text may wrap; a figure with a bar, or the best figure, stays on one line."""
    return cell is not None and cell.share is None and not cell.is_best


class _CellDelegate(QStyledItemDelegate):
    """Paints a figure with its bar: bold with a check mark if best in its row, pale if all in the row are equal."""

    def __init__(self, model: CompareModel, theme: Theme, parent: QObject) -> None:
        super().__init__(parent)
        self._model, self._theme = model, theme

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Paint one cell of the comparison."""
        line, cell = self._model.row_or_heading(index.row()), self._model.cell(index)
        area, space = option.rect, self._theme.spacing
        chosen = bool(option.state & QStyle.StateFlag.State_Selected)
        painter.fillRect(area, self._theme.color("selection" if chosen else "surface"))
        painter.fillRect(QRect(area.left(), area.bottom(), area.width(), 1), self._theme.color("border"))
        if chosen and option.widget.hasFocus():
            painter.setPen(self._theme.color("focus"))
            painter.drawRect(area.adjusted(0, 0, -1, -1))
        heading = isinstance(line, str)
        strong = heading or (cell is not None and cell.is_best)
        painter.setFont(self._theme.font(bold=strong))
        painter.setPen(self._theme.color(self._text_color_role(line, cell)))
        room = area.adjusted(space.small, 0, -space.small, 0)
        if _may_wrap(cell):
            painter.drawText(room, int(_MIDDLE) | Qt.TextFlag.TextWordWrap, cell.text)
            return
        if cell is not None and cell.is_best:
            side = self._theme.icon_side
            place = room.left(), room.top() + (room.height() - side) // 2
            painter.drawPixmap(*place, self._theme.icon("check", "ok").pixmap(QSize(side, side)))
            room.adjust(side + space.tiny, 0, 0, 0)
        text = str(index.data() or "")
        if cell is not None and painter.fontMetrics().horizontalAdvance(text) > room.width():
            painter.setFont(
                self._theme.font()
            )  # regular instead of bold rather than elided; the check mark still shows that it is best
        text = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, room.width())
        painter.drawText(room, int(_MIDDLE), text)
        if cell is not None and cell.share is not None:
            width = max(1, round(cell.share * (area.width() - 2 * space.small)))
            bar = QRect(area.left() + space.small, area.bottom() - _BAR - 1, width, _BAR)
            painter.fillRect(bar, self._theme.color("accent" if cell.is_best else "muted"))

    def _text_color_role(self, line: ComparedFigureRow | str, cell: ComparedCell | None) -> str:
        if isinstance(line, str):
            return "text"
        unknown = cell is not None and cell.text in NO_FIGURES
        return "muted" if unknown or not line.differs else "text"


class CompareTable(QTableView):
    """Comparison table; signals `used` and `removed` carry an entry's index, `counted` the change in its card count."""

    used = Signal(int)
    removed = Signal(int)
    counted = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.compared = CompareModel(theme, self)
        self.setModel(self.compared)
        self.setItemDelegate(_CellDelegate(self.compared, theme, self))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setShowGrid(False)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setTabKeyNavigation(False)  # as in the other tables: Tab leaves, arrow keys move between cells
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + _PADDING)
        header = self.horizontalHeader()
        header.setMinimumSectionSize(_NARROWEST)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        header.setHighlightSections(False)
        self.setAccessibleName("Comparison")
        self.compared.modelReset.connect(self._fit_table)
        theme.changed.connect(self.viewport().update)

    @property
    def place(self) -> int:
        """Return the index of the current entry, or 0 without a current entry."""
        return max(0, self.currentIndex().column() - 1)

    def picture(self) -> QPixmap:
        """Return a picture of the whole table, including the parts scrolled out of view, at twice its size."""
        other = CompareTable(self._theme)
        rows = [self.compared.row_or_heading(row) for row in range(self.compared.rowCount())]
        other.compared.show_rows(self.compared.entries, [row for row in rows if isinstance(row, ComparedFigureRow)])
        width = max(self.width(), _TITLE_WIDTH + _NARROWEST * len(self.compared.entries))
        other.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        other.fit_heights(width)
        other.resize(width, other.verticalHeader().length() + other.horizontalHeader().minimumHeight() + 2)
        pixmap = QPixmap(other.size() * _PICTURE_SCALE)
        pixmap.setDevicePixelRatio(_PICTURE_SCALE)
        other.render(pixmap)
        other.deleteLater()
        return pixmap

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Put the current entry into the plan (Enter), remove it (Delete), or change its number of cards (+ and -)."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.used.emit(self.place)
        elif event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self.removed.emit(self.place)
        elif event.key() in _COUNTS:
            self.counted.emit(_COUNTS[Qt.Key(event.key())])
        else:
            super().keyPressEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        """Repaint after a change of theme."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self.viewport().update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Wrap long texts to the new width."""
        super().resizeEvent(event)
        self.fit_heights(self.viewport().width())

    def fit_heights(self, width: int) -> None:
        """Set the heights of the header and the rows for a table of `width` pixels."""
        room = (width - _TITLE_WIDTH) // max(1, len(self.compared.entries)) - 2 * self._theme.spacing.small
        bold, plain = QFontMetrics(self._theme.font(bold=True)), self.fontMetrics()
        titles = [entry.title for entry in self.compared.entries]
        self.horizontalHeader().setFixedHeight(_wrapped_height(bold, titles, room - _HEADER_MARGIN))
        for row in range(self.compared.rowCount()):
            line = self.compared.row_or_heading(row)
            words = [] if isinstance(line, str) else [cell.text for cell in line.cells if _may_wrap(cell)]
            self.verticalHeader().resizeSection(row, _wrapped_height(plain, words, room))

    def _fit_table(self) -> None:
        if self.compared.columnCount():
            self.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.Fixed)
            self.horizontalHeader().resizeSection(0, _TITLE_WIDTH)
        self.fit_heights(self.viewport().width())


def _wrapped_height(metrics: QFontMetrics, texts: Sequence[str], room: int) -> int:
    """Return the height in pixels of the tallest of `texts`, wrapped to `room` pixels, plus padding."""
    within = QRect(0, 0, room, _TALL)
    heights = (metrics.boundingRect(within, Qt.TextFlag.TextWordWrap, text).height() for text in texts)
    return max(metrics.height(), *heights, 0) + _PADDING
