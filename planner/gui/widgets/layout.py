"""Layout helpers: rows, columns, wrapping lines, scroll areas, reused widgets, and the order of the Tab key."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Generic, TypeVar, cast

from PySide6.QtCore import QMargins, QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QApplication,
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

from planner.gui.theme import set_style_role


class StretchItem:
    """Item of a row or column that takes up all space that the other items leave empty."""


STRETCH: Final = StretchItem()
Box = TypeVar("Box", bound=QBoxLayout)
Part = QWidget | QLayout
Item = Part | StretchItem | int | tuple[Part | StretchItem, int] | tuple[Part, int, Qt.AlignmentFlag]
"""An item of a row or column with its stretch and alignment; a number means that many pixels of empty space."""
Margins = int | tuple[int, int] | tuple[int, int, int, int] | None
"""Margins in pixels: of all sides; horizontal and vertical; or left, top, right and bottom. `None`: the style's."""


def in_row(*items: Item, owner: QWidget | None = None, margins: Margins = 0, spacing: int | None = None) -> QHBoxLayout:
    """Return a horizontal layout of `items`, which is set on `owner`; the default spacing is that of the style."""
    return _filled_layout(QHBoxLayout(), items, owner, margins, spacing)


def in_column(
    *items: Item, owner: QWidget | None = None, margins: Margins = 0, spacing: int | None = None
) -> QVBoxLayout:
    """Return a vertical layout of `items`, which is set on `owner`; the default spacing is that of the style."""
    return _filled_layout(QVBoxLayout(), items, owner, margins, spacing)


def in_grid(
    owner: QWidget | None = None, *, across: int, down: int, stretched: int, margins: Margins = 0
) -> QGridLayout:
    """Return an empty grid with these gaps in pixels, whose column `stretched` takes the width that is left."""
    grid = QGridLayout()
    if owner is not None:
        owner.setLayout(grid)
    if margins is not None:
        grid.setContentsMargins(_margins_of_sides(margins))
    grid.setHorizontalSpacing(across)
    grid.setVerticalSpacing(down)
    grid.setColumnStretch(stretched, 1)
    return grid


def add_items(layout: QBoxLayout, *items: Item) -> None:
    """Append `items` to a row or column layout."""
    for item in items:
        if isinstance(item, int):
            layout.addSpacing(item)
        elif isinstance(item, tuple):
            _add_item(layout, *item)
        else:
            _add_item(layout, item, 1 if isinstance(item, StretchItem) else 0)


def _filled_layout(
    layout: Box, items: Iterable[Item], owner: QWidget | None, margins: Margins, spacing: int | None
) -> Box:
    if owner is not None:
        owner.setLayout(layout)
    if margins is not None:
        layout.setContentsMargins(_margins_of_sides(margins))
    if spacing is not None:
        layout.setSpacing(spacing)
    add_items(layout, *items)
    return layout


def _margins_of_sides(margins: int | tuple[int, int] | tuple[int, int, int, int]) -> QMargins:
    if isinstance(margins, int):
        return QMargins(margins, margins, margins, margins)
    return QMargins(*(margins if len(margins) == 4 else margins * 2))


def _add_item(
    layout: QBoxLayout, item: Part | StretchItem, stretch: int, alignment: Qt.AlignmentFlag | None = None
) -> None:
    if isinstance(item, StretchItem):
        layout.addStretch(stretch)
    elif isinstance(item, QLayout):
        layout.addLayout(item, stretch)
    elif alignment is None:
        layout.addWidget(item, stretch)
    else:
        layout.addWidget(item, stretch, alignment)


Pooled = TypeVar("Pooled", bound=QWidget)


class WidgetPool(Generic[Pooled]):
    """Pool of widgets of one kind in a layout, which are created when first needed and hidden while not needed."""

    def __init__(self, layout: QBoxLayout, make: Callable[[], Pooled]) -> None:
        self._layout, self._make = layout, make
        self._widgets: list[Pooled] = []

    def show(self, count: int) -> tuple[Pooled, ...]:
        """Show the first `count` widgets of the pool, hide the others, and return the shown widgets."""
        while len(self._widgets) < count:
            self._widgets.append(self._make())
            self._layout.insertWidget(len(self._widgets) - 1, self._widgets[-1])
        for number, widget in enumerate(self._widgets):
            widget.setVisible(number < count)
        return tuple(self._widgets[:count])


