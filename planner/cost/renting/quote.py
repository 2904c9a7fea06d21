"""Cost of renting one offer for one job, or a month of a service: machines, interruptions, storage and egress."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from planner.base import Spec
from planner.cost.catalog import CostCatalog
from planner.cost.demand import HOURS_PER_MONTH, Demand
from planner.cost.figure import Constant, EgressTariff, Figure
from planner.cost.finance import ceil_with_tolerance
from planner.cost.renting.offer import Offer
from planner.cost.terms import RentMode, RentTerms
from planner.errors import SpecError
from planner.units import SECONDS_PER_HOUR

_INTERRUPTION_BANDS: Final = (("h100", "H100 p5"), ("a100", "A100 p4d"), ("l4", "L4"))
"""GPUs with published interruption rates; `l4` is a whole GPU id, `h100` and `a100` are prefixes of GPU ids."""

_BAND_PROVIDER: Final = "AWS"


class InterruptionOverhead(Spec):
    """Extra hours due to interruptions and checkpoints, as fractions of the work."""

    interval_hours: float | None
    checkpoint_fraction: float
    lost_fraction: float
    restart_fraction: float

    @property
    def total_fraction(self) -> float:
        """Return the total overhead of interruptions and checkpoints as a fraction of the work."""
        return self.checkpoint_fraction + self.lost_fraction + self.restart_fraction


def best_checkpoint_interval(checkpoint_hours: float, mean_hours: float) -> float:
    """Return the optimal interval between checkpoints, in hours of work.

    **Formula** τ = √(2 · δ · M)
    **Source** Young (1974), Daly (2006), first order
    **Assumes** that a checkpoint takes far less than the time between interruptions.
    """
    return math.sqrt(2 * checkpoint_hours * mean_hours)


def interruption_overhead(
    checkpoint_hours: float, restart_hours: float, mean_hours: float, interval_hours: float | None = None
) -> InterruptionOverhead:
    """Return the overhead of interruptions that occur every `mean_hours` on average.

    **Formula** δ/τ + (τ/2 + R)/M. Without `interval_hours`, the optimal interval; checkpoints that take no time may be
    continuous.

    Raises:
        SpecError: If `mean_hours` is not positive.
    """
    if mean_hours <= 0:
        raise SpecError("rent.mean_hours_between_interruptions", f"must be more than 0, not {mean_hours:g}")
    interval = interval_hours or best_checkpoint_interval(checkpoint_hours, mean_hours)
    return InterruptionOverhead(
        interval_hours=interval or None,
        checkpoint_fraction=checkpoint_hours / interval if interval else 0.0,
        lost_fraction=interval / 2 / mean_hours,
        restart_fraction=restart_hours / mean_hours,
    )


def mean_hours_between_interruptions(share_per_month: float) -> float:
    """Return the mean time between interruptions, from the fraction of machines interrupted per month.

    **Formula** M = 730.5 / −ln(1 − s)

    **Assumes** that interruptions are equally likely at any time.
    """
    return HOURS_PER_MONTH / -math.log1p(-share_per_month)


def interruption_share(gpu_id: str, provider: str, constants: tuple[Constant, ...]) -> Figure:
    """Return the fraction of the provider's spot machines with this GPU that are interrupted per month.

    **Source** AWS Spot Instance Advisor, 1 May 2025; GPUs without a band get the range of all bands.

    **Assumes** the same for other providers, of which no rate is published.
    """
    bands = {constant.name: constant for constant in constants if constant.kind == "spot_interruption"}
    name = next(
        (band for start, band in _INTERRUPTION_BANDS if gpu_id == start or gpu_id.startswith(f"{start}-")), None
    )
    low = bands[f"{name or 'L4'} low"]
    high = bands[f"{name or 'H100 p5'} high"]
    source = low.source if name else f"{low.source}: no band of this GPU, the range of all bands"
    known = name is not None and provider == _BAND_PROVIDER
    if provider != _BAND_PROVIDER:
        source = f"assumed: {provider} publishes no rate; {source}"
    # A log-normal distribution needs a positive lower bound, so a band from zero is cut.
    middle = (low.value + high.value) / 2
    return Figure(
        value=middle,
        low=max(low.value, middle / 10),
        high=high.value,
        source=source,
        date=low.date,
        certainty="quoted" if known else "assumed",
    )


MAX_CARDS_PER_MACHINE: Final = 8
"""Largest number of GPUs per machine in any offer."""
COMMITTED_HOURS_PER_YEAR: Final = 8_760.0
"""Billed hours of one year of commitment, with 365 days."""
TERM_YEARS: Final[dict[RentMode, float]] = {"reserved-1y": 1.0, "reserved-3y": 3.0}
_STORAGE: Final = ("storage-object-standard", "storage-object-standard-low")


@dataclass(frozen=True, eq=False)
class RentalFacts:
    """Catalog data for rental costs: egress tariffs, storage prices and constants."""

    egress: Mapping[str, EgressTariff]
    storage: Figure
    constants: tuple[Constant, ...]

    @classmethod
    def of(cls, catalog: CostCatalog) -> "RentalFacts":
        """Return the rental data of the cost catalog."""
        typical, low = (catalog.constant(name) for name in _STORAGE)
        storage = typical.evolve(low=low.value, high=typical.value * typical.value / low.value, certainty="assumed")
        return cls(catalog.egress, storage, catalog.constants)


@dataclass(frozen=True, slots=True)
class RentQuote:
    """Billed machines, hours and costs for a job on one offer in one rental mode."""

    offer: Offer
    mode: RentMode
    price_usd_per_hour: float
    count: int
    """GPUs per group."""
    linked_cards: int
    machines: int
    """Machines for all groups; a machine with enough GPUs holds several groups."""
    machines_per_group: float
    hours: float
    low_hours: float
    high_hours: float
    billed_hours: float
    """Billed group-hours."""
    machine_usd: float
    storage_usd: float
    egress_usd: float
    storage: Figure
    overhead: InterruptionOverhead | None
    mean_hours: Figure | None
    capped: bool
    increment_seconds: int
    notes: tuple[str, ...]

    @property
    def usd(self) -> float:
        """Return the total cost in USD."""
        return self.machine_usd + self.storage_usd + self.egress_usd

    @property
    def low_usd(self) -> float:
        """Return the total cost for the shortest duration and the low end of a marketplace's prices."""
        return self.usd - self.machine_usd * (1 - self.low_hours / self.hours * self.offer.price_range[0])

    @property
    def high_usd(self) -> float:
        """Return the total cost for the longest duration and the high end of a marketplace's prices."""
        return self.usd + self.machine_usd * (self.high_hours / self.hours * self.offer.price_range[1] - 1)


