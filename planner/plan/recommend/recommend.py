"""Recommendation of hardware for a plan's job: every card, count and offer within the limits, ranked."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Final, Literal, NamedTuple

from planner.cost.demand import Demand, demand_of
from planner.cost.figure import TEN_TO_NINETY, Figure
from planner.cost.job import HOURS_PER_YEAR
from planner.cost.owning.costs import full_power_watts, upfront_costs
from planner.cost.rent_or_buy.case import RESALE, RentOrBuyCase
from planner.cost.rent_or_buy.case_builder import UnknownFigureError, build_case
from planner.cost.renting.quote import RentFacts
from planner.cost.renting.table import CardDemand, OfferRow, quote_offers
from planner.errors import SpecError
from planner.hardware.gpu import Gpu
from planner.memory.fit import CardFit
from planner.models.architecture import Architecture
from planner.performance.links import links_of
from planner.performance.result import TimeResult
from planner.plan.catalog import Catalog
from planner.plan.evaluate import architecture_of, evaluate, fits_among, fits_by_gpu
from planner.plan.money import plan_throughput
from planner.plan.plan import Plan
from planner.plan.recommend.availability import (
    OVER_CIRCUIT,
    SEVERAL_MACHINES,
    circuit_watts,
    ownership_obstacle,
)
from planner.plan.recommend.changes import speed_only_changes
from planner.plan.recommend.option import HardwareOption, Recommendation, Wish, is_within_limits, rank_options
from planner.plan.sharding import default_sharding
from planner.plan.solve import on_cards
from planner.workload.defaults import with_defaults
from planner.workload.workload import Training


class ShardedPlan(NamedTuple):
    """The plan on a number of unspecified cards, with the name of its sharding and the names of its changes.

    `how` is empty if the model is not sharded.
    """

    plan: Plan
    how: str
    changes: tuple[str, ...] = ()


def sharded_plans(
    plan: Plan, architecture: Architecture | None, counts: tuple[int, ...]
) -> Iterator[tuple[ShardedPlan, ...]]:
    """Yield the sharding variants of `plan` for each possible card count, the unsharded variant first.

    A plan with its own parallelism keeps it, on multiples of its cards. A traced module keeps its number of cards.
    """
    bare = plan.evolve(gpu=None, workload=plan.workload.evolve(gpus=()), count=1 if plan.workload.gpus else plan.count)
    if architecture is None:
        yield (ShardedPlan(bare, ""),)
        return
    parallel = bare.workload.parallel
    if not parallel.is_plain:
        unit = parallel.model_shards * parallel.expert
        yield from ((ShardedPlan(on_cards(bare, count), ""),) for count in _sorted_counts(counts) if count % unit == 0)
        return
    sharing = default_sharding(with_defaults(bare.workload, architecture, 1), architecture)
    for count in _sorted_counts(counts):
        plain = ShardedPlan(on_cards(bare, count), "")
        shared = (ShardedPlan(on_cards(bare, count, sharing.settings(count)), sharing.title),)
        yield (plain, *(shared if count > 1 and count in sharing.counts else ()))


def _changed_plans(
    variants: Iterable[ShardedPlan], architecture: Architecture | None, *, quantize: bool
) -> Iterator[ShardedPlan]:
    """Yield the sharding variants with changes that cost nothing but speed, the mildest changes first."""
    if architecture is None:
        return
    for spread in variants:
        for changed in speed_only_changes(spread.plan, architecture, quantize=quantize):
            yield ShardedPlan(changed.plan, spread.how, changed.names)


def apply_option(option: HardwareOption, plan: Plan, catalog: Catalog) -> Plan:
    """Return `plan` with the cards of `option`, its changes, and its rental or ownership terms.

    Raises:
        SpecError: If the option belongs to another plan.
    """
    architecture = None if plan.model.trace is not None else architecture_of(plan, catalog)
    variants = [spread for group in sharded_plans(plan, architecture, (option.count,)) for spread in group]
    candidates = _changed_plans(variants, architecture, quantize=True) if option.changes else iter(variants)
    wanted = (option.sharing, option.changes)
    spread = next((spread for spread in candidates if (spread.how, spread.changes) == wanted), None)
    if spread is None:
        raise SpecError("count", f"the plan cannot run on {option.count} cards in this way", "Choose another option.")
    rent = plan.cost.rent
    if option.mode is not None:
        rent = rent.evolve(offer=option.offer, mode=option.mode)
    return spread.plan.evolve(gpu=option.gpu, cost=plan.cost.evolve(rent=rent))


def counts_tokens(plan: Plan, catalog: Catalog) -> bool:
    """Return whether the speed of the plan's model is counted in tokens; otherwise in samples, such as images."""
    if plan.model.trace is not None:
        return False
    architecture = architecture_of(plan, catalog)
    return architecture.fixed_length is None and architecture.kind != "diffusion"


