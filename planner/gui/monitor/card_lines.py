"""The list of the machine's cards: a line for each card with its readings and sparklines, and a line of totals."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Final, NamedTuple

from PySide6.QtCore import QPointF, QRect, QSize, Qt, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QFontMetrics,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPolygonF,
    QResizeEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from planner.gui.monitor.plots.curves import SeriesKey, polylines, series_curve
from planner.gui.monitor.plots.plot_list import AxisRange
from planner.gui.plot.pens import cosmetic_pen
from planner.gui.theme import Theme
from planner.gui.widgets.layout import in_column
from planner.monitor.history import History
from planner.monitor.readings.inventory import Device
from planner.present.monitor.diagnosis import DiagnosisView
from planner.present.monitor.headline import CardLine
from planner.present.monitor.totals import Totals

COLUMNS: Final = 40
"""Columns into which the displayed time span is reduced; a sparkline is drawn anew when a new column begins."""
METRICS: Final = ("utilization_fraction", "memory_used_bytes", "power_watts")
"""Quantities that have a sparkline, in the order of the columns."""


class Sparkline(NamedTuple):
    """Course of a quantity: the polylines between gaps, with points from (0, 0) to (1, 1)."""

    parts: tuple[QPolygonF, ...]

    def paint(self, painter: QPainter, area: QRect, theme: Theme, role: str, expected: float | None = None) -> None:
        """Paint the course in the color `role`; `expected` is the height at which the plan's prediction is marked."""
        painter.setPen(cosmetic_pen(theme.color("border"), 1))
        painter.drawLine(area.bottomLeft(), area.bottomRight())
        if expected is not None:
            painter.setPen(cosmetic_pen(theme.color("text"), 1, Qt.PenStyle.DashLine))
            height = area.bottom() - min(expected, 1.0) * area.height()
            painter.drawLine(QPointF(area.left(), height), QPointF(area.right(), height))
        painter.setPen(cosmetic_pen(theme.color(role), 1))
        painter.save()
        painter.translate(area.left(), area.bottom())
        painter.scale(area.width(), -area.height())
        for part in self.parts:
            painter.drawPolyline(part)
        painter.restore()


def sparklines(history: History, device: Device, span: AxisRange, until: float) -> tuple[Sparkline, ...]:
    """Return the sparkline of each of `METRICS` over `span`, drawn up to the time `until`.

    Utilization is relative to 100 %, memory to all of the card's, power to its limit.
    """
    limits = (
        1.0,
        device.fact("memory_total_bytes"),
        history.series(device.uuid, "power_limit_watts").last,
    )
    return tuple(
        _sparkline(history, (device.uuid, metric), limit, span, until)
        for metric, limit in zip(METRICS, limits, strict=True)
    )


def _sparkline(history: History, key: SeriesKey, limit: float | None, span: AxisRange, until: float) -> Sparkline:
    shown = AxisRange(span.low, min(span.high, until))
    curve = series_curve(history, key, "", 0, shown, COLUMNS) if shown.high > shown.low else None
    if curve is None or not len(curve.x):
        return Sparkline(())
    top = max(limit or 0.0, float(curve.y.max())) or 1.0
    return Sparkline(polylines(replace(curve, x=curve.x.clip(*shown)), span, top))


_SERIES: Final = 8
# The widest texts of the columns with a fixed width.
_WIDEST_TEXTS: Final = ("100\u2009%", "0.400 / 80.0\u2009GiB", "700 / 700\u2009W", "100\u2009°C", "2,520\u2009MHz")
_USE, _MEMORY, _POWER, _TEMPERATURE, _CLOCK = range(5)
_LEAST_NAME, _MOST_NAME, _LEAST_STATE, _MOST_STATE = 90, 220, 40, 200
_LEAST_SPARK, _MOST_SPARK = 40, 320
_SPARKS: Final = 3
# A diagnosis that differs from the other cards' needs so much at the end of a line.
_DIAGNOSIS_ROOM: Final = 150
_MARK: Final = 10
_SPARK_MARGIN: Final = 4
_CHEVRON: Final = 16
_KEYS: Final = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)
_LEFT: Final = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT: Final = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_NOTHING: Final = DiagnosisView()


