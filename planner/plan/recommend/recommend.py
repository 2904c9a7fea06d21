"""Recommendation of hardware for a plan's job: every card, count and offer within the limits, ranked."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Final, Literal, NamedTuple

from planner.cost.demand import Demand, demand_of
from planner.cost.figure import TEN_TO_NINETY
from planner.cost.job import HOURS_PER_YEAR
from planner.cost.rent_or_buy.case import RESALE
from planner.cost.rent_or_buy.case_builder import UnknownFigureError, build_case
from planner.cost.renting.quote import RentFacts
from planner.cost.renting.table import CardDemand, OfferRow, quote_offers
from planner.errors import SpecError
from planner.hardware.gpu import Gpu
from planner.memory.fit import CardFit
from planner.models.architecture import Architecture
from planner.performance.result import TimeResult
from planner.plan.catalog import Catalog
from planner.plan.evaluate import architecture_of, evaluate, shared_fits_among
from planner.plan.money import plan_throughput
from planner.plan.plan import Plan
from planner.plan.recommend.option import HardwareOption, Recommendation, Wish, is_within_limits, rank_options
from planner.plan.sharing import SharedFit
from planner.plan.solve import on_cards


def possible_plans(plan: Plan, architecture: Architecture | None, counts: tuple[int, ...]) -> Iterator[Plan]:
    """Yield `plan` without a card for each possible number of cards.

    A plan with its own parallelism keeps it, on multiples of its cards; replicas leave their sharing open. A traced
    module keeps its number of cards.
    """
    bare = plan.evolve(gpu=None, workload=plan.workload.evolve(gpus=()), count=1 if plan.workload.gpus else plan.count)
    if architecture is None:
        yield bare
        return
    parallel = bare.workload.parallel
    unit = parallel.model_shards * parallel.expert
    yield from (on_cards(bare, count, {"sharing": "auto"}) for count in _sorted_counts(counts) if count % unit == 0)


def apply_option(option: HardwareOption, plan: Plan, catalog: Catalog) -> Plan:
    """Return `plan` with the cards of `option`, and with its rental or ownership terms.

    Raises:
        SpecError: If the option belongs to another plan.
    """
    architecture = None if plan.model.trace is not None else architecture_of(plan, catalog)
    spread = next(possible_plans(plan, architecture, (option.count,)), None)
    if spread is None or spread.count != option.count:
        raise SpecError("count", f"the plan cannot run on {option.count} cards in this way", "Choose another option.")
    rent = plan.cost.rent
    if option.mode is not None:
        rent = rent.evolve(offer=option.offer, mode=option.mode)
    return spread.evolve(gpu=option.gpu, cost=plan.cost.evolve(rent=rent))


def _sorted_counts(counts: tuple[int, ...]) -> list[int]:
    return sorted(set(counts))


Stop = Callable[[], bool]
Progress = Callable[[int, int], None]

_CARD_PRICE: Final = "card_price_usd"
_LOW: Final[Mapping[str, float]] = {RESALE: TEN_TO_NINETY, _CARD_PRICE: -TEN_TO_NINETY}
_HIGH: Final[Mapping[str, float]] = {RESALE: -TEN_TO_NINETY, _CARD_PRICE: TEN_TO_NINETY}
_NO_TIME: Final = "its speed is unknown"
_TOO_LONG: Final = "a run takes longer than the horizon"
_NO_OFFER: Final = "no offer to rent it is known"
_NO_PRICE: Final = "the cost of owning it is unknown"


class _CapableCards(NamedTuple):
    """Cards that can do the job, with the plan on so many cards, the memory verdict, throughput and demand."""

    gpu: Gpu
    spread: Plan
    shared: SharedFit
    time: TimeResult
    demand: Demand


def recommend(
    plan: Plan,
    catalog: Catalog,
    today: date,
    wish: Wish | None = None,
    stop: Stop = lambda: False,
    progress: Progress = lambda _done, _all: None,
) -> Recommendation | None:
    """Return all hardware options for the plan's job within `wish`, or None as soon as `stop` returns true.

    The best value is the option with the lowest product of cost and time: half the time is worth twice the money. For
    services and daily hours, the time is that of a token.

    Raises:
        SpecError: If the plan does not fit its model, the job's hours cannot be computed on any card, or its region is
            unknown.
    """
    limits = wish or Wish()
    if "own" in limits.having:
        catalog.cost.region(
            plan.cost.region
        )  # a region that nobody knows is a mistake, and no reason to leave cards out
    left_out: Counter[str] = Counter()
    capable = _find_capable_cards(plan, catalog, limits, left_out, stop, progress)
    if capable is None:
        return None
    options = [
        option
        for group in _group_by_count(capable)
        for option in (
            *_rent_options(plan, catalog, group, limits, today, left_out),
            *_own_options(plan, catalog, group, limits, today, left_out),
        )
    ]
    allowed = [option for option in options if is_within_limits(option, limits, left_out)]
    period: Literal["run", "month"] = "run" if plan.cost.job.kind == "run" else "month"
    return rank_options(allowed, options, limits, period, left_out)


def _find_capable_cards(
    plan: Plan, catalog: Catalog, wish: Wish, left_out: Counter[str], stop: Stop, progress: Progress
) -> list[_CapableCards] | None:
    """Return the cards that can do the job, each with the simplest sharding that fits."""
    architecture = None if plan.model.trace is not None else architecture_of(plan, catalog)
    capable: list[_CapableCards] = []
    variants = list(possible_plans(plan, architecture, wish.counts))
    for done, spread in enumerate(variants):
        progress(done, len(variants))
        for gpu, shared in _card_fits(spread, catalog, wish):
            if stop():
                return None
            if not _is_acceptable(shared.fit, wish):
                left_out[_exclusion_reason(shared.fit)] += 1
                continue
            ready = _with_throughput(gpu, spread, shared, plan, catalog)
            if ready is None:
                left_out[_NO_TIME] += 1
            elif _exceeds_horizon(ready.demand, plan):
                left_out[_TOO_LONG] += 1
            else:
                capable.append(ready)
    progress(len(variants), len(variants))
    if variants and not capable and not left_out:
        shared_fits_among(variants[0], catalog, None, variants[0].count)  # raises the error in the plan itself
    return capable


def _card_fits(plan: Plan, catalog: Catalog, wish: Wish) -> Iterator[tuple[Gpu, SharedFit]]:
    """Yield each card with its verdict; no cards if the model cannot run on so many."""
    try:
        fits = shared_fits_among(plan, catalog, None, plan.count)
    except SpecError:
        return
    for gpu in catalog.hardware.gpus:
        if not wish.vendors or gpu.vendor in wish.vendors:
            yield gpu, fits[gpu.id]


def _is_acceptable(fit: CardFit, wish: Wish) -> bool:
    return fit.verdict == "fits" or (fit.verdict == "tight" and wish.include_tight)


def _exclusion_reason(fit: CardFit) -> str:
    """Return the verdict that excludes a card; its title is in `planner.present.memory.verdict`."""
    if fit.unsupported:
        return "not-supported"
    return "tight" if fit.verdict == "tight" else "does-not-fit"


def _with_throughput(gpu: Gpu, spread: Plan, shared: SharedFit, plan: Plan, catalog: Catalog) -> _CapableCards | None:
    """Return the card with its throughput and the demand of the job, or None if the throughput is unknown."""
    workload = spread.workload.evolve(parallel=shared.parallel)
    evaluation = evaluate(spread.evolve(gpu=gpu.id, workload=workload, timing=_timing_settings(plan)), catalog)
    time = evaluation.time
    throughput = plan_throughput(evaluation)
    if time is None or throughput is None:
        return None
    return _CapableCards(gpu, spread, shared, time, demand_of(plan.cost.job, throughput))


def _exceeds_horizon(demand: Demand, plan: Plan) -> bool:
    """Return whether one run takes longer than the plan's horizon."""
    return demand.period == "run" and demand.busy_hours > plan.cost.horizon_years * HOURS_PER_YEAR


