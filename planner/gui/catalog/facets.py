"""Filter pane of the catalog: switches, facets with counts, and ranges."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from PySide6.QtCore import QPointF, QRectF, QSignalBlocker, QSize, Qt, Signal, Slot
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QGridLayout,
    QLabel,
    QLineEdit,
    QSizePolicy,
    QWidget,
)

from planner.gui.catalog.filters import TOGGLE_TIPS, TOGGLES, RecordFilter, RecordKind, ValueRange, round_stops
from planner.gui.settings import SettingsStore
from planner.gui.theme import Theme, set_style_role
from planner.gui.threads import CalmTimer
from planner.gui.widgets.buttons import link_button
from planner.gui.widgets.inputs.number_field import DecimalField
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import ScrollColumn, in_column, in_row
from planner.gui.widgets.section import Section
from planner.numbers import AMOUNT, GIBIBYTES, MONEY, WATTS, YEAR, NumberKind
from planner.present import format as fmt

_COLLAPSED_ROWS: Final = 8
_RADIUS: Final = 6
_TRACK: Final = 2
_MAX_VALUE: Final = 1e9
_LAST_YEAR: Final = 9999
_NARROW: Final = 40
_KINDS_OF_UNITS: Final = {"GiB": GIBIBYTES, "W": WATTS}
_OPEN: Final = ValueRange()
_NO_LIMIT: Final = "any"


class FacetGroup(QWidget):
    """Check boxes for the values of a facet, such as the vendors; `chosen` carries the checked values.

    `values` are pairs of a value (None is unknown) and its title. A long list shows only the first few values and the
    checked values until the user expands the list.
    """

    chosen = Signal(object)

    def __init__(self, theme: Theme, values: Sequence[tuple[str | None, str]]) -> None:
        super().__init__()
        self._titles = dict(values)
        self._places = {value: row for row, (value, _) in enumerate(values)}
        self._boxes: dict[str | None, QCheckBox] = {}
        self._numbers: dict[str | None, QLabel] = {}
        self._counts: Mapping[str | None, int] = {}
        self._expanded = False
        self._more = link_button("", "Show all values, or only the most common ones")
        layout = in_column(owner=self, spacing=theme.spacing.tiny)
        self._grid = QGridLayout()
        self._grid.setVerticalSpacing(theme.spacing.tiny)
        self._grid.setColumnStretch(0, 1)
        layout.addLayout(self._grid)
        layout.addWidget(self._more)
        self._more.clicked.connect(self._on_more_clicked)
        self._show_check_boxes(())

    @property
    def values(self) -> tuple[str | None, ...]:
        """Return the checked values."""
        return tuple(value for value in self._places if value in self._boxes and self._boxes[value].isChecked())

    @property
    def summary(self) -> str:
        """Return the titles of the checked values."""
        return ", ".join(self._titles[value] for value in self.values)

    def set_values(self, values: Sequence[str | None]) -> None:
        """Check exactly `values`."""
        self._show_check_boxes(values)
        for value, box in self._boxes.items():
            with QSignalBlocker(box):
                box.setChecked(value in values)

    def add_values(self, values: Sequence[tuple[str | None, str]]) -> None:
        """Append the values, given with their titles, that are not listed yet."""
        new = [(value, words) for value, words in values if value not in self._places]
        for value, words in new:
            self._titles[value], self._places[value] = words, len(self._places)
        if new:
            self._show_check_boxes(self.values)

    def set_counts(self, counts: Mapping[str | None, int]) -> None:
        """Show the number of records for each value; values without records are grayed out."""
        self._counts = counts
        for value in self._boxes:
            self._show_count(value)

    @Slot()
    def _on_value_toggled(self) -> None:
        self.chosen.emit(self.values)

    @Slot()
    def _on_more_clicked(self) -> None:
        self._expanded = not self._expanded
        self._show_check_boxes(self.values)

    def _show_check_boxes(self, checked_values: Sequence[str | None]) -> None:
        for value, row in self._places.items():
            is_shown = self._expanded or row < _COLLAPSED_ROWS or value in checked_values
            if is_shown and value not in self._boxes:
                self._make_check_box(value)
            if value in self._boxes:
                self._boxes[value].setVisible(is_shown)
                self._numbers[value].setVisible(is_shown)
        self._more.setVisible(len(self._places) > _COLLAPSED_ROWS)
        self._more.setText("Show fewer" if self._expanded else f"Show all {len(self._places)}")

    def _make_check_box(self, value: str | None) -> None:
        """Create the check box for `value`; creating all check boxes at start would take too long."""
        box, number = QCheckBox(self._titles[value]), make_label(role="muted")
        self._boxes[value], self._numbers[value] = box, number
        box.setToolTip(f"Include {self._titles[value]}; once a value is checked, only checked ones are shown")
        self._grid.addWidget(box, self._places[value], 0)
        self._grid.addWidget(number, self._places[value], 1, Qt.AlignmentFlag.AlignRight)
        self._show_count(value)
        box.toggled.connect(self._on_value_toggled)

    def _show_count(self, value: str | None) -> None:
        count, box = self._counts.get(value, 0), self._boxes[value]
        self._numbers[value].setText(fmt.integer(count))
        box.setAccessibleName(f"{self._titles[value]}, {count}")
        set_style_role(box, "" if count or box.isChecked() else "muted")


class RangeSlider(QWidget):
    """Slider with two handles that snap to stops; `slid` carries the bounds `(low, high)`, None for an open bound.

    The line is colored where the values of the listed records are. Mouse only: the fields below it serve the keyboard.
    """

    slid = Signal(object)

    def __init__(self, theme: Theme, stops: Sequence[float]) -> None:
        super().__init__()
        self._theme, self._slider_stops = theme, tuple(stops)
        self._places = [0, len(self._slider_stops) - 1]
        self._listed = (0, len(self._slider_stops) - 1)
        self._dragged = 0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """Return the lower and upper bound; None is an open bound."""
        low, high = self._places
        last = len(self._slider_stops) - 1
        return (self._slider_stops[low] if low else None), (self._slider_stops[high] if high < last else None)

    def set_bounds(self, low: float | None, high: float | None) -> None:
        """Move the handles to the nearest stops outside `low` and `high`."""
        self._places = list(self._stops_outside(low, high))
        self.update()

    def set_listed(self, low: float | None, high: float | None) -> None:
        """Color the line from `low` to `high`, the values of the listed records; nothing if they have none."""
        self._listed = (0, 0) if low is None else self._stops_outside(low, high)
        self.update()

    def _stops_outside(self, low: float | None, high: float | None) -> tuple[int, int]:
        last = len(self._slider_stops) - 1
        return (
            0 if low is None else max(0, bisect_right(self._slider_stops, low) - 1),
            last if high is None else min(last, bisect_left(self._slider_stops, high)),
        )

    def sizeHint(self) -> QSize:
        """Return the height of a handle; the layout decides the width."""
        return QSize(8 * _RADIUS, 2 * _RADIUS + 4)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Grab the nearer handle."""
        x = event.position().x()
        low, high = (self._handle_x(place) for place in self._places)
        self._dragged = 0 if x < (low + high) / 2 else 1
        self._drag_handle_to(x)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Drag the grabbed handle, at most to the position of the other handle."""
        self._drag_handle_to(event.position().x())

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the track, the selected range and the handles."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        low, high = (self._handle_x(place) for place in self._places)
        first, final = (self._handle_x(place) for place in self._listed)
        middle = self.height() / 2
        colored = (max(low, first), min(high, final), "accent")
        for left, right, role in ((0.0, float(self.width()), "border"), colored):
            painter.setBrush(self._theme.color(role))
            painter.drawRect(QRectF(left, middle - _TRACK / 2, max(0.0, right - left), _TRACK))
        painter.setPen(self._theme.color("accent"))
        painter.setBrush(self._theme.color("surface"))
        for x in (low, high):
            painter.drawEllipse(QPointF(x, middle), _RADIUS - 1, _RADIUS - 1)

    def _drag_handle_to(self, x: float) -> None:
        last = len(self._slider_stops) - 1
        nearest_stop = round((x - _RADIUS) / max(1, self.width() - 2 * _RADIUS) * last)
        other = self._places[1 - self._dragged]
        least, most = (0, other) if self._dragged == 0 else (other, last)
        place = min(max(nearest_stop, least), most)
        if place != self._places[self._dragged]:
            self._places[self._dragged] = place
            self.update()
            self.slid.emit(self.bounds)

    def _handle_x(self, stop_index: int) -> float:
        return _RADIUS + stop_index / max(1, len(self._slider_stops) - 1) * (self.width() - 2 * _RADIUS)


class RangeGroup(QWidget):
    """Two number fields with a slider; `chosen` carries the bounds `(low, high)`, None for an open bound.

    `stops` are the slider's stops in ascending order.
    """

    chosen = Signal(object)

    def __init__(self, theme: Theme, name: str, stops: Sequence[float], kind: NumberKind) -> None:
        super().__init__()
        self.setToolTip(f"{name}: drag an end or type a value; an empty end has no limit")
        self._slider = RangeSlider(theme, stops)
        self._written = "{:.0f}".format if kind is YEAR else fmt.plain
        self._low, self._high = (
            DecimalField(
                0,
                _LAST_YEAR if kind is YEAR else _MAX_VALUE,
                self._written(end),
                kind=kind,
            )
            for end in (stops[0], stops[-1])
        )
        for field in (self._low, self._high):
            for edit in field.findChildren(QLineEdit):
                edit.setMinimumWidth(_NARROW)
        self._low.set_name(f"{name} from")
        self._high.set_name(f"{name} to")
        in_column(
            self._slider,
            in_row((self._low, 1), QLabel("–"), (self._high, 1), spacing=theme.spacing.tiny),
            owner=self,
            spacing=theme.spacing.tiny,
        )
        self._low.edited.connect(self._on_bound_typed)
        self._high.edited.connect(self._on_bound_typed)
        self._slider.slid.connect(self._on_slid)

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """Return the lower and upper bound."""
        return self._low.value, self._high.value

    def set_bounds(self, low: float | None, high: float | None, searched: Sequence[ValueRange] = ()) -> None:
        """Show the bounds in the fields and the slider; the slider also shows those that are `searched`."""
        self._low.set_value(low)
        self._high.set_value(high)
        lows = [bound.low for bound in searched if bound.low is not None]
        highs = [bound.high for bound in searched if bound.high is not None]
        self._slider.set_bounds(
            max((*lows, *(() if low is None else (low,))), default=None),
            min((*highs, *(() if high is None else (high,))), default=None),
        )

    def show_listed(self, values: Sequence[float]) -> None:
        """Show the range of the listed records' `values` on the slider and, as hints, in the empty fields."""
        ends = (min(values), max(values)) if values else (None, None)
        self._slider.set_listed(*ends)
        for field, end in zip((self._low, self._high), ends, strict=True):
            for edit in field.findChildren(QLineEdit):
                edit.setPlaceholderText(_NO_LIMIT if end is None else self._written(end))

    @Slot(object)
    def _on_bound_typed(self, _value: object) -> None:
        self._slider.set_bounds(*self.bounds)
        self.chosen.emit(self.bounds)

    @Slot(object)
    def _on_slid(self, bounds: tuple[float | None, float | None]) -> None:
        self._low.set_value(bounds[0])
        self._high.set_value(bounds[1])
        self.chosen.emit(bounds)


