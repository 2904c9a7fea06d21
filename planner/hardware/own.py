"""A person's own cards, what they know better of bundled ones, and what of that does not go with the catalog.

It lies in a file of its own, so that a newer catalog never touches it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator

from planner.base import Spec
from planner.errors import SpecError
from planner.hardware.catalog import HardwareCatalog
from planner.hardware.gpu import MOST_USD, MOST_WATTS, Day, FigureNote, Gpu, Line, Provenance
from planner.hardware.names import find_by_name
from planner.units import GIB

OWN_SCHEMA: Final = 1
OWN_FIGURE: Final = "your own figure"
"""The source of a figure that the person gave."""
_BETWEEN_WORDS: Final = re.compile(r"[^a-z0-9.]+")
_ADDED_AFTER: Final = "Added by you, after the "
_PERSONS: Final = ("purchase_price_usd", "power_limit_watts")
"""What only the person says of a card, never the catalog."""


class CardChange(Spec):
    """What a person says of a bundled card; what is none stays as the catalog has it."""

    model_config = ConfigDict(allow_inf_nan=False)

    gpu: Line = Field(description="the catalog's id of the card")
    purchase_price_usd: float | None = Field(default=None, gt=0, le=MOST_USD, description="what was paid for one")
    power_limit_watts: float | None = Field(default=None, gt=0, le=MOST_WATTS, description="as set with nvidia-smi -pl")
    note: Line | None = None
    date: Day = Field(description="the day it was said")

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.purchase_price_usd is None and self.power_limit_watts is None and self.note is None:
            raise ValueError("says nothing: give purchase_price_usd, power_limit_watts or note")
        return self


def card_change(gpu_id: str, day: str, told: Mapping[str, object]) -> CardChange:
    """Return what a person says of a card on `day`, by the names of the fields.

    Raises:
        SpecError: If a field is not what it can be, or nothing is said.
    """
    try:
        return CardChange.model_validate({**told, "gpu": gpu_id, "date": day})
    except ValidationError as error:
        raise SpecError.from_validation(error) from error


class OwnHardware(Spec):
    """Everything that a person added to the catalog of hardware."""

    schema_version: int = Field(default=OWN_SCHEMA, ge=1, le=OWN_SCHEMA)
    cards: tuple[Gpu, ...] = ()
    changes: tuple[CardChange, ...] = ()

    @model_validator(mode="after")
    def _names_each_once(self) -> Self:
        for kind, names in (("cards", [card.id for card in self.cards]), ("changes", [c.gpu for c in self.changes])):
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                raise ValueError(f"{kind} name {twice!r} twice")
        return self

    def joined(self, newer: "OwnHardware") -> "OwnHardware":
        """Return both; where both know a card or a change, the newer one's."""
        cards = {card.id: card for card in (*self.cards, *newer.cards)}
        changes = {change.gpu: change for change in (*self.changes, *newer.changes)}
        return OwnHardware(cards=tuple(cards.values()), changes=tuple(changes.values()))

    def without(self, gpu_id: str) -> "OwnHardware":
        """Return the rest: without the card of this id, and without what is said of it."""
        return OwnHardware(
            cards=tuple(card for card in self.cards if card.id != gpu_id),
            changes=tuple(change for change in self.changes if change.gpu != gpu_id),
        )

    def change_of(self, gpu_id: str) -> CardChange | None:
        """Return what is said of a card, or None where nothing is."""
        return next((change for change in self.changes if change.gpu == gpu_id), None)

    def saying(self, gpu_id: str, change: CardChange | None) -> "OwnHardware":
        """Return it with `change` in place of what was said of a card, or with nothing said of it."""
        others = tuple(each for each in self.changes if each.gpu != gpu_id)
        return OwnHardware(cards=self.cards, changes=others if change is None else (*others, change))

    def without_changes(self) -> "OwnHardware":
        """Return the cards alone, without what is said of any."""
        return OwnHardware(cards=self.cards)

    def names(self, gpu_id: str) -> bool:
        """Return whether it has a card of this id, or says something of it."""
        return any(card.id == gpu_id for card in self.cards) or any(each.gpu == gpu_id for each in self.changes)


def with_own(hardware: HardwareCatalog, own: OwnHardware) -> HardwareCatalog:
    """Return the catalog with a person's own cards first, each in place of a bundled one of its id, and their changes.

    A change of a card that the catalog does not have is kept in its file and changes nothing.
    """
    if not own.cards and not own.changes:
        return hardware
    mine = {card.id: card.evolve(own=True) for card in own.cards}
    bundled = (gpu for gpu in hardware.gpus if gpu.id not in mine)
    changes = {change.gpu: change for change in own.changes}
    cards = (_changed(gpu, changes.get(gpu.id)) for gpu in (*mine.values(), *bundled))
    return HardwareCatalog(gpus=tuple(cards), systems=hardware.systems)


class CardFigures(Spec):
    """What a card of one's own has otherwise than the one it is like; what is none is the same."""

    model_config = ConfigDict(allow_inf_nan=False)

    memory_bytes: int | None = Field(default=None, gt=0)
    bandwidth_bytes_per_s: float | None = Field(default=None, gt=0)
    board_power_watts: float | None = Field(default=None, gt=0)
    purchase_price_usd: float | None = Field(default=None, gt=0)


