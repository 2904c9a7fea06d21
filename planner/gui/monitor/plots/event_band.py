"""The event band below the plots: lanes of slowdowns, events, verdicts and marks."""

from typing import Final

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import (
    QBrush,
    QContextMenuEvent,
    QFocusEvent,
    QFontMetrics,
    QGuiApplication,
    QHelpEvent,
    QKeyEvent,
    QPainter,
    QPaintEvent,
)
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QMenu, QSizePolicy, QToolTip, QWidget

from planner.gui.monitor.plots.band_layout import (
    LANES,
    BandItem,
    Lane,
    TimeAxisScale,
    band_items,
    event_lines,
    gap_spans,
    item_lines,
    lane_title,
)
from planner.gui.monitor.plots.curves import Owner
from planner.gui.monitor.plots.time_view import Gestures, TimeSpanView, axis_width, handle_key, time_ticks
from planner.gui.plot.pens import cosmetic_pen
from planner.gui.theme import Theme, set_style_role
from planner.monitor.history import History, TimelineMark

_MOST_LINES: Final = 12
_FEWEST_LETTERS: Final = 4
# The margin that the plotting library leaves on each side, so that the band is aligned with the plots above.
_PLOT_MARGIN: Final = 1


class EventList(QListWidget):
    """List of the latest events as lines of text, beside the event band and as high."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.lines: tuple[str, ...] = ()
        self.setFont(theme.font("small"))
        set_style_role(self, "muted")
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
        self.setAccessibleName("Latest events")

    def show_lines(self, lines: tuple[str, ...]) -> None:
        """Show `lines`, the latest at the bottom; a line that is selected stays so."""
        if lines == self.lines:
            return
        selected = self.currentItem()
        text = "" if selected is None else selected.text()
        is_longer, self.lines = len(lines) > len(self.lines), lines
        while self.count() > len(lines):
            self.takeItem(self.count() - 1)
        for row, line in enumerate(lines):
            item = self.item(row) or QListWidgetItem(self)
            if item.text() != line:
                item.setText(line)
                item.setToolTip(line)
        if text in lines:
            self.setCurrentRow(lines.index(text))
        elif is_longer:
            self.scrollToBottom()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Select the latest event, from which the arrow keys go to the others."""
        if self.currentRow() < 0:  # Qt would select the first one
            self.setCurrentRow(self.count() - 1)
        super().focusInEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Select none, so that the list follows the events again."""
        super().focusOutEvent(event)
        if event.reason() in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason):
            self.setCurrentRow(-1)
            self.scrollToBottom()


class EventBand(QWidget):
    """Event band: lanes above the time axis; the band also handles the keyboard control of all plots.

    `mark_wanted` carries the time of a mark that the user wants to add.
    """

    mark_wanted = Signal(float)

    def __init__(self, theme: Theme, history: History, view: TimeSpanView) -> None:
        super().__init__()
        self._theme, self.history, self._view = theme, history, view
        self._labels: dict[str, str] = {}
        self._lanes: tuple[Lane, ...] = ("Events",)
        self.items: list[BandItem] = []
        self._axis_right = 0
        self.setFont(theme.font("small"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Events over time")
        self.setAccessibleDescription("Arrow keys move the cursor; with Shift, the displayed time span; + and - zoom")
        self.gestures = Gestures(self, view, self.time_at)
        self.gestures.double_clicked.connect(self.mark_wanted)
        view.cursor_moved.connect(self.update)
        theme.changed.connect(self.update)

    @Slot()
    def refresh(self, owners: tuple[Owner, ...], axis_right: int) -> None:
        """Show the events of the cards `owners`; the plots above end at the x position `axis_right`."""
        self._axis_right = axis_right
        self._labels = {owner.uuid: owner.label for owner in owners}
        self._update_items()

    def text(self) -> str:
        """Return a text line for each event and mark in the displayed time span."""
        return "\n".join(event_lines(self.history, self._view.start, self._view.end, self._labels))

    def latest_lines(self, count: int) -> tuple[str, ...]:
        """Return a text line for each of the latest `count` events and marks up to the cursor, if there is one."""
        end = self._view.end if self._view.cursor is None else self._view.cursor
        return event_lines(self.history, self._view.start, end, self._labels, count)

    def time_at(self, x: float) -> float:
        """Return the time at x position `x`, in monotonic seconds."""
        scale = self._scale
        return min(max(scale.start + (x - scale.left) / scale.pixels_per_second, scale.start), scale.end)

    def items_at(self, x: float, y: float) -> list[BandItem]:
        """Return all items in the lane at `y` that extend to within 3 pixels of `x`."""
        lane = self._lane_at(y)
        return [item for item in self.items if item.lane == lane and item.left - 3 <= x <= item.right + 3]

    def sizeHint(self) -> QSize:
        """Return the height of the visible lanes and the time axis."""
        return QSize(0, self._lane_height * (len(self._lanes) + 1))

    def event(self, event: QEvent) -> bool:
        """Show a tooltip with the events and marks under the pointer."""
        if isinstance(event, QHelpEvent):
            items = self.items_at(event.x(), event.y())
            lines = [line for item in items for line in item_lines(item, self.history, self._labels)]
            more = [f"and {len(lines) - _MOST_LINES} more"] if len(lines) > _MOST_LINES else []
            QToolTip.showText(event.globalPos(), "\n".join([*lines[:_MOST_LINES], *more]), self)
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Handle keys: move the cursor or the displayed time, zoom, follow the latest reading, add a mark (M)."""
        if event.key() == Qt.Key.Key_M:
            self.mark_wanted.emit(self._view.end if self._view.cursor is None else self._view.cursor)
        elif not handle_key(event, self._view):
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Open the context menu at the pointer."""
        menu = self.menu_at(event.x(), event.y())
        menu.exec(event.globalPos())
        menu.deleteLater()

    def menu_at(self, x: float, y: float) -> QMenu:
        """Return the context menu for a position: add or remove a mark, copy the events."""
        menu = QMenu(self)
        time = self.time_at(x)
        menu.addAction("Add a &mark here…", lambda: self.mark_wanted.emit(time))
        for item in self.items_at(x, y):
            if item.mark is not None:
                self._add_removal_action(menu, item.mark)
        menu.addAction("&Copy the events as text", lambda: QGuiApplication.clipboard().setText(self.text()))
        return menu

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the lanes with their items, the time axis and the cursor."""
        painter = QPainter(self)
        self._paint_lanes(painter)
        lane_height = self._lane_height
        for item in self.items:
            self._paint_item(painter, item, lane_height)
        self._paint_time_axis(painter)
        cursor = self._view.cursor
        if cursor is not None and self._view.start <= cursor <= self._view.end:
            x = self._scale.x(cursor)
            painter.setPen(cosmetic_pen(self._theme.color("muted"), 1))
            painter.drawLine(QPointF(x, 0), QPointF(x, self._lane_height * len(self._lanes)))
        if self.hasFocus():
            painter.setPen(self._theme.color("focus"))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(self.rect().adjusted(int(self._scale.left), 0, -1, -1))
        painter.end()

    def _update_items(self) -> None:
        width = QFontMetrics(self.font()).horizontalAdvance("M")
        self.items = band_items(self.history, self._scale, self._labels, width)
        # The lane of events is always visible, so that the band is never empty.
        used = {item.lane for item in self.items} | {"Events"}
        lanes = tuple(lane for lane in LANES if lane in used)
        if lanes != self._lanes:
            self._lanes = lanes
            self.updateGeometry()
        self.update()

    @property
    def _lane_height(self) -> int:
        return QFontMetrics(self.font()).height() + self._theme.spacing.tiny

    @property
    def _scale(self) -> TimeAxisScale:
        left = axis_width(self._theme) + _PLOT_MARGIN
        pixels_per_second = max(1.0, self._axis_right - left - _PLOT_MARGIN) / self._view.span
        return TimeAxisScale(self._view.start, self._view.end, left, pixels_per_second)

    def _lane_at(self, y: float) -> Lane | None:
        number = int(y // self._lane_height)
        return self._lanes[number] if 0 <= number < len(self._lanes) else None

    def _add_removal_action(self, menu: QMenu, mark: TimelineMark) -> None:
        def remove_mark() -> None:
            self.history.remove_mark(mark)
            self._update_items()

        menu.addAction(f"&Remove the mark “{mark.text}”", remove_mark)

    def _paint_lanes(self, painter: QPainter) -> None:
        scale, lane_height = self._scale, self._lane_height
        # Plots that are scrolled partly out of sight end here.
        painter.setPen(cosmetic_pen(self._theme.color("border"), 1))
        painter.drawLine(0, 0, self.width(), 0)
        for number, lane in enumerate(self._lanes):
            painter.setPen(self._theme.color("muted"))
            box = QRectF(0, number * lane_height, scale.left, lane_height)
            title = lane_title(lane, self.items, self._labels)
            painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, title)
            painter.setPen(cosmetic_pen(self._theme.color("border"), 1))
            painter.drawLine(
                QPointF(scale.left, (number + 1) * lane_height), QPointF(self._axis_right, (number + 1) * lane_height)
            )
        hatch = QBrush(self._theme.color("border"), Qt.BrushStyle.BDiagPattern)
        for left, right in gap_spans(self.history, scale):
            painter.fillRect(QRectF(left, 0, max(1.0, right - left), lane_height * len(self._lanes)), hatch)

    def _paint_item(self, painter: QPainter, item: BandItem, lane_height: int) -> None:
        box = self._item_rectangle(item, lane_height)
        color = self._theme.color(item.role)
        if item.lane == "Slowed":
            style = Qt.BrushStyle.Dense3Pattern if item.is_hatched else Qt.BrushStyle.SolidPattern
            painter.fillRect(box, QBrush(color, style))
            return
        painter.setPen(color)
        if item.lane == "Events":
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, item.text)
            return
        painter.drawLine(box.topLeft(), box.bottomLeft())
        metrics = QFontMetrics(self.font())
        text = metrics.elidedText(item.text, Qt.TextElideMode.ElideRight, int(box.width()) - 4)
        # A few letters with an ellipsis are no use.
        if text == item.text or len(text) >= _FEWEST_LETTERS:
            painter.drawText(QPointF(box.left() + 4, box.bottom() - self._theme.spacing.tiny), text)
        if item.lane == "Diagnosis":
            painter.drawLine(box.bottomLeft(), box.bottomRight())

    def _item_rectangle(self, item: BandItem, lane_height: int) -> QRectF:
        top = self._lanes.index(item.lane) * lane_height
        if item.lane != "Slowed":
            return QRectF(item.left, top + 1, item.right - item.left, lane_height - 2)
        rows = max(other.row for other in self.items if other.lane == "Slowed") + 1
        height = (lane_height - 2) / rows
        return QRectF(item.left, top + 1 + item.row * height, item.right - item.left, max(1.0, height - 0.5))

    def _paint_time_axis(self, painter: QPainter) -> None:
        scale, top = self._scale, self._lane_height * len(self._lanes)
        painter.setPen(self._theme.color("muted"))
        for time, text in time_ticks(self._view, self._theme, self._axis_right - scale.left, self.history.wall_of):
            wide = QFontMetrics(self.font()).horizontalAdvance(text)
            middle = min(scale.x(time), self._axis_right - wide / 2)
            box = QRectF(middle - wide, top, 2 * wide, self._lane_height)
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)
