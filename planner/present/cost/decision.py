"""The decision card: the verdict and its confidence, three figures for each side, and what would change it."""

from collections.abc import Iterator
from datetime import date
from typing import Final, NamedTuple

from planner.cost.estimate import CostEstimate
from planner.cost.result import Decision, Flip, SideFigures
from planner.present import format as fmt
from planner.present.cost.prices import RENT_MODE_TITLES, age_text
from planner.present.cost.rent_or_buy import FigureCell, FigureRow
from planner.present.cost.summary import years_phrase

VERDICT_TITLES: Final = {"rent": "Rent", "buy": "Buy", "too-close": "Too close to call"}
_UNKNOWN: Final = "–"


class FlipChip(NamedTuple):
    """A change of one input that would change the decision; applying it sets the cost term `field` to `try_value`."""

    text: str
    field: str | None
    try_value: float


class DecisionView(NamedTuple):
    """The contents of the decision card."""

    headline: str
    subject: str = ""
    """What is rented or bought, and where."""
    renting_cheaper_fraction: float | None = None
    confidence_text: str = ""
    rows: tuple[FigureRow, ...] = ()
    """The costs of renting and of buying."""
    flips: tuple[FlipChip, ...] = ()
    footnote: str = ""

    @property
    def text(self) -> str:
        """Return the whole card as lines of text."""
        rows = (f"{row.title}: renting {row.cells[0].text}, buying {row.cells[1].text}" for row in self.rows)
        changes = f"Changes if {fmt.listing(tuple(chip.text for chip in self.flips), 'or')}." if self.flips else ""
        lines = (self.headline, self.subject, self.confidence_text, *rows, changes, self.footnote)
        return "\n".join(filter(None, lines))
