"""Rental and ownership cost of a plan's job at the estimated throughput, and of the job on every GPU."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from planner.base import Stop
from planner.cost.demand import Demand, Throughput, demand_of, usd_per_million_tokens
from planner.cost.estimate import CostEstimate, estimate_cost
from planner.cost.renting.quote import RentalFacts
from planner.cost.renting.table import CardDemand, OfferRow, cheapest_row, quote_offers
from planner.cost.result import Blocked, OwnCost
from planner.cost.terms import Service
from planner.errors import SpecError
from planner.hardware.system import System
from planner.performance.result import TimeResult
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation, evaluate, shared_fits_among
from planner.plan.plan import Plan
from planner.units import GIB
from planner.workload.parallel import Parallel
from planner.workload.workload import Inference, Training

if TYPE_CHECKING:
    from planner.performance.inference.service import ServiceRate


_NO_SPEED: Final = "The speed of these GPUs is unknown"
_ENTER_SPEED: Final = "Enter a measured speed, or choose another GPU."


@dataclass(frozen=True, eq=False)
class PlanCost:
    """Cost of a plan, or the reason why it cannot be estimated, with the plan field to change."""

    estimate: CostEstimate | None
    """The costs; None if they cannot be estimated."""
    reason: str = ""
    """Why there is no estimate, as a sentence."""
    field: str = ""
    """Field of the plan to change for an estimate."""
    error: SpecError | None = None
    """Error behind the reason, if it is in the plan's cost terms."""
    blocked: Blocked | None = None
    """Why the plan cannot run; also in the estimate's result, if there is one."""


def evaluate_cost(evaluation: Evaluation, catalog: Catalog, today: date) -> PlanCost:
    """Return the cost of the evaluated plan on `today`, at the prices in `catalog`.

    A plan that cannot run, or whose speed is unknown, is blocked: it has costs, but no decision.
    """
    plan, blocked = evaluation.plan, find_blocked(evaluation)
    if plan.workload.gpus:
        return PlanCost(None, "The cost of a mix of different GPUs cannot be estimated.", "workload.gpus")
    if plan.gpu is None:
        return PlanCost(None, "The plan has no GPU.", "gpu")
    gpu = catalog.hardware.gpu(plan.gpu)
    try:
        estimate = estimate_cost(
            plan.cost, gpu, paid_cards(plan), plan_throughput(evaluation), catalog.cost, today, linked_cards(evaluation)
        )
    except SpecError as error:
        return PlanCost(None, error.explanation, f"cost.{error.field}", error, blocked)
    if blocked is not None:
        result = estimate.result.evolve(blocked=blocked, answer=None, break_even=None, curve=())
        return PlanCost(replace(estimate, result=result), blocked=blocked)
    own_server = plan.cost.buy.server_price_usd is not None
    return PlanCost(estimate if own_server else _with_system_prices(estimate, catalog.hardware.systems))


def paid_cards(plan: Plan) -> int:
    """Return the number of GPUs that the plan pays for: its own, and those that generate completions for them."""
    workload = plan.workload
    return plan.count + (workload.alignment.further_cards if isinstance(workload, Training) else 0)


def find_blocked(evaluation: Evaluation) -> Blocked | None:
    """Return why the plan cannot run on its GPUs or has no known speed, or None if it can be priced."""
    memory, time = evaluation.memory, evaluation.time
    if memory.unsupported:
        sentence = f"The plan cannot run on these GPUs: {memory.unsupported[0].removesuffix('.')}."
        return Blocked(code="not-supported", sentence=sentence)
    if memory.verdict == "does-not-fit" and memory.capacity_bytes is not None:
        needed, usable = memory.total_bytes, memory.capacity_bytes
        cards, each = ("these GPUs", " on each") if evaluation.plan.count > 1 else ("this GPU", "")
        sizes = f"{needed / GIB:.1f} GiB are needed{each}, and {usable / GIB:.1f} GiB are usable"
        sentence = f"The plan does not fit on {cards}: {sizes}."
        return Blocked(code="does-not-fit", sentence=sentence, needed_bytes=needed, usable_bytes=usable)
    if time is not None and time.seconds is None:
        reason = (time.unsupported or "no measurement or estimate is known").removesuffix(".")
        return Blocked(code="speed-unknown", sentence=f"{_NO_SPEED}: {reason}. {_ENTER_SPEED}")
    return None


def _with_system_prices(estimate: CostEstimate, systems: Iterable[System]) -> CostEstimate:
    """Return the cost estimate, with a note if its GPUs are also sold as one machine, at another price."""
    own = estimate.result.own
    if own is None:
        return estimate
    noted = own.evolve(notes=(*own.notes, *_system_price_note(own, systems)))
    return replace(estimate, result=estimate.result.evolve(own=noted))


