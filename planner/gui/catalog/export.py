"""Copy or save the rows that are shown, or what is side by side."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog, QMenu, QWidget

from planner.errors import PlannerError
from planner.present.record_text import to_csv, to_json, to_tsv
from planner.storage import write_atomically

if TYPE_CHECKING:
    from planner.gui.catalog.tab import CatalogTab

_ROWS: Final = "Table (*.csv);;Records (*.json)"
_COMPARISON: Final = "Markdown (*.md);;Table (*.csv);;Picture (*.png)"


def write_rows(path: Path, fields: Sequence[str], rows: Sequence[Mapping[str, object]]) -> None:
    """Write `rows` as JSON where `path` ends so, otherwise as CSV under a header of their `fields`.

    Raises:
        PlannerError: If the file cannot be written.
    """
    text = to_json(rows) if path.suffix.lower() == ".json" else to_csv(fields, rows)
    try:
        write_atomically(path, text)
    except OSError as error:
        reason = error.strerror or str(error)
        raise PlannerError(f"{path} could not be written: {reason}", "Choose another folder.") from error


class ExportMenu(QMenu):
    """What can be done with what `tab` shows now."""

    def __init__(self, tab: "CatalogTab", parent: QWidget) -> None:
        super().__init__(parent)
        self._tab = tab
        self.aboutToShow.connect(self.fill)

    @Slot()
    def fill(self) -> None:
        """Offer what there is to do in the present view."""
        self.clear()
        compare = self._tab.compare
        if self._tab.view == "compare":
            self.addAction("Copy as &Markdown", lambda: _copy(compare.as_markdown()))
            self.addAction("Copy as &CSV", lambda: _copy(compare.as_csv()))
            self.addAction("Copy as &picture", lambda: QGuiApplication.clipboard().setPixmap(compare.picture()))
        else:
            self.addAction("Copy as &table", self._copy_table)
            page = self._tab.page
            self.addAction("Copy as &CSV", lambda: _copy(to_csv(page.export_fields, page.export_rows())))
            self.addAction("Copy as &JSON", lambda: _copy(to_json(page.export_rows())))
        self.addSeparator()
        self.addAction("&Save…", self.save)

    @Slot()
    def save(self) -> None:
        """Ask for a file and write what is shown."""
        comparing = self._tab.view == "compare"
        name = "comparison.md" if comparing else f"{self._tab.page.key}.csv"
        kinds = _COMPARISON if comparing else _ROWS
        chosen, _ = QFileDialog.getSaveFileName(self._tab, "Export", name, kinds)
        if chosen:
            self._tab.export_to(Path(chosen))

    def _copy_table(self) -> None:
        table = self._tab.page.table
        _copy(to_tsv(table.visible_columns, table.records().records))


def _copy(text: str) -> None:
    QGuiApplication.clipboard().setText(text)
