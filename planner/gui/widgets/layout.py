"""How widgets are laid out: in rows and columns, lines that break, areas that scroll; and the order of the tab key."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final, TypeVar, cast

from PySide6.QtCore import QMargins, QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLayout,
    QLayoutItem,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from planner.gui.theme import mark


class Stretch:
    """Empty room of a row or a column, which takes what the items leave."""


STRETCH: Final = Stretch()
Box = TypeVar("Box", bound=QBoxLayout)
Part = QWidget | QLayout
Item = Part | Stretch | int | tuple[Part | Stretch, int] | tuple[Part, int, Qt.AlignmentFlag]
"""What stands in a row or a column, with its stretch and alignment; a number is so many pixels of empty room."""
Margins = int | tuple[int, int] | tuple[int, int, int, int] | None
"""The same on all sides, horizontal and vertical, or left, top, right and bottom; none are the style's."""


def in_row(*items: Item, owner: QWidget | None = None, margins: Margins = 0, spacing: int | None = None) -> QHBoxLayout:
    """Return `items` side by side, as the layout of `owner` if one is given; without `spacing` that of the style."""
    return _filled(QHBoxLayout(), items, owner, margins, spacing)


def in_column(
    *items: Item, owner: QWidget | None = None, margins: Margins = 0, spacing: int | None = None
) -> QVBoxLayout:
    """Return `items` one below the other, as `in_row` does side by side."""
    return _filled(QVBoxLayout(), items, owner, margins, spacing)


def add_items(layout: QBoxLayout, *items: Item) -> None:
    """Add `items` at the end of a row or a column."""
    for item in items:
        if isinstance(item, int):
            layout.addSpacing(item)
        elif isinstance(item, tuple):
            _add(layout, *item)
        else:
            _add(layout, item, 1 if isinstance(item, Stretch) else 0)


def _filled(layout: Box, items: Iterable[Item], owner: QWidget | None, margins: Margins, spacing: int | None) -> Box:
    if owner is not None:
        owner.setLayout(layout)
    if margins is not None:
        layout.setContentsMargins(_sides(margins))
    if spacing is not None:
        layout.setSpacing(spacing)
    add_items(layout, *items)
    return layout


def _sides(margins: int | tuple[int, int] | tuple[int, int, int, int]) -> QMargins:
    if isinstance(margins, int):
        return QMargins(margins, margins, margins, margins)
    return QMargins(*(margins if len(margins) == 4 else margins * 2))


def _add(layout: QBoxLayout, item: Part | Stretch, stretch: int, alignment: Qt.AlignmentFlag | None = None) -> None:
    if isinstance(item, Stretch):
        layout.addStretch(stretch)
    elif isinstance(item, QLayout):
        layout.addLayout(item, stretch)
    elif alignment is None:
        layout.addWidget(item, stretch)
    else:
        layout.addWidget(item, stretch, alignment)


class FlowLayout(QLayout):
    """Lines of items at their preferred size, `spacing` apart both ways."""

    def __init__(self, spacing: int) -> None:
        super().__init__()
        self._items: list[QLayoutItem] = []
        self.setSpacing(spacing)
        self.setContentsMargins(QMargins())

    def addItem(self, item: QLayoutItem) -> None:
        """Add an item at the end."""
        self._items.append(item)

    def count(self) -> int:
        """Return the number of items."""
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        """Return the item at `index`, none past the end."""
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        """Remove the item at `index` and return it."""
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        """Take no more room than is needed."""
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        """Return that the height follows from the width."""
        return True

    def heightForWidth(self, width: int) -> int:
        """Return the height of all lines."""
        return self._arrange(QRect(0, 0, width, 0), move=False)

    def sizeHint(self) -> QSize:
        """Return the room of the largest item."""
        return self.minimumSize()

    def minimumSize(self) -> QSize:
        """Return the room of the largest item."""
        sizes = [item.minimumSize() for item in self._items] or [QSize()]
        return QSize(max(size.width() for size in sizes), max(size.height() for size in sizes))

    def setGeometry(self, rect: QRect) -> None:
        """Place the items within `rect`."""
        super().setGeometry(rect)
        self._arrange(rect, move=True)

    def _arrange(self, area: QRect, move: bool) -> int:
        rect = area.marginsRemoved(self.contentsMargins())
        left, top, line = rect.left(), rect.top(), 0
        for item in self._items:
            size = item.sizeHint()
            if left > rect.left() and left + size.width() > rect.right() + 1:
                left, top, line = rect.left(), top + line + self.spacing(), 0
            if move:
                item.setGeometry(QRect(QPoint(left, top), size))
            left, line = left + size.width() + self.spacing(), max(line, size.height())
        return top + line + self.contentsMargins().bottom() - area.top()


def hairline(orientation: Qt.Orientation) -> QWidget:
    """Return a line of one pixel."""
    line = QWidget()
    line.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
    mark(line, "hairline")
    if orientation == Qt.Orientation.Vertical:
        line.setFixedWidth(1)
    else:
        line.setFixedHeight(1)
    return line


class ScrollColumn(QScrollArea):
    """An area that scrolls up and down what is as wide as there is room."""

    def __init__(self) -> None:
        super().__init__()
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidgetResizable(True)


def scrolled(body: QWidget) -> ScrollColumn:
    """Return `body` as wide as there is room, in an area that scrolls up and down and leaves the keyboard to it."""
    area = ScrollColumn()
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setWidget(body)
    return area


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
