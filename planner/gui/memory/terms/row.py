"""One line of the breakdown: a button that opens the term under it."""

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFont, QFontMetricsF, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QSizePolicy

from planner.gui.memory.terms.columns import Columns
from planner.gui.theme import Theme
from planner.present.memory.view import TermRow

_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


def row_height(theme: Theme) -> int:
    """Return the height of every line of the breakdown."""
    return round(QFontMetricsF(theme.font()).height() + theme.spacing.small)


def paint_cells(painter: QPainter, columns: Columns, height: int, cells: tuple[str, str, str, str, str]) -> None:
    """Write title, GiB, share, formula and certainty into their columns, in the painter's font and pen."""
    title, gib, share, how, certainty = cells
    how_box = QRectF(columns.how, 0, max(0, columns.how_right - columns.how), height)
    metrics = QFontMetricsF(painter.font())
    painter.drawText(QRectF(columns.title, 0, columns.gib_right - columns.title, height), _LEFT, title)
    painter.drawText(QRectF(0, 0, columns.gib_right, height), _RIGHT, gib)
    painter.drawText(QRectF(0, 0, columns.share_right, height), _RIGHT, share)
    painter.drawText(how_box, _LEFT, metrics.elidedText(how, Qt.TextElideMode.ElideRight, how_box.width()))
    painter.drawText(QRectF(columns.certainty, 0, columns.width - columns.certainty, height), _LEFT, certainty)


class TermButton(QAbstractButton):
    """A term's line. It is checked while the term is open; Return and Space open it, Up and Down go to its neighbours.

    `stepped` carries −1 or 1.
    """

    stepped = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._row: TermRow | None = None
        self._columns: Columns | None = None
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)
        self.toggled.connect(self._name)

    def set_row(self, row: TermRow) -> None:
        """Show another term."""
        self._row = row
        self.setToolTip(f"{row.exact} ({row.range_text})")
        self._name()
        self.update()

    def set_columns(self, columns: Columns) -> None:
        """Stand in these columns."""
        self._columns = columns
        self.update()

    def sizeHint(self) -> QSize:
        """Return one line."""
        return QSize(0, row_height(self._theme))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the line, with a ring where the keyboard is."""
        if self._row is None or self._columns is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_ground(painter)
        self._paint_marks(painter, self._columns, self._row)
        painter.setFont(self._theme.font(bold=self.isChecked()))
        painter.setPen(self._theme.color("text"))
        cells = (self._row.title, self._row.gib, self._row.share_text, "" if self.isChecked() else self._row.how, "")
        paint_cells(painter, self._columns, self.height(), cells)
        painter.setFont(self._theme.font())
        painter.setPen(self._theme.color("muted"))
        paint_cells(painter, self._columns, self.height(), ("", "", "", "", self._row.certainty))
        painter.end()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Open on Return as on Space; step to the neighbours."""
        steps = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
        key = Qt.Key(event.key())
        if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        elif key in steps:
            self.stepped.emit(steps[key])
        else:
            super().keyPressEvent(event)

    def _paint_ground(self, painter: QPainter) -> None:
        ground = self.rect().adjusted(0, 0, -1, -1)
        if self.underMouse():
            painter.fillRect(self.rect(), self._theme.color("hover"))
        painter.setPen(self._theme.color("border"))
        painter.drawLine(ground.bottomLeft(), ground.bottomRight())
        if self.hasFocus():
            painter.setPen(self._theme.color("focus"))
            painter.drawRoundedRect(ground, self._theme.tokens.radius, self._theme.tokens.radius)

    def _paint_marks(self, painter: QPainter, columns: Columns, row: TermRow) -> None:
        side = self._theme.icon_side
        icon = self._theme.icon("chevron-down" if self.isChecked() else "chevron-right", "muted")
        top = (self.height() - side) // 2
        painter.drawPixmap(round(columns.chevron), top, icon.pixmap(QSize(side, side), self.devicePixelRatio()))
        swatch = QFontMetricsF(QFont(self._theme.font("small"))).ascent()
        painter.fillRect(
            QRectF(columns.swatch, (self.height() - swatch) / 2, swatch, swatch), self._theme.color(row.name)
        )

    def _name(self) -> None:
        if self._row is not None:
            state = "open" if self.isChecked() else "closed"
            row = self._row
            self.setAccessibleName(f"{row.title}, {row.gib} GiB, {row.share_text}, {row.certainty}, {state}")
            self.setAccessibleDescription(row.how)
