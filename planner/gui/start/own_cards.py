"""The question about GPUs: found on this machine, picked, or none, and how many."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from planner.gui.choices import several_of
from planner.gui.theme import Theme
from planner.gui.widgets.inputs.choice_field import PickerField
from planner.gui.widgets.inputs.number_field import NumberField
from planner.gui.widgets.search_list import Choice
from planner.gui.workspace import Workspace
from planner.present import format as fmt

if TYPE_CHECKING:
    from planner.present.catalog.detected_cards import FoundKind

NO_CARD: Final = ""
_SERVER_SEGMENTS: Final = ("datacenter", "tpu")
_MOST: Final = 1_000


class CardsField(PickerField):
    """Field for cards; its value is a catalog id with a number, as in `rtx-4090@2`, or `NO_CARD`.

    `count` is a field of its own for the number of cards. Without a card, the field shows `no_card`.
    """

    def __init__(self, workspace: Workspace, theme: Theme, no_card: str) -> None:
        super().__init__(theme, self._find_choices, self._text_of_value, "Search GPUs, or 2 x RTX 4090", self._typed)
        self._workspace, self._no_card = workspace, no_card
        self.count = NumberField(1, _MOST)
        self.count.set_name("Number of GPUs")
        self.count.setToolTip("Number of GPUs")
        self.count.edited.connect(self._on_count_edited)
        self._found: dict[str, FoundKind] = {}
        self._is_chosen = False
        self.edited.connect(self._on_edited)
        self.set_value(NO_CARD)

    @property
    def cards(self) -> tuple[str | None, int]:
        """Return the catalog id of the card, None without a card, and the number of cards."""
        gpu, _, number = str(self.value).partition("@")
        return gpu or None, int(number or 1)

    @property
    def is_likely_owned(self) -> bool:
        """Return whether the person probably has the cards: found on this machine, or one card that is no server's."""
        gpu, number = self.cards
        if gpu is None or str(self.value) in self._found:
            return gpu is not None
        return number == 1 and self._workspace.catalog.hardware.gpu(gpu).segment not in _SERVER_SEGMENTS

    def set_value(self, value: object) -> None:
        """Show the cards and their number."""
        super().set_value(value)
        gpu, number = self.cards
        self.count.setEnabled(gpu is not None)
        if self.count.value != number:
            self.count.set_value(number)

    def show_cards(self, gpu: str, count: int) -> None:
        """Show the cards of the person's plan."""
        self._is_chosen = True
        self.set_value(f"{gpu}@{count}")

    def offer_found(self, kinds: "Sequence[FoundKind]") -> None:
        """Offer the cards of this machine first, and choose the first of them unless the person has chosen."""
        self._found = {f"{kind.gpu}@{kind.count}": kind for kind in kinds if kind.gpu is not None}
        value = self.value if self._is_chosen else next(iter(self._found), NO_CARD)
        self.set_value(value)

    def _find_choices(self) -> Sequence[Choice]:
        found = [Choice(key, kind.text, "this machine") for key, kind in self._found.items()]
        return [*found, Choice(NO_CARD, self._no_card), *self._catalog_choices()]

    def _catalog_choices(self) -> list[Choice]:
        return [
            Choice(gpu.id, gpu.name, fmt.size(gpu.memory_bytes), words=" ".join(gpu.aliases))
            for gpu in self._workspace.catalog.hardware.gpus
        ]

    def _typed(self, text: str) -> Choice | None:
        return several_of(self._catalog_choices(), text)

    def _text_of_value(self, value: object) -> str:
        if value in self._found:
            return f"{self._found[str(value)].text} (this machine)"
        gpu, _, _number = str(value).partition("@")
        return self._workspace.catalog.hardware.gpu(gpu).name if gpu else self._no_card

    def _on_edited(self) -> None:
        self._is_chosen = True

    def _on_count_edited(self, number: object) -> None:
        self._is_chosen = True
        self.set_value(f"{self.cards[0]}@{number}")
