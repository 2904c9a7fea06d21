"""The cards that the options name: some of one kind, or several kinds."""

import re
from collections.abc import Sequence
from typing import Final

from planner.errors import SpecError
from planner.hardware.catalog import HardwareCatalog
from planner.hardware.names import resolve_gpu
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


def named_system(name: str, hardware: HardwareCatalog) -> System | None:
    """Return the system with this id or name, whatever its case."""
    return next((each for each in hardware.systems if name.strip().lower() in (each.id, each.name.lower())), None)


def _named(text: str, catalog: Catalog) -> CardCount:
    numbered = _NUMBERED.fullmatch(text.strip())
    number, name = (int(numbered[1]), numbered[2]) if numbered else (1, text)
    if not 1 <= number <= 100_000:
        raise SpecError("--gpu", f"{number:,} cards", "From 1 to 100,000.")
    system = named_system(name, catalog.hardware)
    if system is None:
        return CardCount(id=resolve_gpu(catalog.hardware, name).id, count=number)
    if system.gpu_id is None or system.gpu_count is None:
        raise SpecError("--gpu", f"the catalog does not know the cards of {system.name}", "Name them: 4 x V100.")
    return CardCount(id=system.gpu_id, count=number * system.gpu_count)
