"""Traffic of a plan's service, and what its requests take on its own GPUs, at that traffic and over the rate."""

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean
from typing import Final

from planner.base import Stop
from planner.cost.terms import Service
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation, evaluate
from planner.plan.plan import Plan
from planner.serving.deployment import Deployment, ServingSetup, deploy
from planner.serving.requests import draw_requests
from planner.serving.result import RatePoint, ServingSimulation
from planner.serving.simulate import DEFAULT_REQUESTS, simulate_traffic
from planner.serving.targets import Latency, LatencyTarget, Targets
from planner.serving.traffic import DailyArrivals, FixedLength, RandomArrivals, Traffic, TrafficPreset
from planner.units import SECONDS_PER_DAY
from planner.workload.software.registry import SOFTWARE
from planner.workload.software.vllm import VLLM
from planner.workload.workload import Inference

_CONTEXT_STEP: Final = 256
_NO_CARD: Final = "the plan has no GPU"
_UNEQUAL: Final = "a service on GPUs of several kinds cannot be simulated"
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
    stop: Stop = lambda: False,
) -> ServingSimulation | None:
    """Return the simulated service of `plan`, whose GPUs answer `traffic`; None as soon as `stop` returns true.

    The plan's `workload.parallel.data` replicas answer `requests` requests, which are the same for the same `seed`. A
    context length that the plan leaves open is that of the longest request. Where nothing can be simulated, the result
    has the reason in `unsupported`.

    Raises:
        SpecError: If the plan names a model or a GPU that the catalog does not have.
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
    stop: Stop = lambda: False,
) -> Iterator[RatePoint]:
    """Yield the simulated service at several rates of requests, by default from a quarter to 1.5 times the traffic's.

    Nothing is yielded for traffic without a rate, or once `stop` returns true.

    Raises:
        SpecError: If the plan names a model or a GPU that the catalog does not have.
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
        SpecError: If the plan names a model or a GPU that the catalog does not have.
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


_SAMPLE: Final = 2_000


def job_traffic(job: Service, presets: Iterable[TrafficPreset]) -> Traffic:
    """Return the requests of a service in its busiest hour.

    **Assumes** requests of equal lengths, unless the job names one of `presets`, which has lengths of its own.
    """
    mean = job.requests_per_day / SECONDS_PER_DAY
    preset = next((each for each in presets if each.id == job.traffic_preset), None)
    arrivals: RandomArrivals | DailyArrivals = RandomArrivals(
        requests_per_second=mean * job.peak_factor, burstiness=job.burstiness
    )
    if job.hourly_shares:
        arrivals = DailyArrivals(requests_per_second=mean, hourly_shares=job.hourly_shares, burstiness=job.burstiness)
    if preset is None:
        return Traffic(
            arrivals=arrivals,
            input=FixedLength(tokens=max(1, round(job.prompt_tokens))),
            output=FixedLength(tokens=max(1, round(job.output_tokens))),
        )
    traffic = preset.traffic.evolve(arrivals=arrivals)
    rate = arrivals.highest_rate if isinstance(arrivals, DailyArrivals) else arrivals.requests_per_second
    return traffic.at_rate(rate)


def job_targets(job: Service) -> Targets:
    """Return the latency targets of a service."""
    seconds: tuple[tuple[Latency, float | None], ...] = (
        ("ttft", job.ttft_seconds),
        ("tpot", job.tpot_seconds),
        ("e2e", job.e2e_seconds),
    )
    limits = [
        LatencyTarget(latency=name, percentile=job.latency_percentile, seconds=limit)
        for name, limit in seconds
        if limit is not None
    ]
    return Targets(limits=tuple(limits))


def job_with_preset(job: Service, preset: TrafficPreset | None) -> Service:
    """Return a service with the traffic of `preset`: its mean lengths and, if the job has no targets, its targets."""
    if preset is None:
        return job.evolve(traffic_preset=None)
    drawn = draw_requests(preset.traffic, _SAMPLE, 0)
    changes: dict[str, object] = {
        "traffic_preset": preset.id,
        "prompt_tokens": float(round(fmean(drawn.prompt))),
        "output_tokens": float(round(fmean(drawn.output))),
    }
    if not job_targets(job).limits:
        for limit in preset.targets.limits:
            changes |= {f"{limit.latency}_seconds": limit.seconds, "latency_percentile": limit.percentile}
    return job.evolve(**changes)


def served_plan(plan: Plan, program: str | None = None) -> Plan:
    """Return `plan` with a program that serves many requests: its own, or else `program` if it is known, or vLLM."""
    if not isinstance(plan.workload, Inference) or plan.workload.profile is not None:
        return plan
    known = program if program in SOFTWARE else VLLM.name
    return plan.evolve(workload=plan.workload.evolve(profile=known))


def with_replicas(plan: Plan, replicas: int) -> Plan:
    """Return the plan of one replica with `replicas` of them, each on as many GPUs as `plan` has."""
    parallel = plan.workload.parallel.evolve(data=replicas, sharing="manual")
    return plan.evolve(count=plan.count * replicas, workload=plan.workload.evolve(parallel=parallel))


def in_groups(evaluation: Evaluation, groups: int) -> Plan:
    """Return an evaluated plan on `groups` groups of its GPUs, each of which shares the model as it does now."""
    parallel = evaluation.workload.parallel
    replicas = (parallel.data or 1) * groups
    workload = evaluation.plan.workload.evolve(
        profile=evaluation.workload.profile, parallel=parallel.evolve(data=replicas, sharing="manual")
    )
    return evaluation.plan.evolve(count=evaluation.plan.count * groups, workload=workload)
