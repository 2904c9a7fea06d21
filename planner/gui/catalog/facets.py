"""The pane that narrows the catalog: what is left out, facets with counts, and bounds of figures."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import QCheckBox, QFrame, QHBoxLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from planner.gui.catalog.facet_group import FacetGroup
from planner.gui.catalog.filters import TOGGLE_TIPS, TOGGLES, Bounds, RecordFilter
from planner.gui.catalog.narrowed import Narrowed
from planner.gui.catalog.range_group import RangeGroup
from planner.gui.catalog.range_slider import round_stops
from planner.gui.settings import SettingsStore
from planner.gui.theme import Theme, mark
from planner.gui.widgets.label import make_label
from planner.gui.widgets.section import Section
from planner.present import format as fmt

_OPEN: Final = Bounds()


class FacetPanel(QScrollArea):
    """Shows a filter of the kind of `empty` and edits it; `changed` carries the new one and the key of what changed.

    `rows` are of that kind: their values are offered.
    """

    changed = Signal(object, str)

    def __init__(self, theme: Theme, settings: SettingsStore, empty: RecordFilter, rows: Sequence[Any]) -> None:
        super().__init__()
        self._theme, self._settings = theme, settings
        self._empty = self._filter = empty
        self._of = empty.of
        self._clear = QPushButton("Clear all")
        self._toggles = {field: QCheckBox(words.format(self._of.things)) for field, (_, words) in TOGGLES.items()}
        self._groups = {facet: FacetGroup(theme, _values(self._of, facet, rows)) for facet in self._of.facets}
        self._ranges = {key: self._range(key, rows) for key in self._of.ranges}
        self._sections: dict[str, Section] = {}
        self._lay_out()
        self._connect()

    def show_filter(self, current: RecordFilter) -> None:
        """Tick and fill in what `current` says."""
        before, self._filter = self._filter, current
        if current == before.with_query(text=current.query.text):
            self._clear.setEnabled(not current.is_empty)
            return
        query = current.query
        for facet, group in self._groups.items():
            group.set_values(getattr(query, self._of.facets[facet].chosen))
            self._sections[facet].set_summary(group.summary)
        for key, ranged in self._ranges.items():
            bounds = current.bounds.get(key, _OPEN)
            ranged.set_bounds(bounds.low, bounds.high)
            self._sections[key].set_summary(self._of.range_words(key, bounds.low, bounds.high))
        for field, box in self._toggles.items():
            with QSignalBlocker(box):
                box.setChecked(getattr(current, field))
        self._clear.setEnabled(not current.is_empty)

    def follow(self, rows: Sequence[Any]) -> None:
        """Offer the values that `rows` have besides those that are offered: own cards may be of another kind."""
        for facet, group in self._groups.items():
            group.add_values(_values(self._of, facet, rows))

    def show_counts(self, counts: Mapping[str, Mapping[str | None, int]]) -> None:
        """Show how many records each value would show."""
        for facet, group in self._groups.items():
            group.set_counts(counts[facet])

    def _lay_out(self) -> None:
        space = self._theme.spacing
        mark(self._clear, "link")
        self._clear.setEnabled(False)
        body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(0, space.small, space.small, space.medium)
        column.setSpacing(space.small)
        heading = QHBoxLayout()
        heading.addWidget(make_label("Filters", font=self._theme.font(bold=True)), 1)
        heading.addWidget(self._clear)
        column.addLayout(heading)
        for field, box in self._toggles.items():
            box.setToolTip(TOGGLE_TIPS[field])
            column.addWidget(box)
        for facet in self._of.first:
            self._add_facet(column, facet)
        for key, ranged in self._ranges.items():
            self._add_section(column, key, _range_title(self._of, key), ranged)
        for facet in self._of.facets:
            if facet not in self._of.first:
                self._add_facet(column, facet)
        column.addStretch(1)
        self.setWidget(body)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName("Filters")

    def _add_facet(self, column: QVBoxLayout, facet: str) -> None:
        self._add_section(column, facet, self._of.facets[facet].title, self._groups[facet])

    def _add_section(self, column: QVBoxLayout, key: str, title: str, body: QWidget) -> None:
        section = Section(self._theme, title, body)
        section.set_open(f"{self._of.prefix}{key}" not in self._settings.current.closed_facets)
        section.toggled.connect(self._remember_sections)
        self._sections[key] = section
        column.addWidget(section)

    def _connect(self) -> None:
        self._clear.clicked.connect(self.clear)
        for field, box in self._toggles.items():
            box.toggled.connect(partial(self._on_toggled, field))
        for facet, group in self._groups.items():
            group.chosen.connect(partial(self._on_facet, facet))
        for key, ranged in self._ranges.items():
            ranged.chosen.connect(partial(self._on_range, key))

    @Slot()
    def clear(self) -> None:
        """Ask for everything again."""
        self.changed.emit(self._empty, "")

    def _on_toggled(self, field: str, ticked: bool) -> None:
        self.changed.emit(self._filter.evolve(**{field: ticked}), field)

    def _on_facet(self, facet: str, values: tuple[str | None, ...]) -> None:
        self.changed.emit(self._filter.with_query(**{self._of.facets[facet].chosen: values}), facet)

    def _on_range(self, key: str, bounds: tuple[float | None, float | None]) -> None:
        self.changed.emit(self._filter.with_bounds(key, *bounds), key)

    @Slot()
    def _remember_sections(self) -> None:
        mine = {f"{self._of.prefix}{key}": section.is_open for key, section in self._sections.items()}
        others = [key for key in self._settings.current.closed_facets if key not in mine]
        self._settings.update(closed_facets=(*others, *(key for key, is_open in mine.items() if not is_open)))

    def _range(self, key: str, rows: Sequence[Any]) -> RangeGroup:
        title, stops = self._of.columns[key].title, _stops(self._of, key, rows)
        return RangeGroup(self._theme, title, stops, grouped=key != "year")


def _values(of: Narrowed, facet: str, rows: Sequence[Any]) -> list[tuple[str | None, str]]:
    """Return the values of a facet, the most frequent first and what is unknown last."""
    counted = Counter(map(of.facets[facet].read, map(of.record_of, rows)))
    ordered = sorted(counted.most_common(), key=lambda pair: pair[0] is None)
    return [(value, of.facet_words(facet, value)) for value, _ in ordered]


def _range_title(of: Narrowed, key: str) -> str:
    """Return a column's title with what its numbers count, in as little room as may be."""
    column = of.columns[key]
    return f"{column.title}, $" if column.measure == fmt.USD else column.header


def _stops(of: Narrowed, key: str, rows: Sequence[Any]) -> Sequence[float]:
    """Return where the slider of a column halts: on its scale, on every year, else on round numbers."""
    if key in of.scales:
        return of.scales[key]
    read = of.columns[of.like.get(key, key)].number
    known = [value for row in rows if (value := read(row)) is not None]
    if key == "year":
        return tuple(float(year) for year in range(int(min(known, default=0)), int(max(known, default=1)) + 1))
    return round_stops(known)
