"""Scatter view: axis choices, the plot, its legend, copy and save."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from PySide6.QtCore import QPointF, QRect, QRectF, QSignalBlocker, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPaintEvent, QPolygonF
from PySide6.QtWidgets import QCheckBox, QGridLayout, QHBoxLayout, QLabel, QMenu, QPushButton, QSizePolicy, QWidget

from planner.gui.plot.legend import line_positions
from planner.gui.plot.panel import PlotPanel, Rows
from planner.gui.settings import PlotChoice
from planner.gui.theme import Theme
from planner.gui.widgets.inputs.choice_field import ChoiceField
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.workspace import Workspace
from planner.present import format as fmt
from planner.present.catalog.gpu_columns import lower_is_better
from planner.present.columns import Column

if TYPE_CHECKING:
    from planner.gui.catalog.scatter_plot import ScatterPlot

_SIDE: Final = 12
_TALLEST: Final = 16
_CORNERS: Final = {
    "t": ((0, 0), (1, 0), (0.5, 1)),
    "t1": ((0, 1), (1, 1), (0.5, 0)),
    "d": ((0.5, 0), (0.9, 0.5), (0.5, 1), (0.1, 0.5)),
    "+": (
        *((0.35, 0), (0.65, 0), (0.65, 0.35), (1, 0.35), (1, 0.65), (0.65, 0.65)),
        *((0.65, 1), (0.35, 1), (0.35, 0.65), (0, 0.65), (0, 0.35), (0.35, 0.35)),
    ),
    "star": (
        *((0.5, 0), (0.62, 0.36), (1, 0.36), (0.69, 0.59), (0.81, 0.95)),
        *((0.5, 0.73), (0.19, 0.95), (0.31, 0.59), (0, 0.36), (0.38, 0.36)),
    ),
    "h": ((0.5, 0), (0.93, 0.25), (0.93, 0.75), (0.5, 1), (0.07, 0.75), (0.07, 0.25)),
    "s": ((0.05, 0.05), (0.95, 0.05), (0.95, 0.95), (0.05, 0.95)),
}
"""Corners of pyqtgraph's symbols, copied so that the legend need not import pyqtgraph; a circle has no corners."""


class _LegendEntry(NamedTuple):
    """Legend text after a swatch of `side` pixels: a class symbol, or a gray circle for a size."""

    words: str
    side: float
    symbol: str = "o"
    class_index: int | None = None


class SymbolLegend(QWidget):
    """Legend of a scatter plot: a symbol and name per class, then a small and a large point; it cannot be clicked."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._entries: tuple[_LegendEntry, ...] = ()
        self._color: Callable[[int], QColor] = lambda _: QColor()
        self._metrics = QFontMetrics(theme.font("small"))
        policy = QSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        theme.changed.connect(self.update)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the texts of the legend."""
        return tuple(entry.words for entry in self._entries)

    def show_classes(
        self,
        classes: Sequence[tuple[str, str]],
        present: Collection[int],
        color: Callable[[int], QColor],
        title: str,
        sizes: Sequence[tuple[float, str]],
    ) -> None:
        """Show the classes at the indexes in `present`, each as its symbol and name, and what the sizes mean.

        `sizes` are diameters in pixels with the value that each stands for, under `title`.
        """
        self._color = color
        class_entries = [
            _LegendEntry(name, _SIDE, symbol, place)
            for place, (name, symbol) in enumerate(classes)
            if name and place in present
        ]
        heading = [_LegendEntry(f"{title}:", 0)] if sizes else []
        sized = [_LegendEntry(words, size) for size, words in sizes]
        entries = (*class_entries, *heading, *sized)
        if entries != self._entries:
            height = self.heightForWidth(self.width())
            self._entries = entries
            parts = (", ".join(entry.words for entry in part) for part in (class_entries, sized))
            descriptions = [part for part in (next(parts), f"{title}: {next(parts)}" if sizes else "") if part]
            self.setAccessibleName(f"Legend: {'; '.join(descriptions)}")
            # A new layout of the panel takes as long as drawing a thousand points.
            if self.heightForWidth(self.width()) != height:
                self.updateGeometry()
        self.update()

    def heightForWidth(self, width: int) -> int:
        """Return the height of the wrapped lines."""
        return max((place.bottom() + 1 for place in self._entry_rects(width)), default=0)

    def sizeHint(self) -> QSize:
        """Return the height needed at the current width."""
        return QSize(0, self.heightForWidth(self.width()))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the swatches and texts."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self._theme.font("small"))
        for entry, place in zip(self._entries, self._entry_rects(self.width()), strict=True):
            color = self._theme.color("muted") if entry.class_index is None else self._color(entry.class_index)
            if entry.side:
                top = place.top() + (place.height() - entry.side) / 2
                edge = 0 if entry.class_index is None else 1
                box = QRectF(place.left(), top, entry.side, entry.side).adjusted(edge, edge, -edge, -edge)
                _paint_symbol(painter, entry.symbol, color, box)
            painter.setPen(self._theme.color("muted"))
            words = place.adjusted(self._swatch_width(entry), 0, 0, 0)
            painter.drawText(words, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), entry.words)

    def _swatch_width(self, entry: _LegendEntry) -> int:
        return ceil(entry.side) + self._theme.spacing.tiny if entry.side else 0

    def _entry_rects(self, width: int) -> list[QRect]:
        is_sized = any(entry.class_index is None for entry in self._entries)
        height = max(_TALLEST if is_sized else _SIDE, self._metrics.height()) + 2
        widths = [
            self._swatch_width(entry) + self._metrics.horizontalAdvance(entry.words) + 2 for entry in self._entries
        ]
        places = line_positions(widths, width, self._theme.spacing.medium)
        return [
            QRect(round(left), line * height, wide, height) for (line, left), wide in zip(places, widths, strict=True)
        ]


