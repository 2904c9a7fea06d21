"""The evidence below the decision: what moves it, the offers of the plan's card, and carbon by region."""

from functools import cached_property
from typing import Final

from PySide6.QtCore import QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QFontMetricsF, QGuiApplication, QKeyEvent, QKeySequence, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from planner.cost.carbon import RegionCarbon, carbon_by_region
from planner.cost.catalog import CostCatalog
from planner.cost.renting.table import OfferRow
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import push_button
from planner.gui.widgets.labels import age_icon, make_label
from planner.gui.widgets.layout import STRETCH, in_column, in_row
from planner.gui.widgets.section import Section
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.tables.record_table import RecordTable
from planner.present import format as fmt
from planner.present.columns import Column, number_column, rows_to_csv, text_column
from planner.present.cost.amounts import SwingRow
from planner.present.cost.offers import JOB_OFFER_COLUMNS, offer_row_id

_MOST: Final = 8
_BAR_SHARE: Final = 0.6
_SEEN: Final = 0.01
"""Width of a bar as a share of the widest one, below which it is a hairline."""
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class Tornado(QWidget):
    """Tornado chart, a bar per uncertain input, widest first; right of zero owning is cheaper, left of zero renting."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.rows: tuple[SwingRow, ...] = ()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def show_rows(self, rows: tuple[SwingRow, ...]) -> None:
        """Replace the bars; each row is the effect of one input on the savings. Those too small to see are left out."""
        widest = max(map(_width_usd, rows), default=0.0)
        self.rows = tuple(row for row in rows if _width_usd(row) >= _SEEN * widest)[:_MOST]
        self.setAccessibleName(f"Sensitivity of the decision: {'; '.join(map(_bar_description, self.rows))}")
        self.setToolTip("\n".join(f"{row.title}: {row.source}" for row in self.rows))
        self.updateGeometry()
        self.update()

    def csv_rows(self) -> tuple[tuple[str, ...], ...]:
        """Return the CSV rows of the chart: a header, and a row for each input."""
        header = ("input", "low", "high", "owning_saves_at_low_usd", "owning_saves_at_high_usd", "flips", "source")
        rows = (
            (
                *(row.title, row.low_value, row.high_value),
                *(f"{row.low_saving_usd:.2f}", f"{row.high_saving_usd:.2f}", str(row.flips).lower(), row.source),
            )
            for row in self.rows
        )
        return (header, *rows)

    def sizeHint(self) -> QSize:
        """Return a size with the height of a line per input and one for the axis."""
        return QSize(0, round(self._line_height() * (len(self.rows) + 1)))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copy the chart's figures, separated by tabs, with the copy shortcut."""
        if event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText("\n".join("\t".join(row) for row in self.csv_rows()))
        else:
            super().keyPressEvent(event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint each input's title, its bar, and its low and high value at the ends of the bar."""
        if not self.rows:
            return
        painter = QPainter(self)
        if self.hasFocus():
            painter.setPen(self._theme.color("focus"))
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self._theme.font("small"))
        metrics = QFontMetricsF(painter.font())
        names = max(metrics.horizontalAdvance(row.title) for row in self.rows) + self._theme.spacing.medium
        ends = max(metrics.horizontalAdvance(text) for row in self.rows for text in (row.low_value, row.high_value))
        ends += self._theme.spacing.small
        area = QRectF(names + ends, 0, max(1.0, self.width() - names - 2 * ends), self.height())
        self._paint_axis(painter, area)
        for number, row in enumerate(self.rows):
            self._paint_bar_with_values(painter, number, row, area, ends)
        painter.end()

    def _paint_bar_with_values(
        self, painter: QPainter, number: int, row: SwingRow, area: QRectF, value_width: float
    ) -> None:
        height = self._line_height()
        top = number * height
        low, high = (self._x_position(value, area) for value in (row.low_saving_usd, row.high_saving_usd))
        left, right = min(low, high), max(low, high)
        painter.setPen(self._theme.color("text"))
        painter.drawText(QRectF(0, top, area.left() - value_width, height), _LEFT, row.title)
        bar = QRectF(left, top + height * (1 - _BAR_SHARE) / 2, max(2.0, right - left), height * _BAR_SHARE)
        painter.fillRect(bar, self._theme.color("accent" if row.flips else "muted"))
        painter.setPen(self._theme.color("muted"))
        texts = (row.low_value, row.high_value) if low <= high else (row.high_value, row.low_value)
        gap = self._theme.spacing.tiny
        self._paint_end_value(painter, QRectF(left - value_width - gap, top, value_width, height), _RIGHT, texts[0])
        self._paint_end_value(painter, QRectF(right + gap, top, value_width, height), _LEFT, texts[1])

    def _paint_end_value(self, painter: QPainter, box: QRectF, side: Qt.AlignmentFlag, text: str) -> None:
        """Paint the input's value at one end of a bar, on top of the zero line."""
        painter.fillRect(painter.boundingRect(box, side, text), self._theme.color("surface"))
        painter.drawText(box, side, text)

    def _paint_axis(self, painter: QPainter, area: QRectF) -> None:
        low, high = self._savings_range_usd()
        middle = self._x_position(0.0, area)
        bottom = self._line_height() * len(self.rows)
        painter.setPen(self._theme.color("muted"))
        if low <= 0 <= high:
            painter.drawLine(round(middle), 0, round(middle), round(bottom))
        box = QRectF(0, bottom, self.width(), self._line_height())
        room = self.width() - self._theme.spacing.medium
        for words in ("saves up to", "saves"):
            left = f"← renting {words} {fmt.money(-low)}" if low < 0 else ""
            right = f"owning {words} {fmt.money(high)} →" if high > 0 else ""
            if painter.fontMetrics().horizontalAdvance(left + right) <= room:
                break
        painter.drawText(box, _LEFT, left)
        painter.drawText(box, _RIGHT, right)

    def _savings_range_usd(self) -> tuple[float, float]:
        values = [value for row in self.rows for value in (row.low_saving_usd, row.high_saving_usd)]
        return min(values), max(values)

    def _x_position(self, saving_usd: float, area: QRectF) -> float:
        low, high = self._savings_range_usd()
        return area.left() + area.width() * ((saving_usd - low) / (high - low) if high > low else 0.5)

    def _line_height(self) -> float:
        return QFontMetricsF(self._theme.font("small")).height() + self._theme.spacing.small


def _width_usd(row: SwingRow) -> float:
    return abs(row.high_saving_usd - row.low_saving_usd)


def _bar_description(row: SwingRow) -> str:
    flips = ", flips the decision" if row.flips else ""
    return f"{row.title} from {row.low_value} to {row.high_value}{flips}"


_OFFERS_HEIGHT = 220
_REGIONS_HEIGHT: Final = 200


class OfferList(QWidget):
    """Table of rental offers, comparable ones first; `used` carries the id and rental mode of the offer to rent."""

    used = Signal(str, str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._heading = make_label(font=theme.font(bold=True))
        self._no_offers = make_label(role="muted", wrap=True)
        self._use = push_button("&Use this offer", "Rent the selected offer in the plan")
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
