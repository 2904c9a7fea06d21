"""Traffic and latency targets of a plan's service, from the few figures of its job."""

from collections.abc import Iterable
from statistics import fmean
from typing import Final

from planner.cost.terms import Service
from planner.plan.evaluate import Evaluation
from planner.plan.plan import Plan
from planner.serving.requests import draw_requests
from planner.serving.targets import Latency, LatencyTarget, Targets
from planner.serving.traffic import DailyArrivals, FixedLength, RandomArrivals, Traffic, TrafficPreset
from planner.workload.software.registry import SOFTWARE
from planner.workload.software.vllm import VLLM
from planner.workload.workload import Inference

_SECONDS_PER_DAY: Final = 86_400
_SAMPLE: Final = 2_000


def job_traffic(job: Service, presets: Iterable[TrafficPreset]) -> Traffic:
    """Return the requests of a service in its busiest hour.

    **Assumes** requests of equal lengths, unless the job names one of `presets`, which has lengths of its own.
    """
    mean = job.requests_per_day / _SECONDS_PER_DAY
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
    """Return the plan of one replica with `replicas` of them, each on as many cards as `plan` has."""
    parallel = plan.workload.parallel.evolve(data=replicas, sharing="manual")
    return plan.evolve(count=plan.count * replicas, workload=plan.workload.evolve(parallel=parallel))


def in_groups(evaluation: Evaluation, groups: int) -> Plan:
    """Return an evaluated plan on `groups` groups of its cards, each of which shares the model as it does now."""
    parallel = evaluation.workload.parallel
    replicas = (parallel.data or 1) * groups
    workload = evaluation.plan.workload.evolve(
        profile=evaluation.workload.profile, parallel=parallel.evolve(data=replicas, sharing="manual")
    )
    return evaluation.plan.evolve(count=evaluation.plan.count * groups, workload=workload)