def _sorted_counts(counts: tuple[int, ...]) -> list[int]:
    return sorted(set(counts))


Stop = Callable[[], bool]
Progress = Callable[[int, int], None]
Found = Callable[[Recommendation], None]

_CARD_PRICE: Final = "card_price_usd"
_LOW: Final[Mapping[str, float]] = {RESALE: TEN_TO_NINETY, _CARD_PRICE: -TEN_TO_NINETY}
_HIGH: Final[Mapping[str, float]] = {RESALE: -TEN_TO_NINETY, _CARD_PRICE: TEN_TO_NINETY}
_OLD_PRICE_YEARS: Final = 3
"""Age from which a launch price, or the newest price of a card, is not one at which it can be bought."""
_NO_TIME: Final = "its speed is unknown"
_TOO_LONG: Final = "a run takes longer than the horizon"
_NO_OFFER: Final = "no offer to rent it is known"
_NO_PRICE: Final = "the cost of owning it is unknown"
_LEAST_SAVING: Final = 0.01


class _CapableCards(NamedTuple):
    """Cards that can do the job, with the memory verdict, throughput and demand on these cards."""

    gpu: Gpu
    spread: ShardedPlan
    fit: CardFit
    time: TimeResult
    demand: Demand


class _Search(NamedTuple):
    """A search for hardware: the plan's job, the catalog and the wish, with the reasons why cards were left out."""

    plan: Plan
    catalog: Catalog
    architecture: Architecture | None
    wish: Wish
    today: date
    stop: Stop
    left_out: Counter[str]


def recommend(
    plan: Plan,
    catalog: Catalog,
    today: date,
    wish: Wish | None = None,
    stop: Stop = lambda: False,
    progress: Progress = lambda _done, _all: None,
    found: Found = lambda _so_far: None,
) -> Recommendation | None:
    """Return all hardware options for the plan's job within `wish`, or None as soon as `stop` returns true.

    `found` is called with the options so far, each time that there are more. Where the plan does not fit, changes that
    cost nothing but speed are tried, unless the wish excludes them. The best value is the option with the lowest
    product of cost and time, among those that cost at most twice the least. For services and daily hours, the time is
    that of a token.

    Raises:
        SpecError: If the plan does not fit its model, the job's hours cannot be computed on any card, or its region is
            unknown.
    """
    limits = wish or Wish()
    if "own" in limits.having:
        catalog.cost.region(
            plan.cost.region
        )  # a region that nobody knows is a mistake, and no reason to leave cards out
    architecture = None if plan.model.trace is not None else architecture_of(plan, catalog)
    search = _Search(plan, catalog, architecture, limits, today, stop, Counter())
    period: Literal["run", "month"] = "run" if plan.cost.job.kind == "run" else "month"
    options: list[HardwareOption] = []
    allowed: list[HardwareOption] = []
    groups = list(sharded_plans(plan, architecture, limits.counts))
    for done, variants in enumerate(groups):
        progress(done, len(groups))
        for separate in _separate_variants(plan, variants):
            for capable in _find_capable_cards(search, separate):
                new = [*_rent_options(search, capable), *_own_options(search, capable)]
                options += new
                allowed += [option for option in new if is_within_limits(option, limits, search.left_out)]
                if new:
                    found(rank_options(allowed, options, limits, period, search.left_out))
        if stop():
            return None
    progress(len(groups), len(groups))
    if groups and not options and not search.left_out:
        fits_by_gpu(groups[0][0].plan, catalog)  # raises the error in the plan itself
    return rank_options(allowed, options, limits, period, search.left_out)


