"""Consequences of changes for an option: longer prompts, more requests, fewer replicas, other formats of the cache."""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from planner.plan.catalog import Catalog
from planner.plan.evaluate import evaluate
from planner.plan.plan import Plan
from planner.plan.serving.answer import Consequence, ServingOption, WhatIf
from planner.plan.serving.service_simulation import deploy_evaluated
from planner.serving.deployment import Deployment, ServingSetup
from planner.serving.result import ServingSimulation
from planner.serving.simulate import simulate_traffic
from planner.serving.targets import Targets
from planner.serving.traffic import Traffic, share_of_traffic
from planner.workload.software.registry import serving_support
from planner.workload.workload import Inference

_LONGER: Final = (1.05, 1.1, 1.2, 1.5)
_MORE: Final = (1.05, 1.1, 1.25, 1.5, 2.0)
_FP8: Final = "fp8"


class OptionQuestion(NamedTuple):
    """An option with the traffic and targets that it was found for."""

    option: ServingOption
    catalog: Catalog
    traffic: Traffic
    targets: Targets
    setup: ServingSetup
    requests: int
    seed: int
    stop: Callable[[], bool]


def find_consequences(question: OptionQuestion) -> Iterator[Consequence]:
    """Yield what changes of the traffic or the settings do to an option.

    Of prompts, answers and requests it is the smallest increase, of those that are tried, that breaks a target, or else
    the largest, which does not.
    """
    deployment = _deployed(question, question.option.plan)
    if deployment is None:
        return
    grows: tuple[tuple[WhatIf, tuple[float, ...], Callable[[float], Traffic]], ...] = (
        ("longer-prompts", _LONGER, lambda factor: question.traffic.with_longer(input_factor=factor)),
        ("longer-answers", _LONGER, lambda factor: question.traffic.with_longer(output_factor=factor)),
        ("more-requests", _MORE, lambda factor: _more(question.traffic, factor)),
    )
    for change, factors, changed in grows:
        yield _first_that_breaks(question, deployment, change, factors, changed)
    if question.option.replicas > 1:
        fewer = question.option.replicas - 1
        found = _simulated(question, deployment._replace(replicas=fewer), question.traffic)
        yield _consequence("fewer-replicas", fewer / question.option.replicas, found)
    yield from _other_caches(question, deployment)


def _more(traffic: Traffic, factor: float) -> Traffic:
    rate = traffic.requests_per_second
    if rate is None:
        return traffic
    return traffic.at_rate(factor * rate)


def _first_that_breaks(
    question: OptionQuestion,
    deployment: Deployment,
    change: WhatIf,
    factors: tuple[float, ...],
    changed: Callable[[float], Traffic],
) -> Consequence:
    found = None
    for factor in factors:
        found = _consequence(change, factor, _simulated(question, deployment, changed(factor)))
        if not found.holds:
            break
    assert found is not None
    return found


def _other_caches(question: OptionQuestion, deployment: Deployment) -> Iterator[Consequence]:
    """Yield what a KV cache in FP8 would do, and serving without a prefix cache."""
    workload, tokens = question.option.plan.workload, deployment.cache_tokens
    assert isinstance(workload, Inference)
    if tokens and workload.kv_cache != _FP8 and _FP8 in serving_support(workload.profile).cache_formats:
        changed = _deployed(question, question.option.plan.evolve(workload=workload.evolve(kv_cache=_FP8)))
        assert changed is not None  # it needs less memory than the option, which fits
        found = _consequence("fp8-cache", 1.0, _simulated(question, changed, question.traffic))
        yield found.evolve(cache_factor=(changed.cache_tokens or 0) / tokens)
    cache = question.option.simulation.cache
    if cache is not None and cache.prefix_hit_fraction > 0:
        bare = deployment._replace(scheduling=deployment.scheduling.without_prefixes())
        yield _consequence("no-prefix-cache", 1.0, _simulated(question, bare, question.traffic))


def _deployed(question: OptionQuestion, plan: Plan) -> Deployment | None:
    found = deploy_evaluated(evaluate(plan, question.catalog), question.setup)
    return None if isinstance(found, str) else found


def _simulated(question: OptionQuestion, deployment: Deployment, traffic: Traffic) -> ServingSimulation | None:
    """Return the simulated share of one replica, which the others answer in the same way."""
    return simulate_traffic(
        deployment._replace(replicas=1),
        share_of_traffic(traffic, deployment.replicas),
        question.targets,
        requests=question.requests,
        seed=question.seed,
        ranges=False,
        detail=False,
        stop=question.stop,
    )


def _consequence(change: WhatIf, factor: float, found: ServingSimulation | None) -> Consequence:
    if found is None:
        return Consequence(change=change, factor=factor, holds=False)
    broken = [result.target.title for result in found.targets if not result.holds]
    if found.goodput is not None and not found.goodput.holds:
        broken.append("goodput")
    if found.saturated:
        broken.append("throughput")
    return Consequence(change=change, factor=factor, holds=found.holds, broken=tuple(broken))
