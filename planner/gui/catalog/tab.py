"""The Catalog tab: all cards and systems, with the plan's verdict on each."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFileDialog, QMenu, QStackedWidget, QWidget

from planner.gui.catalog.bar import CatalogBar, SavedFilters
from planner.gui.catalog.compare_page import ComparePage
from planner.gui.catalog.filters import CatalogFilter, RecordFilter
from planner.gui.catalog.gpu_page import GpuPage
from planner.gui.catalog.own_cards import OwnCards
from planner.gui.catalog.page import Page
from planner.gui.catalog.system_page import SystemPage
from planner.gui.settings import View
from planner.gui.tab import Tab
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.threads import CalmTimer
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import in_column
from planner.gui.widgets.result_menu import Copied, copy_to_clipboard, save_as
from planner.gui.workspace import Workspace
from planner.plan.evaluate import Evaluation
from planner.present.columns import to_csv, to_json, to_tsv

ANSWER_DELAY_MS: Final = 50
_ROOM_FOR_FILTERS: Final = 1000
"""Width of the tab in pixels from which the filters are shown at first."""


class CatalogTab(Tab):
    """Accelerators and systems with a common search, as a table, a scatter plot or a comparison."""

    key = "catalog"
    title = "Catalog"
    icon_name = "catalog"
    primary_action = "Use this GPU"

    def __init__(self, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> None:
        super().__init__(workspace, theme, tasks)
        self.gpus = GpuPage(workspace, theme, tasks)
        self.saved = SavedFilters(workspace, lambda: self.page, self)
        self._export_menu = CatalogExportMenu(self, self)
        self.bar = CatalogBar(theme, self.saved, self._export_menu)
        self._answer = make_label(font=theme.font("answer", bold=True), wrap=True)
        self._kinds = make_label(role="muted", wrap=True)
        self._stack = QStackedWidget()
        self._pages = QStackedWidget()
        self._had_room = True
        # The table responds to a keystroke first; the answer, whose new height lays out the tab again, follows.
        self._answering = CalmTimer(self, ANSWER_DELAY_MS)
        self._answering.timeout.connect(self._show_answer)
        self._lay_out()
        self._connect()

    @property
    def page(self) -> Page:
        """Return the current page."""
        return self.gpus if self._pages.currentIndex() == 0 else self.systems

    @property
    def view(self) -> View:
        """Return the current view."""
        return self.bar.view

    @cached_property
    def compare(self) -> ComparePage:
        """Return the comparison, built on first use."""
        page = ComparePage(self.workspace, self.theme, self.tasks)
        page.table_requested.connect(partial(self.show_view, "table"))
        page.answered.connect(self._show_answer)
        self._stack.addWidget(page)
        return page

    @cached_property
    def systems(self) -> SystemPage:
        """Return the page of systems, built on first use."""
        page = SystemPage(self.workspace, self.theme, self.gpus.lookups)
        self._connect_page(page)
        return page

    def prepare(self) -> Iterator[object]:
        """Create the page of systems and the controls of the plot."""
        yield self.systems
        yield self.gpus.scatter

    def refresh(self, evaluation: Evaluation) -> None:
        """Update the verdicts for the plan."""
        self.page.refresh(evaluation)
        self._show_answer()
        if self.view == "compare":
            self.compare.refresh()
        self._update_bar()

    def copy_result(self) -> str:
        """Return the answer and the details of the selected record, or the comparison."""
        if self.view == "compare":
            return self.compare.as_markdown()
        return "\n\n".join(part for part in (self._answer.text(), self.page.detail.as_text()) if part)

    def focus_search(self) -> None:
        """Focus the search field."""
        self._leave_comparison()
        self.bar.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.bar.search.selectAll()

    def run_primary_action(self) -> None:
        """Put the selected card or system into the plan."""
        if self.view == "compare":
            self.compare.use_current()
        else:
            self.page.use_current()

    def show_fitting_cards(self) -> None:
        """Show only the cards on which the plan fits."""
        self._show_accelerators()
        self.gpus.show_fitting()
        self.gpus.table.setFocus()

    @Slot(str)
    def show_view(self, view: View) -> None:
        """Switch to the table, the scatter plot or the comparison."""
        self.workspace.settings.update_catalog(view=view)
        self.bar.show_view(view)
        if view == "compare":
            self._stack.setCurrentWidget(self.compare)
            self.compare.refresh()
        else:
            self._stack.setCurrentWidget(self._pages)
            self.page.show_view(view)
            self._show_answer()

    def compare_records(self, names: tuple[str, ...]) -> None:
        """Add records to the comparison, and show the comparison."""
        self.compare.add(tuple(f"{self.page.key}:{name}" for name in names))
        self.show_view("compare")

    def apply_filter(self, new_filter: RecordFilter) -> None:
        """Apply a filter to the page for its kind of records, and show that page."""
        self._leave_comparison()
        self.bar.pages.button(0 if isinstance(new_filter, CatalogFilter) else 1).click()
        self.page.narrow(new_filter)

    def compare_chosen(self) -> None:
        """Add the selected records to the comparison."""
        self.page.compare_current()

    def show_columns(self, name: str) -> None:
        """Show a named set of columns of the accelerators."""
        self._show_accelerators()
        self.gpus.show_columns(name)

    def clear_filters(self) -> None:
        """Clear the search and all filters of the page."""
        self._leave_comparison()
        self.bar.search.clear()
        self.page.facets.clear()

    def sort_cards(self, key: str) -> None:
        """Show the accelerators' column `key` and sort the table by this column, best first."""
        self._show_accelerators()
        self.gpus.sort_by_best(key)

    def swap_page(self) -> None:
        """Switch between accelerators and systems."""
        self._leave_comparison()
        self.bar.pages.button(1 if self.page is self.gpus else 0).click()

    def save(self) -> None:
        """Ask for a file and export the current view."""
        self._export_menu.save()

    def open_saved(self) -> None:
        """Open the menu of saved filters."""
        self.bar.saved.showMenu()

    def export_to(self, path: Path) -> None:
        """Export the current view to `path`; a failure is reported in the window."""
        with self.workspace.reporting():
            if self.view == "compare":
                self.compare.save_to(path)
            else:
                write_rows(path, self.page.export_fields, self.page.export_rows())

    def about_card(self) -> OwnCards:
        """Show the accelerators, and return the editor of the user's own data about the selected card."""
        if self.view == "compare" or self.page is not self.gpus:
            self._show_accelerators()
        return self.gpus.own

    def _leave_comparison(self) -> None:
        """Return from the comparison, which has no search, to the table."""
        if self.view == "compare":
            self.show_view("table")

    def _show_accelerators(self) -> None:
        self.show_view("table")
        self.bar.pages.button(0).click()

    def _lay_out(self) -> None:
        space = self.theme.spacing
        in_column(
            in_column(self._answer, self._kinds, spacing=space.tiny),
            self.bar,
            (self._stack, 1),
            owner=self,
            margins=(space.medium, space.medium, space.medium, 0),
            spacing=space.medium,
        )
        self._stack.addWidget(self._pages)

    def _connect(self) -> None:
        self.bar.searched.connect(self._on_searched)
        self.bar.left.connect(self._on_search_left)
        self.bar.switched.connect(self._on_page_chosen)
        self.bar.viewed.connect(self.show_view)
        self.bar.filters.toggled.connect(self._show_filters)
        self.bar.columns.clicked.connect(self._open_columns)
        self.saved.applied.connect(self.apply_filter)
        self._connect_page(self.gpus)
        self.show_view(self.workspace.settings.current.catalog.view)

    def _connect_page(self, page: Page) -> None:
        self._pages.addWidget(page)
        page.counted.connect(self._show_match_count)
        page.comparison_requested.connect(self.compare_records)
        page.searched.connect(partial(self._on_page_searched, page))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Hide the filters where the table needs their space, and show them where it does not."""
        super().resizeEvent(event)
        has_room = self.width() >= _ROOM_FOR_FILTERS
        if has_room is not self._had_room:
            self._had_room = has_room
            self.bar.filters.setChecked(has_room)

    @Slot(bool)
    def _show_filters(self, shown: bool) -> None:
        self.page.facets.setVisible(shown)

    def _update_bar(self) -> None:
        example = "24 GiB under 2,000 USD" if self.page is self.gpus else "600 GiB under 12 kW"
        self.bar.show_page(self.page, f", e.g. at least {example}")

    def _on_page_searched(self, page: Page, text: str) -> None:
        if page is self.page:
            self.bar.show_search(text)

    @Slot(str)
    def _on_searched(self, text: str) -> None:
        self.page.search(text)

    @Slot()
    def _on_search_left(self) -> None:
        self.page.enter()

    @Slot(int)
    def _on_page_chosen(self, page_index: int) -> None:
        self._pages.setCurrentWidget(self.systems if page_index else self.gpus)
        self._show_filters(self.bar.filters.isChecked())
        if self.view != "compare":
            self.page.show_view(self.view)
        self.page.search(self.bar.search.text())
        self.refresh(self.workspace.evaluation)

    @Slot()
    def _show_match_count(self) -> None:
        self.bar.show_count(self.page)
        self._answering.start()

    @Slot()
    def _show_answer(self) -> None:
        compared = self.compare.answer() if self.view == "compare" else ""
        self._answer.setText(compared or self.page.sentence())
        self._kinds.setText(self.page.searched_kinds)
        self._kinds.setVisible(bool(self._kinds.text()))

    @Slot()
    def _open_columns(self) -> None:
        self.page.open_columns(self.bar.columns)


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
