"""Time and cost of the plan's job on every card, with the plan's number of cards."""

from collections.abc import Callable, Mapping
from datetime import date
from typing import Literal, NamedTuple

from planner.cost.demand import Demand, Throughput, demand_of, usd_per_million_tokens
from planner.cost.renting.quote import RentFacts
from planner.cost.renting.table import CardDemand, OfferRow, cheapest_row, quote_offers
from planner.errors import SpecError
from planner.performance.result import TimeResult
from planner.plan.catalog import Catalog
from planner.plan.evaluate import evaluate, shared_fits_among
from planner.plan.money import linked_cards, paid_cards, plan_throughput
from planner.plan.plan import Plan
from planner.workload.parallel import Parallel


class CardJob(NamedTuple):
    """The plan's job on one kind of card, rented at the lowest price.

    `hours` is the time of a run, or of one month's work; `offer` is the cheapest comparable offer, or None.
    `usd_per_million_tokens` compares cards that do different amounts of work in the same hours.
    """

    period: Literal["run", "month"]
    hours: float
    time: TimeResult
    offer: OfferRow | None = None
    usd_per_million_tokens: float | None = None

    @property
    def usd(self) -> float | None:
        """Return the rental cost of a run or month in US dollars, or None if there is no comparable offer."""
        return None if self.offer is None else self.offer.usd

    @property
    def slowness(self) -> float:
        """Return the sort key for speed: hours of a run, else seconds per token or sample."""
        throughput = self.time.tokens_per_second or self.time.samples_per_second
        return self.hours if self.period == "run" or not throughput else 1 / throughput


def job_by_gpu(
    plan: Plan, catalog: Catalog, today: date, stop: Callable[[], bool] = lambda: False
) -> Mapping[str, CardJob] | None:
    """Return the time and cost of the plan's job by card id, for every card on which the plan likely fits.

    Cards of unknown speed are missing. Returns None as soon as `stop` returns true.
    """
    jobs: dict[str, _TimedJob] = {}
    for gpu_id, shared in shared_fits_among(plan, catalog, None, plan.count).items():
        if not shared.fit.likely:
            continue
        if stop():
            return None
        timed_job = _time_job(plan, gpu_id, shared.parallel, catalog)
        if timed_job is not None:
            jobs[gpu_id] = timed_job
    candidates = {
        gpu_id: CardDemand(gpu_id, paid_cards(plan), timed.demand, timed.linked_cards) for gpu_id, timed in jobs.items()
    }
    rows = quote_offers(catalog.offers, candidates, plan.cost.rent, RentFacts.of(catalog.cost), today)
    return {
        gpu_id: _card_job(timed, cheapest_row(row for row in rows if row.gpu == gpu_id))
        for gpu_id, timed in jobs.items()
    }


class _TimedJob(NamedTuple):
    """Time of a step or request on a card, the throughput, the hours of the job, and the cards that work together."""

    time: TimeResult
    throughput: Throughput
    demand: Demand
    linked_cards: int


def _card_job(timed: _TimedJob, offer: OfferRow | None) -> CardJob:
    """Return the job with its cost at the price of `offer`."""
    demand = timed.demand
    per_million = None if offer is None else usd_per_million_tokens(offer.usd / demand.busy_hours, timed.throughput)
    return CardJob(demand.period, demand.busy_hours, timed.time, offer, per_million)


def _time_job(plan: Plan, gpu_id: str, parallel: Parallel, catalog: Catalog) -> _TimedJob | None:
    """Return the time of the plan's job on the card `gpu_id`, or None if it is unknown."""
    workload = plan.workload.evolve(gpus=(), parallel=parallel)
    evaluation = evaluate(plan.evolve(gpu=gpu_id, workload=workload), catalog)
    throughput = plan_throughput(evaluation)
    if evaluation.time is None or throughput is None:
        return None
    try:
        return _TimedJob(evaluation.time, throughput, demand_of(plan.cost.job, throughput), linked_cards(evaluation))
    except SpecError:
        return None
