"""The catalog's models and cards as choices of searchable lists, and the question about a person's GPUs."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from planner.gui.theme import Theme
from planner.gui.widgets.inputs.choice_field import PickerField
from planner.gui.widgets.inputs.number_field import NumberField
from planner.gui.widgets.labels import verdict_icon
from planner.gui.widgets.popover import Choice, search_choices
from planner.gui.workspace import Workspace
from planner.models.load import HUB_PREFIX
from planner.plan.evaluate import fits_by_gpu
from planner.plan.plan import ModelChoice
from planner.present import format as fmt

if TYPE_CHECKING:
    from planner.present.catalog.detected_cards import FoundKind


SEARCH_MODELS: Final = "Search models, or owner/name on Hugging Face"
_MOST: Final = 1_000
_HUB_NAME: Final = re.compile(r"[\w.-]+/[\w.-]+")


def model_choices(workspace: Workspace) -> list[Choice]:
    """Return the choices of all models in each published format, with parameters and context length."""
    return [
        Choice(
            name,
            name.rpartition("/")[2],
            model_detail(record.parameters, record.context, is_brief=True),
            words=" ".join((name, record.family, *record.aliases)),
        )
        for record in workspace.catalog.models.records
        for name in (record.id, *record.variants)
    ]


def hub_choice(workspace: Workspace, text: str) -> Choice | None:
    """Return the choice of a Hugging Face Hub model for a typed `owner/name`, or None for other text.

    A name that matches a model of the catalog means that model, unless it begins with `hf:`.
    """
    typed = text.strip()
    name = typed.removeprefix(HUB_PREFIX)
    is_unknown = _HUB_NAME.fullmatch(typed) and not search_choices(model_choices(workspace), typed)
    if not (typed.startswith(HUB_PREFIX) or is_unknown):
        return None
    return Choice(f"{HUB_PREFIX}{name}", f"Open {name} from Hugging Face", "needs a network")


def choose_model(workspace: Workspace, key: object) -> None:
    """Set the plan's model to a catalog model, or request a model from the Hugging Face Hub."""
    name = str(key)
    if name.startswith(HUB_PREFIX):
        workspace.navigator.hub_model_requested.emit(name)
    else:
        workspace.answer("model", {"model": ModelChoice(id=name)})


def card_choices(workspace: Workspace) -> list[Choice]:
    """Return the choices of all cards, each with its memory and the plan's verdict, then of all slices (MIG)."""
    fits = fits_by_gpu(workspace.plan, workspace.catalog)
    hardware = workspace.catalog.hardware
    cards = [
        Choice(gpu.id, gpu.name, fmt.size(gpu.memory_bytes), verdict_icon(fits[gpu.id].verdict), " ".join(gpu.aliases))
        for gpu in hardware.gpus
    ]
    # Without verdicts, which the details of a card show for its slices: they are many, and few people use them.
    slices = [
        Choice(each.id, each.name, fmt.size(each.memory_bytes), verdict_icon(None))
        for gpu in hardware.gpus
        for each in hardware.slices(gpu)
    ]
    return [*cards, *slices]


def hardware_choices(workspace: Workspace) -> list[Choice]:
    """Return the choices of all cards and then all systems, with keys such as `accelerators:rtx-4090`."""
    from planner.present.catalog.system_row import system_rows  # takes 25 ms, which the start does not wait for

    cards = [replace(choice, key=f"accelerators:{choice.key}") for choice in card_choices(workspace)]
    systems = system_rows(workspace.catalog.hardware)
    return [
        *cards,
        *(Choice(f"systems:{row.id}", row.system.name, row.accelerators or "", words=row.id) for row in systems),
    ]


def several_of(choices: Sequence[Choice], text: str) -> Choice | None:
    """Return the choice for text such as `2 x DGX H100`: two of the best match; None for text without a number."""
    from planner.hardware.names import parse_count  # as above

    number, name = parse_count(text)
    best = next(iter(search_choices(choices, name)), None)
    if best is None or number is None or not 1 <= number <= _MOST:
        return None
    detail = f"{best.detail} each" if best.detail and number > 1 else best.detail
    return replace(best, key=f"{best.key}@{number}", title=fmt.count_of(number, best.title), detail=detail, mark=None)


def selected_card_name(workspace: Workspace, gpu_id: object) -> str:
    """Return the name of the card `gpu_id`, or `No GPU` for None."""
    return "No GPU" if gpu_id is None else workspace.catalog.hardware.gpu(str(gpu_id)).name


def model_detail(parameters: int, context: int | None, *, is_brief: bool = False) -> str:
    """Return `8.03 B parameters · up to 131,072 tokens of context`, or briefly `8.03 B parameters · 131,072 tokens`."""
    size = f"{fmt.parameters(parameters)} parameters"
    if context is None:
        return size
    tokens = f"{fmt.integer(context)} tokens"
    return f"{size} · {tokens}" if is_brief else f"{size} · up to {tokens} of context"


NO_CARD: Final = ""
_SERVER_SEGMENTS: Final = ("datacenter", "tpu")
_MOST_CARDS: Final = 1_000


class CardsField(PickerField):
    """Field for cards; its value is a catalog id with a number, as in `rtx-4090@2`, or `NO_CARD`.

    `count` is a field of its own for the number of cards. Without a card, the field shows `no_card`.
    """

    def __init__(self, workspace: Workspace, theme: Theme, no_card: str) -> None:
        super().__init__(theme, self._find_choices, self._text_of_value, "Search GPUs, or 2 x RTX 4090", self._typed)
        self._workspace, self._no_card = workspace, no_card
        self.count = NumberField(1, _MOST_CARDS)
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
