"""What the same electricity stands for in other regions."""

from functools import cached_property
from typing import Final

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QVBoxLayout, QWidget

from planner.cost.carbon import RegionCarbon, carbon_by_region
from planner.cost.catalog import CostCatalog
from planner.gui.theme import Theme
from planner.gui.widgets.label import make_label
from planner.gui.widgets.record_model import RecordTableModel
from planner.gui.widgets.record_table import RecordTable
from planner.gui.widgets.section import Section
from planner.present import format as fmt
from planner.present.columns import Column, numbers, words

_HEIGHT: Final = 200


def _origin(row: RegionCarbon) -> str:
    return f"{row.grams_per_kwh.source}, {fmt.date(row.grams_per_kwh.date)}"


_COLUMNS: Final[tuple[Column[RegionCarbon], ...]] = (
    words("region", "Region", lambda row: row.name, width=26),
    numbers("carbon", "CO₂", lambda row: row.carbon_kg, show=fmt.significant, unit="kg", tooltip=_origin),
    numbers("grams", "Intensity", lambda row: row.grams_per_kwh.value, unit="g/kWh", width=12, tooltip=_origin),
    words("date", "Date", lambda row: row.grams_per_kwh.date, unknown="no date", width=12, tooltip=_origin),
)


class Elsewhere(QWidget):
    """A section with a row for each region, the least carbon first; `chosen` carries the code of one to stand in."""

    chosen = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._asked: tuple[float, CostCatalog, str] | None = None
        self._body = QWidget()
        self._column = QVBoxLayout(self._body)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._about = make_label(role="muted", wrap=True)
        self._column.addWidget(self._about)
        self.section = Section(theme, "Carbon in other regions", self._body)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.section)
        self.section.toggled.connect(self._fill)

    @cached_property
    def table(self) -> RecordTable:
        """Return the table, made when the section is first opened."""
        self.model = RecordTableModel(_COLUMNS, lambda row: row.code, self)
        made = RecordTable(self.model, self._theme)
        made.setAccessibleName("Carbon by region")
        made.setMinimumHeight(_HEIGHT)
        made.record_activated.connect(lambda row: self.chosen.emit(row.code))
        self._column.addWidget(made)
        return made

    def show_energy(self, energy_kwh: float, catalog: CostCatalog, region: str) -> None:
        """Tell what `energy_kwh` a month stand for everywhere; `region` is where cards of one's own stand."""
        self._asked = energy_kwh, catalog, region
        self.section.set_summary(f"of {fmt.significant(energy_kwh)} kWh a month")
        self._fill()

    @Slot()
    def _fill(self) -> None:
        if self._asked is None or not self.section.is_open:
            return
        energy, catalog, region = self._asked
        self._about.setText(f"Of {fmt.significant(energy)} kWh a month. Double-click a region to own the cards there.")
        self.table.mark(region)
        self.model.set_records(carbon_by_region(energy, catalog))
