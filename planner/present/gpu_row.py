"""An accelerator as a row of a table."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from planner.hardware.catalog import HardwareCatalog
from planner.hardware.gpu import Gpu
from planner.hardware.usable import UsableMemory
from planner.memory.fit import CardFit
from planner.memory.result import Verdict
from planner.present import format as fmt

if TYPE_CHECKING:
    from planner.cost.market import CardPrices

_KINDS: Final = {"soc": "chip with its processor", "tpu": "chip", "edge": "module"}


class JobWords(NamedTuple):
    """What the plan's job takes and costs on as many of a card as the plan has, as `planner.present.card_jobs` says it.

    `slowness` is what is lower the faster the cards are; `hours` are of a run, or of a month's work.
    """

    hours: float
    slowness: float
    time: str
    time_origin: str
    usd: float | None
    cost: str
    cost_origin: str


@dataclass(frozen=True, slots=True)
class GpuRow:
    """A card, what a program can use of it, whether the plan's model fits it, and what it is sold for.

    `verdict` is none where that is not known or not asked; `reason` says why a card cannot run it at all. `job` is what
    the plan's job takes and costs on as many of them as the plan has, none where that is not known or not yet. `prices`
    are none while they have not been read. `here` says whether the card is in this machine, empty where it is not.
    """

    gpu: Gpu
    verdict: Verdict | None = None
    free_bytes: int | None = None
    reason: str = ""
    usable: UsableMemory | None = None
    job: JobWords | None = None
    prices: "CardPrices | None" = None
    here: str = ""

    @property
    def id(self) -> str:
        """Return the card's id."""
        return self.gpu.id

    @property
    def marked_name(self) -> str:
        """Return the card's name after words for what the person has: `Here: …`, `Yours: …`, `2 here, yours: …`."""
        words = [part for part in (self.here, "yours" if self.gpu.own else "") if part]
        told = ", ".join(words)
        return f"{told[0].upper()}{told[1:]}: {self.gpu.name}" if told else self.gpu.name


def gpu_rows(
    hardware: HardwareCatalog,
    fits: Mapping[str, CardFit] | None = None,
    jobs: Mapping[str, JobWords] | None = None,
    prices: Mapping[str, "CardPrices"] | None = None,
) -> tuple[GpuRow, ...]:
    """Return a row for every card; by the card's id, `fits` holds the verdicts, `jobs` time and cost of the job.

    `prices` is what the cards are sold and rented for.
    """
    verdicts, worked, known = fits or {}, jobs or {}, prices or {}
    return tuple(
        _row(gpu, hardware.usable_memory(gpu), verdicts.get(gpu.id), worked.get(gpu.id), known.get(gpu.id))
        for gpu in hardware.gpus
    )


def part_words(gpu: Gpu) -> str:
    """Return what is sold as one: a card, a laptop's part, a chip with its processor, several devices on a board."""
    kind = "laptop part" if gpu.is_laptop else _KINDS.get(gpu.segment, "card")
    shared = ["memory shared with the processor"] if gpu.unified_memory else []
    split = [f"{gpu.device_count} devices of {fmt.size(gpu.device_memory_bytes)}"] if gpu.device_count > 1 else []
    return ", ".join((kind, *shared, *split))


def _row(
    gpu: Gpu, usable: UsableMemory | None, fit: CardFit | None, job: JobWords | None, prices: "CardPrices | None"
) -> GpuRow:
    if fit is None:
        return GpuRow(gpu, usable=usable, prices=prices)
    return GpuRow(gpu, fit.verdict, fit.free_bytes, "; ".join(fit.unsupported), usable, job, prices)
