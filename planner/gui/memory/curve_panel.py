"""The sensitivity curve with what belongs to it: the choice of the field, the read-out, the table, copy and save."""

import csv
import io
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QButtonGroup,
    QFileDialog,
    QHBoxLayout,
    QMenu,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from planner.errors import PlannerError
from planner.gui.memory.curve_data import CurveData
from planner.gui.memory.curve_table import CurveTable
from planner.gui.theme import Theme
from planner.gui.widgets.elided_label import ElidedLabel
from planner.gui.widgets.icon_button import IconButton
from planner.gui.widgets.label import make_label
from planner.plan.explore import CurvePoint
from planner.present import format as fmt

if TYPE_CHECKING:
    from planner.gui.memory.curve_plot import CurvePlot

_FORMATS: Final = "Picture (*.png);;Table (*.csv)"


class CurvePanel(QWidget):
    """Memory over one of a few numbers of the plan.

    `field_chosen` carries the position of the number to go over, `value_chosen` a value that was clicked, `failed` a
    `PlannerError` that saving met.
    """

    field_chosen = Signal(object)
    value_chosen = Signal(object)
    failed = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._data: CurveData | None = None
        self._plot: CurvePlot | None = None
        self._switches: list[QToolButton] = []
        self._group = QButtonGroup(self)
        self._read_out = ElidedLabel(role="muted")
        self._read_out.setFont(theme.font("small"))
        self._read_out.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._as_table = IconButton(theme, "table", self.tr("Show as table"))
        self._as_table.setCheckable(True)
        self._export = IconButton(theme, "save", self.tr("Copy or save the curve"))
        self._table = CurveTable(theme)
        self._pages = QStackedWidget()
        self._pages.addWidget(make_label(self.tr("Drawing the curve…"), "muted"))
        self._pages.addWidget(self._table)
        self._lay_out()
        self._as_table.toggled.connect(self._show_page)
        self._table.chosen.connect(self.value_chosen)
        self._export.setMenu(self._export_menu())
        self._export.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)

    @property
    def data(self) -> CurveData | None:
        """Return the curve that is shown."""
        return self._data

    @property
    def read_out(self) -> str:
        """Return what is said about the point under the pointer, or about the plan's."""
        return self._read_out.text()

    def offer_fields(self, titles: tuple[str, ...], current: int) -> None:
        """Offer these numbers to go over."""
        while len(self._switches) < len(titles):
            self._add_switch()
        for position, button in enumerate(self._switches):
            button.setVisible(position < len(titles))
            if position < len(titles):
                button.setText(titles[position])
                button.setAccessibleName(self.tr("Memory over {0}").format(titles[position].lower()))
        with QSignalBlocker(self._group):
            self._switches[current].setChecked(True)

    def set_data(self, data: CurveData) -> None:
        """Draw another curve; the first one imports the plotting library."""
        self._data = data
        if self._plot is None:
            self._plot = self._make_plot()
        self._plot.set_data(data)
        self._table.set_data(data)
        self._show_page()

    @Slot()
    def copy_picture(self) -> None:
        """Put the plot on the clipboard as a picture."""
        if self._plot is not None:
            QGuiApplication.clipboard().setPixmap(self._plot.picture())

    @Slot()
    def copy_table(self) -> None:
        """Put the figures on the clipboard, separated by tabs."""
        if self._data is not None:
            lines = ("\t".join(row) for row in self._data.csv_rows())
            QGuiApplication.clipboard().setText("\n".join(lines))

    @Slot()
    def save(self) -> None:
        """Ask for a file and write the plot as PNG or its figures as CSV."""
        name, _ = QFileDialog.getSaveFileName(self, self.tr("Save the curve"), "memory-curve.png", _FORMATS)
        if name:
            self.save_to(Path(name))

    def save_to(self, path: Path) -> None:
        """Write the figures if `path` ends in .csv, else the picture; what fails is emitted."""
        if self._data is None or self._plot is None:
            return
        try:
            if path.suffix.lower() == ".csv":
                path.write_text(_csv_text(self._data), encoding="utf-8", newline="")
            elif not self._plot.picture().save(str(path)):
                raise OSError("the picture could not be written")
        except OSError as error:
            reason = f"{path}: {error.strerror or error}"
            self.failed.emit(PlannerError(reason, "Choose another folder, or a name that ends in .png or .csv."))

    def _make_plot(self) -> "CurvePlot":
        # Imported here: the plotting library takes half a second, which must not delay the window.
        from planner.gui.memory.curve_plot import CurvePlot

        plot = CurvePlot(self._theme)
        plot.hovered.connect(self._say)
        plot.chosen.connect(self.value_chosen)
        self._pages.addWidget(plot)
        return plot

    @Slot()
    def _show_page(self) -> None:
        if self._plot is not None:
            self._pages.setCurrentWidget(self._table if self._as_table.isChecked() else self._plot)

    @Slot(object)
    def _say(self, point: CurvePoint | None) -> None:
        if self._data is None:
            return
        said = point or self._data.current
        size = f"{fmt.size(said.total_bytes)} ({fmt.size_range(said.low_bytes, said.high_bytes)})"
        self._read_out.setText(f"{'' if point else 'now '}{fmt.integer(said.value)}: {size}")

    def _add_switch(self) -> None:
        button = QToolButton()
        button.setCheckable(True)
        self._group.addButton(button)
        button.clicked.connect(partial(self._on_switched, len(self._switches)))
        self._switches.append(button)
        self._bar.insertWidget(len(self._switches), button)

    def _on_switched(self, position: int, _checked: bool = True) -> None:
        self.field_chosen.emit(position)

    def _export_menu(self) -> QMenu:
        menu = QMenu(self)
        menu.addAction(self.tr("Copy as picture"), self.copy_picture)
        menu.addAction(self.tr("Copy as table"), self.copy_table)
        menu.addAction(self.tr("Save…"), self.save)
        return menu

    def _lay_out(self) -> None:
        self._bar = QHBoxLayout()
        self._bar.setSpacing(self._theme.spacing.tiny)
        self._bar.addWidget(make_label(self.tr("Memory over"), font=self._theme.font(bold=True)))
        self._bar.addWidget(self._read_out, 1)
        self._bar.addWidget(self._as_table)
        self._bar.addWidget(self._export)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(self._theme.spacing.tiny)
        layout.addLayout(self._bar)
        layout.addWidget(self._pages, 1)


def _csv_text(data: CurveData) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(data.csv_rows())
    return text.getvalue()