def card_like(base: Gpu, name: str, figures: CardFigures, day: str) -> Gpu:
    """Return a card of one's own that is like `base` but for its name and some figures, said on `day`.

    Another memory leaves unknown what was measured of the old one. Its launch price is not that of `base`; neither is
    what was paid for that one, nor its power limit. Remarks on `base` are taken for facts: give the card as it is
    without what the person changed of it.

    Raises:
        SpecError: If the name has neither a letter nor a digit, or a figure is not one that a card can have.
    """
    gpu_id = _BETWEEN_WORDS.sub("-", name.lower()).strip("-.")
    if not gpu_id:
        raise SpecError("name", "needs a letter or a digit", "Write what the card is called, such as RTX 4090 48 GB.")
    told = figures.model_dump(exclude_none=True)
    fresh = {} if figures.memory_bytes is None else _other_memory(figures.memory_bytes)
    mine = (*told, *(field for field, value in fresh.items() if value is not None))
    kept = tuple(note for note in base.figure_notes if note.field not in (*mine, *_PERSONS))
    facts = (note for note in base.notes if not note.startswith(_ADDED_AFTER))
    try:
        return base.evolve(
            id=gpu_id,
            name=name.strip(),
            aliases=(),
            launch_price_usd=None,
            figure_notes=(*_said(mine, day), *kept),
            notes=(f"{_ADDED_AFTER}{base.name}", *facts),
            **{**dict.fromkeys(_PERSONS), **told, **fresh},
        )
    except ValidationError as error:
        raise SpecError.from_validation(error) from error


def _other_memory(memory_bytes: int) -> dict[str, object]:
    measured = ("usable_memory_bytes", "usable_memory_high_bytes", "smi_memory_bytes")
    return {"memory_label": f"{memory_bytes / GIB:g} GB", **dict.fromkeys(measured)}


def unknown_changes(hardware: HardwareCatalog, own: OwnHardware) -> tuple[str, ...]:
    """Return the ids that changes name and neither the catalog nor the person's own cards have."""
    known = {gpu.id for gpu in (*hardware.gpus, *own.cards)}
    return tuple(change.gpu for change in own.changes if change.gpu not in known)


def _changed(gpu: Gpu, change: CardChange | None) -> Gpu:
    """Return the card with what is said of it; a limit above its board power, which holds nothing back, is left out."""
    if change is None:
        return gpu
    limit = change.power_limit_watts
    held = limit is not None and not is_above_board_power(gpu, limit)
    said = {"purchase_price_usd": change.purchase_price_usd, "power_limit_watts": limit if held else None}
    told = {field: value for field, value in said.items() if value is not None}
    notes = (*gpu.notes, *_notes(gpu, change, held=held))
    return gpu.evolve(**told, own=True, notes=notes, figure_notes=(*_said(told, change.date), *gpu.figure_notes))


def is_above_board_power(gpu: Gpu, limit_watts: float) -> bool:
    """Return whether a power limit lies above the card's board power; where that is not known, none does."""
    return gpu.board_power_watts is not None and limit_watts > gpu.board_power_watts


def _said(fields: Iterable[str], day: str) -> tuple[FigureNote, ...]:
    source = Provenance.own(OWN_FIGURE, day)
    return tuple(FigureNote(field=field, provenance=source) for field in fields)


def _notes(gpu: Gpu, change: CardChange, *, held: bool) -> Iterable[str]:
    if change.power_limit_watts is not None:
        limit = f"{change.power_limit_watts:,.0f} W"
        full = "" if gpu.board_power_watts is None else f" of {gpu.board_power_watts:,.0f} W"
        if held:
            yield f"Power limit of your own: {limit}{full}; the rates are those without a limit"
        else:
            yield f"Your power limit of {limit} is above the board power{full} and is left out"
    if change.note is not None:
        yield change.note


# Looked for when something is added, never in what was added before: a newer catalog must not make it unreadable.
class OwnProblem(NamedTuple):
    """What is wrong with one field of one record, and what to do."""

    record: str
    field: str
    reason: str
    hint: str


def first_problem(hardware: HardwareCatalog, added: OwnHardware) -> OwnProblem | None:
    """Return what speaks against adding `added` to `hardware`, in which it is already joined, or None."""
    problems = (_taken(hardware, card) for card in added.cards)
    limits = (_limit_too_high(hardware, change) for change in added.changes)
    return next((each for each in (*problems, *limits) if each is not None), None)


def _taken(hardware: HardwareCatalog, card: Gpu) -> OwnProblem | None:
    for field, text in _names(card):
        other = next((gpu for gpu in find_by_name(hardware, text) if gpu.id != card.id), None)
        if other is not None:
            reason = f"{text!r} is the name of {other.id} ({other.name}) already"
            return OwnProblem(card.id, field, reason, _hint(card, field))
    return None


def _names(card: Gpu) -> Iterator[tuple[str, str]]:
    yield "id", card.id
    yield "name", card.name
    yield from ((f"aliases.{place}", alias) for place, alias in enumerate(card.aliases))


def _hint(card: Gpu, field: str) -> str:
    if field.startswith("aliases"):
        return "Leave this alias out."
    return f"Choose another, such as {card.name + ', mine'!r}." if field == "name" else "Choose another id."


def _limit_too_high(hardware: HardwareCatalog, change: CardChange) -> OwnProblem | None:
    gpu = next((gpu for gpu in hardware.gpus if gpu.id == change.gpu), None)
    limit = change.power_limit_watts
    if gpu is None or limit is None or not is_above_board_power(gpu, limit):
        return None
    reason = f"{limit:,.0f} W is above the board power of {gpu.board_power_watts:,.0f} W"
    return OwnProblem(change.gpu, "power_limit_watts", reason, "A limit holds a card below its board power.")