class FlowLayout(QLayout):
    """Layout of items at their preferred size in lines that wrap, `spacing` apart in both directions."""

    def __init__(self, spacing: int) -> None:
        super().__init__()
        self._items: list[QLayoutItem] = []
        self.setSpacing(spacing)
        self.setContentsMargins(QMargins())

    def addItem(self, item: QLayoutItem) -> None:
        """Append a layout item."""
        self._items.append(item)

    def count(self) -> int:
        """Return the number of layout items."""
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        """Return the layout item at `index`, or None past the end."""
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        """Remove and return the layout item at `index`."""
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        """Return that the layout does not expand."""
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        """Return that the height depends on the width."""
        return True

    def heightForWidth(self, width: int) -> int:
        """Return the height of all lines at this width."""
        return self._place_items(QRect(0, 0, width, 0), is_moving=False)

    def sizeHint(self) -> QSize:
        """Return the minimum size."""
        return self.minimumSize()

    def minimumSize(self) -> QSize:
        """Return the size of the largest item."""
        sizes = [item.minimumSize() for item in self._items] or [QSize()]
        return QSize(max(size.width() for size in sizes), max(size.height() for size in sizes))

    def setGeometry(self, rect: QRect) -> None:
        """Place the layout items within `rect`."""
        super().setGeometry(rect)
        self._place_items(rect, is_moving=True)

    def _place_items(self, area: QRect, is_moving: bool) -> int:
        rect = area.marginsRemoved(self.contentsMargins())
        left, top, line = rect.left(), rect.top(), 0
        for item in self._items:
            size = item.sizeHint()
            if left > rect.left() and left + size.width() > rect.right() + 1:
                left, top, line = rect.left(), top + line + self.spacing(), 0
            if is_moving:
                item.setGeometry(QRect(QPoint(left, top), size))
            left, line = left + size.width() + self.spacing(), max(line, size.height())
        return top + line + self.contentsMargins().bottom() - area.top()


class SideBySide(QWidget):
    """Two widgets beside each other if the width is at least `least_width` pixels, and otherwise one above the other.

    Side by side they share the width in the ratio of `stretches`, or a widget with stretch 0 keeps its own.
    """

    def __init__(
        self, first: QWidget, second: QWidget, *, least_width: int, stretches: tuple[int, int], spacing: int
    ) -> None:
        super().__init__()
        self._least_width, self._stretches = least_width, stretches
        self._box = in_column(first, second, owner=self, spacing=spacing)
        self._parts = first, second

    @property
    def is_split(self) -> bool:
        """Return whether the widgets stand beside each other."""
        return self._box.direction() == QBoxLayout.Direction.LeftToRight

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Arrange the widgets for the new width."""
        super().resizeEvent(event)
        is_wide = event.size().width() >= self._least_width
        if is_wide == self.is_split:
            return
        directions = QBoxLayout.Direction
        self._box.setDirection(directions.LeftToRight if is_wide else directions.TopToBottom)
        for place, (part, stretch) in enumerate(zip(self._parts, self._stretches, strict=True)):
            self._box.setStretch(place, stretch if is_wide else 0)
            self._box.setAlignment(part, Qt.AlignmentFlag.AlignTop if is_wide else Qt.AlignmentFlag(0))


def hairline(orientation: Qt.Orientation) -> QWidget:
    """Return a separator line one pixel thick."""
    line = QWidget()
    line.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
    set_style_role(line, "hairline")
    if orientation == Qt.Orientation.Vertical:
        line.setFixedWidth(1)
    else:
        line.setFixedHeight(1)
    return line


class ScrollColumn(QScrollArea):
    """Scroll area that scrolls only vertically; its content takes the full width. `resized` follows a new size."""

    resized = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidgetResizable(True)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Say so."""
        super().resizeEvent(event)
        self.resized.emit()


def scrolled(body: QWidget) -> ScrollColumn:
    """Return `body` in a vertical scroll area that does not take the focus."""
    area = ScrollColumn()
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setWidget(body)
    return area


@contextmanager
def laid_out_at_once(changing: QWidget) -> Iterator[None]:
    """Show and hide content of `changing`, then give all around it in its scroll area their new sizes in one pass.

    Qt lays out from the inside to the outside: what grows is squeezed into its old place first, and then moved.
    """
    around = [changing]
    while (parent := around[-1].parentWidget()) is not None and not isinstance(parent, QScrollArea):
        around.append(parent)
    layouts = [layout for layout in (widget.layout() for widget in around) if layout is not None]
    before = _wanted_sizes(layouts)
    for layout in layouts:
        layout.setEnabled(False)
    try:
        yield
    finally:
        for layout in layouts:
            layout.setEnabled(True)
    if _wanted_sizes(layouts) == before:
        return
    for widget in around:
        widget.updateGeometry()
    if parent is not None:
        body, view = cast("QWidget", parent.widget()), parent.viewport()
        body.resize(view.width(), max(view.height(), body.heightForWidth(view.width())))
    for layout in reversed(layouts):
        layout.activate()


def _wanted_sizes(layouts: Sequence[QLayout]) -> list[object]:
    items = [(layout, layout.itemAt(index)) for layout in layouts for index in range(layout.count())]
    return [
        (item.isEmpty(), item.sizeHint(), item.hasHeightForWidth() and item.heightForWidth(layout.geometry().width()))
        for layout, item in items
        if item is not None
    ]


def reading_order(layout: QLayout) -> Iterable[int]:
    """Return the indexes of a layout's items in reading order, which differs from the order of insertion in a grid."""
    indexes = range(layout.count())
    if not isinstance(layout, QGridLayout):
        return indexes
    # Row, column, row span and column span.
    return sorted(indexes, key=lambda index: cast("tuple[int, int, int, int]", layout.getItemPosition(index)))


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
