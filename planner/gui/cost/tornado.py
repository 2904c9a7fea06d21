"""The tornado chart: savings of owning over renting at the low and the high value of each uncertain input."""

from typing import Final

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QGuiApplication, QKeyEvent, QKeySequence, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from planner.gui.theme import Theme
from planner.present import format as fmt
from planner.present.cost.amounts import SwingRow

_MOST: Final = 8
_BAR_SHARE: Final = 0.6
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class Tornado(QWidget):
    """Tornado chart, a bar per uncertain input, widest first; right of zero owning is cheaper, left of zero renting."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.rows: tuple[SwingRow, ...] = ()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def show_rows(self, rows: tuple[SwingRow, ...]) -> None:
        """Replace the bars; each row is the effect of one input on the savings."""
        self.rows = rows[:_MOST]
        self.setAccessibleName(f"Sensitivity of the decision: {'; '.join(map(_bar_description, self.rows))}")
        self.setToolTip("\n".join(f"{row.title}: {row.source}" for row in self.rows))
        self.updateGeometry()
        self.update()

    def csv_rows(self) -> tuple[tuple[str, ...], ...]:
        """Return the CSV rows of the chart: a header, and a row for each input."""
        header = ("input", "low", "high", "owning_saves_at_low_usd", "owning_saves_at_high_usd", "flips", "source")
        rows = (
            (
                *(row.title, row.low_value, row.high_value),
                *(f"{row.low_saving_usd:.2f}", f"{row.high_saving_usd:.2f}", str(row.flips).lower(), row.source),
            )
            for row in self.rows
        )
        return (header, *rows)

    def sizeHint(self) -> QSize:
        """Return a size with the height of a line per input and one for the axis."""
        return QSize(0, round(self._line_height() * (len(self.rows) + 1)))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copy the chart's figures, separated by tabs, with the copy shortcut."""
        if event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText("\n".join("\t".join(row) for row in self.csv_rows()))
        else:
            super().keyPressEvent(event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint each input's title, its bar, and its low and high value at the ends of the bar."""
        if not self.rows:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self._theme.font("small"))
        metrics = QFontMetricsF(painter.font())
        names = max(metrics.horizontalAdvance(row.title) for row in self.rows) + self._theme.spacing.medium
        ends = max(metrics.horizontalAdvance(text) for row in self.rows for text in (row.low_value, row.high_value))
        ends += self._theme.spacing.small
        area = QRectF(names + ends, 0, max(1.0, self.width() - names - 2 * ends), self.height())
        self._paint_axis(painter, area)
        for number, row in enumerate(self.rows):
            self._paint_bar_with_values(painter, number, row, area, ends)
        painter.end()

    def _paint_bar_with_values(
        self, painter: QPainter, number: int, row: SwingRow, area: QRectF, value_width: float
    ) -> None:
        height = self._line_height()
        top = number * height
        low, high = (self._x_position(value, area) for value in (row.low_saving_usd, row.high_saving_usd))
        left, right = min(low, high), max(low, high)
        painter.setPen(self._theme.color("text"))
        painter.drawText(QRectF(0, top, area.left() - value_width, height), _LEFT, row.title)
        bar = QRectF(left, top + height * (1 - _BAR_SHARE) / 2, max(2.0, right - left), height * _BAR_SHARE)
        painter.fillRect(bar, self._theme.color("accent" if row.flips else "muted"))
        painter.setPen(self._theme.color("muted"))
        texts = (row.low_value, row.high_value) if low <= high else (row.high_value, row.low_value)
        gap = self._theme.spacing.tiny
        self._paint_end_value(painter, QRectF(left - value_width - gap, top, value_width, height), _RIGHT, texts[0])
        self._paint_end_value(painter, QRectF(right + gap, top, value_width, height), _LEFT, texts[1])

    def _paint_end_value(self, painter: QPainter, box: QRectF, side: Qt.AlignmentFlag, text: str) -> None:
        """Paint the input's value at one end of a bar, on top of the zero line."""
        painter.fillRect(painter.boundingRect(box, side, text), self._theme.color("surface"))
        painter.drawText(box, side, text)

    def _paint_axis(self, painter: QPainter, area: QRectF) -> None:
        low, high = self._savings_range_usd()
        middle = self._x_position(0.0, area)
        bottom = self._line_height() * len(self.rows)
        painter.setPen(self._theme.color("muted"))
        if low <= 0 <= high:
            painter.drawLine(round(middle), 0, round(middle), round(bottom))
        box = QRectF(0, bottom, self.width(), self._line_height())
        room = self.width() - self._theme.spacing.medium
        for words in ("saves up to", "saves"):
            left = f"← renting {words} {fmt.money(-low)}" if low < 0 else ""
            right = f"owning {words} {fmt.money(high)} →" if high > 0 else ""
            if painter.fontMetrics().horizontalAdvance(left + right) <= room:
                break
        painter.drawText(box, _LEFT, left)
        painter.drawText(box, _RIGHT, right)

    def _savings_range_usd(self) -> tuple[float, float]:
        values = [value for row in self.rows for value in (row.low_saving_usd, row.high_saving_usd)]
        return min(values), max(values)

    def _x_position(self, saving_usd: float, area: QRectF) -> float:
        low, high = self._savings_range_usd()
        return area.left() + area.width() * ((saving_usd - low) / (high - low) if high > low else 0.5)

    def _line_height(self) -> float:
        return QFontMetricsF(self._theme.font("small")).height() + self._theme.spacing.small


def _bar_description(row: SwingRow) -> str:
    flips = ", flips the decision" if row.flips else ""
    return f"{row.title} from {row.low_value} to {row.high_value}{flips}"