def _separate_variants(plan: Plan, variants: tuple[ShardedPlan, ...]) -> tuple[tuple[ShardedPlan, ...], ...]:
    """Return the variants that are options of their own, and those of which the first that fits is enough.

    Copies of a model answer more requests; cards that share it answer each sooner.
    """
    shared = variants[-1].plan.workload.parallel
    if plan.cost.job.kind == "run" or len(variants) == 1 or shared.tensor == 1:
        return (variants,)
    return tuple((variant,) for variant in variants)


def _find_capable_cards(search: _Search, variants: Sequence[ShardedPlan]) -> Iterator[dict[str, _CapableCards]]:
    """Yield the cards that can do the job as planned, by their ids, then those that can do it with changes.

    Each card is there with the simplest sharding and the mildest changes. It ends early if the search is stopped.
    """
    remaining = _obtainable_cards(search, variants[0].plan.count)
    last: dict[str, CardFit] = {}
    for attempts in (iter(variants), _needing_less(search, variants)):
        capable: dict[str, _CapableCards] = {}
        for spread in attempts:
            for gpu_id, fit in _fits(search, spread, remaining):
                if search.stop():
                    return
                if _is_acceptable(fit, search.wish):
                    _add_capable(search, remaining.pop(gpu_id), spread, fit, capable)
                elif not spread.changes:
                    last[gpu_id] = fit
            if not remaining:
                break
        yield capable
    search.left_out.update(_exclusion_reason(last[gpu_id]) for gpu_id in remaining if gpu_id in last)


def _fits(search: _Search, spread: ShardedPlan, cards: Mapping[str, Gpu]) -> Iterable[tuple[str, CardFit]]:
    """Return the memory verdict for each card, none if the sharding does not go with the model."""
    try:
        return tuple(fits_among(spread.plan, search.catalog, tuple(cards), spread.plan.count).items())
    except SpecError:
        return ()


def _needing_less(search: _Search, variants: Sequence[ShardedPlan]) -> Iterator[ShardedPlan]:
    """Yield the variants with changes that cost only speed, each needing less memory than all before."""
    if not search.wish.change_plan:
        return
    least = {spread.how: _needed_bytes(search, spread) for spread in variants}
    for spread in _changed_plans(variants, search.architecture, quantize=search.wish.quantize):
        needed = _needed_bytes(search, spread)
        if needed < (1 - _LEAST_SAVING) * least[spread.how]:
            least[spread.how] = needed
            yield spread


def _needed_bytes(search: _Search, spread: ShardedPlan) -> float:
    """Return the bytes that a plan needs on a card whose memory is known, infinity if it does not go with its model."""
    usual = next(gpu.id for gpu in search.catalog.hardware.gpus if gpu.memory_bytes is not None)
    try:
        return fits_among(spread.plan, search.catalog, (usual,), spread.plan.count)[usual].total_bytes
    except SpecError:
        return float("inf")


def _obtainable_cards(search: _Search, count: int) -> dict[str, Gpu]:
    """Return the cards of which `count` can be rented or owned, before anything is estimated."""
    wish, catalog = search.wish, search.catalog
    offered = {card for offer in catalog.offers for card in offer.cards} if "rent" in wish.having else frozenset()
    obtainable = {}
    for gpu in catalog.hardware.gpus:
        if wish.vendors and gpu.vendor not in wish.vendors:
            continue
        obstacle = _ownership_obstacle(search, gpu, count) if "own" in wish.having else _NO_OFFER
        if gpu.id in offered or obstacle is None:
            obtainable[gpu.id] = gpu
        else:
            search.left_out[obstacle] += 1
    return obtainable


