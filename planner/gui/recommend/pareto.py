"""The plot of time against cost with its legend, which shows and hides what is rented and what is owned."""

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QRectF, Qt, Signal, Slot
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QVBoxLayout, QWidget

from planner.gui.theme import Theme
from planner.gui.widgets.labels import make_label
from planner.plan.recommend.wish import Having
from planner.present.cost.recommendation import OptionRow

if TYPE_CHECKING:
    from planner.gui.recommend.plot import ParetoPlot

_SMALLEST_WIDTH: Final = 380
_SWATCH: Final = 10


class ParetoPanel(QWidget):
    """`hovered` carries the row under the pointer or none, `chosen` one that was clicked."""

    hovered = Signal(object)
    chosen = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.plot: ParetoPlot | None = None
        self.shown: dict[Having, QCheckBox] = {
            "rent": QCheckBox("re&nted"),
            "own": QCheckBox("&owned"),
        }
        self.setMinimumWidth(_SMALLEST_WIDTH)
        legend = QHBoxLayout()
        legend.setSpacing(theme.spacing.medium)
        legend.addWidget(make_label("Time against cost", font=theme.font(bold=True)), 1)
        for box in self.shown.values():
            box.setChecked(True)
            box.toggled.connect(self._choose)
            legend.addWidget(box)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(theme.spacing.tiny)
        self._column.addLayout(legend)
        self._column.addWidget(
            make_label("Dashed: nothing beats these in both time and cost.", "muted", theme.font("small"))
        )
        theme.changed.connect(self._dress)

    def set_rows(self, rows: tuple[OptionRow, ...]) -> None:
        """Show other options; the first ones import the plotting library."""
        if self.plot is None:
            # Imported here: the plotting library takes half a second, which must not delay the dialog.
            from planner.gui.recommend.plot import ParetoPlot

            self.plot = ParetoPlot(self._theme)
            self.plot.hovered.connect(self.hovered)
            self.plot.chosen.connect(self.chosen)
            self._column.addWidget(self.plot, 1)
            self._dress()
        for having, box in self.shown.items():
            box.setVisible(any(row.option.having == having for row in rows))
        self.plot.set_rows(rows)

    @Slot()
    def _choose(self) -> None:
        if self.plot is not None:
            self.plot.show_only(frozenset(having for having, box in self.shown.items() if box.isChecked()))

    @Slot()
    def _dress(self) -> None:
        from planner.gui.recommend.plot import ROLES

        for having, box in self.shown.items():
            box.setIcon(self._swatch(ROLES[having], is_round=having == "rent"))

    def _swatch(self, role: str, *, is_round: bool) -> QIcon:
        pixmap = QPixmap(_SWATCH, _SWATCH)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.color(role))
        area = QRectF(1, 1, _SWATCH - 2, _SWATCH - 2)
        (painter.drawEllipse if is_round else painter.drawRect)(area)
        painter.end()
        return QIcon(pixmap)
