"""The tables of the Cost tab: offers of the plan's card, and the carbon of its electricity by region."""

from functools import cached_property
from typing import Final

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QPushButton, QWidget

from planner.cost.carbon import RegionCarbon, carbon_by_region
from planner.cost.catalog import CostCatalog
from planner.cost.renting.table import OfferRow
from planner.gui.theme import Theme
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import STRETCH, in_column, in_row
from planner.gui.widgets.section import Section
from planner.gui.widgets.status_icons import age_icon
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.tables.record_table import RecordTable
from planner.present import format as fmt
from planner.present.columns import Column, number_column, rows_to_csv, text_column
from planner.present.cost.offers import JOB_OFFER_COLUMNS, offer_row_id

_OFFERS_HEIGHT = 220
_REGIONS_HEIGHT: Final = 200


class OfferList(QWidget):
    """Table of rental offers, comparable ones first; `used` carries the id and rental mode of the offer to rent."""

    used = Signal(str, str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._heading = make_label(font=theme.font(bold=True))
        self._no_offers = make_label(role="muted", wrap=True)
        self._use = QPushButton("&Use this offer")
        self._use.setToolTip("Rent the selected offer in the plan")
        self._use.setEnabled(False)
        self.model = RecordTableModel(JOB_OFFER_COLUMNS, offer_row_id, self)
        self.table = RecordTable(self.model, theme, markers={"age": age_icon}, name="Offers for this job")
        self.table.setMinimumHeight(_OFFERS_HEIGHT)
        self.table.record_activated.connect(self._emit_used_offer)
        self.table.current_changed.connect(lambda row: self._use.setEnabled(row is not None))
        self._use.clicked.connect(self._use_current_offer)
        in_column(
            in_row((self._heading, 1), self._use),
            self._no_offers,
            (self.table, 1),
            (STRETCH, 0),
            owner=self,
            spacing=theme.spacing.tiny,
        )

    def show_rows(self, rows: tuple[OfferRow, ...], card: str, chosen: str | None) -> None:
        """Show the rental offers of `card`; `chosen` is the id of the offer that the plan rents, if any."""
        number = fmt.plural(len(rows), "offer") if rows else "No offers"
        self._heading.setText(f"{number} with {card} for this job")
        self._no_offers.setText("Add your own offers under Prices, or include old ones under Renting.")
        self._no_offers.setVisible(not rows)
        self._use.setVisible(bool(rows))
        self.table.setVisible(bool(rows))
        self.model.set_records(rows)
        if chosen is not None:
            self.table.mark(next((offer_row_id(row) for row in rows if row.offer.id == chosen), ""))

    def csv(self) -> str:
        """Return all offers as CSV with all columns, the date of the price, and the source."""
        header = (*(column.header for column in JOB_OFFER_COLUMNS), "Price of", "Source")
        rows = (
            (*(column.text(row) for column in JOB_OFFER_COLUMNS), row.price_date or "", row.offer.source)
            for row in self.model.records
        )
        return rows_to_csv((header, *rows))

    @Slot(object)
    def _emit_used_offer(self, row: OfferRow) -> None:
        self.used.emit(row.offer.id, row.mode)

    @Slot()
    def _use_current_offer(self) -> None:
        row = self.model.find(self.table.current_id)
        if row is not None:
            self._emit_used_offer(row)


def _carbon_source_text(row: RegionCarbon) -> str:
    return f"{row.grams_per_kwh.source}, {fmt.date(row.grams_per_kwh.date)}"


_COLUMNS: Final[tuple[Column[RegionCarbon], ...]] = (
    text_column("region", "Region", lambda row: row.name, width=26, about="Region of the electricity"),
    number_column(
        "carbon",
        "CO₂",
        lambda row: row.carbon_kg,
        show=fmt.significant,
        unit="kg",
        tooltip=_carbon_source_text,
        about="Emissions of the plan's electricity if it came from this region",
    ),
    number_column(
        "grams",
        "Intensity",
        lambda row: row.grams_per_kwh.value,
        unit="g/kWh",
        width=12,
        tooltip=_carbon_source_text,
        about="Emissions per kilowatt-hour of the region's electricity",
    ),
    text_column(
        "date",
        "Date",
        lambda row: row.grams_per_kwh.date,
        unknown="no date",
        width=12,
        tooltip=_carbon_source_text,
        about="Date of the carbon intensity",
    ),
)


class CarbonByRegion(QWidget):
    """Section with the carbon emissions by region, lowest first; `chosen` carries a double-clicked region's code."""

    chosen = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._inputs: tuple[float, str, CostCatalog, str] | None = None
        self._body = QWidget()
        self._column = in_column(owner=self._body)
        self._about = make_label(role="muted", wrap=True)
        self._column.addWidget(self._about)
        self.section = Section(theme, "Carbon in other regions", self._body)
        in_column(self.section, owner=self)
        self.section.toggled.connect(self._fill_opened_section)

    @cached_property
    def table(self) -> RecordTable:
        """Return the table, which is created when the section is first opened."""
        self.model = RecordTableModel(_COLUMNS, lambda row: row.code, self)
        made = RecordTable(self.model, self._theme, name="Carbon emissions by region")
        made.setMinimumHeight(_REGIONS_HEIGHT)
        made.record_activated.connect(lambda row: self.chosen.emit(row.code))
        self._column.addWidget(made)
        return made

    def show_energy(self, energy_kwh: float, period: str, catalog: CostCatalog, region: str) -> None:
        """Show the carbon emissions of `energy_kwh` per `period` in each region, with the plan's `region` marked."""
        self._inputs = energy_kwh, period, catalog, region
        self.section.set_summary(f"for {fmt.significant(energy_kwh)} kWh per {period}")
        self._fill_opened_section()

    @Slot()
    def _fill_opened_section(self) -> None:
        if self._inputs is None or not self.section.is_open:
            return
        energy, period, catalog, region = self._inputs
        self._about.setText(
            f"For {fmt.significant(energy)} kWh per {period}. Double-click a region to use it in the plan."
        )
        self.table.mark(region)
        self.model.set_records(carbon_by_region(energy, catalog))
