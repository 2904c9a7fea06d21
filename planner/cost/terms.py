"""What the plan holds about money: the job, how it would be rented or owned, where, and over which time.

What is left open takes the figure of a preset, with its source; what is written is the person's own.
"""

from typing import Final, Literal, Self, get_args

from pydantic import Field, model_validator

from planner.base import Spec
from planner.cost.job import DailyHours, Job

RentMode = Literal["on-demand", "spot", "reserved-1y", "reserved-3y"]
RENT_MODES: Final[tuple[RentMode, ...]] = get_args(RentMode)
HISTORY_DAYS: Final = 365
"""From this age on an offer is history: what was once asked, not what is asked."""

PlaceKind = Literal["desk", "lab", "colocation", "data-centre"]
ColocationPower = Literal["included", "metered"]
DepreciationMethod = Literal["straight-line", "declining", "macrs-5"]

_EPOCH: Final = "Epoch AI, training-cost-trends"
_PRICE_INDEX: Final = "github:ewyluda/gpu-price-index, modelling constant"
DEFAULT_SOURCES: Final[dict[str, str]] = {
    "horizon_years": f"{_EPOCH}: servers bought from 2023 on last five years",
    "discount_rate": f"{_PRICE_INDEX} of 8 %",
    "region": "assumed: the region that most offers are in",
    "job.prompt_tokens": "assumed",
    "job.output_tokens": "assumed",
    "job.peak_factor": "assumed: only you know how your requests are spread",
    "job.busy_fraction": "assumed: beyond it the wait for a single place is over four times what a request takes",
    "job.days_per_week": "assumed: working days",
    "rent.billing_increment_seconds": "assumed: an hour, the careful choice where an offer does not say",
    "rent.price_drift_per_year": "assumed: prices rose and fell in 2025 and 2026, so that none is taken",
    "buy.depreciation_years": f"{_EPOCH}: servers bought from 2023 on last five years",
    "buy.loan_years": "assumed",
    "buy.depreciation": f"{_PRICE_INDEX}: straight line",
}
"""Where the defaults of the terms come from, by field; what is left open takes figures of the catalog, with theirs."""


class RentTerms(Spec):
    """How machines are rented; the offer is chosen among those that fit, or named."""

    mode: RentMode = "on-demand"
    offer: str | None = Field(default=None, description="the id of one offer; none: the cheapest that can be compared")
    regions: tuple[str, ...] = Field(default=(), description="only these; empty: all of them, each named")
    providers: tuple[str, ...] = Field(default=(), description="only these; empty: all of them")
    one_machine: bool = Field(
        default=True, description="the cards must share a machine, eight of them at most; off: single cards will do"
    )
    include_history: bool = Field(default=False, description="also offers that are older than twelve months")
    mean_hours_between_interruptions: float | None = Field(
        default=None, gt=0, le=1e6, description="of one spot machine; none: from the bands of the card"
    )
    minimum_instances: int = Field(default=1, ge=1, le=10_000)
    billing_increment_seconds: int = Field(
        default=3_600, ge=1, le=2_678_400, description="where the offer does not say; an hour is the careful choice"
    )
    idle_billed_hours: float = Field(
        default=0.0, ge=0, le=1e6, description="billed for each job while nothing runs: setting up, waiting for data"
    )
    storage_usd_per_gb_month: float | None = Field(
        default=None, ge=0, le=10, description="none: a typical price of the catalog"
    )
    egress_usd_per_gb: float | None = Field(default=None, ge=0, le=10, description="none: the provider's tiers")
    price_drift_per_year: float = Field(default=0.0, ge=-0.9, le=3, description="0.1: prices rise by 10 % a year")


class BuyTerms(Spec):
    """How cards are owned; None takes the figure of the place's preset."""

    place: PlaceKind = "lab"
    card_price_usd: float | None = Field(default=None, gt=0, le=1e7, description="of one card; none: from the catalog")
    server_price_usd: float | None = Field(
        default=None, gt=0, le=1e8, description="of a whole server with its cards, instead of card and host"
    )
    gpus_per_server: int | None = Field(default=None, ge=1, le=72)
    host_factor: float | None = Field(
        default=None, ge=1, le=10, description="price of the server over that of its cards"
    )
    network_usd: float | None = Field(
        default=None, ge=0, le=1e9, description="switches and cables, instead of the share"
    )
    network_share: float | None = Field(
        default=None, ge=0, lt=1, description="of the whole cluster's price; counted from two servers on"
    )
    rack_usd_per_server: float | None = Field(default=None, ge=0, le=1e7, description="rack, power strips, UPS, room")
    tax_fraction: float | None = Field(default=None, ge=0, le=1, description="on everything that is bought")
    shipping_usd: float | None = Field(default=None, ge=0, le=1e8)
    install_usd: float | None = Field(default=None, ge=0, le=1e8)
    server_power_watts: float | None = Field(default=None, gt=0, le=1e6, description="of a server at full load")
    server_power_factor: float | None = Field(default=None, ge=1, le=10, description="server over its cards' power")
    active_power_fraction: float | None = Field(default=None, gt=0, le=1, description="drawn at work, of full load")
    idle_power_fraction: float | None = Field(default=None, ge=0, le=1, description="drawn at rest, of full load")
    switched_off_when_idle: bool = False
    pue: float | None = Field(default=None, ge=1, le=4)
    tariff_usd_per_kwh: float | None = Field(default=None, ge=0, le=5, description="none: of the region")
    colocation_usd_per_kw_month: float | None = Field(default=None, ge=0, le=5_000)
    colocation_power: ColocationPower | None = Field(
        default=None, description="whether that price includes the electricity, or it is metered beside it"
    )
    operations_fraction_per_year: float | None = Field(default=None, ge=0, le=1, description="of what was bought")
    support_fraction_per_year: float | None = Field(default=None, ge=0, le=1, description="of what was bought")
    spares_fraction_per_year: float | None = Field(default=None, ge=0, le=1, description="of the cards' price")
    insurance_fraction_per_year: float | None = Field(default=None, ge=0, le=1, description="of what was bought")
    staff_usd_per_year: float | None = Field(default=None, ge=0, le=1e8)
    licence_usd_per_gpu_year: float | None = Field(default=None, ge=0, le=1e5)
    loan_fraction: float = Field(default=0.0, ge=0, le=1, description="of what is bought, borrowed")
    loan_rate: float = Field(default=0.0, ge=0, lt=1, description="interest a year")
    loan_years: float = Field(default=3.0, gt=0, le=30)
    depreciation: DepreciationMethod = "straight-line"
    depreciation_years: float = Field(default=5.0, gt=0, le=30)
    resale_share: float | None = Field(
        default=None, ge=0, le=1, description="of the cards' price, at the end; none: the curve"
    )

    @model_validator(mode="after")
    def _power_is_paid_once(self) -> Self:
        """Refuse a price of colocation of one's own that does not say whether electricity is in it."""
        if self.colocation_usd_per_kw_month and self.colocation_power is None:
            raise ValueError("say in colocation_power whether the price of colocation includes the electricity")
        return self


class CostTerms(Spec):
    """Everything about money that a plan holds."""

    job: Job = DailyHours(hours_per_day=8.0)
    rent: RentTerms = RentTerms()
    buy: BuyTerms = BuyTerms()
    region: str = Field(default="US", description="whose electricity: a code of the catalog, such as DE or US-WA")
    horizon_years: float = Field(default=5.0, gt=0, le=30, allow_inf_nan=False)
    discount_rate: float = Field(default=0.08, ge=0, lt=1, allow_inf_nan=False, description="a year")
