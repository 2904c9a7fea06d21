"""The table of every offer of the plan's card for the job."""

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from planner.cost.table import OfferRow
from planner.gui.theme import Theme
from planner.gui.widgets.age_mark import age_mark
from planner.gui.widgets.label import make_label
from planner.gui.widgets.record_model import RecordTableModel
from planner.gui.widgets.record_table import RecordTable
from planner.present import format as fmt
from planner.present.cost.offers import JOB_OFFER_COLUMNS, offer_row_id
from planner.present.record_text import rows_to_csv

_HEIGHT = 220


class Offers(QWidget):
    """Sorted as it comes, what can be compared first; `used` carries the id and the mode of an offer to rent."""

    used = Signal(str, str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._heading = make_label(font=theme.font(bold=True))
        self._nothing = make_label(role="muted", wrap=True)
        self._use = QPushButton("&Use this offer")
        self._use.setEnabled(False)
        self.model = RecordTableModel(JOB_OFFER_COLUMNS, offer_row_id, self)
        self.table = RecordTable(self.model, theme, markers={"age": age_mark})
        self.table.setAccessibleName("Offers for this job")
        self.table.setMinimumHeight(_HEIGHT)
        self.table.record_activated.connect(self._take)
        self.table.current_changed.connect(lambda row: self._use.setEnabled(row is not None))
        self._use.clicked.connect(self._take_current)
        bar = QHBoxLayout()
        bar.addWidget(self._heading, 1)
        bar.addWidget(self._use)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.spacing.tiny)
        column.addLayout(bar)
        column.addWidget(self._nothing)
        column.addWidget(self.table, 1)
        column.addStretch()

    def show_rows(self, rows: tuple[OfferRow, ...], card: str, chosen: str | None) -> None:
        """Show other offers; `chosen` is the id of the one that the plan rents."""
        number = fmt.plural(len(rows), "offer") if rows else "No offer"
        self._heading.setText(f"{number} of {card} for this job")
        self._nothing.setText("Add your own under Prices, or list old ones under Renting.")
        self._nothing.setVisible(not rows)
        self._use.setVisible(bool(rows))
        self.table.setVisible(bool(rows))
        self.model.set_records(rows)
        if chosen is not None:
            self.table.mark(next((offer_row_id(row) for row in rows if row.offer.id == chosen), ""))

    def csv(self) -> str:
        """Return the shown columns of every row, with sources and dates."""
        header = (*(column.header for column in JOB_OFFER_COLUMNS), "Price of", "Source")
        rows = (
            (*(column.text(row) for column in JOB_OFFER_COLUMNS), row.price_date or "", row.offer.source)
            for row in self.model.records
        )
        return rows_to_csv((header, *rows))

    @Slot(object)
    def _take(self, row: OfferRow) -> None:
        self.used.emit(row.offer.id, row.mode)

    @Slot()
    def _take_current(self) -> None:
        row = self.model.find(self.table.current_id)
        if row is not None:
            self._take(row)