def _system_price_note(own: OwnCost, systems: Iterable[System]) -> Iterator[str]:
    """Yield a note if machines with exactly these GPUs have a known price."""
    sold = [
        f"{system.name}, {system.price_usd:,.0f} USD ({system.price_kind} price, {day})"
        for system in systems
        if (system.gpu_id, system.gpu_count) == (own.gpu, own.count) and system.price_usd and system.price_kind
        for day in (system.price_date or "no date",)
    ]
    if sold and not any(term.name == "servers" for term in own.upfront):
        counted = sum(term.usd for term in own.upfront if term.name in ("cards", "host"))
        yield (
            f"this estimate counts {counted:,.0f} USD for GPUs and host; the same GPUs are also sold as one machine: "
            f"{'; '.join(sold)}; to use such a price, set the price of a whole server"
        )


def linked_cards(evaluation: Evaluation) -> int:
    """Return how many of the plan's GPUs exchange data while they work: all that train, or one replica's."""
    parallel, count = evaluation.workload.parallel, evaluation.plan.count
    if evaluation.workload.task == "training" or evaluation.traced is not None:
        return count
    return min(parallel.tensor * parallel.pipeline * parallel.context * parallel.expert, count)


def plan_throughput(evaluation: Evaluation) -> Throughput | None:
    """Return the throughput of the plan's GPUs, or None if it is unknown.

    A service runs as many requests at once as fit, with the lengths of the job. A measured speed applies to the
    requests that the plan describes.
    """
    if evaluation.time is None:
        return None
    throughput = Throughput.of_result(evaluation.time, evaluation.workload)
    job, plan = evaluation.plan.cost.job, evaluation.plan
    if throughput is None or not isinstance(job, Service) or plan.timing.measured is not None:
        return throughput
    service_rate = _sustained_service_rate(evaluation, job)
    return throughput if service_rate is None else _service_throughput(throughput, service_rate, job)


def _sustained_service_rate(evaluation: Evaluation, job: Service) -> "ServiceRate | None":
    """Return the rate at which the GPUs serve the job's requests, or None if it is unknown."""
    from planner.performance.inference.service import service_rate  # estimates time, which takes a while to load

    architecture, workload = evaluation.architecture, evaluation.workload
    if architecture is None or not isinstance(workload, Inference) or len(evaluation.cards) != 1:
        return None
    setting = evaluation.plan.timing
    return service_rate(architecture, workload, evaluation.cards[0][0], setting, job.prompt_tokens, job.output_tokens)


def _service_throughput(throughput: Throughput, service_rate: "ServiceRate", job: Service) -> Throughput:
    """Return `throughput` at the rate and with the request lengths of a service."""
    return throughput.evolve(
        tokens_per_second=service_rate.tokens_per_second,
        samples_per_second=service_rate.requests_per_second,
        concurrent_requests=service_rate.concurrent_requests,
        prompt_token_seconds=service_rate.prompt_seconds / job.prompt_tokens if job.prompt_tokens else 0.0,
        output_token_seconds=service_rate.output_token_seconds,
    )


class CardJob(NamedTuple):
    """The plan's job on one kind of GPU, rented at the lowest price.

    `hours` is the time of a run, or of one month's work; `offer` is the cheapest comparable offer, or None.
    `usd_per_million_tokens` compares GPUs that do different amounts of work in the same hours.
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


def job_by_gpu(plan: Plan, catalog: Catalog, today: date, stop: Stop = lambda: False) -> Mapping[str, CardJob] | None:
    """Return the time and cost of the plan's job by GPU id, for every GPU on which the plan likely fits.

    GPUs of unknown speed are missing. Returns None as soon as `stop` returns true.
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
    rows = quote_offers(catalog.offers, candidates, plan.cost.rent, RentalFacts.of(catalog.cost), today)
    return {
        gpu_id: _card_job(timed, cheapest_row(row for row in rows if row.gpu == gpu_id))
        for gpu_id, timed in jobs.items()
    }


class _TimedJob(NamedTuple):
    """Time of a step or request on a GPU, the throughput, the hours of the job, and the GPUs that work together."""

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
    workload = plan.workload.evolve(gpus=(), parallel=parallel)
    evaluation = evaluate(plan.evolve(gpu=gpu_id, workload=workload), catalog)
    throughput = plan_throughput(evaluation)
    if evaluation.time is None or throughput is None:
        return None
    try:
        return _TimedJob(evaluation.time, throughput, demand_of(plan.cost.job, throughput), linked_cards(evaluation))
    except SpecError:
        return None