def _timing_settings(plan: Plan) -> object:
    """Return the plan's time settings, with any measured speed attributed to the plan's own cards."""
    measured = plan.timing.measured
    if measured is None:
        return plan.timing
    own = measured.evolve(gpu=measured.gpu or plan.gpu, count=measured.count or plan.count)
    return plan.timing.evolve(measured=own)


def _group_by_count(capable: Sequence[_CapableCards]) -> Iterator[dict[str, _CapableCards]]:
    for count in dict.fromkeys(cards.spread.count for cards in capable):
        yield {cards.gpu.id: cards for cards in capable if cards.spread.count == count}


def _rent_options(
    plan: Plan, catalog: Catalog, group: Mapping[str, _CapableCards], wish: Wish, today: date, left_out: Counter[str]
) -> Iterator[HardwareOption]:
    if "rent" not in wish.having:
        return
    candidates = {gpu_id: CardDemand(gpu_id, cards.spread.count, cards.demand) for gpu_id, cards in group.items()}
    terms, facts = plan.cost.rent, RentFacts.of(catalog.cost)
    rows = quote_offers(catalog.offers, candidates, terms, facts, today, wish.modes)
    for row in rows:
        yield _rented_option(group[row.gpu], row)
    offered = {row.gpu for row in rows}
    if "own" not in wish.having:
        left_out[_NO_OFFER] += len(group.keys() - offered)