def _paint_symbol(painter: QPainter, symbol: str, color: QColor, box: QRectF) -> None:
    """Paint a plot symbol into `box`."""
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(color)
    corners = _CORNERS.get(symbol)
    if corners is None:
        painter.drawEllipse(box)
        return
    places = [QPointF(box.left() + x * box.width(), box.top() + y * box.height()) for x, y in corners]
    painter.drawPolygon(QPolygonF(places))


_CLASS_COLUMNS: Final = ("vendor", "segment", "architecture", "part", "fits", "certainty")
_LINEAR_COLUMNS: Final = frozenset(("year",))
PRESETS: Final[dict[str, dict[str, PlotChoice]]] = {
    "accelerators": {
        "Bandwidth against price": PlotChoice(x="buy", y="bandwidth", size="memory", color="vendor"),
        "Dense BF16 against power": PlotChoice(x="power", y="bf16", size="memory", color="segment"),
        "Memory against price": PlotChoice(x="buy", y="memory", size="bandwidth", color="segment"),
        "Bandwidth over the years": PlotChoice(x="year", y="bandwidth", color="segment", log_x=False),
        "Dense BF16 over the years": PlotChoice(x="year", y="bf16", color="segment", log_x=False),
        "Price of memory over the years": PlotChoice(x="year", y="usd_per_gib", color="segment", log_x=False),
    },
    "systems": {
        "Dense BF16 against power": PlotChoice(x="power", y="bf16", size="memory", color="vendor"),
        "Bandwidth against price": PlotChoice(x="price", y="bandwidth", size="memory", color="vendor"),
        "Memory against power": PlotChoice(x="power", y="memory"),
        "Memory against price": PlotChoice(x="price", y="memory"),
        "Memory over the years": PlotChoice(x="year", y="memory", log_x=False),
    },
}
"""Preset plots of each page; the first is the default."""