class CardColumns(NamedTuple):
    """Widths in pixels of the columns of all lines; columns without room are 0 wide."""

    name: int
    spark: int
    texts: tuple[int, ...]
    state: int


def fitted_columns(name: int, state: int, texts: Sequence[int], room: int, gap: int) -> CardColumns:
    """Return the columns for lines `room` pixels wide; without room, the clock goes first, then the temperature."""
    widths = list(texts)
    spark = 0
    for dropped in (None, _CLOCK, _TEMPERATURE):
        if dropped is not None:
            widths[dropped] = 0
        fixed = [name, state, *filter(None, widths)]
        spark = (room - _MARK - _CHEVRON - sum(fixed) - (len(fixed) + _SPARKS) * gap) // _SPARKS
        if spark >= _LEAST_SPARK:
            break
    return CardColumns(name, min(max(spark, _LEAST_SPARK), _MOST_SPARK), tuple(widths), state)


class _Line(QWidget):
    """Line of texts in the columns that all lines share."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._columns = CardColumns(0, 0, (0,) * len(_WIDEST_TEXTS), 0)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_columns(self, columns: CardColumns) -> None:
        """Set the widths of the columns."""
        if columns != self._columns:
            self._columns = columns
            self.update()

    def sizeHint(self) -> QSize:
        """Return the height of a line of text."""
        return QSize(0, self.fontMetrics().height() + self._theme.spacing.small)

    def _areas(self) -> tuple[QRect, list[QRect], list[QRect], int]:
        """Return where the name, the sparklines and the texts are, and where the texts end."""
        gap, columns, height = self._theme.spacing.small, self._columns, self.height()
        sparks, texts = [], []
        left = _MARK + columns.name + gap
        for number, width in enumerate(columns.texts):
            if number < _SPARKS:
                sparks.append(QRect(left, _SPARK_MARGIN, columns.spark, height - 2 * _SPARK_MARGIN))
                left += columns.spark + gap
            texts.append(QRect(left, 0, width, height))
            left += width + (gap if width else 0)
        return QRect(_MARK, 0, columns.name, height), sparks, texts, left + gap

    def _paint_text(
        self,
        painter: QPainter,
        area: QRect,
        text: str,
        role: str,
        alignment: Qt.AlignmentFlag = _LEFT,
        bold: bool = False,
    ) -> None:
        painter.setFont(self._theme.font(bold=bold))
        painter.setPen(self._theme.color(role))
        shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, area.width())
        painter.drawText(area, alignment, shown)


class CardLineWidget(_Line):
    """Line of one card; `opened` carries the card's UUID when the user opens its diagnosis."""

    opened = Signal(str)

    def __init__(self, theme: Theme, number: int) -> None:
        super().__init__(theme)
        self._series = f"series-{number % _SERIES + 1}"
        self._line: CardLine | None = None
        self._diagnosis = _NOTHING
        self._expected: float | None = None
        self._sparklines: tuple[Sparkline, ...] = ()
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    @property
    def as_text(self) -> str:
        """Return the card's readings and diagnosis as text."""
        spoken = "" if self._line is None else self._line.accessible_text
        return f"{spoken}. {self._diagnosis.sentence}".strip(". ")

    def show_line(self, line: CardLine, diagnosis: DiagnosisView = _NOTHING, expected: float | None = None) -> None:
        """Show a card's readings and diagnosis; `expected` is the memory fraction that the plan predicts."""
        if (line, diagnosis, expected) == (self._line, self._diagnosis, self._expected):
            return
        self._line, self._diagnosis, self._expected = line, diagnosis, expected
        self.setAccessibleName(self.as_text)
        mark = "" if expected is None else "The dashed line in the memory bar is the plan's prediction."
        self.setToolTip("\n".join(part for part in (diagnosis.sentence, diagnosis.details, line.tooltip, mark) if part))
        self.update()

    def show_sparklines(self, drawn: tuple[Sparkline, ...]) -> None:
        """Show the sparklines of utilization, memory and power."""
        self._sparklines = drawn
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the readings, the state and the diagnosis."""
        line = self._line
        if line is None:
            return
        painter = QPainter(self)
        if self.hasFocus() or self.underMouse():
            painter.fillRect(self.rect(), self._theme.color("hover"))
        painter.fillRect(QRect(2, (self.height() - 12) // 2, 3, 12), self._theme.color(self._series))
        name, sparks, areas, left = self._areas()
        self._paint_text(painter, name, line.name, "text", bold=True)
        for area, text in zip(areas, (line.use, line.memory, line.power, line.temperature, line.clock), strict=True):
            self._paint_text(painter, area, text or "–", "text" if text else "muted", _RIGHT)
        for number, (area, spark) in enumerate(zip(sparks, self._sparklines, strict=False)):
            spark.paint(painter, area, self._theme, self._series, self._expected if number == _MEMORY else None)
        right = self.width() - _CHEVRON
        width = min(self._columns.state, right - left)
        self._paint_text(painter, QRect(left, 0, width, self.height()), line.state, line.tone or "text")
        left += width + self._theme.spacing.small
        area = QRect(left, 0, max(0, right - left), self.height())
        if self._diagnosis.title.lower() != line.state.lower():
            self._paint_text(painter, area, self._diagnosis.title, self._diagnosis.tone or "muted")
        self._theme.icon("chevron-right", "muted").paint(painter, QRect(right, 0, _CHEVRON, self.height()))
        painter.end()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Open the diagnosis on a click."""
        if self._line is not None and self.rect().contains(event.position().toPoint()):
            self.opened.emit(self._line.uuid)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Open the diagnosis with Return or Space; move between cards with the arrow keys."""
        if event.key() in _KEYS and self._line is not None:
            self.opened.emit(self._line.uuid)
        elif event.key() in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self.focusNextPrevChild(event.key() == Qt.Key.Key_Down)
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Repaint the line with the background of a focused line."""
        super().focusInEvent(event)
        self.update()


