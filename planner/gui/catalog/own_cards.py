"""User-defined cards and user values for catalog cards: dialogs, import, export and deletion."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from PySide6.QtCore import QEvent, Slot
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QFileDialog, QMessageBox, QPushButton, QWidget

from planner.errors import CatalogError, PlannerError, SpecError
from planner.gui.theme import Theme
from planner.gui.widgets.dialogs import confirmation
from planner.gui.widgets.inputs.field import TextField, TypedField, show_message
from planner.gui.widgets.inputs.labelled_form import LabelledForm
from planner.gui.widgets.inputs.number_field import DecimalField
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import in_column
from planner.gui.workspace import Workspace
from planner.hardware.catalog import load_hardware
from planner.hardware.gpu import MOST_USD, MOST_WATTS, Gpu
from planner.hardware.own import (
    CardChange,
    CardOverrides,
    OwnHardware,
    derive_card,
    first_problem,
    make_card_change,
    read_own,
    with_own_hardware,
    write_own,
)
from planner.numbers import GIBIBYTES, MONEY, WATTS
from planner.paths import own_hardware_file
from planner.plan.evaluate import evaluate
from planner.present import format as fmt
from planner.present.catalog.gpu_row import removal_summary
from planner.units import GB, GIB

_WIDTH: Final = 460
_MOST_GIB: Final = 1e5
_MOST_GB_PER_S: Final = 1e6
_HARDWARE_FILES: Final = "Hardware (*.json)"
_NO_HARDWARE: Final = OwnHardware()


class _CardDialog(QDialog):
    """Base class of dialogs that edit one card; `save` stores the input, or raises an error if a value is not allowed.

    `fields` maps the field names in errors to the input widgets.
    """

    fields: Mapping[str, TypedField]

    def __init__(self, theme: Theme, title: str, about: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle(title)
        self.setMinimumWidth(_WIDTH)
        self.form = LabelledForm(theme)
        self.problem = make_label(role="bad", wrap=True)
        self.problem.hide()
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Save | QDialogButtonBox.StandardButton.Cancel)
        self.buttons.accepted.connect(self.try_save)
        self.buttons.rejected.connect(self.reject)
        in_column(
            make_label(about, wrap=True),
            self.form,
            self.problem,
            self.buttons,
            owner=self,
            margins=None,
            spacing=theme.spacing.medium,
        )

    def event(self, event: QEvent) -> bool:
        """Grow the dialog when a message appears below a field; Qt does not do so for wrapped labels."""
        handled = super().event(event)
        layout = self.layout()
        if event.type() == QEvent.Type.LayoutRequest and layout is not None:
            self.resize(self.width(), max(self.height(), layout.totalHeightForWidth(self.width())))
        return handled

    def save(self) -> None:
        """Store the input; raise a `PlannerError` if a value is not allowed."""
        raise NotImplementedError

    @Slot()
    def try_save(self) -> None:
        """Save and close, or show the problem; nothing is saved while a field is invalid."""
        wrong = next((field for field in self.fields.values() if field.problem), None)
        if wrong is not None:
            self._show_refusal(wrong.problem, wrong)
            return
        try:
            self.save()
        except SpecError as error:
            self._show_refusal(error.explanation, self.fields.get(error.field))
        except PlannerError as error:
            self._show_refusal(f"{error.message.removesuffix('.')}. {error.hint}".strip(), None)
        else:
            self.accept()

    def _show_refusal(self, reason: str, field: TypedField | None) -> None:
        """Show why nothing was saved, and focus the field to correct."""
        if field is not None and not reason.startswith(field.name):
            reason = f"{field.name}: {reason}"
        show_message(self.problem, reason)
        if field is not None:
            field.setFocus()


class ChangeDialog(_CardDialog):
    """Form for the price paid for a card, its power limit and a remark; empty fields keep the catalog's value.

    `change` holds the stored values. `take` receives the new values, None if all fields are empty, and may raise.
    """

    def __init__(
        self,
        theme: Theme,
        gpu: Gpu,
        change: CardChange | None,
        take: Callable[[CardChange | None], None],
        today: str,
        parent: QWidget,
    ) -> None:
        about = "Your own values for this card. Leave a field empty to keep the catalog's value."
        super().__init__(theme, f"Your figures for the {gpu.name}", about, parent)
        self._gpu, self._take, self._today = gpu, take, today
        self.paid = DecimalField(0.01, MOST_USD, placeholder="not set", kind=MONEY)
        self.limit = DecimalField(1, MOST_WATTS, placeholder="none", kind=WATTS)
        self.note = TextField(placeholder="e.g. bought used, fans replaced")
        self.form.add(
            "&Paid, USD",
            self.paid,
            lambda: None,
            "Price you paid per card; the cost of ownership is computed from it.",
        )
        self.form.add("Power &limit, W", self.limit, lambda: None, "Power limit as set with nvidia-smi -pl.")
        self.form.add("&Remark", self.note, lambda: "", "Where the figures come from.")
        self.fields = {"purchase_price_usd": self.paid, "power_limit_watts": self.limit, "note": self.note}
        if change is not None:
            self.paid.set_value(change.purchase_price_usd)
            self.limit.set_value(change.power_limit_watts)
            self.note.set_value(change.note)

    def save(self) -> None:
        """Store the user's values for the card, or remove the stored values if all fields are empty."""
        values = {
            "purchase_price_usd": self.paid.value,
            "power_limit_watts": self.limit.value,
            "note": self.note.text or None,
        }
        has_values = any(value is not None for value in values.values())
        self._take(make_card_change(self._gpu.id, self._today, values) if has_values else None)


