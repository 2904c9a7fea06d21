"""Menu of the named filters of each catalog page: apply, save, rename and delete."""

from collections.abc import Callable
from functools import partial
from typing import Any

from pydantic import ValidationError
from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QInputDialog, QMenu, QWidget

from planner.errors import PlannerError
from planner.gui.catalog.filters import conditions
from planner.gui.catalog.page import Page
from planner.gui.workspace import Workspace


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
