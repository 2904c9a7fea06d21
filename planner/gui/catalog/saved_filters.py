"""Filters that the person has given a name: applied, renamed and deleted from one menu, apart for each page."""

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
    """`applied` carries the filter that was chosen; `page` returns the page whose filters these are now."""

    applied = Signal(object)

    def __init__(self, workspace: Workspace, page: Callable[[], Page], parent: QWidget) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._page = page
        self.aboutToShow.connect(self.fill)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the saved filters, in the order of the alphabet."""
        return tuple(sorted(self._saved, key=str.casefold))

    @Slot()
    def fill(self) -> None:
        """Offer what there is now."""
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
        """Narrow the catalog as the filter called `name` does; one that cannot be read is told across the window."""
        with self._workspace.reporting():
            try:
                wanted = type(self._page().filter).model_validate(self._saved[name])
            except ValidationError:
                hint = "It was saved by another version. Delete it and save it again."
                raise PlannerError(f"The saved filter “{name}” cannot be read.", hint) from None
            self.applied.emit(wanted)

    def save(self, name: str) -> None:
        """Save the present filter as `name`, in place of one of that name."""
        if name.strip():
            kept = self._page().filter.model_dump(mode="json", exclude_defaults=True)
            self._store({**self._saved, name.strip(): kept})

    def rename(self, name: str, other: str) -> None:
        """Call the filter `name` something else; that another has that name already is told across the window."""
        wanted = other.strip()
        if not wanted or wanted == name:
            return
        with self._workspace.reporting():
            if wanted in self._saved:
                hint = "Choose another name, or delete that one first."
                raise PlannerError(f"There is a saved filter “{wanted}” already.", hint)
            kept = {key: value for key, value in self._saved.items() if key != name}
            self._store({**kept, wanted: self._saved[name]})

    def delete(self, name: str) -> None:
        """Forget the filter `name`."""
        self._store({key: value for key, value in self._saved.items() if key != name})

    @Slot()
    def ask_name(self) -> None:
        """Ask what to call the present filter."""
        usual = ", ".join(condition.words for condition in conditions(self._page().filter))
        name, agreed = QInputDialog.getText(self, "Save these filters", "Name", text=usual)
        if agreed:
            self.save(name)

    def ask_other_name(self, name: str) -> None:
        """Ask what else to call the filter `name`."""
        other, agreed = QInputDialog.getText(self, "Rename", "Name", text=name)
        if agreed:
            self.rename(name, other)

    @property
    def _saved(self) -> dict[str, dict[str, Any]]:
        saved: dict[str, dict[str, Any]] = getattr(self._workspace.settings.current.catalog, self._page().saved_in)
        return saved

    def _store(self, filters: dict[str, dict[str, Any]]) -> None:
        self._workspace.settings.update_catalog(**{self._page().saved_in: filters})