class ScatterPanel(PlotPanel):
    """Scatter plot of the rows of a page; `chosen`, `boxed` and `used` are forwarded from the plot."""

    chosen = Signal(object)
    boxed = Signal(object)
    used = Signal()

    def __init__(self, workspace: Workspace, theme: Theme, page: str, model: RecordTableModel[Any]) -> None:
        super().__init__(theme, "", "plot", f"{page}-plot")
        self._workspace, self._page, self._model = workspace, page, model
        columns = model.columns
        self._columns = {column.key: column for column in columns}
        self.plot: ScatterPlot | None = None
        numbers = [(column.key, column.axis_title) for column in columns if column.is_number]
        class_columns = [(column.key, column.title) for column in columns if column.key in _CLASS_COLUMNS]
        nothing = ("", "nothing")
        self.fields: dict[str, ChoiceField] = {
            "x": ChoiceField(theme, numbers),
            "y": ChoiceField(theme, numbers),
            "size": ChoiceField(theme, [nothing, *numbers]),
            "color": ChoiceField(theme, [nothing, *class_columns, *numbers]),
        }
        self.boxes: dict[str, QCheckBox] = {
            "log_x": QCheckBox("log"),
            "log_y": QCheckBox("log"),
            "pareto": QCheckBox("Pareto fro&nt"),
        }
        self.legend = SymbolLegend(theme)
        self._presets = QPushButton("Pre&sets")
        self._as_table.hide()  # the page itself has a table of the same rows
        self._add_controls()
        self._show_chosen_columns()

    @property
    def choice(self) -> PlotChoice:
        """Return the columns of the plot; a stored choice with unknown columns is replaced by the default."""
        default_choice = next(iter(PRESETS[self._page].values()))
        chosen = self._workspace.settings.current.catalog.plots.get(self._page, default_choice)
        keys = (chosen.x, chosen.y, *filter(None, (chosen.size, chosen.color)))
        return chosen if all(key in self._columns for key in keys) else default_choice

    def choose(self, choice: PlotChoice) -> None:
        """Draw the columns in `choice`, and store the choice in the settings."""
        settings = self._workspace.settings
        plots = {**settings.current.catalog.plots, self._page: choice}
        settings.update(catalog=settings.current.catalog.evolve(plots=plots))
        self._show_chosen_columns()
        self.show_rows()

    def mark(self, current: str | None, selected: Sequence[str]) -> None:
        """Draw rings around the points of the records `current` and `selected` in the table."""
        if self.plot is not None:
            self.plot.mark(current, selected)

    def csv_rows(self) -> Rows:
        """Return the CSV rows of the plot: a header, and a row per point with exact figures."""
        keys = [key for key in dict.fromkeys(("x", "y", "size", "color")) if getattr(self.choice, key)]
        columns = [self._columns[getattr(self.choice, key)] for key in keys]
        drawn = set(self.plot.data.ids) if self.plot is not None else set()
        head = ("id", "name", *(column.axis_title for column in columns))
        rows = [row for row in self._model.records if row.id in drawn]
        return (
            head,
            *((row.id, self._row_title(row), *(_exact_text(column, row) for column in columns)) for row in rows),
        )

    def show_rows(self) -> None:
        """Draw the rows of the model; the first call imports the plotting library."""
        from planner.gui.catalog.scatter_plot import scatter_data, symbol_of

        plot, choice = self._make_plot(), self.choice
        data = scatter_data(self._model.names, self._columns, self._model.numbers, self._model.words, choice)
        x, y = self._columns[choice.x], self._columns[choice.y]
        plot.set_axis_titles(
            (x.axis_title, y.axis_title), f"{y.axis_title} against {x.axis_title}; the table shows the same figures"
        )
        plot.set_prioritized(self._model.marked, self._model.first)
        plot.draw(data, choice, lambda name: self._row_title(self._model.find(name)))
        classes = [(name, symbol_of(place, data.ordered)) for place, name in enumerate(data.class_names)]
        size_title = self._columns[choice.size].axis_title if choice.size else ""
        self.legend.show_classes(classes, set(data.classes.tolist()), plot.class_color, size_title, data.size_ends)
        left_out = f"; {fmt.integer(data.left_out)} without these figures" if data.left_out else ""
        self._read_out.setText(f"{fmt.plural(len(data.ids), 'point')}{left_out}")

    def _make_plot(self) -> "ScatterPlot":
        if self.plot is None:
            from planner.gui.catalog.scatter_plot import ScatterPlot

            self.plot = ScatterPlot(self._theme)
            self.plot.hovered.connect(self._show_hover_card)
            self.plot.chosen.connect(self.chosen)
            self.plot.boxed.connect(self.boxed)
            self.plot.used.connect(self.used)
            self._set_chart(self.plot)
        return self.plot

    def _row_title(self, row: Any) -> str:  # noqa: ANN401  # a page's own record
        return self._columns["name"].text(row)

    @Slot(object)
    def _show_hover_card(self, name: str | None) -> None:
        row = self._model.find(name)
        if self.plot is not None:
            self.plot.card.setVisible(row is not None)
            if name is not None and row is not None:
                self.plot.card.show_lines(self.hover_lines(row), self.plot.pixels_of(name))

    def hover_lines(self, row: Any) -> tuple[str, ...]:  # noqa: ANN401  # a page's own record
        """Return the hover text for a point: the record's name and the values on the axes."""
        keys = dict.fromkeys((self.choice.x, self.choice.y, self.choice.size, self.choice.color, "fits"))
        columns = [self._columns[key] for key in keys if key in self._columns]
        figures = (f"{column.title}: {column.text_with_unit(row)}" for column in columns)
        return (self._row_title(row), *figures)

    def _show_chosen_columns(self) -> None:
        choice = self.choice
        for key, field in self.fields.items():
            field.set_value(getattr(choice, key))
        for key, box in self.boxes.items():
            with QSignalBlocker(box):
                box.setChecked(getattr(choice, key))
        self.boxes["log_x"].setEnabled(choice.x not in _LINEAR_COLUMNS)
        self.boxes["log_y"].setEnabled(choice.y not in _LINEAR_COLUMNS)
        self._update_front_switch(choice)

    def _update_front_switch(self, choice: PlotChoice) -> None:
        """Enable the switch for the Pareto front if both axes have a better direction; keep the user's choice."""
        neither = [self._columns[key].title for key in (choice.x, choice.y) if lower_is_better(key) is None]
        box = self.boxes["pareto"]
        with QSignalBlocker(box):
            box.setChecked(choice.pareto and not neither)
        box.setEnabled(not neither)
        box.setToolTip(
            f"No Pareto front: neither a higher nor a lower “{neither[0]}” is better."
            if neither
            else "Connects the points that no other point beats in both values."
        )
        box.setAccessibleDescription(box.toolTip())

    def _use_preset(self, preset: PlotChoice) -> None:
        """Draw the columns of `preset`; the switch for the Pareto front stays as it is."""
        self.choose(preset.evolve(pareto=self.choice.pareto))

    def _on_setting_edited(self, key: str, value: object) -> None:
        changed = self.choice.evolve(**{key: value})
        years = {f"log_{axis}": False for axis in ("x", "y") if getattr(changed, axis) in _LINEAR_COLUMNS}
        self.choose(changed.evolve(**years))

    def _add_controls(self) -> None:
        titles = {"x": "&x axis", "y": "&y axis", "size": "Si&ze", "color": "Colo&r"}
        grid = QGridLayout()
        grid.setHorizontalSpacing(self._theme.spacing.small)
        grid.setVerticalSpacing(self._theme.spacing.tiny)
        for (key, field), (row, column) in zip(self.fields.items(), ((0, 0), (1, 0), (0, 3), (1, 3)), strict=True):
            label = QLabel(titles[key])
            label.setBuddy(field)
            field.set_name(titles[key].replace("&", ""))
            field.setMinimumWidth(110)
            field.edited.connect(partial(self._on_setting_edited, key))
            grid.addWidget(label, row, column)
            grid.addWidget(field, row, column + 1)
            grid.setColumnStretch(column + 1, 1)
        grid.addWidget(self.boxes["log_x"], 0, 2)
        grid.addWidget(self.boxes["log_y"], 1, 2)
        self.boxes["log_x"].setAccessibleName("Logarithmic x axis")
        self.boxes["log_y"].setAccessibleName("Logarithmic y axis")
        for key, box in self.boxes.items():
            box.toggled.connect(partial(self._on_setting_edited, key))
        menu = QMenu(self)
        for name, choice in PRESETS[self._page].items():
            menu.addAction(name, partial(self._use_preset, choice))
        self._presets.setMenu(menu)
        self._column.setContentsMargins(self._theme.spacing.small, 0, self._theme.spacing.small, 0)
        self._column.insertLayout(0, grid)
        self._column.addWidget(self.legend)
        line = QHBoxLayout()
        line.addWidget(self._presets)
        line.addWidget(self.boxes["pareto"])
        self._bar.insertLayout(0, line)
        self._read_out.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)


def _exact_text(column: Column[Any], row: Any) -> str:  # noqa: ANN401  # a page's own record
    value = column.number(row) if column.is_number else column.text(row)
    return "" if value is None else str(value)
