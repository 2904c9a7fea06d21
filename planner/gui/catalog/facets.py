"""The pane that narrows the catalog: what is left out, vendor, segment and architecture, and bounds of figures."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import QCheckBox, QFrame, QHBoxLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from planner.gui.catalog.facet_group import FacetGroup
from planner.gui.catalog.filters import (
    COLUMNS,
    FACET_FIELDS,
    FACET_TITLES,
    TOGGLE_TIPS,
    TOGGLES,
    Bounds,
    CatalogFilter,
    amount_words,
    facet_words,
    range_words,
)
from planner.gui.catalog.range_group import RangeGroup
from planner.gui.catalog.range_slider import round_stops
from planner.gui.settings import SettingsStore
from planner.gui.theme import Theme, mark
from planner.gui.widgets.label import make_label
from planner.gui.widgets.section import Section
from planner.hardware.gpu import Gpu
from planner.hardware.query import Facet
from planner.present import format as fmt
from planner.present.gpus import GpuRow

_RANGES: Final = ("memory", "bandwidth", "bf16", "power", "price", "street", "used", "rent", "year")
_OPEN: Final = Bounds()
_RENTS: Final = (
    0.05,
    0.1,
    0.15,
    0.2,
    0.3,
    0.4,
    0.5,
    0.75,
    1.0,
    1.5,
    2.0,
    2.5,
    3.0,
    4.0,
    5.0,
    6.0,
    8.0,
    10.0,
    15.0,
    20.0,
)
"""USD for a card and hour; a scale to drag along, not prices."""


class FacetPanel(QScrollArea):
    """Shows a `CatalogFilter` and edits it; `changed` carries the new filter and the key of what was changed."""

    changed = Signal(object, str)

    def __init__(self, theme: Theme, settings: SettingsStore, gpus: Sequence[Gpu]) -> None:
        super().__init__()
        self._theme, self._settings = theme, settings
        self._filter = CatalogFilter()
        self._clear = QPushButton(self.tr("Clear all"))
        self._toggles = {field: QCheckBox(words) for field, (_, words) in TOGGLES.items()}
        self._groups = {facet: FacetGroup(theme, _values(facet, gpus)) for facet in FACET_FIELDS}
        rows = [GpuRow(gpu) for gpu in gpus]
        self._ranges = {
            key: RangeGroup(theme, COLUMNS[key].title, _stops(key, rows), grouped=key != "year") for key in _RANGES
        }
        self._sections: dict[str, Section] = {}
        self._lay_out()
        self._connect()

    def show_filter(self, current: CatalogFilter) -> None:
        """Tick and fill in what `current` says."""
        before, self._filter = self._filter, current
        if current == before.with_query(text=current.query.text):
            self._clear.setEnabled(current != CatalogFilter())
            return
        query = current.query
        for facet, group in self._groups.items():
            group.set_values(getattr(query, FACET_FIELDS[facet]))
            self._sections[facet].set_summary(group.summary)
        for key, ranged in self._ranges.items():
            bounds = current.bounds.get(key, _OPEN)
            ranged.set_bounds(bounds.low, bounds.high)
            show = partial(amount_words, key)
            self._sections[key].set_summary(range_words(bounds.low, bounds.high, show))
        for field, box in self._toggles.items():
            with QSignalBlocker(box):
                box.setChecked(getattr(current, field))
        self._clear.setEnabled(current != CatalogFilter())

    def follow(self, gpus: Sequence[Gpu]) -> None:
        """Offer the values that `gpus` have besides those that are offered: own cards may be of another kind."""
        for facet, group in self._groups.items():
            group.add_values(_values(facet, gpus))

    def show_counts(self, counts: Mapping[Facet, Mapping[str, int]]) -> None:
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
        heading.addWidget(make_label(self.tr("Filters"), font=self._theme.font(bold=True)), 1)
        heading.addWidget(self._clear)
        column.addLayout(heading)
        for field, box in self._toggles.items():
            box.setToolTip(TOGGLE_TIPS[field])
            column.addWidget(box)
        self._add_facet(column, "vendor")
        self._add_facet(column, "segment")
        for key, ranged in self._ranges.items():
            self._add_section(column, key, _range_title(key), ranged)
        self._add_facet(column, "architecture")
        column.addStretch(1)
        self.setWidget(body)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName(self.tr("Filters"))

    def _add_facet(self, column: QVBoxLayout, facet: Facet) -> None:
        self._add_section(column, facet, FACET_TITLES[facet], self._groups[facet])

    def _add_section(self, column: QVBoxLayout, key: str, title: str, body: QWidget) -> None:
        section = Section(self._theme, title, body)
        section.set_open(key not in self._settings.current.closed_facets)
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
        self.changed.emit(CatalogFilter(), "")

    def _on_toggled(self, field: str, ticked: bool) -> None:
        self.changed.emit(self._filter.evolve(**{field: ticked}), field)

    def _on_facet(self, facet: Facet, values: tuple[str, ...]) -> None:
        self.changed.emit(self._filter.with_query(**{FACET_FIELDS[facet]: values}), facet)

    def _on_range(self, key: str, bounds: tuple[float | None, float | None]) -> None:
        self.changed.emit(self._filter.with_bounds(key, *bounds), key)

    @Slot()
    def _remember_sections(self) -> None:
        closed = tuple(key for key, section in self._sections.items() if not section.is_open)
        self._settings.update(closed_facets=closed)


def _values(facet: Facet, gpus: Sequence[Gpu]) -> list[tuple[str, str]]:
    """Return the values of a facet, the most frequent first."""
    counted = Counter(str(getattr(gpu, facet)) for gpu in gpus)
    return [(value, facet_words(facet, value)) for value, _ in counted.most_common()]


def _range_title(key: str) -> str:
    """Return a column's title with what its numbers count, in as little room as may be."""
    column = COLUMNS[key]
    return f"{column.title}, $" if column.measure == fmt.USD else column.header


def _stops(key: str, rows: Sequence[GpuRow]) -> tuple[float, ...]:
    """Return where the slider of a column halts: every year, else round numbers; prices are those at launch."""
    read = COLUMNS["price" if key in ("street", "used") else key].number
    known = [value for row in rows if (value := read(row)) is not None]
    if key == "rent":
        return _RENTS
    if key == "year":
        return tuple(float(year) for year in range(int(min(known, default=0)), int(max(known, default=1)) + 1))
    return round_stops(known)
