"""Recommendation of hardware for a plan's job: every GPU, count and offer within the limits, ranked."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from typing import Final, Literal, NamedTuple

from planner.base import Stop
from planner.cost.demand import Demand, demand_of
from planner.cost.terms import HOURS_PER_YEAR
from planner.errors import SpecError
from planner.hardware.gpu import Gpu
from planner.memory.fit import CardFit
from planner.models.architecture import Architecture
from planner.plan.catalog import Catalog
from planner.plan.cost import linked_cards, plan_throughput
from planner.plan.evaluate import architecture_of, evaluate, fits_by_gpu, shared_fits_among
from planner.plan.plan import Plan
from planner.plan.recommend.acquisition import NO_OFFER, CapableCards, Market, own_options, rent_options
from planner.plan.recommend.option import HardwareOption, Recommendation, Wish, is_within_limits, rank_options
from planner.plan.recommend.variants import PlanVariant, changed_variants, plan_variants, possible_plans
from planner.plan.sharing import SharedFit, tensor_domain
from planner.plan.solve import on_cards

Progress = Callable[[int, int], None]
Found = Callable[[Recommendation], None]

_NO_TIME: Final = "its speed is unknown"
_TOO_LONG: Final = "a run takes longer than the horizon"
_LEAST_SAVING: Final = 0.01


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
        SpecError: If the plan does not fit its model, the job's hours cannot be computed on any GPU, or its region is
            unknown.
    """
    limits = wish or Wish()
    if "own" in limits.having:
        catalog.cost.region(
            plan.cost.region
        )  # a region that nobody knows is a mistake, and no reason to leave GPUs out
    architecture = None if plan.model.trace is not None else architecture_of(plan, catalog)
    market = Market(plan, catalog, limits, today, Counter())
    search = _Search(market, architecture, stop)
    period: Literal["run", "month"] = "run" if plan.cost.job.kind == "run" else "month"
    options: list[HardwareOption] = []
    allowed: list[HardwareOption] = []
    plans = list(possible_plans(plan, architecture, limits.counts))
    for done, spread in enumerate(plans):
        progress(done, len(plans))
        for capable in _find_capable_cards(search, spread):
            new = [*rent_options(market, capable), *own_options(market, capable)]
            options += new
            allowed += [option for option in new if is_within_limits(option, limits, market.left_out)]
            if new:
                found(rank_options(allowed, options, limits, period, market.left_out))
        if stop():
            return None
    progress(len(plans), len(plans))
    if plans and not options and not market.left_out:
        fits_by_gpu(plans[0], catalog)  # raises the error in the plan itself
    return rank_options(allowed, options, limits, period, market.left_out)


class _Search(NamedTuple):
    """A search for capable GPUs, which ends as soon as `stop` returns true."""

    market: Market
    architecture: Architecture | None
    stop: Stop


def _find_capable_cards(search: _Search, spread: Plan) -> Iterator[dict[str, CapableCards]]:
    """Yield the GPUs on which the plan fits, by their ids, then those on which it does with the mildest changes.

    GPUs that could share more than they must are yielded once more, sharing it all.
    """
    obtainable = _obtainable_cards(search.market, spread.count)
    sharing_all: set[str] = set()
    for variant in plan_variants(spread, search.architecture):
        remaining = {name: gpu for name, gpu in obtainable.items() if name not in sharing_all}
        if variant.sharing:
            remaining = _well_linked(remaining, variant.plan)
        last: dict[str, CardFit] = {}
        for attempts in (iter((variant,)), _needing_less(search, variant)):
            capable = _capable_among(search, attempts, remaining, last)
            sharing_all.update(name for name, cards in capable.items() if cards.linked_cards == spread.count)
            yield capable
        if not variant.sharing:
            reasons = (_exclusion_reason(last[gpu_id]) for gpu_id in remaining if gpu_id in last)
            search.market.left_out.update(reasons)


def _capable_among(
    search: _Search, attempts: Iterable[PlanVariant], remaining: dict[str, Gpu], last: dict[str, CardFit]
) -> dict[str, CapableCards]:
    """Return the GPUs on which one of `attempts` fits, and remove them from `remaining`; note other verdicts."""
    capable: dict[str, CapableCards] = {}
    accepted = ("fits", "tight") if search.market.wish.include_tight else ("fits",)
    for variant in attempts:
        for gpu_id, shared in _fits(search, variant, remaining):
            if search.stop():
                return capable
            if shared.fit.verdict in accepted:
                _add_capable(search.market, remaining.pop(gpu_id), variant, shared, capable)
            elif not variant.changes:
                last[gpu_id] = shared.fit
        if not remaining:
            break
    return capable


