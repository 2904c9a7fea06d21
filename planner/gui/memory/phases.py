"""Bars that show the memory in each phase of a run, with the peak phase marked."""

from typing import Final

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Slot
from PySide6.QtGui import QFontMetricsF, QHelpEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from planner.gui.theme import Theme
from planner.present.memory.view import MemoryView, PhaseRow

_BAR_HEIGHT: Final = 8
_MINIMUM_WIDTH: Final = 150


class PhaseBars(QWidget):
    """Two lines per phase of the run: name and memory, then a bar of the memory terms on the peak phase's scale.

    The peak phase is bold.
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._rows: tuple[PhaseRow, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Phases of the run")
        theme.changed.connect(self._fit_height)

    def set_view(self, view: MemoryView) -> None:
        """Show the phases of a memory result."""
        self._rows = view.phases
        self.setAccessibleDescription("; ".join(map(_screen_reader_text, self._rows)))
        self._fit_height()

    def sizeHint(self) -> QSize:
        """Return the total height of all phases in pixels."""
        return QSize(_MINIMUM_WIDTH, round(len(self._rows) * self._row_height_pixels()))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the phases from top to bottom."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for number, row in enumerate(self._rows):
            self._paint_phase(painter, row, number * self._row_height_pixels())
        painter.end()

    def event(self, event: QEvent) -> bool:
        """Show a phase's exact size in bytes and its explanation as a tooltip."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            number = int(event.pos().y() / self._row_height_pixels())
            row = self._rows[number] if 0 <= number < len(self._rows) else None
            QToolTip.showText(event.globalPos(), _tooltip_text(row) if row else "", self)
            return True
        return super().event(event)

    @Slot()
    def _fit_height(self) -> None:
        self.setFixedHeight(self.sizeHint().height())
        self.update()

    def _row_height_pixels(self) -> float:
        return QFontMetricsF(self._theme.font("small")).height() + _BAR_HEIGHT + self._theme.spacing.small

    def _paint_phase(self, painter: QPainter, row: PhaseRow, top: float) -> None:
        font = self._theme.font("small", bold=row.is_peak)
        painter.setFont(font)
        painter.setPen(self._theme.color("text" if row.is_peak else "muted"))
        line = QRectF(0, top, self.width(), QFontMetricsF(font).height())
        painter.drawText(line, Qt.AlignmentFlag.AlignLeft, self._phase_title(row, QFontMetricsF(font)))
        painter.drawText(line, Qt.AlignmentFlag.AlignRight, row.text)
        track = QRectF(0, line.bottom() + 1, self.width(), _BAR_HEIGHT)
        painter.fillRect(track, self._theme.color("free"))
        left = 0.0
        for part in row.parts:
            width = row.share * self.width() * part.bytes / row.bytes
            painter.fillRect(QRectF(left, track.top(), width, _BAR_HEIGHT), self._theme.color(part.name))
            left += width
        if row.is_peak:
            painter.setPen(QPen(self._theme.color("text"), 1))
            painter.drawRect(track.adjusted(0.5, 0.5, -0.5, -0.5))

    def _phase_title(self, row: PhaseRow, metrics: QFontMetricsF) -> str:
        """Return the phase's title; the title of the peak phase ends in *peak* if there is room."""
        title_with_peak = f"{row.title} · peak"
        fits = metrics.horizontalAdvance(f"{title_with_peak}  {row.text}") <= self.width()
        return title_with_peak if row.is_peak and fits else row.title


def _screen_reader_text(row: PhaseRow) -> str:
    return f"{row.title} {row.text}{', the peak' if row.is_peak else ''}"


def _tooltip_text(row: PhaseRow) -> str:
    return "\n".join(part for part in (f"{row.title}: {row.exact}", row.explanation) if part)
