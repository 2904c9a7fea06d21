"""The pane that narrows the catalog: what fits, vendor, segment, architecture, memory and year."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import QCheckBox, QFrame, QHBoxLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from planner.gui.catalog.facet_group import FacetGroup
from planner.gui.catalog.filters import FACET_FIELDS, FACET_TITLES, CatalogFilter, facet_words, range_words
from planner.gui.catalog.range_group import RangeGroup
from planner.gui.settings import SettingsStore
from planner.gui.theme import Theme, mark
from planner.gui.widgets.label import make_label
from planner.gui.widgets.section import Section
from planner.hardware.gpu import Gpu
from planner.hardware.query import Facet
from planner.units import GIB, ceil_div


class FacetPanel(QScrollArea):
    """Shows a `CatalogFilter` and edits it; `changed` carries the new filter and the key of what was changed."""

    changed = Signal(object, str)

    def __init__(self, theme: Theme, settings: SettingsStore, gpus: Sequence[Gpu]) -> None:
        super().__init__()
        self._theme, self._settings = theme, settings
        self._filter = CatalogFilter()
        self._clear = QPushButton(self.tr("Clear all"))
        self._fits = QCheckBox(self.tr("&Only cards that fit"))
        self._groups = {facet: FacetGroup(theme, _values(facet, gpus)) for facet in FACET_FIELDS}
        self._memory = RangeGroup(theme, self.tr("Memory"), _memory_limits(gpus), "GiB")
        self._years = RangeGroup(theme, self.tr("Year"), _year_limits(gpus))
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
        self._memory.set_bounds(_in_gib(query.memory_min_bytes), _in_gib(query.memory_max_bytes))
        self._years.set_bounds(query.year_min, query.year_max)
        self._sections["memory"].set_summary(range_words(*self._memory.bounds, lambda gib: f"{gib} GiB"))
        self._sections["year"].set_summary(range_words(*self._years.bounds, str))
        with QSignalBlocker(self._fits):
            self._fits.setChecked(current.only_fitting)
        self._clear.setEnabled(current != CatalogFilter())

    def show_counts(self, counts: Mapping[Facet, Mapping[str, int]]) -> None:
        """Show how many records each value would show."""
        for facet, group in self._groups.items():
            group.set_counts(counts[facet])

    def _lay_out(self) -> None:
        space = self._theme.spacing
        mark(self._clear, "link")
        body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(0, space.small, space.small, space.medium)
        column.setSpacing(space.small)
        heading = QHBoxLayout()
        heading.addWidget(make_label(self.tr("Filters"), font=self._theme.font(bold=True)), 1)
        heading.addWidget(self._clear)
        column.addLayout(heading)
        column.addWidget(self._fits)
        self._add_facet(column, "vendor")
        self._add_facet(column, "segment")
        self._add_section(column, "memory", self.tr("Memory"), self._memory)
        self._add_section(column, "year", self.tr("Year"), self._years)
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
        self._fits.toggled.connect(self._on_fits)
        for facet, group in self._groups.items():
            group.chosen.connect(partial(self._on_facet, facet))
        self._memory.chosen.connect(self._on_memory)
        self._years.chosen.connect(self._on_years)

    @Slot()
    def clear(self) -> None:
        """Ask for everything again."""
        self.changed.emit(CatalogFilter(), "")

    @Slot(bool)
    def _on_fits(self, ticked: bool) -> None:
        self.changed.emit(self._filter.evolve(only_fitting=ticked), "fits")

    def _on_facet(self, facet: Facet, values: tuple[str, ...]) -> None:
        self.changed.emit(self._filter.with_query(**{FACET_FIELDS[facet]: values}), facet)

    @Slot(object)
    def _on_memory(self, bounds: tuple[int | None, int | None]) -> None:
        low, high = (None if bound is None else bound * GIB for bound in bounds)
        self.changed.emit(self._filter.with_query(memory_min_bytes=low, memory_max_bytes=high), "memory")

    @Slot(object)
    def _on_years(self, bounds: tuple[int | None, int | None]) -> None:
        self.changed.emit(self._filter.with_query(year_min=bounds[0], year_max=bounds[1]), "year")

    @Slot()
    def _remember_sections(self) -> None:
        closed = tuple(key for key, section in self._sections.items() if not section.is_open)
        self._settings.update(closed_facets=closed)


def _values(facet: Facet, gpus: Sequence[Gpu]) -> list[tuple[str, str]]:
    """Return the values of a facet, the most frequent first."""
    counted = Counter(str(getattr(gpu, facet)) for gpu in gpus)
    return [(value, facet_words(facet, value)) for value, _ in counted.most_common()]


def _memory_limits(gpus: Sequence[Gpu]) -> tuple[int, int]:
    sizes = [gpu.memory_bytes for gpu in gpus if gpu.memory_bytes is not None] or [0]
    return min(sizes) // GIB, ceil_div(max(sizes), GIB)


def _year_limits(gpus: Sequence[Gpu]) -> tuple[int, int]:
    years = [gpu.year for gpu in gpus if gpu.year is not None] or [0]
    return min(years), max(years)


def _in_gib(value: int | None) -> int | None:
    return None if value is None else value // GIB
