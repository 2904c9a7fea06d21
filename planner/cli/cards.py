"""The cards that the options name: some of one kind, or several kinds."""

import re
from collections.abc import Sequence
from typing import Final

from planner.errors import AmbiguousNameError, SpecError
from planner.hardware.catalog import HardwareCatalog
from planner.hardware.gpu import Gpu
from planner.hardware.names import resolve_gpu
from planner.hardware.system import System
from planner.plan.catalog import Catalog
from planner.workload.parallel import CardCount

# No card's name begins so; `7900XTX` has more digits.
_NUMBERED: Final = re.compile(r"(\d{1,6})\s*(?:[x×]\s+|×)(\S.*)|(\d{1,3})x(\S.*)", re.IGNORECASE)

_BETWEEN: Final = re.compile(r"[\s_-]+")
_CLOSE: Final = 5


def named_cards(texts: Sequence[str], catalog: Catalog, option: str = "--gpu") -> tuple[CardCount, ...]:
    """Return the cards that `texts` name, each such as `RTX 4090`, `2 x RTX 3090` or the system `dgx-a100-640gb`.

    `2×RTX 3090` and `2xrtx-3090` are two as well. `option` is named in errors.

    Raises:
        SpecError: If a number of cards is 0, or the catalog has no such card.
        AmbiguousNameError: If a name means several cards.
    """
    return tuple(_named(text, catalog, option) for text in texts)


def named_system(name: str, hardware: HardwareCatalog) -> System | None:
    """Return the system with this id or name, whatever its case and blanks."""
    wanted = _squeezed(name)
    return next((each for each in hardware.systems if wanted in (_squeezed(each.id), _squeezed(each.name))), None)


def named_card(name: str, hardware: HardwareCatalog) -> Gpu:
    """Return the card that `name` means; where it is like that of systems, the error names those.

    Raises:
        SpecError: If there is no such card.
        AmbiguousNameError: If there are several.
    """
    try:
        return resolve_gpu(hardware, name)
    except AmbiguousNameError:
        raise
    except SpecError as error:
        wanted = _squeezed(name)
        close = [each.id for each in hardware.systems if wanted and wanted in _squeezed(f"{each.id} {each.name}")]
        hint = f"Systems of this name: {', '.join(close[:_CLOSE])}." if close else error.hint
        raise SpecError(error.field, error.reason, hint) from error


def _named(text: str, catalog: Catalog, option: str) -> CardCount:
    number, name = _numbered(text)
    if not 1 <= number <= 100_000:
        raise SpecError(option, f"{number:,} cards", "From 1 to 100,000.")
    system = named_system(name, catalog.hardware)
    if system is None:
        return CardCount(id=named_card(name, catalog.hardware).id, count=number)
    if system.gpu_id is None or system.gpu_count is None:
        raise SpecError(option, f"the catalog does not know the cards of {system.name}", "Name them: 4 x V100.")
    return CardCount(id=system.gpu_id, count=number * system.gpu_count)


def _squeezed(name: str) -> str:
    return _BETWEEN.sub("", name.lower())


def _numbered(text: str) -> tuple[int, str]:
    found = _NUMBERED.fullmatch(text.strip())
    if found is None:
        return 1, text
    number, name = (part for part in found.groups() if part is not None)
    return int(number), name
