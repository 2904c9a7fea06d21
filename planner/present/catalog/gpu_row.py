"""Accelerators as table rows with the job on each, and the user's own changes to them as text."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from planner.cost.figure import Figure
from planner.hardware.catalog import HardwareCatalog
from planner.hardware.gpu import Gpu
from planner.hardware.software_support import SoftwareFact, software_target, unsupported_formats
from planner.hardware.usable import UsableMemory
from planner.memory.fit import CardFit
from planner.memory.result import Verdict
from planner.plan.cost import CardJob
from planner.present import format as fmt
from planner.present.cost.prices import RENT_MODE_TITLES, age_text
from planner.present.cost.time import pace_phrase, time_view

if TYPE_CHECKING:
    from planner.cost.card_prices import CardPrices
    from planner.hardware.own import CardChange, OwnHardware


_KINDS: Final = {"soc": "system on chip", "tpu": "chip", "edge": "module"}


class JobSummary(NamedTuple):
    """Time and cost of the plan's job on one kind of card, with the plan's number of cards.

    `hours` are per run, or per month of work; `slowness` is lower for faster cards. A month's cost covers a different
    amount of work on each card, so only `usd_per_million_tokens` is comparable between cards.
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
    """A card of the catalog with its usable memory, the plan's verdict and job there, and its prices.

    `verdict` is None if it is not known or was not computed; `reason` says why the card cannot run the plan at all.
    `job` is None if the job's time is not known, or not yet, which `awaits_job` says; `prices` until they are loaded.
    `buying` is what one card costs, if known. `here` says whether this machine has the card, and is empty if not.
    `lacks` holds the number formats that the chip does not support, if software support is loaded.
    """

    gpu: Gpu
    verdict: Verdict | None = None
    free_bytes: int | None = None
    reason: str = ""
    usable: UsableMemory | None = None
    job: JobSummary | None = None
    awaits_job: bool = False
    prices: "CardPrices | None" = None
    buying: Figure | None = None
    here: str = ""
    lacks: Mapping[str, SoftwareFact] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Return the card's id."""
        return self.gpu.id

    @property
    def marked_name(self) -> str:
        """Return the name, with a prefix for own and detected cards: `Here: …`, `Yours: …`, `2 here, yours: …`."""
        words = [part for part in (self.here, "yours" if self.gpu.own else "") if part]
        text = ", ".join(words)
        return f"{fmt.capitalized(text)}: {self.gpu.name}" if text else self.gpu.name


def gpu_rows(
    hardware: HardwareCatalog,
    fits: Mapping[str, CardFit] | None = None,
    jobs: Mapping[str, JobSummary] | None = None,
    prices: Mapping[str, "CardPrices"] | None = None,
    software: Iterable[SoftwareFact] = (),
    buying: Mapping[str, Figure] | None = None,
) -> tuple[GpuRow, ...]:
    """Return a row for every card of the catalog.

    Args:
        hardware: The catalog.
        fits: Verdicts of the plan, by card id.
        jobs: Time and cost of the plan's job, by card id; None while they are computed.
        prices: Sale and rental prices, by card id.
        software: Known software support.
        buying: What one card costs, by card id.
    """
    verdicts, prices_by_id = fits or {}, buying or {}
    plain = gpu_rows_without_plan(hardware.gpus, hardware, prices or {}, software)
    return tuple(_row_with_verdict(row, verdicts.get(row.id), jobs, prices_by_id.get(row.id)) for row in plain)


def gpu_row_without_plan(
    gpu: Gpu,
    hardware: HardwareCatalog,
    prices: Mapping[str, "CardPrices"],
    software: Iterable[SoftwareFact],
    buying: "Figure | None" = None,
) -> GpuRow:
    """Return the row of one card, which costs `buying`, without a verdict."""
    (row,) = gpu_rows_without_plan((gpu,), hardware, prices, software)
    return replace(row, buying=buying)