class FacetPanel(ScrollColumn):
    """Pane that edits the filter of a catalog page; `changed` carries the new filter and the changed condition's key.

    The pane offers the facet values and ranges that occur in `rows`; `empty` is the filter without conditions. Its
    sections are built one by one while the event loop runs.
    """

    changed = Signal(object, str)

    def __init__(self, theme: Theme, settings: SettingsStore, empty: RecordFilter, rows: Sequence[Any]) -> None:
        super().__init__()
        self._theme, self._settings = theme, settings
        self._empty = self._filter = empty
        self._kind = empty.kind
        self._clear = link_button("Clear all", "Clear all filters")
        self._toggles = {field: QCheckBox(words) for field, (_, words) in TOGGLES.items()}
        self._rows = rows
        self._counts: Mapping[str, Mapping[str | None, int]] = {}
        self._listed: Sequence[Any] | None = None
        self._groups: dict[str, FacetGroup] = {}
        self._ranges: dict[str, RangeGroup] = {}
        self._sections: dict[str, Section] = {}
        last = [facet for facet in self._kind.facets if facet not in self._kind.first]
        self._unbuilt = [*self._kind.first, *self._kind.ranges, *last]
        self._lay_out()
        self._clear.clicked.connect(self.clear)
        for field, box in self._toggles.items():
            box.toggled.connect(partial(self._on_switch_toggled, field))
        # All sections at once would keep the window waiting.
        self._building = CalmTimer(self)
        self._building.timeout.connect(self._build_next_section)
        self._building.start()

    def finish(self) -> None:
        """Build the sections that are still missing."""
        while self._unbuilt:
            self._build_next_section()
        self._building.stop()

    @Slot()
    def _build_next_section(self) -> None:
        key = self._unbuilt.pop(0)
        is_range = key in self._kind.ranges
        body = self._make_range_group(key) if is_range else self._make_facet_group(key)
        title = _range_title(self._kind, key) if is_range else self._kind.facets[key].title
        section = self._sections[key] = Section(self._theme, title, body)
        section.set_open(f"{self._kind.prefix}{key}" not in self._settings.current.closed_facets)
        section.toggled.connect(self._store_closed_sections)
        for widget in section.findChildren(QWidget):
            widget.ensurePolished()  # or the layout would keep the sizes that they have without the theme
        self._body_column.insertWidget(self._body_column.count() - 1, section)
        self._show_in_section(key)
        if self._unbuilt:
            self._building.start()

    def _show_in_section(self, key: str) -> None:
        """Show the filter, the counts and the range of values in one section."""
        current = self._filter
        if key in self._groups:
            group = self._groups[key]
            group.set_values(getattr(current.query, self._kind.facets[key].chosen))
            group.set_counts(self._counts.get(key, {}))
            self._sections[key].set_summary(group.summary)
            return
        ranged, bounds = self._ranges[key], current.bounds.get(key, _OPEN)
        searched = [ValueRange(low=bound.low, high=bound.high) for bound in current.parsed.bounds if bound.key == key]
        ranged.set_bounds(bounds.low, bounds.high, searched)
        self._sections[key].set_summary(self._kind.range_text(key, bounds.low, bounds.high))
        if self._listed is not None:
            number = self._kind.columns[key].number
            ranged.show_listed([value for row in self._listed if (value := number(row)) is not None])

    def show_filter(self, current: RecordFilter) -> None:
        """Show the filter `current`."""
        before, self._filter = self._filter, current
        self._clear.setEnabled(not current.is_empty)
        if current.by_name_only and before.by_name_only:
            return
        for key in self._sections:
            self._show_in_section(key)
        for field, box in self._toggles.items():
            with QSignalBlocker(box):
                box.setChecked(getattr(current, field))

    def add_rows(self, rows: Sequence[Any]) -> None:
        """Offer new values of `rows`: user-defined cards may have values that are not in the catalog."""
        self._rows = rows
        for facet, group in self._groups.items():
            group.add_values(_facet_values(self._kind, facet, rows))

    def show_counts(self, counts: Mapping[str, Mapping[str | None, int]], listed: Sequence[Any]) -> None:
        """Update the counts of all facets, and the ranges of the values of the `listed` rows."""
        self._counts, self._listed = counts, listed
        for key in self._sections:
            self._show_in_section(key)

    def _lay_out(self) -> None:
        space = self._theme.spacing
        self._clear.setEnabled(False)
        body = QWidget()
        column = in_column(owner=body, margins=(0, space.small, space.small, space.medium), spacing=space.small)
        heading = in_row((make_label("Filters", font=self._theme.font(bold=True)), 1), self._clear)
        column.addLayout(heading)
        for field, box in self._toggles.items():
            box.setToolTip(TOGGLE_TIPS[field])
            column.addWidget(box)
        column.addStretch(1)
        self._body_column = column
        self.setWidget(body)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName("Filters")

    @Slot()
    def clear(self) -> None:
        """Clear all filters."""
        self.changed.emit(self._empty, "")

    def _on_switch_toggled(self, field: str, is_checked: bool) -> None:
        self.changed.emit(self._filter.evolve(**{field: is_checked}), field)

    def _on_facet_chosen(self, facet: str, values: tuple[str | None, ...]) -> None:
        self.changed.emit(self._filter.with_query(**{self._kind.facets[facet].chosen: values}), facet)

    def _on_range_chosen(self, key: str, bounds: tuple[float | None, float | None]) -> None:
        self.changed.emit(self._filter.with_bounds(key, *bounds), key)

    @Slot()
    def _store_closed_sections(self) -> None:
        mine = {f"{self._kind.prefix}{key}": section.is_open for key, section in self._sections.items()}
        others = [key for key in self._settings.current.closed_facets if key not in mine]
        self._settings.update(closed_facets=(*others, *(key for key, is_open in mine.items() if not is_open)))

    def _make_facet_group(self, facet: str) -> FacetGroup:
        group = self._groups[facet] = FacetGroup(self._theme, _facet_values(self._kind, facet, self._rows))
        group.chosen.connect(partial(self._on_facet_chosen, facet))
        return group

    def _make_range_group(self, key: str) -> RangeGroup:
        title, stops = self._kind.columns[key].title, _slider_stops(self._kind, key, self._rows)
        ranged = self._ranges[key] = RangeGroup(self._theme, title, stops, _kind_of_column(self._kind, key))
        ranged.chosen.connect(partial(self._on_range_chosen, key))
        return ranged