def _ownership_obstacle(search: _Search, gpu: Gpu, cards: int) -> str | None:
    return ownership_obstacle(gpu, cards, search.plan.cost.buy.place, search.catalog.hardware.systems)


def _add_capable(
    search: _Search, gpu: Gpu, spread: ShardedPlan, fit: CardFit, capable: dict[str, _CapableCards]
) -> None:
    ready = _with_throughput(gpu, spread, fit, search.plan, search.catalog)
    if ready is None:
        search.left_out[_NO_TIME] += 1
    elif _exceeds_horizon(ready.demand, search.plan):
        search.left_out[_TOO_LONG] += 1
    else:
        capable[gpu.id] = ready


def _is_acceptable(fit: CardFit, wish: Wish) -> bool:
    return fit.verdict == "fits" or (fit.verdict == "tight" and wish.include_tight)


def _exclusion_reason(fit: CardFit) -> str:
    """Return the verdict that excludes a card; its title is in `planner.present.memory.verdict`."""
    if fit.unsupported:
        return "not-supported"
    return "tight" if fit.verdict == "tight" else "does-not-fit"


def _with_throughput(gpu: Gpu, spread: ShardedPlan, fit: CardFit, plan: Plan, catalog: Catalog) -> _CapableCards | None:
    """Return the card with its throughput and the demand of the job, or None if the throughput is unknown."""
    evaluation = evaluate(spread.plan.evolve(gpu=gpu.id, timing=_timing_settings(plan)), catalog)
    time = evaluation.time
    throughput = plan_throughput(evaluation)
    if time is None or throughput is None:
        return None
    return _CapableCards(gpu, spread, fit, time, demand_of(plan.cost.job, throughput))


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


def _rent_options(search: _Search, capable: Mapping[str, _CapableCards]) -> Iterator[HardwareOption]:
    wish, catalog = search.wish, search.catalog
    if "rent" not in wish.having:
        return
    candidates = {
        gpu_id: CardDemand(gpu_id, cards.spread.plan.count, cards.demand) for gpu_id, cards in capable.items()
    }
    terms, facts = search.plan.cost.rent, RentFacts.of(catalog.cost)
    rows = quote_offers(catalog.offers, candidates, terms, facts, search.today, wish.modes)
    for row in rows:
        yield _rented_option(capable[row.gpu], row)
    offered = {row.gpu for row in rows}
    if "own" not in wish.having:
        search.left_out[_NO_OFFER] += len(capable.keys() - offered)


def _rented_option(cards: _CapableCards, row: OfferRow) -> HardwareOption:
    each = int(row.offer.gpu_count)
    return HardwareOption(
        **_common_fields(cards),
        **_network_fields(cards, each),
        having="rent",
        hours=row.hours,
        low_hours=row.low_hours,
        high_hours=row.high_hours,
        usd=row.usd,
        low_usd=row.low_usd,
        high_usd=row.high_usd,
        machines=row.instances,
        cards_per_machine=each,
        offer=row.offer.id,
        provider=row.offer.provider,
        mode=row.mode,
        price_date=row.price_date,
        comparable=row.comparable,
        remarks=row.remarks,
    )


def _own_options(search: _Search, capable: Mapping[str, _CapableCards]) -> Iterator[HardwareOption]:
    """Yield the options of owning the cards, where they can be bought and placed."""
    if "own" not in search.wish.having:
        return
    for cards in capable.values():
        try:
            case = _ownership_case(search, cards)
        except UnknownFigureError:
            search.left_out[_NO_PRICE] += 1
            continue
        obstacle = _ownership_obstacle(search, cards.gpu, case.shape.cards) or _desk_obstacle(search, case)
        if obstacle:
            search.left_out[obstacle] += 1
        else:
            yield _owned_option(search, cards, case)


def _ownership_case(search: _Search, cards: _CapableCards) -> RentOrBuyCase:
    terms, count = search.plan.cost, cards.spread.plan.count
    return build_case(terms, cards.gpu, count, cards.demand, None, search.catalog.cost, search.today)