class _TotalsLine(_Line):
    """Line of the totals over all cards."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._totals: Totals | None = None

    @property
    def as_text(self) -> str:
        """Return the totals as text."""
        return "" if self._totals is None else self._totals.as_text

    def show_totals(self, totals: Totals | None) -> None:
        """Show the totals; None hides the line."""
        if totals == self._totals:
            return
        self._totals = totals
        self.setVisible(totals is not None)
        self.setAccessibleName(self.as_text)
        self.setToolTip(self.as_text)
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the totals below the columns to which they belong, and the energy after them."""
        if self._totals is None:
            return
        painter = QPainter(self)
        painter.fillRect(QRect(0, 0, self.width(), 1), self._theme.color("border"))
        totals = self._totals
        name, sparks, areas, _end = self._areas()
        self._paint_text(painter, name, totals.name, "text", bold=True)
        # Nothing else is in the columns of the sparklines, and a total may be wider than a card's text.
        for number, text in ((_MEMORY, totals.memory), (_POWER, totals.power)):
            self._paint_text(painter, areas[number].united(sparks[number]), text, "text", _RIGHT)
        left = areas[_TEMPERATURE].left() + self._theme.spacing.small
        self._paint_text(painter, QRect(left, 0, self.width() - left, self.height()), totals.energy, "text")
        painter.end()


