"""The cards that the options name: some of one kind, or several kinds."""

import re
from collections.abc import Sequence
from typing import Final

from planner.errors import SpecError
from planner.hardware.catalog import HardwareCatalog
from planner.hardware.gpu import Gpu
from planner.hardware.names import resolve_hardware
from planner.hardware.system import System
from planner.plan.catalog import Catalog
from planner.workload.parallel import CardCount

_NUMBERED: Final = re.compile(r"(\d{1,6})\s*[x×]\s+(\S.*)", re.IGNORECASE)


def named_cards(texts: Sequence[str], catalog: Catalog) -> tuple[CardCount, ...]:
    """Return the cards that `texts` name, each such as `RTX 4090`, `2 x RTX 3090` or the system `dgx-a100-640gb`.

    Raises:
        SpecError: If a number of cards is 0, or the catalog has no such card.
        AmbiguousNameError: If a name means several cards.
    """
    return tuple(_named(text, catalog) for text in texts)


def named_system(text: str, hardware: HardwareCatalog) -> System | None:
    """Return the system that `text` names, or None where it names a card, or several of something.

    Raises:
        SpecError: If there is nothing of that name.
        AmbiguousNameError: If the name means several cards or systems.
    """
    if _NUMBERED.fullmatch(text.strip()):
        return None
    found = resolve_hardware(hardware, text)
    return found if isinstance(found, System) else None


def _named(text: str, catalog: Catalog) -> CardCount:
    numbered = _NUMBERED.fullmatch(text.strip())
    number, name = (int(numbered[1]), numbered[2]) if numbered else (1, text)
    if not 1 <= number <= 100_000:
        raise SpecError("--gpu", f"{number:,} cards", "From 1 to 100,000.")
    found = resolve_hardware(catalog.hardware, name)
    if isinstance(found, Gpu):
        return CardCount(id=found.id, count=number)
    if found.gpu_id is None or found.gpu_count is None:
        raise SpecError("--gpu", f"the catalog does not know the cards of {found.name}", "Name them: 4 x V100.")
    return CardCount(id=found.gpu_id, count=number * found.gpu_count)
