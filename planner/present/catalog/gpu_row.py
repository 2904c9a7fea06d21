"""An accelerator as a row of a table."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from planner.hardware.catalog import HardwareCatalog
from planner.hardware.gpu import Gpu
from planner.hardware.software import SoftwareFact, lacking_formats, target_of
from planner.hardware.usable import UsableMemory
from planner.memory.fit import CardFit
from planner.memory.result import Verdict
from planner.plan.job_costs import CardJob
from planner.present import format as fmt
from planner.present.cost.prices import MODE_WORDS, age_words
from planner.present.cost.time import pace_phrase, time_view

if TYPE_CHECKING:
    from planner.cost.market import CardPrices


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


_SECONDS_PER_HOUR: Final = 3_600
_NO_OFFER: Final = "no offer"


def job_words(jobs: Mapping[str, CardJob]) -> dict[str, JobWords]:
    """Return the words for each card, by its id."""
    return {gpu_id: _words(job) for gpu_id, job in jobs.items()}


def _words(job: CardJob) -> JobWords:
    """Return how long a run takes, of what has no end the pace, and what the cheapest offer comes to."""
    runs = job.period == "run"
    view = time_view(job.time)
    return JobWords(
        hours=job.hours,
        slowness=job.slowness,
        time=fmt.duration(job.hours * _SECONDS_PER_HOUR) if runs else _short(pace_phrase(job.time)),
        time_origin="\n".join(part for part in (view.answer, view.reason) if part),
        usd=job.usd,
        cost=_NO_OFFER if job.usd is None else f"{fmt.money(job.usd)}{'' if runs else '/mo'}",
        cost_origin=_cost_origin(job),
        usd_per_million_tokens=job.usd_per_million_tokens,
    )


def _short(pace: str) -> str:
    """Return a pace that is not too wide for a column: `16,899 tok/s`."""
    return pace.replace("tokens/s", "tok/s")


def _cost_origin(job: CardJob) -> str:
    """Return the offer that the cost is of, with the price's date and source."""
    row = job.offer
    if row is None:
        return "Nobody's offer of this card can be compared."
    where = f"{row.offer.provider}, {row.offer.region or 'region not said'}"
    machines = f"{fmt.count_of(row.instances, row.offer.instance)}, {MODE_WORDS[row.mode]}"
    price = f"{fmt.money(row.usd)} a {job.period}, {fmt.money(row.usd_per_gpu_hour)} a GPU-hour of work"
    dated = f"price of {fmt.date(row.price_date, fmt.NO_DATE)}, {age_words(row.age_days)}"
    return "\n".join((where, machines, price, dated, row.offer.source, *row.remarks))