def gpu_rows_without_plan(
    gpus: Iterable[Gpu], hardware: HardwareCatalog, prices: Mapping[str, "CardPrices"], software: Iterable[SoftwareFact]
) -> tuple[GpuRow, ...]:
    """Return a table row for each of `gpus`; the rows have no verdicts of a plan."""
    lacking = unsupported_formats(software)
    return tuple(
        GpuRow(
            gpu,
            usable=hardware.usable_memory(gpu),
            prices=prices.get(gpu.id),
            lacks=lacking.get(software_target(gpu), {}),
        )
        for gpu in gpus
    )


def product_kind(gpu: Gpu) -> str:
    """Return the kind of product: `card`, `laptop part`, `system on chip, …`, `card, 2 devices of 64 GiB`."""
    kind = "laptop part" if gpu.is_laptop else _KINDS.get(gpu.segment, "card")
    shared = ["memory shared with the CPU"] if gpu.unified_memory else []
    split = [f"{gpu.device_count} devices of {fmt.size(gpu.device_memory_bytes)}"] if gpu.device_count > 1 else []
    return ", ".join((kind, *shared, *split))


def _row_with_verdict(
    row: GpuRow, fit: CardFit | None, jobs: Mapping[str, JobSummary] | None, buying: Figure | None
) -> GpuRow:
    if fit is None:
        return row if buying is None else replace(row, buying=buying)
    return replace(
        row,
        verdict=fit.verdict,
        free_bytes=fit.free_bytes,
        reason="; ".join(fit.unsupported),
        job=None if jobs is None else jobs.get(row.id),
        awaits_job=jobs is None and fit.likely,
        buying=buying,
    )


def change_summary(change: "CardChange") -> str:
    """Return the user's changes to a card as text: `paid $720, limited to 250 W, bought used`."""
    paid = "" if change.purchase_price_usd is None else f"paid {fmt.money(change.purchase_price_usd)}"
    limit = "" if change.power_limit_watts is None else f"limited to {change.power_limit_watts:,.0f} W"
    return ", ".join(part for part in (paid, limit, change.note or "") if part)


def removal_summary(own: "OwnHardware", gpu_id: str) -> str:
    """Return what is lost by removing a card: `your own card of 48 GB; your changes: paid $720`."""
    card = next((card for card in own.cards if card.id == gpu_id), None)
    change = own.change_of(gpu_id)
    added = "" if card is None else f"your own GPU of {card.memory_label}"
    text = "" if change is None else f"your changes: {change_summary(change)}"
    return "; ".join(part for part in (added, text) if part)


_SECONDS_PER_HOUR: Final = 3_600
_NO_OFFER: Final = "no offer"


def job_summaries(jobs: Mapping[str, CardJob]) -> dict[str, JobSummary]:
    """Return the summary of the job on each card, by card id."""
    return {gpu_id: _job_summary(job) for gpu_id, job in jobs.items()}


def _job_summary(job: CardJob) -> JobSummary:
    """Return a run's duration, or the pace of a job without an end, with the cost at the cheapest offer."""
    runs = job.period == "run"
    view = time_view(job.time)
    return JobSummary(
        hours=job.hours,
        slowness=job.slowness,
        time=fmt.duration(job.hours * _SECONDS_PER_HOUR)
        if runs
        else pace_phrase(job.time).replace("tokens/s", "tok/s"),
        time_origin="\n".join(part for part in (view.answer, view.reason) if part),
        usd=job.usd,
        cost=_NO_OFFER if job.usd is None else f"{fmt.money(job.usd)}{'' if runs else '/mo'}",
        cost_origin=_cost_origin(job),
        usd_per_million_tokens=job.usd_per_million_tokens,
    )


def _cost_origin(job: CardJob) -> str:
    """Return the offer behind the cost, with the price's date and source."""
    row = job.offer
    if row is None:
        return "No comparable offer for this GPU."
    where = f"{row.offer.provider}, {row.offer.region or 'unknown region'}"
    machines = f"{fmt.count_of(row.instances, row.offer.instance)}, {RENT_MODE_TITLES[row.mode]}"
    price = f"{fmt.money(row.usd)} per {job.period}, {fmt.money(row.usd_per_gpu_hour)} per GPU-hour"
    dated = f"price of {fmt.date(row.price_date, fmt.NO_DATE)}, {age_text(row.age_days)}"
    return "\n".join((where, machines, price, dated, row.offer.source, *row.remarks))
