"""An accelerator as a row of a table, and what a person said of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from planner.hardware.catalog import HardwareCatalog
from planner.hardware.gpu import Gpu
from planner.hardware.software import SoftwareFact, lacking_formats, target_of
from planner.hardware.usable import UsableMemory
from planner.memory.fit import CardFit
from planner.memory.result import Verdict
from planner.present import format as fmt

if TYPE_CHECKING:
    from planner.cost.market import CardPrices
    from planner.hardware.own import CardChange, OwnHardware


_KINDS: Final = {"soc": "chip with its processor", "tpu": "chip", "edge": "module"}


class JobWords(NamedTuple):
    """What the plan's job takes and costs on as many of a card as the plan has.

    `slowness` is what is lower the faster the cards are; `hours` are of a run, or of a month's work. What a month costs
    is of different work on each card; `usd_per_million_tokens` is of the same.
    """

    hours: float
    slowness: float
    time: str
    time_origin: str
    usd: float | None
    cost: str
    cost_origin: str
    usd_per_million_tokens: float | None


@dataclass(frozen=True, slots=True)
class GpuRow:
    """A card, what a program can use of it, whether the plan's model fits it, and what it is sold for.

    `verdict` is none where that is not known or not asked; `reason` says why a card cannot run it at all. `job` is what
    the plan's job takes and costs on as many of them as the plan has, none where that is not known or not yet. `prices`
    are none while they have not been read. `here` says whether the card is in this machine, empty where it is not.
    `lacks` holds the number formats that the chip does not compute in, as far as software support has been read.
    """

    gpu: Gpu
    verdict: Verdict | None = None
    free_bytes: int | None = None
    reason: str = ""
    usable: UsableMemory | None = None
    job: JobWords | None = None
    prices: "CardPrices | None" = None
    here: str = ""
    lacks: Mapping[str, SoftwareFact] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Return the card's id."""
        return self.gpu.id

    @property
    def marked_name(self) -> str:
        """Return the card's name after words for what the person has: `Here: …`, `Yours: …`, `2 here, yours: …`."""
        words = [part for part in (self.here, "yours" if self.gpu.own else "") if part]
        told = ", ".join(words)
        return f"{fmt.capitalized(told)}: {self.gpu.name}" if told else self.gpu.name


def gpu_rows(
    hardware: HardwareCatalog,
    fits: Mapping[str, CardFit] | None = None,
    jobs: Mapping[str, JobWords] | None = None,
    prices: Mapping[str, "CardPrices"] | None = None,
    software: Iterable[SoftwareFact] = (),
) -> tuple[GpuRow, ...]:
    """Return a row for every card; by the card's id, `fits` holds the verdicts, `jobs` time and cost of the job.

    `prices` is what the cards are sold and rented for, `software` what runs on them.
    """
    verdicts, worked = fits or {}, jobs or {}
    plain = plain_rows(hardware.gpus, hardware, prices or {}, software)
    return tuple(_judged(row, verdicts.get(row.id), worked.get(row.id)) for row in plain)


def plain_row(
    gpu: Gpu, hardware: HardwareCatalog, prices: Mapping[str, "CardPrices"], software: Iterable[SoftwareFact]
) -> GpuRow:
    """Return the row of one card, on which no plan was judged."""
    (row,) = plain_rows((gpu,), hardware, prices, software)
    return row


def plain_rows(
    gpus: Iterable[Gpu], hardware: HardwareCatalog, prices: Mapping[str, "CardPrices"], software: Iterable[SoftwareFact]
) -> tuple[GpuRow, ...]:
    """Return a row for each of `gpus`, on which no plan was judged."""
    lacking = lacking_formats(software)
    return tuple(
        GpuRow(
            gpu,
            usable=hardware.usable_memory(gpu),
            prices=prices.get(gpu.id),
            lacks=lacking.get(target_of(gpu), {}),
        )
        for gpu in gpus
    )


def part_words(gpu: Gpu) -> str:
    """Return what is sold as one: a card, a laptop's part, a chip with its processor, several devices on a board."""
    kind = "laptop part" if gpu.is_laptop else _KINDS.get(gpu.segment, "card")
    shared = ["memory shared with the processor"] if gpu.unified_memory else []
    split = [f"{gpu.device_count} devices of {fmt.size(gpu.device_memory_bytes)}"] if gpu.device_count > 1 else []
    return ", ".join((kind, *shared, *split))


def _judged(row: GpuRow, fit: CardFit | None, job: JobWords | None) -> GpuRow:
    if fit is None:
        return row
    reason = "; ".join(fit.unsupported)
    return replace(row, verdict=fit.verdict, free_bytes=fit.free_bytes, reason=reason, job=job)


def change_words(change: "CardChange") -> str:
    """Return what is said of a card, such as: paid $720, limited to 250 W, bought used."""
    paid = "" if change.purchase_price_usd is None else f"paid {fmt.money(change.purchase_price_usd)}"
    limit = "" if change.power_limit_watts is None else f"limited to {change.power_limit_watts:,.0f} W"
    return ", ".join(part for part in (paid, limit, change.note or "") if part)


def loss_words(own: "OwnHardware", gpu_id: str) -> str:
    """Return what is lost when a card is forgotten, such as: your own card of 48 GB; what you said: paid $720."""
    card = next((card for card in own.cards if card.id == gpu_id), None)
    change = own.change_of(gpu_id)
    added = "" if card is None else f"your own card of {card.memory_label}"
    said = "" if change is None else f"what you said: {change_words(change)}"
    return "; ".join(part for part in (added, said) if part)
