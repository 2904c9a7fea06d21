"""The order in which the tab key goes through what was made piece by piece."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import cast

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLayout, QWidget


def tab_stops(layout: QLayout) -> Iterator[QWidget]:
    """Yield what the tab key can reach in `layout`, in reading order, hidden widgets too."""
    items = filter(None, map(layout.itemAt, _reading_order(layout)))
    for inner, widget in ((item.layout(), item.widget()) for item in items):
        if inner is not None:
            yield from tab_stops(inner)
        elif widget is not None and widget.focusPolicy() & Qt.FocusPolicy.TabFocus:
            yield widget
        elif widget is not None and (held := widget.layout()) is not None:
            yield from tab_stops(held)


def _reading_order(layout: QLayout) -> Iterable[int]:
    """Return the indexes of a layout's items; a grid may have had rows put in between others later."""
    indexes = range(layout.count())
    if not isinstance(layout, QGridLayout):
        return indexes
    # Row, column and how many of each.
    return sorted(indexes, key=lambda index: cast("tuple[int, int, int, int]", layout.getItemPosition(index)))


def set_tab_order(stops: tuple[QWidget, ...]) -> None:
    """Let the tab key go through `stops` one after the other: by itself it reaches what was made last at the end."""
    for before, after in pairwise(stops):
        QWidget.setTabOrder(before, after)