def quote(
    offer: Offer,
    mode: RentMode,
    demand: Demand,
    count: int,
    terms: RentTerms,
    facts: RentalFacts,
    linked_cards: int | None = None,
) -> RentQuote:
    """Return the cost of one period of `demand` on `offer`, for groups of `count` GPUs.

    `linked_cards` of a group exchange data while they work; None for all.

    **Formula** machines per group × billed group-hours × price; a commitment is billed for its whole term; spot adds
    δ/τ + (τ/2 + R)/M of the work and is capped at the on-demand cost.

    Raises:
        SpecError: If the offer has no price in this mode, or is for a fraction of a GPU.
    """
    price = offer.price_usd_per_hour(mode)
    if price is None:
        raise SpecError("rent.mode", f"{offer.id} has no {mode} price", "Choose another offer or another rental mode.")
    if offer.gpu_count < 1:
        raise SpecError("rent.offer", f"{offer.id} is only {offer.gpu_count:g} of a GPU")
    machines = machines_for(offer.gpu_count, count, demand.groups, terms.minimum_instances)
    per_group = machines / demand.groups
    mean_hours = _interruption_interval_hours(offer, terms, facts) if mode == "spot" else None
    overhead = None
    if mean_hours is not None:
        each = mean_hours.value / max(per_group, 1.0)
        overhead = interruption_overhead(demand.checkpoint_hours, demand.start_hours, each, demand.interval_hours)
    hours = _hours_with_interruptions(demand, overhead)
    increment = offer.billing_increment_seconds or terms.billing_increment_seconds
    billed = _billed_hours(mode, demand, hours, increment, terms)
    quoted = per_group * billed * price
    most = math.inf if overhead is None else _on_demand_usd(offer, per_group, demand, increment, terms)
    storage = facts.storage if terms.storage_usd_per_gb_month is None else Figure.own(terms.storage_usd_per_gb_month)
    egress, note = _egress_usd(offer, demand.egress_gb, terms, facts)
    scale = not demand.always_on and mode not in TERM_YEARS
    return RentQuote(
        offer=offer,
        mode=mode,
        price_usd_per_hour=price,
        count=count,
        linked_cards=linked_cards or count,
        machines=machines,
        machines_per_group=per_group,
        hours=hours,
        low_hours=hours * (demand.low_busy_hours / demand.busy_hours if scale else 1.0),
        high_hours=hours * (demand.high_busy_hours / demand.busy_hours if scale else 1.0),
        billed_hours=billed,
        machine_usd=min(quoted, most),
        storage_usd=demand.stored_gb * demand.stored_months * storage.value,
        egress_usd=egress,
        storage=storage,
        overhead=overhead,
        mean_hours=mean_hours,
        capped=most < quoted,
        increment_seconds=increment,
        notes=(note,) if note else (),
    )


