"""What renting and owning come to, figure by figure, and every amount behind it."""

from PySide6.QtWidgets import QVBoxLayout, QWidget

from planner.cost.estimate import CostEstimate
from planner.cost.result import MoneyTerm
from planner.gui.cost.amounts import AmountGroup, Amounts
from planner.gui.cost.figures import FigureGrid
from planner.gui.theme import Theme
from planner.present import format as fmt
from planner.present.cost.amounts import money_rows
from planner.present.cost.rent_or_buy import period_of, rent_or_buy_rows


class Ledger(QWidget):
    """Both ways in two columns; below them what is rented, bought and paid each month."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.ways = FigureGrid(theme, ("Rented", "Owned"))
        self.amounts = Amounts(theme)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.spacing.medium)
        column.addWidget(self.ways)
        column.addWidget(self.amounts)
        column.addStretch(1)

    def show_estimate(self, estimate: CostEstimate) -> None:
        """Show another estimate."""
        rent, own = estimate.result.rent, estimate.result.own
        rented = f"Rented, a {period_of(estimate)}"
        self.ways.show_rows(rent_or_buy_rows(estimate))
        self.amounts.show_groups(
            (
                _group(rented, rent.terms if rent else (), rent.usd if rent else 0),
                _group("Bought", own.upfront if own else (), own.upfront_usd if own else 0),
                _group("Owned, each month", own.monthly if own else (), own.monthly_cash_usd if own else 0),
            )
        )


def _group(heading: str, terms: tuple[MoneyTerm, ...], usd: float) -> AmountGroup:
    return AmountGroup(heading, fmt.money(usd), money_rows(terms))
