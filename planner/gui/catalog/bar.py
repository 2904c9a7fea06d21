"""Toolbar above the catalog: page, view, search, result count, filters and saved ones, columns and export."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from pydantic import ValidationError
from PySide6.QtCore import QEvent, QObject, QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QButtonGroup,
    QHBoxLayout,
    QInputDialog,
    QLineEdit,
    QMenu,
    QToolButton,
    QWidget,
)

from planner.errors import PlannerError
from planner.gui.catalog.filters import conditions
from planner.gui.catalog.gpu_page import GpuPage
from planner.gui.catalog.page import Page
from planner.gui.catalog.system_page import SystemPage
from planner.gui.settings import View
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import push_button
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import hairline, in_row
from planner.gui.workspace import Workspace
from planner.present import format as fmt


class SavedFilters(QMenu):
    """Menu of the saved filters of the current `page`; `applied` carries the chosen filter."""

    applied = Signal(object)

    def __init__(self, workspace: Workspace, page: Callable[[], Page], parent: QWidget) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._page = page
        self.aboutToShow.connect(self.fill)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the saved filters in alphabetical order."""
        return tuple(sorted(self._saved_by_name, key=str.casefold))

    @Slot()
    def fill(self) -> None:
        """Rebuild the menu."""
        self.clear()
        for name in self.names:
            self.addAction(name, partial(self.apply, name))
        if not self.names:
            self.addAction("No saved filters yet").setEnabled(False)
        self.addSeparator()
        save = self.addAction("&Save these filters…", self.ask_name)
        save.setEnabled(not self._page().filter.is_empty)
        rename, delete = self.addMenu("&Rename"), self.addMenu("&Delete")
        for menu in (rename, delete):
            menu.setEnabled(bool(self.names))
        for name in self.names:
            rename.addAction(f"{name}…", partial(self.ask_other_name, name))
            delete.addAction(name, partial(self.delete, name))

    def apply(self, name: str) -> None:
        """Apply the filter `name`; an unreadable filter is reported in the window."""
        with self._workspace.reporting():
            try:
                saved_filter = type(self._page().filter).model_validate(self._saved_by_name[name])
            except ValidationError:
                hint = "It was saved by another version. Delete it and save it again."
                raise PlannerError(f"The saved filter “{name}” cannot be read.", hint) from None
            self.applied.emit(saved_filter)

    def save(self, name: str) -> None:
        """Save the current filter as `name`, replacing a filter with that name."""
        if name.strip():
            saved_filter = self._page().filter.model_dump(mode="json", exclude_defaults=True)
            self._store_filters({**self._saved_by_name, name.strip(): saved_filter})

    def rename(self, name: str, other: str) -> None:
        """Rename the filter `name` to `other`; an error is shown in the window if `other` is already taken."""
        new_name = other.strip()
        if not new_name or new_name == name:
            return
        with self._workspace.reporting():
            if new_name in self._saved_by_name:
                hint = "Choose another name, or delete that one first."
                raise PlannerError(f"A saved filter “{new_name}” already exists.", hint)
            saved_filter = {key: value for key, value in self._saved_by_name.items() if key != name}
            self._store_filters({**saved_filter, new_name: self._saved_by_name[name]})

    def delete(self, name: str) -> None:
        """Delete the filter `name`."""
        self._store_filters({key: value for key, value in self._saved_by_name.items() if key != name})

    @Slot()
    def ask_name(self) -> None:
        """Ask for a name and save the current filter."""
        suggested_name = ", ".join(condition.words for condition in conditions(self._page().filter))
        name, agreed = QInputDialog.getText(self, "Save these filters", "Name", text=suggested_name)
        if agreed:
            self.save(name)

    def ask_other_name(self, name: str) -> None:
        """Ask for a new name for the saved filter `name`, and rename the filter."""
        other, agreed = QInputDialog.getText(self, "Rename", "Name", text=name)
        if agreed:
            self.rename(name, other)

    @property
    def _saved_by_name(self) -> dict[str, dict[str, Any]]:
        saved: dict[str, dict[str, Any]] = getattr(self._workspace.settings.current.catalog, self._page().saved_in)
        return saved

    def _store_filters(self, filters: dict[str, dict[str, Any]]) -> None:
        self._workspace.settings.update_catalog(**{self._page().saved_in: filters})


VIEWS: Final[dict[View, str]] = {"table": "Table", "scatter": "Scatter", "compare": "Compare"}
_VIEW_HINTS: Final[dict[View, str]] = {
    "table": "Show the catalog as a table",
    "scatter": "Plot any figure against any other",
    "compare": "Compare the chosen accelerators or systems side by side",
}
_PAGE_HINTS: Final = {
    GpuPage.title: "Single GPUs and other accelerators",
    SystemPage.title: "Whole machines: workstations, servers, racks and cloud instances",
}
_SEARCH_WIDTH: Final = 200
"""Pixels that the search needs to show an example."""
_KEYS_TO_TABLE = (Qt.Key.Key_Down, Qt.Key.Key_Return, Qt.Key.Key_Enter)


