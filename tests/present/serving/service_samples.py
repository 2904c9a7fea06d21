"""Simulated services and options with round figures."""

from typing import Any

from planner.plan.plan import ModelChoice, Plan
from planner.plan.serving.answer import Consequence, ServingOption
from planner.serving.result import (
    CacheUse,
    GoodputResult,
    LatencyTable,
    Percentile,
    ServingSimulation,
    TargetResult,
)
from planner.serving.targets import Latency, LatencyTarget
from planner.workload.workload import Inference

FIRST_TOKEN = LatencyTarget(latency="ttft", percentile=95.0, seconds=1.0)
PER_TOKEN = LatencyTarget(latency="tpot", percentile=95.0, seconds=0.05)


def latencies(name: Latency = "ttft", seconds: float = 0.4) -> LatencyTable:
    percentiles = tuple(
        Percentile(percent, seconds * factor, seconds * factor / 2, 2 * seconds * factor, seconds, seconds)
        for percent, factor in ((50.0, 1.0), (90.0, 1.5), (95.0, 2.0), (99.0, 3.0))
    )
    return LatencyTable(
        latency=name,
        number=100,
        mean_seconds=seconds,
        low_mean_seconds=seconds / 2,
        high_mean_seconds=2 * seconds,
        percentiles=percentiles,
    )


def held(
    target: LatencyTarget = FIRST_TOKEN, seconds: float = 0.4, low: float = 0.2, high: float = 0.8
) -> TargetResult:
    limit = target.seconds
    return TargetResult(
        target=target, seconds=seconds, low_seconds=low, high_seconds=high, holds=seconds <= limit, surely=high <= limit
    )


def goodput(share: float, low: float, high: float, *, holds: bool) -> GoodputResult:
    return GoodputResult(share=share, low_share=low, high_share=high, holds=holds, requests_per_second=3.0)


def simulation(**changes: Any) -> ServingSimulation:
    fields: dict[str, Any] = {
        "requests": 2_000,
        "warm_up_requests": 200,
        "seconds": 500.0,
        "replicas": 2,
        "cards": 2,
        "offered_requests_per_second": 4.0,
        "requests_per_second": 4.0,
        "output_tokens_per_second": 1_200.0,
        "latencies": (latencies(), latencies("tpot", 0.02), latencies("e2e", 6.0)),
        "targets": (held(),),
        "cache": CacheUse(
            capacity_tokens=10_000, mean_fraction=0.3, highest_fraction=0.5, preemptions=0, prefix_hit_fraction=0.0
        ),
        "busy_fraction": 0.75,
        "mean_running": 12.4,
        "limit": "decoding",
    }
    return ServingSimulation(**(fields | changes))


def option(*consequences: Consequence, **changes: Any) -> ServingOption:
    workload = Inference(profile="vllm", parallel={"sharing": "manual", "data": 2})
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), workload=workload, gpu="l40s", count=2)
    fields: dict[str, Any] = {
        "plan": plan,
        "replicas": 2,
        "cards_per_replica": 1,
        "hardware": None,
        "simulation": simulation(),
        "watts": 700.0,
        "consequences": consequences,
    }
    return ServingOption(**(fields | changes))
