"""Ask what a person knows better of a card, or what a card of their own is like."""

from collections.abc import Callable, Mapping
from typing import Final

from PySide6.QtCore import QEvent, Slot
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QVBoxLayout, QWidget

from planner.errors import PlannerError, SpecError
from planner.gui.theme import Theme
from planner.gui.widgets.decimal_field import DecimalField
from planner.gui.widgets.field import tell
from planner.gui.widgets.label import make_label
from planner.gui.widgets.labelled_form import LabelledForm
from planner.gui.widgets.text_field import TextField
from planner.gui.widgets.typed_field import TypedField
from planner.hardware.gpu import MOST_USD, MOST_WATTS, Gpu
from planner.hardware.own import CardChange, CardFigures, card_change, card_like
from planner.present import format as fmt
from planner.units import GB, GIB

_WIDTH: Final = 460
_MOST_GIB: Final = 1e5
_MOST_GB_PER_S: Final = 1e6


class _OwnDialog(QDialog):
    """A form about one card; `save` takes over what is filled in and says what is wrong with it by raising.

    `fields` are the inputs by the names that errors have for what is typed into them.
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
        column = QVBoxLayout(self)
        column.setSpacing(theme.spacing.medium)
        for part in (make_label(about, wrap=True), self.form, self.problem, self.buttons):
            column.addWidget(part)

    def event(self, event: QEvent) -> bool:
        """Grow with the messages under the fields, which a window does not do by itself where lines are folded."""
        handled = super().event(event)
        layout = self.layout()
        if event.type() == QEvent.Type.LayoutRequest and layout is not None:
            self.resize(self.width(), max(self.height(), layout.totalHeightForWidth(self.width())))
        return handled

    def save(self) -> None:
        """Take over what is filled in."""
        raise NotImplementedError

    @Slot()
    def try_save(self) -> None:
        """Save and close, or say why not; nothing is saved while a field holds what is not allowed."""
        wrong = next((field for field in self.fields.values() if field.problem), None)
        if wrong is not None:
            self._refuse(wrong.problem, wrong)
            return
        try:
            self.save()
        except SpecError as error:
            self._refuse(error.explained, self.fields.get(error.field))
        except PlannerError as error:
            self._refuse(f"{error.message.removesuffix('.')}. {error.hint}".strip(), None)
        else:
            self.accept()

    def _refuse(self, reason: str, field: TypedField | None) -> None:
        """Say why nothing is saved, and lead to the field that has to be mended."""
        tell(self.problem, reason if field is None else f"{field.name}: {reason}")
        if field is not None:
            field.setFocus()


class ChangeDialog(_OwnDialog):
    """What was paid for a card, its power limit and a remark; an empty field is as the catalog has it.

    `said` is what the person said before; `take` gets what is said now, none where nothing is, and may raise.
    """

    def __init__(
        self,
        theme: Theme,
        gpu: Gpu,
        said: CardChange | None,
        take: Callable[[CardChange | None], None],
        today: str,
        parent: QWidget,
    ) -> None:
        about = "What you know better than the catalog. Leave a field empty to keep what the catalog has."
        super().__init__(theme, f"Your figures of the {gpu.name}", about, parent)
        self._gpu, self._take, self._today = gpu, take, today
        self.paid = DecimalField(0.01, MOST_USD, placeholder="not said")
        self.limit = DecimalField(1, MOST_WATTS, placeholder="none")
        self.note = TextField(placeholder="such as: bought used, fans replaced")
        self.form.add(
            "&Paid, USD", self.paid, lambda: None, "What you paid for one: what owning it costs is counted with it."
        )
        self.form.add("Power &limit, W", self.limit, lambda: None, "As set with nvidia-smi -pl.")
        self.form.add("&Remark", self.note, lambda: "")
        self.fields = {"purchase_price_usd": self.paid, "power_limit_watts": self.limit, "note": self.note}
        if said is not None:
            self.paid.set_value(said.purchase_price_usd)
            self.limit.set_value(said.power_limit_watts)
            self.note.set_value(said.note)

    def save(self) -> None:
        """Say what is filled in of the card."""
        told = {
            "purchase_price_usd": self.paid.value,
            "power_limit_watts": self.limit.value,
            "note": self.note.text or None,
        }
        says_something = any(value is not None for value in told.values())
        self._take(card_change(self._gpu.id, self._today, told) if says_something else None)


class NewCardDialog(_OwnDialog):
    """A card of one's own that is like another; an empty field is as that one has it. `take` gets it and may raise."""

    def __init__(self, theme: Theme, base: Gpu, take: Callable[[Gpu], None], today: str, parent: QWidget) -> None:
        about = (
            f"A card that the catalog does not have, like the {base.name} but for what you fill in: rates and software "
            "are taken from it."
        )
        super().__init__(theme, "Add a card of your own", about, parent)
        self._base, self._take, self._today = base, take, today
        self.name = TextField(placeholder="such as: RTX 4090 48 GB, modified")
        self.memory = DecimalField(0.25, _MOST_GIB, placeholder=_same(base.memory_bytes, GIB))
        self.bandwidth = DecimalField(1, _MOST_GB_PER_S, placeholder=_same(base.bandwidth_bytes_per_s, GB))
        self.power = DecimalField(1, MOST_WATTS, placeholder=_same(base.board_power_watts, 1))
        self.paid = DecimalField(0.01, MOST_USD, placeholder="not said")
        self.form.add("&Name", self.name, lambda: "")
        self.form.add("&Memory, GiB", self.memory, lambda: None, "Physical memory of the whole card.")
        self.form.add("&Bandwidth, GB/s", self.bandwidth, lambda: None, "Memory bandwidth of the whole card.")
        self.form.add("Po&wer, W", self.power, lambda: None, "Board power.")
        self.form.add(
            "&Paid, USD", self.paid, lambda: None, "What you paid for one: what owning it costs is counted with it."
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
            raise SpecError("name", "a card needs one", "Write what it is called.")
        figures = CardFigures(
            memory_bytes=None if self.memory.value is None else round(self.memory.value * GIB),
            bandwidth_bytes_per_s=None if self.bandwidth.value is None else self.bandwidth.value * GB,
            board_power_watts=self.power.value,
            purchase_price_usd=self.paid.value,
        )
        self._take(card_like(self._base, self.name.text, figures, self._today))


def _same(value: float | None, per_unit: float) -> str:
    return "not known" if value is None else fmt.plain(value / per_unit)