class CardLines(QWidget):
    """List with a line for each card; `opened` carries the UUID of the card whose diagnosis the user opens."""

    opened = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._lines: dict[str, CardLineWidget] = {}
        self._totals = _TotalsLine(theme)
        self._totals.hide()
        self._name_width, self._state_width = _LEAST_NAME, _LEAST_STATE
        self._has_diagnoses = False
        self._drawn: tuple[object, ...] = ()
        self._column = in_column(self._totals, owner=self, spacing=0)
        theme.changed.connect(self._repaint_lines)

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the readings and the diagnosis of each card as text."""
        return tuple(line.as_text for line in self._lines.values())

    @property
    def totals_text(self) -> str:
        """Return the totals of all cards as text."""
        return self._totals.as_text

    def show_cards(
        self,
        cards: Sequence[CardLine],
        diagnoses: Mapping[str, DiagnosisView],
        expected: Mapping[str, float],
        totals: Totals | None,
    ) -> None:
        """Show the cards; `diagnoses` and `expected`, the memory fractions that the plan predicts, are by UUID."""
        if [card.uuid for card in cards] != list(self._lines):
            self._replace_lines([card.uuid for card in cards])
        self._widen_columns(cards, totals, has_diagnoses=bool(diagnoses))
        for card in cards:
            self._lines[card.uuid].show_line(card, diagnoses.get(card.uuid, _NOTHING), expected.get(card.uuid))
        self._totals.show_totals(totals)

    def show_courses(self, history: History, devices: Sequence[Device], span: AxisRange, until: float) -> None:
        """Draw the sparklines of `devices` over `span` up to the time `until`, if a new column has begun since."""
        seconds = (span.high - span.low) / COLUMNS
        drawn = (id(history), tuple(self._lines), round(seconds, 3), span.high // seconds, until // seconds)
        if drawn == self._drawn:
            return
        self._drawn = drawn
        for device in devices:
            if device.uuid in self._lines:  # a card found since the lines were made gets one at the next update
                self._lines[device.uuid].show_sparklines(sparklines(history, device, span, until))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the columns to the new width."""
        super().resizeEvent(event)
        self._fit_columns()

    def _repaint_lines(self) -> None:
        for line in (*self._lines.values(), self._totals):
            line.update()

    def _widen_columns(self, cards: Sequence[CardLine], totals: Totals | None, *, has_diagnoses: bool) -> None:
        """Widen the name and state columns to fit the cards' texts; columns never shrink, to avoid flicker."""
        bold, plain = QFontMetrics(self._theme.font(bold=True), self), QFontMetrics(self._theme.font(), self)
        names = [card.name for card in cards] + ([] if totals is None else [totals.name])
        name = max((bold.horizontalAdvance(text) + 1 for text in names), default=0)
        state = max((plain.horizontalAdvance(card.state) + 1 for card in cards), default=0)
        widths = min(max(self._name_width, name), _MOST_NAME), min(max(self._state_width, state), _MOST_STATE)
        if (*widths, has_diagnoses) != (self._name_width, self._state_width, self._has_diagnoses):
            self._name_width, self._state_width = widths
            self._has_diagnoses = has_diagnoses
            self._fit_columns()

    def _replace_lines(self, uuids: Sequence[str]) -> None:
        """Create a line for each card; a card that keeps its position keeps its line."""
        lines: dict[str, CardLineWidget] = {}
        for position, (before, uuid) in enumerate(zip_longest(self._lines, uuids)):
            if before == uuid:
                lines[uuid] = self._lines[uuid]
                continue
            if before is not None:
                self._column.removeWidget(self._lines[before])
                self._lines[before].deleteLater()
            if uuid is not None:
                lines[uuid] = CardLineWidget(self._theme, position)
                lines[uuid].opened.connect(self.opened)
                self._column.insertWidget(position, lines[uuid])
        self._lines = lines
        self._name_width, self._state_width = _LEAST_NAME, _LEAST_STATE
        self._fit_columns()

    def _fit_columns(self) -> None:
        metrics = QFontMetrics(self._theme.font(), self)
        texts = [metrics.horizontalAdvance(text) + 1 for text in _WIDEST_TEXTS]
        room = self.width() - (_DIAGNOSIS_ROOM if self._has_diagnoses else 0)
        columns = fitted_columns(self._name_width, self._state_width, texts, room, self._theme.spacing.small)
        for line in (*self._lines.values(), self._totals):
            line.set_columns(columns)