class NewCardDialog(_CardDialog):
    """Form for a new user-defined card based on an existing card; `take` stores the new card, or raises an error."""

    def __init__(self, theme: Theme, base: Gpu, take: Callable[[Gpu], None], today: str, parent: QWidget) -> None:
        about = (
            f"A card that is not in the catalog. Empty fields are taken from the {base.name}, as are "
            "compute rates and software."
        )
        super().__init__(theme, "Add a card of your own", about, parent)
        self._base, self._take, self._today = base, take, today
        self.name = TextField(placeholder="e.g. RTX 4090 48 GB, modified")
        self.memory = DecimalField(
            0.25, _MOST_GIB, placeholder=_catalog_value_text(base.memory_bytes, GIB), kind=GIBIBYTES
        )
        self.bandwidth = DecimalField(
            1, _MOST_GB_PER_S, placeholder=_catalog_value_text(base.bandwidth_bytes_per_s, GB)
        )
        self.power = DecimalField(1, MOST_WATTS, placeholder=_catalog_value_text(base.board_power_watts, 1), kind=WATTS)
        self.paid = DecimalField(0.01, MOST_USD, placeholder="not set", kind=MONEY)
        self.form.add("&Name", self.name, lambda: "", "Name under which the catalog lists the card.")
        self.form.add("&Memory, GiB", self.memory, lambda: None, "Physical memory of the whole GPU.")
        self.form.add("&Bandwidth, GB/s", self.bandwidth, lambda: None, "Memory bandwidth of the whole GPU.")
        self.form.add("Po&wer, W", self.power, lambda: None, "Board power of the card.")
        self.form.add(
            "&Paid, USD",
            self.paid,
            lambda: None,
            "Price you paid per card; the cost of ownership is computed from it.",
        )
        self.fields = {
            **dict.fromkeys(("name", "id"), self.name),  # the id is made of the name
            "memory_bytes": self.memory,
            "bandwidth_bytes_per_s": self.bandwidth,
            "board_power_watts": self.power,
            "purchase_price_usd": self.paid,
        }

    def save(self) -> None:
        """Add the card."""
        if not self.name.text:
            raise SpecError("name", "a card needs a name", "Enter one.")
        figures = CardOverrides(
            memory_bytes=None if self.memory.value is None else round(self.memory.value * GIB),
            bandwidth_bytes_per_s=None if self.bandwidth.value is None else self.bandwidth.value * GB,
            board_power_watts=self.power.value,
            purchase_price_usd=self.paid.value,
        )
        self._take(derive_card(self._base, self.name.text, figures, self._today))


def _catalog_value_text(value: float | None, per_unit: float) -> str:
    return fmt.UNKNOWN if value is None else fmt.plain(value / per_unit)


