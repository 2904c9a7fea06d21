"""A plot with what belongs to it: a heading, the read-out, the same figures as a table, copy and save."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QMenu, QStackedWidget, QToolButton, QVBoxLayout, QWidget

from planner.errors import PlannerError
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import IconButton
from planner.gui.widgets.labels import ElidedLabel, make_label
from planner.present.record_text import rows_to_csv

if TYPE_CHECKING:
    from planner.gui.widgets.plot import Plot

Rows = tuple[tuple[str, ...], ...]
_FORMATS: Final = "Picture (*.png);;Drawing (*.svg);;Table (*.csv)"


class PlotPanel(QWidget):
    """Shows `table` instead of the plot when it is asked to; `failed` carries a `PlannerError` that saving met.

    `what` is the plot in one word, and `file_stem` what its file is called unless the person says otherwise.
    Subclasses make the plot when there is first something to draw, because its library takes half a second to import.
    """

    failed = Signal(object)

    def __init__(self, theme: Theme, heading: str, what: str, file_stem: str, table: QWidget) -> None:
        super().__init__()
        self._theme = theme
        self._what, self._file_stem = what, file_stem
        self._table = table
        self._plot_shown: Plot | None = None
        self._read_out = ElidedLabel(role="muted", is_live=True)
        self._read_out.setFont(theme.font("small"))
        self._read_out.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._as_table = IconButton(theme, "table", "Show as table")
        self._as_table.setCheckable(True)
        self._export = IconButton(theme, "save", f"Copy or save the {what}")
        self._pages = QStackedWidget()
        self._pages.addWidget(make_label(f"Drawing the {what}…", "muted"))
        self._pages.addWidget(table)
        self._lay_out(heading)
        self._as_table.toggled.connect(self._show_page)
        self._export.setMenu(self._export_menu())
        self._export.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)

    @property
    def read_out(self) -> str:
        """Return what is said about the point under the pointer, or in its absence."""
        return self._read_out.text()

    def csv_rows(self) -> Rows:
        """Return a header and a row a point, with exact figures; nothing before there is something to draw."""
        raise NotImplementedError

    @Slot()
    def copy_picture(self) -> None:
        """Put the plot on the clipboard as a picture."""
        if self._plot_shown is not None:
            QGuiApplication.clipboard().setPixmap(self._plot_shown.picture())

    @Slot()
    def copy_table(self) -> None:
        """Put the figures on the clipboard, separated by tabs."""
        QGuiApplication.clipboard().setText("\n".join("\t".join(row) for row in self.csv_rows()))

    @Slot()
    def save(self) -> None:
        """Ask for a file and write the plot as PNG or SVG, or its figures as CSV."""
        title = f"Save the {self._what}"
        name, _ = QFileDialog.getSaveFileName(self, title, f"{self._file_stem}.png", _FORMATS)
        if name:
            self.save_to(Path(name))

    def save_to(self, path: Path) -> None:
        """Write the figures if `path` ends in .csv, else the drawing; what fails is emitted."""
        if self._plot_shown is None:
            return
        try:
            if path.suffix.lower() == ".csv":
                path.write_text(rows_to_csv(self.csv_rows()), encoding="utf-8", newline="")
            else:
                self._plot_shown.save_picture(path)
        except OSError as error:
            reason = f"{path}: {error.strerror or error}"
            self.failed.emit(PlannerError(reason, "Choose another folder, or a name that ends in .png, .svg or .csv."))

    def _set_plot(self, plot: "Plot") -> None:
        self._plot_shown = plot
        self._pages.addWidget(plot)

    @Slot()
    def _show_page(self) -> None:
        if self._plot_shown is not None:
            self._pages.setCurrentWidget(self._table if self._as_table.isChecked() else self._plot_shown)

    def _export_menu(self) -> QMenu:
        menu = QMenu(self)
        menu.addAction("Copy as picture", self.copy_picture)
        menu.addAction("Copy as table", self.copy_table)
        menu.addAction("Save…", self.save)
        return menu

    def _lay_out(self, heading: str) -> None:
        self._bar = QHBoxLayout()
        self._bar.setSpacing(self._theme.spacing.tiny)
        self._bar.addWidget(make_label(heading, font=self._theme.font(bold=True)))
        self._bar.addWidget(self._read_out, 1)
        self._bar.addWidget(self._as_table)
        self._bar.addWidget(self._export)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(self._theme.spacing.tiny)
        self._column.addLayout(self._bar)
        self._column.addWidget(self._pages, 1)
