"""An accelerator as a row of a table."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from planner.hardware.catalog import HardwareCatalog
from planner.hardware.gpu import Gpu
from planner.hardware.usable import UsableMemory
from planner.memory.fit import CardFit
from planner.memory.result import Verdict
from planner.present import format as fmt

if TYPE_CHECKING:
    from planner.cost.market import CardPrices

_KINDS: Final = {"soc": "chip with its processor", "tpu": "chip", "edge": "module"}


@dataclass(frozen=True, slots=True)
class GpuRow:
    """A card, what a program can use of it, and whether the plan's model fits it.

    `verdict` is none where that is not known or not asked; `reason` says why a card cannot run it at all. `prices` are
    none while they have not been read.
    """

    gpu: Gpu
    verdict: Verdict | None = None
    free_bytes: int | None = None
    reason: str = ""
    usable: UsableMemory | None = None
    prices: "CardPrices | None" = None

    @property
    def id(self) -> str:
        """Return the card's id."""
        return self.gpu.id


def gpu_rows(
    hardware: HardwareCatalog,
    fits: Mapping[str, CardFit] | None = None,
    prices: Mapping[str, "CardPrices"] | None = None,
) -> tuple[GpuRow, ...]:
    """Return a row for every card; `fits` holds the verdicts by the card's id, `prices` what it is sold for."""
    verdicts, known = fits or {}, prices or {}
    return tuple(
        _row(gpu, hardware.usable_memory(gpu), verdicts.get(gpu.id), known.get(gpu.id)) for gpu in hardware.gpus
    )


def part_words(gpu: Gpu) -> str:
    """Return what is sold as one: a card, a laptop's part, a chip with its processor, several devices on a board."""
    kind = "laptop part" if gpu.is_laptop else _KINDS.get(gpu.segment, "card")
    shared = ["memory shared with the processor"] if gpu.unified_memory else []
    split = [f"{gpu.device_count} devices of {fmt.size(gpu.device_memory_bytes)}"] if gpu.device_count > 1 else []
    return ", ".join((kind, *shared, *split))


def _row(gpu: Gpu, usable: UsableMemory | None, fit: CardFit | None, prices: "CardPrices | None") -> GpuRow:
    if fit is None:
        return GpuRow(gpu, usable=usable, prices=prices)
    return GpuRow(gpu, fit.verdict, fit.free_bytes, "; ".join(fit.unsupported), usable, prices)