class OwnCards:
    """Edits the user's hardware file and applies the changes to the whole window.

    `current` returns the selected card; `show` selects another by id.
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
        """Open the form for the user's own values of the selected card; None without a selected card."""
        gpu = self._current()
        if gpu is None:
            return None
        with self._workspace.reporting():
            change = _read_own_hardware().change_of(gpu.id)
            return self._opened_and_returned_dialog(
                ChangeDialog(self._theme, gpu, change, self._change_saver(gpu), self._today_text(), self._parent)
            )
        return None

    def ask_new(self) -> QDialog | None:
        """Open the form for a new card based on the selected card; None without a selected card."""
        gpu = self._current()
        if gpu is None:
            return None
        with self._workspace.reporting():
            base = self._without_own_values(gpu)
            return self._opened_and_returned_dialog(
                NewCardDialog(self._theme, base, self.add, self._today_text(), self._parent)
            )
        return None

    def add(self, card: Gpu) -> None:
        """Add a user-defined card.

        Raises:
            PlannerError: If the catalog has a card of this name, or the file cannot be written.
        """
        if any(gpu.id == card.id for gpu in self._workspace.catalog.hardware.gpus):
            raise SpecError("name", f"{card.name!r} is already in the catalog", "Choose another name.")
        added = OwnHardware(cards=(card,))
        self._write_own_hardware(_read_own_hardware().merged_with(added), added)
        self._show(card.id)

    def ask_forget(self) -> QMessageBox | None:
        """Ask whether to delete the user's values for the selected card, or the whole card if it is user-defined."""
        gpu = self._current()
        if gpu is None:
            return None
        with self._workspace.reporting():
            own = _read_own_hardware()
            if not own.contains(gpu.id):
                raise PlannerError(f"You have no values of your own for {gpu.name}.", "There is nothing to delete.")
            return self._ask_deletion(gpu, removal_summary(own, gpu.id))
        return None

    def forget(self, gpu_id: str) -> None:
        """Delete a user-defined card, and the user's values for a catalog card."""
        with self._workspace.reporting():
            self._write_own_hardware(_read_own_hardware().without(gpu_id))

    def add_from(self, path: Path) -> None:
        """Import user-defined cards and values from a file, replacing existing cards and values with the same ids."""
        with self._workspace.reporting():
            added = read_own(path, self._today())
            self._write_own_hardware(_read_own_hardware().merged_with(added), added, path)

    def export_to(self, path: Path) -> None:
        """Export all user-defined cards and the user's values to a file."""
        with self._workspace.reporting():
            write_own(path, _read_own_hardware())

    def choose_file(self) -> None:
        """Ask for a hardware file and import its cards."""
        chosen, _ = QFileDialog.getOpenFileName(self._parent, "Add GPUs of your own", "", _HARDWARE_FILES)
        if chosen:
            self.add_from(Path(chosen))

    def choose_target(self) -> None:
        """Ask for a file and export the user's cards to the file."""
        chosen, _ = QFileDialog.getSaveFileName(self._parent, "Export your own cards", "hardware.json", _HARDWARE_FILES)
        if chosen:
            self.export_to(Path(chosen))

    def _ask_deletion(self, gpu: Gpu, deleted_text: str) -> QMessageBox:
        def delete_if_agreed(agreed: bool) -> None:
            if agreed:
                self.forget(gpu.id)

        box = confirmation(
            "Delete your figures or card?",
            f"Delete your own data about {gpu.name}?",
            f"This will be deleted: {deleted_text}. It cannot be undone; “Export your cards…” keeps a copy.",
            QPushButton("&Delete"),
            self._parent,
            delete_if_agreed,
        )
        box.finished.connect(box.deleteLater)
        box.open()
        return box

    def _without_own_values(self, gpu: Gpu) -> Gpu:
        """Return `gpu` without the user's own values, which do not apply to a new card that is based on it."""
        own = _read_own_hardware()
        if own.change_of(gpu.id) is None:
            return gpu
        return with_own_hardware(load_hardware(self._workspace.catalog.folder), own.without_changes()).gpu(gpu.id)

    def _change_saver(self, gpu: Gpu) -> Callable[[CardChange | None], None]:
        def save_change(change: CardChange | None) -> None:
            added = OwnHardware() if change is None else OwnHardware(changes=(change,))
            self._write_own_hardware(_read_own_hardware().with_change_replaced(gpu.id, change), added)

        return save_change

    def _write_own_hardware(
        self, own: OwnHardware, added: OwnHardware = _NO_HARDWARE, path: Path | None = None
    ) -> None:
        """Write the user's hardware file after checking that the catalog and the plan are valid with `own`."""
        hardware = with_own_hardware(load_hardware(self._workspace.catalog.folder), own)
        problem = first_problem(hardware, added)
        if problem is not None:
            if path is not None:
                raise CatalogError(path, *problem)
            hint = "Choose another name." if problem.field == "id" else problem.hint  # the id is derived from the name
            raise SpecError(problem.field, problem.reason, hint)
        changed = replace(self._workspace.catalog, hardware=hardware)
        try:
            evaluate(self._workspace.plan, changed)
        except PlannerError as error:
            hint = "Choose another card for the plan first."
            raise PlannerError(f"The plan could not be evaluated after this change: {error.message}", hint) from error
        write_own(own_hardware_file(), own)
        self._workspace.set_catalog(changed)

    def _opened_and_returned_dialog(self, dialog: QDialog) -> QDialog:
        dialog.open()
        return dialog

    def _today_text(self) -> str:
        return self._today().isoformat()


def _read_own_hardware() -> OwnHardware:
    return read_own(own_hardware_file())
