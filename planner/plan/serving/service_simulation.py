"""The service of a plan on its own cards: what its requests take, at its traffic and over its rate."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation, evaluate
from planner.plan.plan import Plan
from planner.serving.deployment import Deployment, ServingSetup, deploy
from planner.serving.requests import draw_requests
from planner.serving.result import RatePoint, ServingSimulation
from planner.serving.simulate import DEFAULT_REQUESTS, simulate_traffic
from planner.serving.targets import Targets
from planner.serving.traffic import Traffic
from planner.workload.workload import Inference

_CONTEXT_STEP: Final = 256
_NO_CARD: Final = "the plan has no card"
_UNEQUAL: Final = "a service on cards of several kinds cannot be simulated"
_TRAINS: Final = "a service needs a plan for inference, and this plan trains"
_FOLLOWING: Final = "separate replicas for prompts and answers are simulated for requests that do not follow each other"
_TRACED: Final = "a traced module has no decoding steps"
_CURVE_SHARES: Final = (0.25, 0.5, 0.7, 0.85, 1.0, 1.1, 1.25, 1.5)


def simulate_serving(
    plan: Plan,
    catalog: Catalog,
    traffic: Traffic,
    targets: Targets | None = None,
    setup: ServingSetup | None = None,
    *,
    requests: int = DEFAULT_REQUESTS,
    seed: int = 0,
    ranges: bool = True,
    stop: Callable[[], bool] = lambda: False,
) -> ServingSimulation | None:
    """Return the simulated service of `plan`, whose cards answer `traffic`; None as soon as `stop` returns true.

    The plan's `workload.parallel.data` replicas answer `requests` requests, which are the same for the same `seed`. A
    context length that the plan leaves open is that of the longest request. Where nothing can be simulated, the result
    has the reason in `unsupported`.

    Raises:
        SpecError: If the plan names a model or a card that the catalog does not have.
    """
    deployment = deploy_plan(plan, catalog, traffic, setup or ServingSetup(), requests=requests, seed=seed)
    if isinstance(deployment, str):
        return ServingSimulation(unsupported=deployment)
    return simulate_traffic(deployment, traffic, targets, requests=requests, seed=seed, ranges=ranges, stop=stop)


def serving_curve(
    plan: Plan,
    catalog: Catalog,
    traffic: Traffic,
    setup: ServingSetup | None = None,
    *,
    rates: Sequence[float] = (),
    requests: int = DEFAULT_REQUESTS,
    seed: int = 0,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[RatePoint]:
    """Yield the simulated service at several rates of requests, by default from a quarter to 1.5 times the traffic's.

    Nothing is yielded for traffic without a rate, or once `stop` returns true.

    Raises:
        SpecError: If the plan names a model or a card that the catalog does not have.
    """
    own = traffic.requests_per_second
    deployment = deploy_plan(plan, catalog, traffic, setup or ServingSetup(), requests=requests, seed=seed)
    if isinstance(deployment, str) or own is None:
        return
    for rate in rates or [share * own for share in _CURVE_SHARES]:
        found = simulate_traffic(
            deployment, traffic.at_rate(rate), requests=requests, seed=seed, ranges=False, detail=False, stop=stop
        )
        if found is None:
            return
        yield RatePoint(requests_per_second=rate, simulation=found)


def deploy_plan(
    plan: Plan, catalog: Catalog, traffic: Traffic, setup: ServingSetup, *, requests: int, seed: int
) -> Deployment | str:
    """Return the deployment of `plan` for this traffic, or the reason why there is none.

    Raises:
        SpecError: If the plan names a model or a card that the catalog does not have.
    """
    if plan.model.trace is not None:
        return _TRACED
    if not isinstance(plan.workload, Inference):
        return _TRAINS
    if plan.workload.gpus:
        return _UNEQUAL
    if plan.gpu is None:
        return _NO_CARD
    if setup.disaggregation is not None and (traffic.sessions is not None or traffic.arrivals.kind == "clients"):
        return _FOLLOWING
    return deploy_evaluated(evaluate(with_room_for(plan, traffic, requests, seed), catalog), setup)


def deploy_evaluated(evaluation: Evaluation, setup: ServingSetup) -> Deployment | str:
    """Return the deployment of an evaluated plan, or the reason why there is none."""
    workload, architecture, gpu = evaluation.workload, evaluation.architecture, evaluation.gpu
    assert isinstance(workload, Inference)
    assert architecture is not None
    assert gpu is not None
    return deploy(architecture, workload, gpu, evaluation.memory, setup, evaluation.plan.timing)


def with_room_for(plan: Plan, traffic: Traffic, requests: int, seed: int) -> Plan:
    """Return `plan` with a context for the longest request of the traffic, unless the plan states one."""
    workload = plan.workload
    if not isinstance(workload, Inference) or workload.context_length is not None:
        return plan
    drawn = draw_requests(traffic, requests, seed)
    longest = max(prompt + output for prompt, output in zip(drawn.prompt, drawn.output, strict=True))
    context = -(-longest // _CONTEXT_STEP) * _CONTEXT_STEP
    prompt = min(max(drawn.prompt), context) if workload.prompt_length is None else workload.prompt_length
    return plan.evolve(workload=workload.evolve(context_length=max(context, prompt), prompt_length=prompt))