def _rented_option(cards: _CapableCards, row: OfferRow) -> HardwareOption:
    return HardwareOption(
        **_common_fields(cards),
        having="rent",
        hours=row.hours,
        low_hours=row.low_hours,
        high_hours=row.high_hours,
        usd=row.usd,
        low_usd=row.low_usd,
        high_usd=row.high_usd,
        offer=row.offer.id,
        provider=row.offer.provider,
        mode=row.mode,
        price_date=row.price_date,
        comparable=row.comparable,
        remarks=row.remarks,
    )


def _own_options(
    plan: Plan, catalog: Catalog, group: Mapping[str, _CapableCards], wish: Wish, today: date, left_out: Counter[str]
) -> Iterator[HardwareOption]:
    """Yield the options of owning the cards."""
    if "own" not in wish.having:
        return
    for cards in group.values():
        try:
            yield _owned_option(plan, catalog, cards, today)
        except UnknownFigureError:
            left_out[_NO_PRICE] += 1


def _owned_option(plan: Plan, catalog: Catalog, cards: _CapableCards, today: date) -> HardwareOption:
    """Return the option of owning the cards: all costs over the horizon, divided among its runs or months."""
    terms, demand = plan.cost, cards.demand
    case = build_case(terms, cards.gpu, cards.spread.count, demand, None, catalog.cost, today)
    periods = demand.per_year(terms.horizon_years) * terms.horizon_years
    usd, low, high = (
        case.streams(deviations).own_usd(terms.horizon_years) / periods
        for deviations in (
            {},
            _uncertain_deviations(_LOW, case.uncertain),
            _uncertain_deviations(_HIGH, case.uncertain),
        )
    )
    return HardwareOption(
        **_common_fields(cards),
        having="own",
        hours=demand.busy_hours,
        low_hours=demand.low_busy_hours,
        high_hours=demand.high_busy_hours,
        usd=usd,
        low_usd=min(low, usd),
        high_usd=max(high, usd),
        price_date=case.figures[_CARD_PRICE].date,
    )


def _uncertain_deviations(deviations: Mapping[str, float], uncertain: tuple[str, ...]) -> dict[str, float]:
    return {name: value for name, value in deviations.items() if name in uncertain}


def _common_fields(cards: _CapableCards) -> dict[str, object]:
    """Return the fields that renting and owning the same cards have in common."""
    power, count = cards.gpu.drawn_watts, cards.spread.count
    return {
        "gpu": cards.gpu.id,
        "period": cards.demand.period,
        "count": count,
        "sharing": "" if cards.shared.scheme is None else cards.shared.scheme.title,
        "verdict": cards.shared.fit.verdict,
        "free_bytes": cards.shared.fit.free_bytes,
        "fit_probability": cards.shared.fit.fit_probability,
        "tokens_per_second": cards.time.tokens_per_second,
        "samples_per_second": cards.time.samples_per_second,
        "bound": cards.time.bound,
        "basis": cards.time.basis,
        "power_watts": None if power is None else power * count * cards.demand.groups,
    }
