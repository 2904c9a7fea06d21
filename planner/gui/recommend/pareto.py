"""The plot of time against cost with its legend, which shows and hides what is rented and what is owned."""

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from planner.gui.plot.legend import Legend, LegendEntry
from planner.gui.theme import Theme
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import in_column, in_row
from planner.plan.recommend.option import Acquisition
from planner.present.cost.recommendation import OptionRow

if TYPE_CHECKING:
    from planner.gui.recommend.plot import ParetoPlot

_ROLES: Final[dict[Acquisition, str]] = {"rent": "series-1", "own": "series-2"}
_LEGEND: Final[dict[Acquisition, LegendEntry]] = {
    "rent": LegendEntry("rent", "re&nted", _ROLES["rent"], is_round=True),
    "own": LegendEntry("own", "&owned", _ROLES["own"]),
}
_SMALLEST_WIDTH: Final = 380


class ParetoPanel(QWidget):
    """`hovered` carries the row under the pointer or none, `chosen` one that was clicked."""

    hovered = Signal(object)
    chosen = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.plot: ParetoPlot | None = None
        self.legend = Legend(theme)
        self.setMinimumWidth(_SMALLEST_WIDTH)
        title = make_label("Time against cost", font=theme.font(bold=True))
        about = make_label("Dashed: nothing beats these in both time and cost.", "muted", theme.font("small"))
        heading = in_row(title, (self.legend, 1), spacing=theme.spacing.large)
        self._column = in_column(heading, about, owner=self, spacing=theme.spacing.tiny)

    def set_rows(self, rows: tuple[OptionRow, ...]) -> None:
        """Show other options; the first ones import the plotting library."""
        if self.plot is None:
            # Imported here: the plotting library takes half a second, which must not delay the dialog.
            from planner.gui.recommend.plot import ParetoPlot

            self.plot = ParetoPlot(self._theme, _ROLES)
            self.plot.hovered.connect(self.hovered)
            self.plot.chosen.connect(self.chosen)
            self.legend.toggled.connect(self.plot.hide_ways)
            self._column.addWidget(self.plot, 1)
        self.legend.set_entries(
            tuple(entry for having, entry in _LEGEND.items() if any(row.option.having == having for row in rows))
        )
        self.plot.set_data(rows)
