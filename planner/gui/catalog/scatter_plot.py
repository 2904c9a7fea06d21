"""Scatter plot of records: its points and its widget. Importing it imports pyqtgraph, which takes half a second."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any, ClassVar, Final, cast

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from pyqtgraph.graphicsItems.ScatterPlotItem import drawSymbol, renderSymbol
from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, QRect, QRectF, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QBrush, QColor, QFontMetrics, QKeyEvent, QMouseEvent, QPaintEngine, QPainter, QPen, QPixmap
from PySide6.QtWidgets import QRubberBand, QWidget
from shiboken6 import Shiboken

from planner.gui.plot.chart import Chart, ItemStyle
from planner.gui.plot.labels import NameLayer, PointName
from planner.gui.plot.pens import translucent
from planner.gui.plot.ticks import Ticks, log_ticks, round_ticks
from planner.gui.settings import PlotChoice
from planner.gui.theme import Theme
from planner.present import format as fmt
from planner.present.catalog.gpu_columns import lower_is_better
from planner.present.columns import Column, pareto_front

SIZES: Final = (6.0, 8.0, 10.0, 13.0, 16.0)
MOST_CLASSES: Final = 8
_OTHERS: Final = "others"
_STEPS: Final = 5
_MARGIN_FRACTION: Final = 0.05
_MAX_BEST_POINTS: Final = 14
Floats = NDArray[np.float64]
Ints = NDArray[np.int_]
Numbers = Callable[[str], Mapping[str, float | None]]
Words = Callable[[str], Mapping[str, str]]
# The edges of rendered symbols lie half a pixel outside of their size on either side.
_EDGES: Final = 1
_FRAGMENT_FIELDS: Final = 10


@dataclass(frozen=True, eq=False)
class ScatterData:
    """Points of a scatter plot, one entry per point in each sequence; `xs` and `ys` are exponents of 10 on log axes.

    `size_ends` are the smallest and largest of `sizes` with the values they represent, empty if all sizes are equal.
    `classes` are indexes into `class_names`, `ordered` if the classes are steps of a number. `front` holds the indexes
    of the points on the Pareto front. `left_out` counts the rows without a position.
    """

    ids: tuple[str, ...]
    xs: Floats
    ys: Floats
    sizes: Floats
    size_ends: tuple[tuple[float, str], ...]
    classes: Ints
    class_names: tuple[str, ...]
    ordered: bool
    front: tuple[int, ...]
    left_out: int

    @cached_property
    def _index_by_id(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.ids)}

    def indexes_of(self, names: Iterable[str]) -> list[int]:
        """Return the sorted indexes of the points called `names`; names without a point are skipped."""
        return sorted(self._index_by_id[name] for name in names if name in self._index_by_id)


SYMBOLS: Final = ("o", "s", "t", "d", "+", "star", "h", "t1")


def symbol_of(class_index: int, ordered: bool) -> str:
    """Return the plot symbol of a color class: a circle for a range of numbers, a cross for an unknown value."""
    return ("+" if class_index == _STEPS else "o") if ordered else SYMBOLS[class_index]


def scatter_data(
    names: Sequence[str], columns: Mapping[str, Column[Any]], numbers: Numbers, words: Words, choice: PlotChoice
) -> ScatterData:
    """Return the points for the rows called `names` with an x and a y value, which are positive on logarithmic axes.

    `numbers` returns the values of a column by row name, in base units, and `words` its texts.
    """

    def column_values(key: str) -> Floats:
        return np.array([*map(numbers(key).__getitem__, names)], dtype=float) / columns[key].per_unit

    xs, ys = (
        _axis_positions(column_values(choice.x), choice.log_x),
        _axis_positions(column_values(choice.y), choice.log_y),
    )
    placed = np.isfinite(xs) & np.isfinite(ys)
    ids = tuple(compress(names, placed.tolist()))
    sized, size_ends = (
        _size_steps(column_values(choice.size)[placed], choice.size) if choice.size else (np.ones(len(ids), int), ())
    )
    column = columns.get(choice.color)
    class_names: tuple[str, ...] = ("",)
    classes = np.zeros(len(ids), dtype=int)
    if column is not None and column.is_number:
        class_names, classes = _number_classes(column_values(column.key)[placed], column.key)
    elif column is not None:
        class_names, classes = _text_classes([*map(words(column.key).__getitem__, ids)])
    xs, ys = xs[placed], ys[placed]
    points = list(zip(xs.tolist(), ys.tolist(), strict=True))
    return ScatterData(
        ids=ids,
        xs=xs,
        ys=ys,
        sizes=np.array(SIZES)[sized],
        size_ends=size_ends,
        classes=classes,
        class_names=class_names,
        ordered=column is not None and column.is_number,
        front=pareto_front(points, (lower_is_better(choice.x), lower_is_better(choice.y))),
        left_out=len(names) - len(ids),
    )


def points_to_name(data: ScatterData, keys: tuple[str, str]) -> list[int]:
    """Return the indexes of the points worth a name label on axes of the columns `keys`, most important first.

    These are the Pareto front and the best points by y. If neither direction of an axis is better, as with years,
    they are the best point at each of its values.
    """
    lower_first = [lower_is_better(key) for key in keys]
    across, up = (values if lower else -values for values, lower in zip((data.xs, data.ys), lower_first, strict=True))
    if None not in lower_first:
        return [*data.front, *np.argsort(up, kind="stable")[:_MAX_BEST_POINTS].tolist()]
    groups, scores = (data.ys, across) if lower_first[1] is None else (data.xs, up)
    order = np.lexsort((scores, groups))
    firsts = order[np.diff(groups[order], prepend=np.nan) != 0]
    best: list[int] = firsts[np.argsort(scores[firsts], kind="stable")].tolist()
    return best


def padded_range(values: Floats, logarithmic: bool) -> tuple[float, float]:
    """Return the axis range of `values` with a margin for the points and their names."""
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    alone = 0.3 if logarithmic else abs(high) * 0.1 or 1.0
    margin = _MARGIN_FRACTION * (high - low or alone)
    return low - margin, high + margin


def scatter_ticks(ends: tuple[float, float], max_ticks: int, logarithmic: bool, is_year: bool) -> Ticks:
    """Return at most about `max_ticks` round ticks of an axis."""
    if logarithmic:
        return log_ticks(*ends, max_ticks)
    return round_ticks(*ends, max_ticks, _year_text if is_year else fmt.plain, whole=is_year)


def _year_text(value: float) -> str:
    return f"{value:.0f}"


def _axis_positions(values: Floats, logarithmic: bool) -> Floats:
    if not logarithmic:
        return values
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log10(np.where(values > 0, values, np.nan))


def _ratio_steps(values: Floats) -> Ints:
    """Return the color step (0 to `_STEPS` − 1, spaced by ratio) of each value; `_STEPS` for an unknown value."""
    places = _axis_positions(values, logarithmic=True)
    known = np.isfinite(places)
    steps = np.full(len(values), _STEPS)
    if known.any():
        low, high = places[known].min(), places[known].max()
        scale = _STEPS / (high - low) if high > low else 0.0
        steps[known] = np.minimum(_STEPS - 1, ((places[known] - low) * scale).astype(int))
    return steps


def _size_steps(values: Floats, key: str) -> tuple[Ints, tuple[tuple[float, str], ...]]:
    """Return each value's symbol size step (0 if unknown), and the legend of the smallest and largest used size."""
    steps = _ratio_steps(values)
    unknown = steps == _STEPS
    used_steps = sorted(set(steps[~unknown].tolist()))  # np.unique would import masked arrays, which takes long
    ends = {SIZES[step]: [_step_range_text(values[steps == step], key)] for step in (*used_steps[:1], *used_steps[-1:])}
    if unknown.any():
        ends[SIZES[0]] = [*ends.get(SIZES[0], []), fmt.UNKNOWN]
    return np.where(unknown, 0, steps), tuple((size, " or ".join(words)) for size, words in ends.items())