def _fits(search: _Search, variant: PlanVariant, cards: Mapping[str, Gpu]) -> Iterable[tuple[str, SharedFit]]:
    """Return the memory verdict for each GPU, none if the model cannot run on so many GPUs."""
    try:
        fits = shared_fits_among(variant.plan, search.market.catalog, tuple(cards), variant.plan.count)
    except SpecError:
        return ()
    return tuple(fits.items())


def _well_linked(cards: Mapping[str, Gpu], plan: Plan) -> dict[str, Gpu]:
    """Return the GPUs whose links let all of the plan's GPUs split matrices."""
    return {name: gpu for name, gpu in cards.items() if tensor_domain((gpu,), plan.timing) >= plan.count}


def _needing_less(search: _Search, variant: PlanVariant) -> Iterator[PlanVariant]:
    """Yield `variant` with changes that cost only speed, each needing less memory than all before in its program.

    Programs support different GPUs, so that what one needs says nothing about another.
    """
    wish = search.market.wish
    if not wish.change_plan:
        return
    start = _needed_bytes(search, variant)
    least: dict[str | None, float] = {}
    for changed in changed_variants(variant, search.architecture, quantize=wish.quantize):
        needed, program = _needed_bytes(search, changed), changed.plan.workload.profile
        if needed < (1 - _LEAST_SAVING) * least.get(program, start):
            least[program] = needed
            yield changed


def _needed_bytes(search: _Search, variant: PlanVariant) -> float:
    """Return the bytes that each GPU needs if sharing is not chosen by GPU; infinity if the model forbids it."""
    plan = variant.plan
    if plan.workload.parallel.is_open:
        plan = on_cards(plan, plan.count, {"sharing": "manual"})
    usual = next(gpu.id for gpu in search.market.catalog.hardware.gpus if gpu.memory_bytes is not None)
    try:
        return shared_fits_among(plan, search.market.catalog, (usual,), plan.count)[usual].fit.total_bytes
    except SpecError:
        return float("inf")


def _obtainable_cards(market: Market, count: int) -> dict[str, Gpu]:
    """Return the GPUs of which `count` can be rented or owned, before anything is estimated."""
    wish, catalog = market.wish, market.catalog
    offered = {card for offer in catalog.offers for card in offer.cards} if "rent" in wish.having else frozenset()
    obtainable = {}
    for gpu in catalog.hardware.gpus:
        if wish.vendors and gpu.vendor not in wish.vendors:
            continue
        obstacle = market.ownership_obstacle(gpu, count) if "own" in wish.having else NO_OFFER
        if gpu.id in offered or obstacle is None:
            obtainable[gpu.id] = gpu
        else:
            market.left_out[obstacle] += 1
    return obtainable


def _add_capable(
    market: Market, gpu: Gpu, variant: PlanVariant, shared: SharedFit, capable: dict[str, CapableCards]
) -> None:
    ready = _with_throughput(gpu, variant, shared, market.plan, market.catalog)
    if ready is None:
        market.left_out[_NO_TIME] += 1
    elif _exceeds_horizon(ready.demand, market.plan):
        market.left_out[_TOO_LONG] += 1
    else:
        capable[gpu.id] = ready


def _exclusion_reason(fit: CardFit) -> str:
    """Return the verdict that excludes a GPU; its title is in `planner.present.memory.verdict`."""
    if fit.unsupported:
        return "not-supported"
    return "tight" if fit.verdict == "tight" else "does-not-fit"


def _with_throughput(
    gpu: Gpu, variant: PlanVariant, shared: SharedFit, plan: Plan, catalog: Catalog
) -> CapableCards | None:
    """Return the GPU with its throughput and the demand of the job, or None if the throughput is unknown."""
    workload = variant.plan.workload.evolve(parallel=shared.parallel)
    evaluation = evaluate(variant.plan.evolve(gpu=gpu.id, workload=workload, timing=_timing_settings(plan)), catalog)
    time = evaluation.time
    throughput = plan_throughput(evaluation)
    if time is None or throughput is None:
        return None
    demand = demand_of(plan.cost.job, throughput)
    return CapableCards(gpu, variant, shared, time, demand, linked_cards(evaluation))


def _exceeds_horizon(demand: Demand, plan: Plan) -> bool:
    """Return whether one run takes longer than the plan's horizon."""
    return demand.period == "run" and demand.busy_hours > plan.cost.horizon_years * HOURS_PER_YEAR


def _timing_settings(plan: Plan) -> object:
    """Return the plan's time settings, with any measured speed attributed to the plan's own GPUs."""
    measured = plan.timing.measured
    if measured is None:
        return plan.timing
    own = measured.evolve(gpu=measured.gpu or plan.gpu, count=measured.count or plan.count)
    return plan.timing.evolve(measured=own)
