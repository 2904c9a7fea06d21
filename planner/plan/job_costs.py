"""What the plan's job takes and costs on as many of every card as the plan has."""

from collections.abc import Callable, Iterator, Mapping
from datetime import date
from typing import Literal, NamedTuple

from planner.cost.demand import Demand, Pace, demand_of, usd_per_million_tokens
from planner.cost.renting.rent import RentFacts
from planner.cost.renting.table import Candidate, OfferRow, cheapest, offer_rows
from planner.errors import SpecError
from planner.performance.result import TimeResult
from planner.plan.catalog import Catalog
from planner.plan.evaluate import evaluate, fits_by_gpu
from planner.plan.money import pace_of
from planner.plan.plan import Plan


class CardJob(NamedTuple):
    """The plan's job on one kind of card, rented where that is cheapest.

    `hours` are of a run, or of a month's work; `offer` is the cheapest that can be compared, none where there is none.
    `usd_per_million_tokens` compares cards that do different amounts of work in the same hours.
    """

    period: Literal["run", "month"]
    hours: float
    time: TimeResult
    offer: OfferRow | None = None
    usd_per_million_tokens: float | None = None

    @property
    def usd(self) -> float | None:
        """Return what a run or month costs, or None where nobody's offer can be compared."""
        return None if self.offer is None else self.offer.usd

    @property
    def slowness(self) -> float:
        """Return what is lower the faster it is: the hours of a run, else the seconds of a token or sample."""
        pace = self.time.tokens_per_second or self.time.samples_per_second
        return self.hours if self.period == "run" or not pace else 1 / pace


def job_by_gpu(
    plan: Plan, catalog: Catalog, today: date, stop: Callable[[], bool] = lambda: False
) -> Mapping[str, CardJob] | None:
    """Return what the job of `plan` takes and costs on every card that it fits on as likely as not, by the card's id.

    Cards whose speed is not known are missing. It is None as soon as `stop` says that nobody waits.
    """
    jobs: dict[str, _Timed] = {}
    for gpu_id in _fitting(plan, catalog):
        if stop():
            return None
        found = _timed(plan, gpu_id, catalog)
        if found is not None:
            jobs[gpu_id] = found
    candidates = {gpu_id: Candidate(gpu_id, plan.count, timed.demand) for gpu_id, timed in jobs.items()}
    rows = offer_rows(catalog.offers, candidates, plan.cost.rent, RentFacts.of(catalog.cost), today)
    return {gpu_id: _job(timed, cheapest(row for row in rows if row.gpu == gpu_id)) for gpu_id, timed in jobs.items()}


class _Timed(NamedTuple):
    """How long a step or request takes on a card, how fast that is, and what the job asks of it."""

    time: TimeResult
    pace: Pace
    demand: Demand


def _job(timed: _Timed, offer: OfferRow | None) -> CardJob:
    demand = timed.demand
    per_million = None if offer is None else usd_per_million_tokens(offer.usd / demand.busy_hours, timed.pace)
    return CardJob(demand.period, demand.busy_hours, timed.time, offer, per_million)


def _fitting(plan: Plan, catalog: Catalog) -> Iterator[str]:
    return (gpu_id for gpu_id, fit in fits_by_gpu(plan, catalog).items() if fit.likely)


def _timed(plan: Plan, gpu_id: str, catalog: Catalog) -> _Timed | None:
    workload = plan.workload.evolve(gpus=()) if plan.workload.gpus else plan.workload
    evaluation = evaluate(plan.evolve(gpu=gpu_id, workload=workload), catalog)
    pace = pace_of(evaluation)
    if evaluation.time is None or pace is None:
        return None
    try:
        return _Timed(evaluation.time, pace, demand_of(plan.cost.job, pace))
    except SpecError:
        return None
