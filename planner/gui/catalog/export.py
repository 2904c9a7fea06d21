"""Copy or save the rows of the current view, or the comparison."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QFileDialog, QMenu, QWidget

from planner.gui.widgets.result_menu import Copied, copy_to_clipboard, save_as
from planner.present.record_text import to_csv, to_json, to_tsv

if TYPE_CHECKING:
    from planner.gui.catalog.tab import CatalogTab

_ROW_FILES: Final = "Table (*.csv);;Records (*.json)"
_COMPARISON_FILES: Final = "Markdown (*.md);;Table (*.csv);;Picture (*.png)"


def write_rows(path: Path, fields: Sequence[str], rows: Sequence[Mapping[str, object]]) -> None:
    """Write `rows` as JSON if `path` ends in `.json`, otherwise as CSV with the columns `fields`.

    Raises:
        PlannerError: If the file cannot be written.
    """
    save_as(path, {".csv": partial(to_csv, fields, rows), ".json": partial(to_json, rows)}, ".csv")


class CatalogExportMenu(QMenu):
    """Menu that copies and saves the current view of the Catalog tab."""

    def __init__(self, tab: "CatalogTab", parent: QWidget) -> None:
        super().__init__(parent)
        self._tab = tab
        self.aboutToShow.connect(self.fill)

    @Slot()
    def fill(self) -> None:
        """Rebuild the menu for the current view."""
        self.clear()
        compare = self._tab.compare
        copies: dict[str, Copied]
        if self._tab.view == "compare":
            copies = {
                "Copy as &Markdown": compare.as_markdown,
                "Copy as &CSV": compare.as_csv,
                "Copy as &picture": compare.picture,
            }
        else:
            page = self._tab.page
            copies = {
                "Copy as &table": lambda: to_tsv(page.table.visible_columns, page.table.records().records),
                "Copy as &CSV": lambda: to_csv(page.export_fields, page.export_rows()),
                "Copy as &JSON": lambda: to_json(page.export_rows()),
            }
        for title, copied in copies.items():
            self.addAction(title, partial(copy_to_clipboard, copied))
        self.addSeparator()
        self.addAction("&Save…", self.save)

    @Slot()
    def save(self) -> None:
        """Ask for a file and export the current view."""
        comparing = self._tab.view == "compare"
        name = "comparison.md" if comparing else f"{self._tab.page.key}.csv"
        kinds = _COMPARISON_FILES if comparing else _ROW_FILES
        chosen, _ = QFileDialog.getSaveFileName(self._tab, "Export", name, kinds)
        if chosen:
            self._tab.export_to(Path(chosen))