def machines_for(cards_per_machine: float, count: int, groups: int, minimum: int) -> int:
    """Return the number of machines for `groups` of `count` GPUs each; a large machine holds several groups."""
    if cards_per_machine < 2 * count:
        return max(ceil_with_tolerance(count / cards_per_machine), minimum) * groups
    return max(ceil_with_tolerance(groups / (cards_per_machine // count)), minimum)


def needs_extra_machines(offer: Offer, count: int) -> bool:
    """Return whether the GPUs are spread over more machines than necessary, since each offered machine has too few."""
    return offer.gpu_count < min(count, MAX_CARDS_PER_MACHINE)


def commitment_share(offer: Offer, mode: RentMode) -> float | None:
    """Return the utilization above which a commitment is cheaper than on-demand, or None if it never is.

    **Formula** p_reserved / p_on-demand
    """
    reserved, steady = offer.price_usd_per_hour(mode), offer.on_demand_price_usd_per_hour
    if mode not in TERM_YEARS or reserved is None or steady is None:
        return None
    return reserved / steady if reserved < steady else None


def _hours_with_interruptions(demand: Demand, overhead: InterruptionOverhead | None) -> float:
    if overhead is None:
        return demand.rented_hours
    if demand.period == "month":
        return demand.rented_hours * (1 + overhead.total_fraction)
    return demand.work_hours * (1 + overhead.total_fraction) + demand.start_hours


def _interruption_interval_hours(offer: Offer, terms: RentTerms, facts: RentalFacts) -> Figure:
    if terms.mean_hours_between_interruptions is not None:
        return Figure.own(terms.mean_hours_between_interruptions)
    share = interruption_share(offer.cards[0], offer.provider, facts.constants)
    return Figure(
        value=mean_hours_between_interruptions(share.value),
        low=mean_hours_between_interruptions(share.highest),
        high=mean_hours_between_interruptions(share.lowest),
        source=share.source,
        date=share.date,
        certainty=share.certainty,
    )


def _billed_hours(mode: RentMode, demand: Demand, hours: float, increment: int, terms: RentTerms) -> float:
    """Return the hours billed in one period, summed over all groups of GPUs."""
    hours += terms.idle_billed_hours
    if mode not in TERM_YEARS:
        session, step = hours / demand.sessions, increment / SECONDS_PER_HOUR
        return ceil_with_tolerance(session / step) * step * demand.sessions
    return _committed_hours(TERM_YEARS[mode], demand, hours)


def _committed_hours(term_years: float, demand: Demand, hours: float) -> float:
    """Return the hours billed for a commitment in one period, summed over all groups: its whole term, used or not."""
    if demand.periods_per_year is None:
        term = COMMITTED_HOURS_PER_YEAR * term_years
        return ceil_with_tolerance(hours / term) * term
    yearly = hours * demand.periods_per_year
    groups = max(demand.groups, ceil_with_tolerance(yearly / (12 * HOURS_PER_MONTH)))
    return max(groups * COMMITTED_HOURS_PER_YEAR, yearly) / demand.periods_per_year


def _on_demand_usd(offer: Offer, machines_per_group: float, demand: Demand, increment: int, terms: RentTerms) -> float:
    """Return what machines cost in USD that are never interrupted, infinite if the offer has no on-demand price."""
    price = offer.on_demand_price_usd_per_hour
    if price is None:
        return math.inf
    return machines_per_group * price * _billed_hours("on-demand", demand, demand.rented_hours, increment, terms)


def _egress_usd(offer: Offer, gigabytes: float, terms: RentTerms, facts: RentalFacts) -> tuple[float, str]:
    if gigabytes == 0 or offer.egress_free:
        return 0.0, ""
    if terms.egress_usd_per_gb is not None:
        return gigabytes * terms.egress_usd_per_gb, ""
    tariff = facts.egress.get(offer.provider)
    if tariff is None:
        return 0.0, f"the egress price of {offer.provider} is unknown and not counted"
    return tariff.usd(gigabytes), ""
