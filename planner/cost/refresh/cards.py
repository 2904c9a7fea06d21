"""Which card of the catalog a source means by its name and memory: one, several that cannot be told apart, or none."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from planner.cost.refresh.listing import Listing
from planner.hardware.catalog import HardwareCatalog
from planner.hardware.gpu import Gpu
from planner.hardware.names import candidates
from planner.units import GIB

Known = Mapping[tuple[str, str], str]
"""The card of instance types whose card is known, by provider and instance."""

_MEMORY_DIFFERENCE: Final = 0.07
"""How far a stated size may be off, of either unit and rounded: 23 GB and 24 GiB are the same card's."""
_DECIMAL: Final = 1e9


class Match(NamedTuple):
    """`gpu` is the card's id where there is one, else `candidates` are the ids that it could be."""

    gpu: str | None
    candidates: tuple[str, ...]


class Matcher:
    """Names the cards of listings; each spelling is looked up once.

    An instance type that is known keeps its card: "p5.48xlarge" has H100 SXM, whatever a list calls them.
    """

    def __init__(self, hardware: HardwareCatalog, known: Known) -> None:
        self._hardware, self._known = hardware, known
        self._found: dict[tuple[str, float | None], Match] = {}

    def match(self, listing: Listing) -> Match:
        """Return what `listing` may be; neither a card nor candidates where nothing is called so."""
        known = self._known.get((listing.provider, listing.instance))
        if known is not None and _is_of_size(self._hardware.gpu(known), listing.card_memory_gb):
            return Match(known, ())
        key = listing.card, listing.card_memory_gb
        if key not in self._found:
            self._found[key] = self._look_up(*key)
        return self._found[key]

    def _look_up(self, card: str, memory_gb: float | None) -> Match:
        found = [gpu for gpu in candidates(self._hardware, card) if _is_of_size(gpu, memory_gb)]
        if len(found) == 1:
            return Match(found[0].id, ())
        return Match(None, tuple(gpu.id for gpu in found))


def _is_of_size(gpu: Gpu, memory_gb: float | None) -> bool:
    """Return whether a card may have the stated memory; everything may where none is stated."""
    if memory_gb is None or not memory_gb or gpu.memory_bytes is None:
        return True
    sizes = gpu.memory_bytes / GIB, gpu.memory_bytes / _DECIMAL
    return any(abs(size - memory_gb) <= _MEMORY_DIFFERENCE * size for size in sizes)