def _text_classes(texts: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    """Return the class names by frequency, with the rarest merged into one, and the class index of each text."""
    class_texts = [text for text, _ in Counter(texts).most_common()]
    names = tuple(class_texts) if len(class_texts) <= MOST_CLASSES else (*class_texts[: MOST_CLASSES - 1], _OTHERS)
    places = {name: place for place, name in enumerate(names)}
    return names, np.array([places.get(text, len(names) - 1) for text in texts], dtype=int)


def _number_classes(values: Floats, key: str) -> tuple[tuple[str, ...], Ints]:
    """Return the names of a numeric column's color steps, ending with `unknown`, and the step index of each value."""
    steps = _ratio_steps(values)
    names = [_step_range_text(values[steps == step], key) if (steps == step).any() else "" for step in range(_STEPS)]
    return (*names, fmt.UNKNOWN), steps


def _step_range_text(values: Floats, key: str) -> str:
    words = _year_text if key == "year" else fmt.plain
    low, high = words(values.min()), words(values.max())
    return low if low == high else f"{low} – {high}"


class PointLayer(pg.GraphicsObject):  # type: ignore[misc]  # the library has no annotations
    """Draws each point from a sprite sheet with one symbol per class and size.

    pyqtgraph's own item looks up the style of each point, which takes longer than drawing all of them. Points of a
    later class lie above those of an earlier one.
    """

    def __init__(self) -> None:
        super().__init__()
        self._styles: tuple[tuple[str, QColor], ...] = ()
        self._sheet = QPixmap()
        self._places = np.zeros((2, 0))
        self._cells: tuple[Ints, Ints] = (np.zeros(0, dtype=int), np.zeros(0, dtype=int))

    def set_styles(self, styles: Sequence[tuple[str, QColor]]) -> None:
        """Set the symbol and color of each class."""
        self._styles = tuple(styles)
        self._sheet = QPixmap()
        self.update()

    def set_points(self, data: ScatterData) -> None:
        """Replace the points."""
        order = np.argsort(data.classes, kind="stable")
        self._places = np.array((data.xs[order], data.ys[order]))
        self._cells = data.classes[order], np.searchsorted(SIZES, data.sizes[order])
        self.update()

    def viewRangeChanged(self) -> None:
        """Follow a change of the axes: the item covers the visible range."""
        self.prepareGeometryChange()

    def boundingRect(self) -> QRectF:
        """Return the visible range."""
        return QRectF(self.viewRect())

    def paint(self, painter: QPainter, _option: object, widget: QWidget | None) -> None:
        """Draw the points with sizes in pixels, independent of the scale of the axes."""
        count = self._places.shape[1]
        if not count:
            return
        scale = 1.0 if widget is None else widget.devicePixelRatioF()
        if self._sheet.isNull() or self._sheet.devicePixelRatio() != scale:
            self._sheet = self._sprite_sheet(scale)
        places = pg.functions.transformCoordinates(painter.transform(), self._places).T
        painter.resetTransform()
        if painter.paintEngine().type() == QPaintEngine.Type.SVG:
            self._draw_shapes(painter, places)
            return
        classes, steps = self._cells
        sides = _symbol_sides_pixels(scale)
        # The fields of QPainter::PixmapFragment: x, y, source rectangle, x and y scale, rotation and opacity.
        fragments = np.empty((count, _FRAGMENT_FIELDS))
        fragments[:, 0:2] = places
        fragments[:, 2] = (np.cumsum(sides) - sides)[steps]
        fragments[:, 3] = classes * sides[-1]
        fragments[:, 4] = fragments[:, 5] = sides[steps]
        fragments[:, 6:10] = 1 / scale, 1 / scale, 0, 1
        first = cast("QPainter.PixmapFragment", Shiboken.wrapInstance(fragments.ctypes.data, QPainter.PixmapFragment))
        painter.drawPixmapFragments(first, count, self._sheet)

    def _draw_shapes(self, painter: QPainter, places: Floats) -> None:
        """Draw each point as a vector shape, so that an SVG stays sharp at any size."""
        for (x, y), place, step in zip(places.tolist(), *(cells.tolist() for cells in self._cells), strict=True):
            symbol, color = self._styles[place]
            painter.save()
            painter.translate(x, y)
            drawSymbol(painter, symbol, SIZES[step], QPen(Qt.PenStyle.NoPen), QBrush(color))
            painter.restore()

    def _sprite_sheet(self, scale: float) -> QPixmap:
        """Return the sprite sheet with a row of symbols per color class, from small to large."""
        sides = _symbol_sides_pixels(scale)
        sheet = QPixmap(int(sides.sum()), int(sides[-1]) * len(self._styles))
        sheet.fill(Qt.GlobalColor.transparent)
        painter = QPainter(sheet)
        for row, (symbol, color) in enumerate(self._styles):
            left = 0
            for size, side in zip(SIZES, sides.tolist(), strict=True):
                image: Any = renderSymbol(symbol, size, QPen(Qt.PenStyle.NoPen), QBrush(color), dpr=scale)
                image.setDevicePixelRatio(1)
                painter.drawImage(left, row * int(sides[-1]), image)
                left += side
        painter.end()
        sheet.setDevicePixelRatio(scale)
        return sheet


def _symbol_sides_pixels(scale: float) -> Ints:
    """Return the side length in device pixels of the square that holds a symbol, for each size."""
    return np.array([math.ceil(scale * (size + _EDGES)) for size in SIZES])


_POINT_OPACITY: Final = 170
_DRAG_PIXELS: Final = 6
_RING_SIZE: Final = 16
_NAMES_DELAY_MS: Final = 60
_KEY_MOVES: Final = {
    Qt.Key.Key_Right: (0, 1),
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Up: (1, 1),
    Qt.Key.Key_Down: (1, -1),
}
_NO_VALUES: Final = np.zeros(0)
_NO_DATA: Final = ScatterData((), _NO_VALUES, _NO_VALUES, _NO_VALUES, (), np.zeros(0, dtype=int), ("",), False, (), 0)


class ScatterPlot(Chart):
    """One point per row, with the Pareto front as a dashed line.

    `chosen` carries the name of a point that was clicked or reached by an arrow key, `boxed` the names within a drawn
    box; `used` follows Enter or a double click.
    """

    boxed = Signal(object)
    used = Signal()
    PIXELS_PER_TICK: ClassVar = (60, 34)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "", is_dense=True)
        self.data, self._choice = _NO_DATA, PlotChoice()
        self._current, self._selected = "", frozenset[str]()
        self._planned, self._here = "", frozenset[str]()
        self._name_of: Callable[[str], str] = str
        self._front = self._add_curve(ItemStyle("accent", 1, Qt.PenStyle.DashLine))
        self._points = self._add_item(PointLayer())
        self._rings = self._add_item(pg.ScatterPlotItem(size=_RING_SIZE, symbol="o"), ItemStyle("text", 1.5))
        for name in ("bottom", "left"):
            self._item.getAxis(name).enableAutoSIPrefix(False)
        self.names = NameLayer(self._item.getViewBox(), theme)
        # The points respond to a keystroke first; their names follow after a delay.
        self._naming = QTimer(self, singleShot=True, interval=_NAMES_DELAY_MS)
        self._naming.timeout.connect(self.place_names)
        self._band = QRubberBand(QRubberBand.Shape.Rectangle, self._plot.viewport())
        self._pressed: QPoint | None = None
        self._plot.viewport().installEventFilter(self)
        self._accept_keyboard_focus()
        self._apply_theme()

    def set_axis_titles(self, titles: tuple[str, str], accessible: str) -> None:
        """Set the titles of the axes and the accessible name."""
        self._set_axis_titles(*titles)
        self.setAccessibleName(accessible)
        self._plot.setAccessibleName(accessible)

    def draw(self, data: ScatterData, choice: PlotChoice, name_of: Callable[[str], str]) -> None:
        """Draw the points in `data`; `name_of` returns the label of a point."""
        ordered_before = self.data.ordered
        self.data, self._choice, self._name_of = data, choice, name_of
        if data.ordered != ordered_before:
            self._apply_theme()
        self._points.set_points(data)
        front = list(data.front) if choice.pareto else []
        self._front.setData(data.xs[front], data.ys[front])
        self._set_axis_ranges(padded_range(data.xs, choice.log_x), padded_range(data.ys, choice.log_y))
        self._update_rings()
        self._place_ticks()

    def set_prioritized(self, planned: str | None, here: Collection[str]) -> None:
        """Set the records whose names are placed first: the `planned` one, and the cards in this machine (`here`)."""
        self._planned, self._here = planned or "", frozenset(here)

    def mark(self, current: str | None, selected: Collection[str]) -> None:
        """Draw rings around the current record and the selected records."""
        self._current, self._selected = current or "", frozenset(selected)
        self._update_rings()

    def class_color(self, class_index: int) -> QColor:
        """Return the color of a class: a series color, or for steps of a number a shade from pale to strong."""
        return _class_color(self._theme, class_index, self.data.ordered, len(self.data.class_names))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move to the next point along an axis with the arrow keys, and use a record with Enter."""
        move = _KEY_MOVES.get(Qt.Key(event.key()))
        if move is not None and self.data.ids:
            self._move_to_next_point(*move)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._current:
            self.used.emit()
        else:
            super().keyPressEvent(event)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Handle hovering, clicking and drawing a box in the viewport."""
        if isinstance(event, QMouseEvent):
            return self._handle_mouse(event)
        if event.type() == QEvent.Type.Leave:
            self._show_hovered(None)
        return super().eventFilter(watched, event)

    def _handle_mouse(self, event: QMouseEvent) -> bool:
        place = event.position().toPoint()
        if event.type() == QEvent.Type.MouseButtonPress and event.button() == Qt.MouseButton.LeftButton:
            self._pressed = place
            self.setFocus(Qt.FocusReason.MouseFocusReason)
        elif event.type() == QEvent.Type.MouseMove:
            self._follow_pointer(place)
        elif event.type() == QEvent.Type.MouseButtonRelease and self._pressed is not None:
            self._release_pointer(place)
        elif event.type() == QEvent.Type.MouseButtonDblClick and self._name_at(place):
            self.used.emit()
        return True

    def _follow_pointer(self, position: QPoint) -> None:
        if self._pressed is None:
            self._show_hovered(self._name_at(position))
        elif (position - self._pressed).manhattanLength() > _DRAG_PIXELS:
            self._band.setGeometry(QRect(self._pressed, position).normalized())
            self._band.show()

    def _release_pointer(self, position: QPoint) -> None:
        pressed, self._pressed = self._pressed, None
        if self._band.isVisible() and pressed is not None:
            self._band.hide()
            self.boxed.emit(self.names_within(QRect(pressed, position).normalized()))
        elif name := self._name_at(position):
            self.chosen.emit(name)

    def names_within(self, area: QRect) -> tuple[str, ...]:
        """Return the names of the points within a rectangle of the viewport."""
        corners = [self._axis_position(corner) for corner in (area.bottomLeft(), area.topRight())]
        (left, right), (bottom, top) = sorted(one.x() for one in corners), sorted(one.y() for one in corners)
        data = self.data
        inside = (left <= data.xs) & (data.xs <= right) & (bottom <= data.ys) & (data.ys <= top)
        return tuple(data.ids[place] for place in np.flatnonzero(inside))

    def pixels_of(self, name: str) -> QPoint:
        """Return the position of a point in the viewport."""
        place = self.data.ids.index(name)
        point = self._item.getViewBox().mapViewToScene(QPointF(float(self.data.xs[place]), float(self.data.ys[place])))
        return QPoint(round(point.x()), round(point.y()))

    def _axis_position(self, place: QPoint) -> QPointF:
        position: QPointF = self._item.getViewBox().mapSceneToView(QPointF(place))
        return position

    def _name_at(self, place: QPoint) -> str | None:
        """Return the name of the point within a few pixels of `place`, or None."""
        position = self._view_position(QPointF(place))
        nearest = None if position is None else self._nearest_index(self.data.xs, self.data.ys, position)
        return None if nearest is None else self.data.ids[nearest]

    def _move_to_next_point(self, axis: int, direction: int) -> None:
        values = (self.data.xs, self.data.ys)[axis]
        order = np.argsort(values, kind="stable").tolist()
        if self._current in self.data.ids:
            place = order.index(self.data.ids.index(self._current)) + direction
            chosen = order[min(max(place, 0), len(order) - 1)]
        else:
            chosen = order[0 if direction > 0 else -1]
        self.chosen.emit(self.data.ids[chosen])

    def _update_rings(self) -> None:
        ringed = self.data.indexes_of(self._selected.union((self._current,)))
        self._rings.setData(self.data.xs[ringed], self.data.ys[ringed])
        self.names.clear()
        self._naming.start()

    def _axis_ticks(self, x_tick_count: int, y_tick_count: int) -> tuple[Ticks, Ticks]:
        choice, data = self._choice, self.data
        bottom = scatter_ticks(padded_range(data.xs, choice.log_x), x_tick_count, choice.log_x, choice.x == "year")
        left = scatter_ticks(padded_range(data.ys, choice.log_y), y_tick_count, choice.log_y, choice.y == "year")
        self._fit_y_axis_width(left)
        return bottom, left

    def _place_ticks(self) -> None:
        super()._place_ticks()
        self.names.clear()
        self._naming.start()

    def _fit_y_axis_width(self, ticks: Ticks) -> None:
        """Set the width of the y axis to its labels at once, because names are placed relative to the final points."""
        axis, metrics = self._item.getAxis("left"), QFontMetrics(self._theme.font("small"))
        widest = max((metrics.horizontalAdvance(label) for _, label in ticks), default=0)
        width = widest + metrics.height() + 2 * self._theme.spacing.tiny
        if axis.fixedWidth != width:
            axis.setWidth(width)

    @Slot()
    def place_names(self) -> None:
        """Place the names of selected and planned records, then of this machine's cards, then of the best points."""
        data, choice = self.data, self._choice
        needed = dict.fromkeys((*data.indexes_of((self._current, self._planned)), *data.indexes_of(self._selected)))
        indexes = (*needed, *data.indexes_of(self._here), *points_to_name(data, (choice.x, choice.y)))
        point_names = [self._point_name_at(place) for place in dict.fromkeys(indexes)]
        self.names.place(point_names, data.xs, data.ys, data.sizes / 2, len(needed))

    def _point_name_at(self, index: int) -> PointName:
        data = self.data
        name = data.ids[index]
        size = _RING_SIZE if name == self._current or name in self._selected else data.sizes[index]
        return PointName(self._name_of(name), data.xs[index], data.ys[index], size / 2)

    def _apply_theme(self) -> None:
        super()._apply_theme()
        self._points.set_styles([self._class_style(place) for place in range(MOST_CLASSES)])
        self.names.update()

    def drawing(self) -> bytes:
        """Return the chart as the bytes of an SVG file."""
        # SVG needs shapes instead of cached pixmaps.
        self._rings.opts["useCache"] = False
        drawing = super().drawing()
        self._rings.opts["useCache"] = True
        return drawing

    def _class_style(self, class_index: int) -> tuple[str, QColor]:
        return symbol_of(class_index, self.data.ordered), translucent(self.class_color(class_index), _POINT_OPACITY)


def _class_color(theme: Theme, class_index: int, ordered: bool, count: int) -> QColor:
    if not ordered:
        return theme.color(f"series-{class_index + 1}")
    if class_index == count - 1:
        return theme.color("muted")
    pale, strong = theme.color("border"), theme.color("accent")
    share = (class_index + 1) / max(1, count - 1)
    channels = zip((pale.red(), pale.green(), pale.blue()), (strong.red(), strong.green(), strong.blue()), strict=True)
    return QColor(*(round(low + (high - low) * share) for low, high in channels))