class CatalogBar(QWidget):
    """Toolbar of the catalog; the signal `switched` carries a page's index, `viewed` the view, `searched` the text.

    `left` is emitted when a key moves the focus from the search field to the table.
    """

    switched = Signal(int)
    viewed = Signal(str)
    searched = Signal(str)
    left = Signal()

    def __init__(self, theme: Theme, saved: QMenu, export: QMenu) -> None:
        super().__init__()
        self.search = QLineEdit(clearButtonEnabled=True)
        self.filters = QToolButton()
        self.filters.setText("Filters")
        self.filters.setToolTip("Show or hide the filters")
        self.filters.setCheckable(True)
        self.filters.setChecked(True)
        self.columns = push_button("Col&umns", "Choose and sort the columns")
        self.saved = push_button("Saved fi&lters", "Save filters, and use saved ones")
        self._export = push_button("Export", "Copy or save what is shown")
        self.count = make_label(role="muted")
        self.count.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.pages, self._views = QButtonGroup(self), QButtonGroup(self)
        self.saved.setMenu(saved)
        self._export.setMenu(export)
        self._lay_out(theme)
        self.search.installEventFilter(self)
        self.search.textChanged.connect(self.searched)
        self.pages.idClicked.connect(self.switched)
        self._views.idClicked.connect(lambda number: self.viewed.emit(tuple(VIEWS)[number]))

    @property
    def view(self) -> View:
        """Return the current view."""
        return tuple(VIEWS)[self._views.checkedId()]

    def show_view(self, view: View) -> None:
        """Check the button of `view`; the comparison view disables the search field."""
        self._views.button(tuple(VIEWS).index(view)).setChecked(True)
        for widget in (*self.pages.buttons(), self.filters, self.search, self.count, self.saved):
            widget.setEnabled(view != "compare")
        self.columns.setEnabled(view == "table")

    def show_page(self, page: Page, hint: str) -> None:
        """Adapt the search field and the result count to a page; `hint` is an example of a query."""
        search_label = f"Search {page.title.lower()}"
        self.search.setPlaceholderText(f"Search{hint}" if hint else f"{search_label} (Ctrl+F)")
        self.search.setToolTip(f"{search_label} (Ctrl+F){hint}")
        self.search.setAccessibleName(search_label)
        self._fix_count_label_size(page)
        self.show_count(page)

    def show_count(self, page: Page) -> None:
        """Show the number of matching records."""
        match_count, total = page.model.rowCount(), len(page.model.all_records)
        self.count.setText(_count_text(match_count, total))
        self.count.setAccessibleName(f"{fmt.integer(match_count)} of {fmt.plural(total, page.noun)}")

    def show_search(self, text: str) -> None:
        """Show a search text that the program, not the user, has set."""
        with QSignalBlocker(self.search):
            self.search.setText(text)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Move from the search to the table with Down or Enter, and clear the search with Escape."""
        if watched is self.search and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.key() in _KEYS_TO_TABLE:
                self.left.emit()
                return True
            if event.key() == Qt.Key.Key_Escape and self.search.text():
                self.search.clear()
                return True
        return super().eventFilter(watched, event)

    def _fix_count_label_size(self, page: Page) -> None:
        """Fix the size of the result count: a new size at each keystroke would lay out the whole window again."""
        total = len(page.model.all_records)
        self.count.setMinimumSize(0, 0)
        self.count.setText(_count_text(total, total))
        self.count.setFixedSize(self.count.sizeHint())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the search into a line of its own where it would be too narrow."""
        super().resizeEvent(event)
        needed = self._switches.sizeHint().width() + self._tools.minimumSize().width() + _SEARCH_WIDTH
        is_narrow = self.width() < needed
        self._bar.setDirection(QBoxLayout.Direction.TopToBottom if is_narrow else QBoxLayout.Direction.LeftToRight)

    def _lay_out(self, theme: Theme) -> None:
        self._switches, self._tools = in_row(spacing=theme.spacing.small), in_row(spacing=theme.spacing.small)
        _add_buttons(self._switches, self.pages, _PAGE_HINTS)
        self._switches.addWidget(hairline(Qt.Orientation.Vertical))
        _add_buttons(self._switches, self._views, {VIEWS[view]: hint for view, hint in _VIEW_HINTS.items()})
        self._switches.addStretch(0)
        self._tools.addWidget(self.filters)
        self._tools.addWidget(self.search, 1)
        for widget in (self.count, self.saved, self.columns, self._export):
            self._tools.addWidget(widget)
        self._bar = in_row(self._switches, (self._tools, 1), owner=self, spacing=theme.spacing.small)
        self.search.addAction(theme.icon("search", "muted"), QLineEdit.ActionPosition.LeadingPosition)


def _add_buttons(bar: QHBoxLayout, group: QButtonGroup, hints: Mapping[str, str]) -> None:
    """Add a button with its tooltip for each title in `hints` to `group`, and check the first button."""
    for number, (title, hint) in enumerate(hints.items()):
        button = QToolButton()
        button.setText(title)
        button.setToolTip(hint)
        button.setCheckable(True)
        button.setChecked(number == 0)
        group.addButton(button, number)
        bar.addWidget(button)


def _count_text(match_count: int, total: int) -> str:
    return f"{fmt.integer(match_count)} of {fmt.integer(total)}"
