"""A person's own cards, and what they know better of others: changed, added, exchanged as files, and forgotten."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtWidgets import QDialog, QFileDialog, QMessageBox, QWidget

from planner.errors import CatalogError, PlannerError, SpecError
from planner.gui.catalog.own_dialogs import ChangeDialog, NewCardDialog
from planner.gui.theme import Theme
from planner.gui.workspace import Workspace
from planner.hardware.catalog import load_hardware
from planner.hardware.gpu import Gpu
from planner.hardware.own import CardChange, OwnHardware, with_own
from planner.hardware.own_checks import first_problem
from planner.hardware.own_file import read_own, write_own
from planner.paths import own_hardware_file
from planner.plan.evaluate import evaluate
from planner.present.catalog.gpu_row import loss_words

_KIND: Final = "Hardware (*.json)"
_NOTHING: Final = OwnHardware()


class OwnCards:
    """Writes the person's file and lets the whole window draw on it at once.

    `current` is the card to speak of; `show` leads to another.
    """

    def __init__(
        self,
        workspace: Workspace,
        theme: Theme,
        parent: QWidget,
        current: Callable[[], Gpu | None],
        show: Callable[[str], None],
        today: Callable[[], date] = lambda: datetime.now(UTC).date(),
    ) -> None:
        self._workspace, self._theme, self._parent = workspace, theme, parent
        self._current, self._show, self._today = current, show, today

    def ask_change(self) -> QDialog | None:
        """Ask what the person knows better of the current card; nothing where there is none."""
        gpu = self._current()
        if gpu is None:
            return None
        with self._workspace.reporting():
            said = _read().change_of(gpu.id)
            return self._open(ChangeDialog(self._theme, gpu, said, self._say(gpu), self._day(), self._parent))
        return None

    def ask_new(self) -> QDialog | None:
        """Ask for a card of one's own that is like the current one; nothing where there is none."""
        gpu = self._current()
        if gpu is None:
            return None
        with self._workspace.reporting():
            base = self._unchanged(gpu)
            return self._open(NewCardDialog(self._theme, base, self.add, self._day(), self._parent))
        return None

    def add(self, card: Gpu) -> None:
        """Add a card of one's own.

        Raises:
            PlannerError: If the catalog has a card of this name, or the file cannot be written.
        """
        if any(gpu.id == card.id for gpu in self._workspace.catalog.hardware.gpus):
            raise SpecError("name", f"{card.name!r} is in the catalog already", "Choose another name.")
        added = OwnHardware(cards=(card,))
        self._keep(_read().joined(added), added)
        self._show(card.id)

    def ask_forget(self) -> QMessageBox | None:
        """Ask whether to forget the current card if it is one's own, and what was said of it; nothing without one."""
        gpu = self._current()
        if gpu is None:
            return None
        with self._workspace.reporting():
            own = _read()
            if not own.names(gpu.id):
                raise PlannerError(f"{gpu.name} is as the catalog has it.", "There is nothing to forget.")
            return self._open_question(gpu, loss_words(own, gpu.id))
        return None

    def forget(self, gpu_id: str) -> None:
        """Forget a card of one's own, and what was said of it."""
        with self._workspace.reporting():
            self._keep(_read().without(gpu_id))

    def add_from(self, path: Path) -> None:
        """Add the cards and changes in a file; what it shares with those that are there is the file's."""
        with self._workspace.reporting():
            added = read_own(path, self._today())
            self._keep(_read().joined(added), added, path)

    def export_to(self, path: Path) -> None:
        """Write all of one's own cards and changes to a file."""
        with self._workspace.reporting():
            write_own(path, _read())

    def choose_file(self) -> None:
        """Ask for a file to add from."""
        chosen, _ = QFileDialog.getOpenFileName(self._parent, "Add cards of your own", "", _KIND)
        if chosen:
            self.add_from(Path(chosen))

    def choose_target(self) -> None:
        """Ask for a file to write to."""
        chosen, _ = QFileDialog.getSaveFileName(self._parent, "Export your own cards", "hardware.json", _KIND)
        if chosen:
            self.export_to(Path(chosen))

    def _open_question(self, gpu: Gpu, loss: str) -> QMessageBox:
        icon, parent = QMessageBox.Icon.Warning, self._parent.window()
        box = QMessageBox(
            icon, "Forget your figures or card?", f"Forget what is your own of {gpu.name}?", parent=parent
        )
        box.setInformativeText(f"This is lost: {loss}. It cannot be undone; “Export your cards…” keeps a copy.")
        forget = box.addButton("&Forget it", QMessageBox.ButtonRole.DestructiveRole)
        cancel = box.addButton(QMessageBox.StandardButton.Cancel)
        box.setDefaultButton(cancel)
        box.setEscapeButton(cancel)
        forget.clicked.connect(partial(self.forget, gpu.id))
        box.finished.connect(box.deleteLater)
        box.open()
        return box

    def _unchanged(self, gpu: Gpu) -> Gpu:
        """Return the card without what the person says of it: none of that holds for another card."""
        own = _read()
        if own.change_of(gpu.id) is None:
            return gpu
        return with_own(load_hardware(self._workspace.catalog.folder), own.without_changes()).gpu(gpu.id)

    def _say(self, gpu: Gpu) -> Callable[[CardChange | None], None]:
        def take(change: CardChange | None) -> None:
            added = OwnHardware() if change is None else OwnHardware(changes=(change,))
            self._keep(_read().saying(gpu.id, change), added)

        return take

    def _keep(self, own: OwnHardware, added: OwnHardware = _NOTHING, path: Path | None = None) -> None:
        """Write the file, once it is sure that the catalog goes with what is added, and the plan with all of it."""
        hardware = with_own(load_hardware(self._workspace.catalog.folder), own)
        problem = first_problem(hardware, added)
        if problem is not None:
            if path is not None:
                raise CatalogError(path, *problem)
            hint = "Choose another name." if problem.field == "id" else problem.hint  # the id is made of the name
            raise SpecError(problem.field, problem.reason, hint)
        changed = replace(self._workspace.catalog, hardware=hardware)
        try:
            evaluate(self._workspace.plan, changed)
        except PlannerError as error:
            hint = "Put another card into the plan first."
            raise PlannerError(f"The plan could not be evaluated after that: {error.message}", hint) from error
        write_own(own_hardware_file(), own)
        self._workspace.set_catalog(changed)

    def _open(self, dialog: QDialog) -> QDialog:
        dialog.open()
        return dialog

    def _day(self) -> str:
        return self._today().isoformat()


def _read() -> OwnHardware:
    return read_own(own_hardware_file())