def _kind_of_column(kind: RecordKind, key: str) -> NumberKind:
    """Return the kind of the numbers that bound a column."""
    column = kind.columns[key]
    if column.measure == fmt.USD:
        return MONEY
    return YEAR if key == "year" else _KINDS_OF_UNITS.get(column.unit, AMOUNT)


def _facet_values(kind: RecordKind, facet: str, rows: Sequence[Any]) -> list[tuple[str | None, str]]:
    """Return the values of a facet with their titles, most frequent first, unknown last."""
    counted = Counter(map(kind.facets[facet].read, map(kind.record_of, rows)))
    ordered = sorted(counted.most_common(), key=lambda pair: pair[0] is None)
    return [(value, kind.facet_value_text(facet, value)) for value, _ in ordered]


def _range_title(kind: RecordKind, key: str) -> str:
    """Return a column's title with its unit, abbreviated."""
    column = kind.columns[key]
    return f"{column.title}, $" if column.measure == fmt.USD else column.header


def _slider_stops(kind: RecordKind, key: str, rows: Sequence[Any]) -> Sequence[float]:
    """Return the slider stops of a column: its fixed scale, every year, or round numbers."""
    if key in kind.scales:
        return kind.scales[key]
    read = kind.columns[kind.like.get(key, key)].number
    known = [value for row in rows if (value := read(row)) is not None]
    if key == "year":
        return tuple(float(year) for year in range(int(min(known, default=0)), int(max(known, default=1)) + 1))
    return round_stops(known)
