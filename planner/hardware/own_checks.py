"""What of a person's own hardware does not go with the catalog: names that others have, limits that hold nothing.

It is looked for when something is added, never in what was added before: a newer catalog must not make it unreadable.
"""

from collections.abc import Iterator
from typing import NamedTuple

from planner.hardware.catalog import HardwareCatalog
from planner.hardware.gpu import Gpu
from planner.hardware.names import named_exactly
from planner.hardware.own import CardChange, OwnHardware, is_above_board_power


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
        other = next((gpu for gpu in named_exactly(hardware, text) if gpu.id != card.id), None)
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
