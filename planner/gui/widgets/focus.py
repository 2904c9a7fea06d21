"""The order of the Tab key: everything that can take the keyboard, in reading order."""

from collections.abc import Iterator

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLayout, QScrollArea, QWidget

from planner.gui.widgets.layout import reading_order


def focus_stops(widget: QWidget) -> Iterator[QWidget]:
    """Yield `widget` and what is visible in it, as far as the Tab key can reach it, in reading order."""
    if not widget.isVisible():
        return
    if widget.isEnabled() and widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.focusProxy() is None:
        yield widget
    layout = widget.layout()
    listed = [] if layout is None else list(_widgets_of(layout))
    others = (child for child in widget.children() if isinstance(child, QWidget) and child not in listed)
    # What has no layout, such as panes with a handle between them, is read by its place.
    for child in (*listed, *sorted(others, key=lambda child: (child.y(), child.x()))):
        if not child.isWindow():
            yield from focus_stops(child)


def _widgets_of(layout: QLayout) -> Iterator[QWidget]:
    for item in filter(None, map(layout.itemAt, reading_order(layout))):
        inner, widget = item.layout(), item.widget()
        if inner is not None:
            yield from _widgets_of(inner)
        elif widget is not None:
            yield widget


def focus_by_key(widget: QWidget, reason: Qt.FocusReason = Qt.FocusReason.TabFocusReason) -> None:
    """Give `widget` the keyboard, and scroll to it."""
    widget.setFocus(reason)
    area = widget.parentWidget()
    while area is not None:
        if isinstance(area, QScrollArea):
            area.ensureWidgetVisible(widget)
        area = area.parentWidget()


class InReadingOrder:
    """Base of a window, named before Qt's class, in which Tab goes to the next control in reading order, and round.

    Qt's own order is that of creation. It has to be mended wherever a row is added later, and each mending can leave a
    circle that the key never leaves.
    """

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Give the keyboard to the next or the previous control."""
        assert isinstance(self, QWidget)
        stops = tuple(focus_stops(self))
        if not stops:
            return False
        now = QApplication.focusWidget()
        at = stops.index(now) if now in stops else (-1 if forward else 0)
        reasons = Qt.FocusReason
        focus_by_key(
            stops[(at + (1 if forward else -1)) % len(stops)],
            reasons.TabFocusReason if forward else reasons.BacktabFocusReason,
        )
        return True
