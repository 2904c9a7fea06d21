"""Cost terms of a plan: the job, renting, owning, the region and the horizon.

Open fields take the figure of a preset, with its source; set fields are the user's own.
"""

import datetime
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Final, Literal, Self, get_args

from pydantic import Field, model_validator

from planner.base import Spec
from planner.units import HOURS_PER_DAY

WorkUnit = Literal["tokens", "samples", "epochs", "steps", "hours"]
HOURS_PER_YEAR: Final = 8_766.0
"""Hours in a year of 365.25 days."""
_FIRST_DAY: Final = "2000-01-01"


def days_since(day: str | None, today: datetime.date) -> int | None:
    """Return the age in days of an ISO day, or from the start of an ISO month or year; None without a date."""
    return None if day is None else (today - datetime.date.fromisoformat(day + _FIRST_DAY[len(day) :])).days


class Run(Spec):
    """A training or batch job that ends, done once or several times a year."""

    kind: Literal["run"] = "run"
    amount: float = Field(gt=0, le=1e18, allow_inf_nan=False, description="in the unit")
    unit: WorkUnit = "hours"
    dataset_samples: float | None = Field(default=None, gt=0, description="samples per epoch")
    repeats_per_year: float | None = Field(default=None, gt=0, le=1e6, description="none: once only")
    checkpoint_seconds: float = Field(
        default=0.0, ge=0, le=86_400, description="to write a checkpoint, while training pauses"
    )
    checkpoint_interval_hours: float | None = Field(default=None, gt=0, le=10_000, description="none: the optimal one")
    restart_seconds: float = Field(default=0.0, ge=0, le=86_400, description="to resume after an interruption")
    evaluation_fraction: float = Field(
        default=0.0, ge=0, le=10, description="evaluation time as a fraction of the training time"
    )
    checkpoint_gb: float = Field(default=0.0, ge=0, le=1e9, description="size of all stored checkpoints")
    dataset_gb: float = Field(default=0.0, ge=0, le=1e9)
    egress_gb: float = Field(default=0.0, ge=0, le=1e9, description="transferred out of the cloud in each run")


class Service(Spec):
    """A service that answers requests day and night."""

    kind: Literal["service"] = "service"
    requests_per_day: float = Field(gt=0, le=1e12, allow_inf_nan=False)
    prompt_tokens: float = Field(default=1_000, ge=0, le=1e8)
    output_tokens: float = Field(default=300, gt=0, le=1e8)
    peak_factor: float = Field(default=2.0, ge=1, le=1_000, description="peak load divided by the average load")
    busy_fraction: float = Field(
        default=0.8,
        gt=0,
        le=1,
        description="planned utilization of the GPUs at peak load; higher values make requests wait",
    )
    hourly_shares: tuple[float, ...] = Field(
        default=(), description="relative load of each hour of the day, instead of the peak factor"
    )
    scales_down: bool = Field(default=False, description="rented machines are released while demand is low")
    traffic_preset: str | None = Field(
        default=None,
        max_length=100,
        description="kind of service whose lengths, common beginnings and conversations the requests have; none: all "
        "requests have the same lengths",
    )
    burstiness: float = Field(
        default=1.0, gt=0, le=100, description="1: requests arrive at random; lower: in bursts; higher: evenly spread"
    )
    latency_percentile: float = Field(
        default=95.0, ge=50, lt=100, description="percentage of the requests that the latency targets hold for"
    )
    ttft_seconds: float | None = Field(default=None, gt=0, le=1e6, description="latest first token; none: no target")
    tpot_seconds: float | None = Field(
        default=None, gt=0, le=1e6, description="longest mean time between the tokens of an answer"
    )
    e2e_seconds: float | None = Field(default=None, gt=0, le=1e6, description="latest end of an answer")
    model_gb: float = Field(default=0.0, ge=0, le=1e9, description="size of the stored model")
    egress_gb_per_month: float = Field(default=0.0, ge=0, le=1e9)

    @model_validator(mode="after")
    def _check_hourly_shares(self) -> Self:
        shares = self.hourly_shares
        if shares and (len(shares) != HOURS_PER_DAY or min(shares) < 0 or not 0 < sum(shares) < math.inf):
            raise ValueError("hourly_shares needs 24 non-negative numbers that are not all zero")
        return self


class DailyHours(Spec):
    """GPUs that are in use for a number of hours per day."""

    kind: Literal["daily-hours"] = "daily-hours"
    hours_per_day: float = Field(gt=0, le=24)
    days_per_week: float = Field(default=5.0, gt=0, le=7)
    stored_gb: float = Field(default=0.0, ge=0, le=1e9)