def _desk_obstacle(search: _Search, case: RentOrBuyCase) -> str | None:
    """Return why the machines cannot stand at a desk: it is one machine on one circuit."""
    if search.plan.cost.buy.place != "desk":
        return None
    if case.shape.servers > 1:
        return SEVERAL_MACHINES
    limit = circuit_watts(search.plan.cost.region, search.catalog.cost)
    return OVER_CIRCUIT if full_power_watts(case.central, case.shape) > limit.value else None


def _owned_option(search: _Search, cards: _CapableCards, case: RentOrBuyCase) -> HardwareOption:
    """Return the option of owning the cards: all costs over the horizon, divided among its runs or months."""
    terms, demand = search.plan.cost, cards.demand
    periods = demand.per_year(terms.horizon_years) * terms.horizon_years
    usd, low, high = (
        case.streams(deviations).own_usd(terms.horizon_years) / periods
        for deviations in (
            {},
            _uncertain_deviations(_LOW, case.uncertain),
            _uncertain_deviations(_HIGH, case.uncertain),
        )
    )
    network = _network_fields(cards, case.shape.gpus_per_server)
    if network:
        network["network_usd"] = upfront_costs(case.central, case.shape).network / periods
    price = case.figures[_CARD_PRICE]
    old = tuple(_old_price_remarks(price, cards.gpu, search.today))
    return HardwareOption(
        **_common_fields(cards),
        **network,
        having="own",
        hours=demand.busy_hours,
        low_hours=demand.low_busy_hours,
        high_hours=demand.high_busy_hours,
        usd=usd,
        low_usd=min(low, usd),
        high_usd=max(high, usd),
        machines=case.shape.servers,
        cards_per_machine=case.shape.gpus_per_server,
        price_date=price.date,
        comparable=not old,
        remarks=old,
    )


def _old_price_remarks(price: Figure, gpu: Gpu, today: date) -> Iterator[str]:
    """Yield a remark if the only known price of a card is so old that it can no longer be bought for it."""
    is_launch_price = price.date is None and price.certainty == "assumed"
    dated = gpu.released if is_launch_price else price.date
    if dated is not None and price.certainty != "yours" and today.year - int(dated[:4]) >= _OLD_PRICE_YEARS:
        yield f"the newest known price is {'the one at launch, ' if is_launch_price else 'of '}{dated[:4]}"


def _uncertain_deviations(deviations: Mapping[str, float], uncertain: tuple[str, ...]) -> dict[str, float]:
    return {name: value for name, value in deviations.items() if name in uncertain}


def _network_fields(cards: _CapableCards, cards_per_machine: int) -> dict[str, object]:
    """Return the network that the cards of one copy need between their machines, empty if they need none."""
    plan = cards.spread.plan
    exchanges = isinstance(plan.workload, Training) or plan.workload.parallel.model_shards > 1
    if plan.count <= cards_per_machine or not exchanges:
        return {}
    return {"network_bytes_per_s": links_of(cards.gpu, plan.timing).network_bytes_per_s}


def _common_fields(cards: _CapableCards) -> dict[str, object]:
    """Return the fields that renting and owning the same cards have in common."""
    power, count = cards.gpu.drawn_watts, cards.spread.plan.count
    return {
        "gpu": cards.gpu.id,
        "period": cards.demand.period,
        "count": count,
        "sharing": cards.spread.how,
        "changes": cards.spread.changes,
        "copies": cards.demand.groups,
        "verdict": cards.fit.verdict,
        "free_bytes": cards.fit.free_bytes,
        "fit_probability": cards.fit.fit_probability,
        "tokens_per_second": cards.time.tokens_per_second,
        "samples_per_second": cards.time.samples_per_second,
        "output_token_seconds": cards.time.output_token_seconds,
        "bound": cards.time.bound,
        "basis": cards.time.basis,
        "power_watts": None if power is None else power * count * cards.demand.groups,
    }
