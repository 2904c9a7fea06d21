"""Replicas whose steps take round times, deployments of a small model, and traffic for both."""

from typing import Final, NamedTuple

from small_models import bundled

from planner.performance.inference.steps import DecodingStep
from planner.plan.plan import ModelChoice, Plan
from planner.plan.serving.service_simulation import deploy_plan
from planner.serving.cluster import finish
from planner.serving.deployment import Deployment, ServingSetup
from planner.serving.replica import Replica
from planner.serving.requests import NEVER, Requests
from planner.serving.scheduling import Scheduling
from planner.serving.traffic import FixedLength, RandomArrivals, Traffic
from planner.workload.workload import Inference

LLAMA_8B: Final = ModelChoice(id="meta-llama/Llama-3.1-8B")
CHAT: Final = Traffic(
    arrivals=RandomArrivals(requests_per_second=4), input=FixedLength(tokens=500), output=FixedLength(tokens=50)
)


class RoundTimes(NamedTuple):
    """Times of steps: of a decoding step with its context and least time, of a prompt token, and of shared experts."""

    step: float = 0.01
    per_token: float = 0.0
    least: float = 0.0
    prompt_token: float = 0.0
    later: float = 0.0
    shared: float = 0.0
    tokens_per_step: float = 1.0
    rows_per_sequence: int = 1

    def decoding(self, sequences: int) -> DecodingStep:
        return DecodingStep(self.step, self.per_token, self.least)

    def mixed(self, sequences: int, context: float, tokens: int, attention: float, experts: float = 0.0) -> float:
        decoding = self.step + self.per_token * context if sequences else 0.0
        return self.prompt_token * tokens + decoding + attention + experts

    def attention(self, begin: int, end: int) -> float:
        return 0.0

    def later_stages(self, tokens: int, attention: float) -> float:
        return self.later

    def experts(self, rows: float) -> float:
        return self.shared * rows


def rules(**changes: object) -> Scheduling:
    usual: dict[str, object] = {"source": "made up", "step_tokens": 1_000, "sequences": 4}
    return Scheduling(**{**usual, **changes})  # type: ignore[arg-type]  # fields of any type


def asked(*wanted: tuple[float, int, int]) -> Requests:
    """Return requests with their arrivals, prompt tokens and output tokens."""
    found = Requests()
    for arrival, prompt, output in wanted:
        found.add(arrival, prompt, output)
    return found


def answered(
    requests: Requests,
    times: RoundTimes | None = None,
    blocks: int | None = None,
    recorded_window: tuple[float, float] = (float("inf"), float("inf")),
    **changes: object,
) -> Replica:
    """Return a replica that has answered all requests, of which none is lost."""
    replica = Replica(0, times or RoundTimes(), rules(**changes), blocks, requests, recorded_window)  # type: ignore[arg-type]
    for number in requests.initial:
        replica.submit(number, requests.arrival[number])
    assert finish(replica, lambda: False)
    assert replica.used_blocks == 0
    assert replica.most_blocks <= replica.capacity
    unanswered = [number for number, end in enumerate(requests.end) if end == NEVER]
    assert unanswered == sorted(replica.rejected)
    return replica


def plan_on(gpu: str = "l40s", count: int = 1, model: ModelChoice = LLAMA_8B, **workload: object) -> Plan:
    return Plan(model=model, workload=Inference(**{"profile": "vllm", **workload}), gpu=gpu, count=count)


def deployed(plan: Plan | None = None, traffic: Traffic = CHAT, **setup: object) -> Deployment:
    found = deploy_plan(plan or plan_on(), bundled(), traffic, ServingSetup(**setup), requests=20, seed=0)
    assert not isinstance(found, str), found
    return found
