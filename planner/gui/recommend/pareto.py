"""Panel with the plot of time against cost; its legend shows and hides rented and owned options."""

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
    """Plot of time against cost with its legend; `hovered` carries the hovered row or None, `chosen` a clicked row."""

    hovered = Signal(object)
    chosen = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.plot: ParetoPlot | None = None
        self.legend = Legend(theme)
        self.setMinimumWidth(_SMALLEST_WIDTH)
        title = make_label("Time vs. cost", font=theme.font(bold=True))
        about = make_label(
            "Dashed: no other option is both faster and cheaper than these.", "muted", theme.font("small")
        )
        heading = in_row(title, (self.legend, 1), spacing=theme.spacing.large)
        self._column = in_column(heading, about, owner=self, spacing=theme.spacing.tiny)

    def set_rows(self, rows: tuple[OptionRow, ...]) -> None:
        """Show the options in `rows`; the first call imports the plotting library."""
        if self.plot is None:
            # Imported here: the plotting library takes half a second, which must not delay the dialog.
            from planner.gui.recommend.plot import ParetoPlot

            self.plot = ParetoPlot(self._theme, _ROLES)
            self.plot.hovered.connect(self.hovered)
            self.plot.chosen.connect(self.chosen)
            self.legend.toggled.connect(self.plot.hide_acquisitions)
            self._column.addWidget(self.plot, 1)
        self.legend.set_entries(
            tuple(entry for having, entry in _LEGEND.items() if any(row.option.having == having for row in rows))
        )
        self.plot.set_data(rows)
