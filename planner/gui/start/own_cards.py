"""The question about the person's own GPU: found on this machine, picked, or none."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from planner.gui.choices import several_of
from planner.gui.theme import Theme
from planner.gui.widgets.inputs.choice_field import PickerField
from planner.gui.widgets.search_list import Choice
from planner.gui.workspace import Workspace
from planner.present import format as fmt

if TYPE_CHECKING:
    from planner.present.catalog.detected_cards import FoundKind

NO_CARD: Final = ""
_NO_CARD_TITLE: Final = "None, or I don't know yet"


class OwnCardsField(PickerField):
    """Field for the person's own cards; its value is a catalog id with a number, as in `rtx-4090@2`, or `NO_CARD`."""

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__(theme, self._find_choices, self._text_of_value, "Search GPUs, or 2 x RTX 4090", self._typed)
        self._workspace = workspace
        self._found: dict[str, FoundKind] = {}
        self._is_chosen = False
        self.edited.connect(self._on_edited)
        self.set_value(NO_CARD)

    @property
    def cards(self) -> tuple[str | None, int]:
        """Return the catalog id of the card, None without a card, and the number of cards."""
        gpu, _, number = str(self.value).partition("@")
        return gpu or None, int(number or 1)

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
        return [*found, Choice(NO_CARD, _NO_CARD_TITLE), *self._catalog_choices()]

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
        gpu, _, number = str(value).partition("@")
        if not gpu:
            return _NO_CARD_TITLE
        name = self._workspace.catalog.hardware.gpu(gpu).name
        return fmt.count_of(int(number), name) if number not in ("", "1") else name

    def _on_edited(self) -> None:
        self._is_chosen = True