Job = Annotated[Run | Service | DailyHours, Field(discriminator="kind")]

DEFAULT_JOBS: Final[Mapping[str, Job]] = MappingProxyType(
    {
        "run": Run.model_construct(amount=50_000_000, unit="tokens"),
        "service": Service.model_construct(requests_per_day=10_000),
        "daily-hours": DailyHours.model_construct(hours_per_day=8.0),
    }
)
"""The default job of each kind."""


Side = Literal["rent", "buy"]
"""Way to have GPUs; of GPUs that are owned already, "buy" means to use them."""
RentMode = Literal["on-demand", "spot", "reserved-1y", "reserved-3y"]
RENT_MODES: Final[tuple[RentMode, ...]] = get_args(RentMode)
CURRENT_DAYS: Final = 90
"""Age in days up to which a price is current: rental prices moved by up to 30 % within a quarter of 2026."""
HISTORY_DAYS: Final = 365
"""Age in days from which offers are excluded as outdated."""

PlaceKind = Literal["desk", "lab", "colocation", "data-centre"]
ColocationPower = Literal["included", "metered"]
DepreciationMethod = Literal["straight-line", "declining", "macrs-5"]

_EPOCH: Final = "Epoch AI, training-cost-trends"
_PRICE_INDEX: Final = "github:ewyluda/gpu-price-index, modeling constant"
DEFAULT_SOURCES: Final[dict[str, str]] = {
    "horizon_years": f"{_EPOCH}: servers bought from 2023 on last five years",
    "discount_rate": f"{_PRICE_INDEX} of 8 %",
    "region": "assumed: the region of most offers",
    "job.prompt_tokens": "assumed",
    "job.output_tokens": "assumed",
    "job.peak_factor": "assumed: enter the distribution of your own requests",
    "job.busy_fraction": "assumed: beyond it, the wait for a single slot exceeds four times the duration of a request",
    "job.days_per_week": "assumed: working days",
    "rent.billing_increment_seconds": "assumed: an hour, the conservative choice if the offer does not state it",
    "rent.price_drift_per_year": "assumed: none, as prices both rose and fell in 2025 and 2026",
    "buy.switched_off_when_idle": "assumed: a machine at a desk sleeps when it is idle, servers elsewhere stay on",
    "buy.depreciation_years": f"{_EPOCH}: servers bought from 2023 on last five years",
    "buy.loan_years": "assumed",
    "buy.depreciation": f"{_PRICE_INDEX}: straight line",
}
"""Sources for the default terms, by field; unset fields take catalog figures, which have sources of their own."""


class RentTerms(Spec):
    """Rental terms, with the offer; by default the cheapest offer is chosen."""

    mode: RentMode = "on-demand"
    offer: str | None = Field(default=None, description="the id of one offer; none: the cheapest comparable one")
    usd_per_gpu_hour: float | None = Field(
        default=None, gt=0.01, lt=100, description="your own price for one GPU, instead of the offer's"
    )
    regions: tuple[str, ...] = Field(default=(), description="only these; empty: all of them")
    providers: tuple[str, ...] = Field(default=(), description="only these; empty: all of them")
    one_machine: bool | None = Field(
        default=None, description="whether up to eight GPUs must be in one machine; none: only if they exchange data"
    )
    include_history: bool = Field(default=False, description="include offers older than twelve months")
    mean_hours_between_interruptions: float | None = Field(
        default=None, gt=0, le=1e6, description="of one spot machine; none: from published bands of the GPU"
    )
    minimum_instances: int = Field(default=1, ge=1, le=10_000)
    billing_increment_seconds: int = Field(
        default=3_600, ge=1, le=2_678_400, description="if the offer does not state it; an hour is conservative"
    )
    idle_billed_hours: float = Field(
        default=0.0, ge=0, le=1e6, description="billed for each job while idle: setup, waiting for data"
    )
    storage_usd_per_gb_month: float | None = Field(
        default=None, ge=0, le=10, description="none: a typical price of the catalog"
    )
    egress_usd_per_gb: float | None = Field(default=None, ge=0, le=10, description="none: the provider's tiers")
    price_drift_per_year: float = Field(default=0.0, ge=-0.9, le=3, description="0.1: prices rise by 10 % a year")


class BuyTerms(Spec):
    """Ownership terms; None takes the preset figure for the place, which follows from the GPU by default."""

    place: PlaceKind | None = Field(
        default=None, description="where the machines are; none: a desk for owned GPUs made for one, else a lab"
    )
    owned: bool = Field(default=False, description="the GPUs are owned already, so that only electricity is paid")
    sale_usd_per_card: float | None = Field(
        default=None, gt=0, le=1e7, description="of an owned GPU: its sale today, if that is an alternative"
    )
    card_price_usd: float | None = Field(default=None, gt=0, le=1e7, description="of one GPU; none: from the catalog")
    server_price_usd: float | None = Field(
        default=None, gt=0, le=1e8, description="of a server with its GPUs; none: from the catalog, or GPU and host"
    )
    gpus_per_server: int | None = Field(default=None, ge=1, le=72)
    host_factor: float | None = Field(
        default=None, ge=1, le=10, description="price of a server divided by that of its GPUs"
    )
    network_usd: float | None = Field(
        default=None, ge=0, le=1e9, description="switches and cables, instead of the share of the cluster's price"
    )
    network_share: float | None = Field(
        default=None, ge=0, lt=1, description="of the whole cluster's price, if GPUs of several servers work together"
    )
    rack_usd_per_server: float | None = Field(default=None, ge=0, le=1e7, description="rack, power strips, UPS, room")
    tax_fraction: float | None = Field(default=None, ge=0, le=1, description="on everything that is bought")
    shipping_usd: float | None = Field(default=None, ge=0, le=1e8)
    install_usd: float | None = Field(default=None, ge=0, le=1e8)
    server_power_watts: float | None = Field(default=None, gt=0, le=1e6, description="of a server at full load")
    server_power_factor: float | None = Field(
        default=None, ge=1, le=10, description="power of a server divided by that of its GPUs"
    )
    active_power_fraction: float | None = Field(
        default=None, gt=0, le=1, description="power at work, as a fraction of full load"
    )
    idle_power_fraction: float | None = Field(
        default=None, ge=0, le=1, description="idle power, as a fraction of full load"
    )
    switched_off_when_idle: bool | None = Field(
        default=None, description="or asleep, so that idle machines draw nothing; none: at a desk"
    )
    pue: float | None = Field(default=None, ge=1, le=4)
    tariff_usd_per_kwh: float | None = Field(default=None, ge=0, le=5, description="none: of the region")
    colocation_usd_per_kw_month: float | None = Field(default=None, ge=0, le=5_000)
    colocation_power: ColocationPower | None = Field(
        default=None, description="whether that price includes electricity, or it is metered separately"
    )
    operations_fraction_per_year: float | None = Field(default=None, ge=0, le=1, description="of what was bought")
    support_fraction_per_year: float | None = Field(default=None, ge=0, le=1, description="of what was bought")
    spares_fraction_per_year: float | None = Field(default=None, ge=0, le=1, description="of the GPUs' price")
    insurance_fraction_per_year: float | None = Field(default=None, ge=0, le=1, description="of what was bought")
    staff_usd_per_year: float | None = Field(default=None, ge=0, le=1e8)
    licence_usd_per_gpu_year: float | None = Field(default=None, ge=0, le=1e5)
    loan_fraction: float = Field(default=0.0, ge=0, le=1, description="fraction of the purchase that is borrowed")
    loan_rate: float = Field(default=0.0, ge=0, lt=1, description="interest per year")
    loan_years: float = Field(default=3.0, gt=0, le=30)
    depreciation: DepreciationMethod = "straight-line"
    depreciation_years: float = Field(default=5.0, gt=0, le=30)
    resale_share: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="of the GPUs' price at the end, and half of it for hosts; none: the curve",
    )

    @model_validator(mode="after")
    def _power_is_paid_once(self) -> Self:
        """Reject the user's own colocation price unless it states whether electricity is included."""
        if self.colocation_usd_per_kw_month and self.colocation_power is None:
            raise ValueError("state in colocation_power whether the colocation price includes electricity")
        return self


class CostTerms(Spec):
    """The cost terms of a plan: the job, renting and owning, the region and the years compared."""

    job: Job = DailyHours.model_construct(hours_per_day=8.0)
    rent: RentTerms = RentTerms.model_construct()
    buy: BuyTerms = BuyTerms.model_construct()
    chosen: Side | None = Field(default=None, description="the side that was chosen; none: the cheaper one")
    region: str = Field(
        default="US", description="region of the electricity: a code of the catalog, such as DE or US-WA"
    )
    horizon_years: float = Field(default=5.0, gt=0, le=30, allow_inf_nan=False, description="years of ownership")
    discount_rate: float = Field(
        default=0.08, ge=0, lt=1, allow_inf_nan=False, description="yearly discount rate of future payments"
    )
