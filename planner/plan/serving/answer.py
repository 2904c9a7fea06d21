"""Wishes for a service, its options with their limits and what would change them, and the answer of a search."""

from collections.abc import Callable, Iterator
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import Field

from planner.base import Spec, Stop
from planner.cost.terms import RentMode
from planner.plan.catalog import Catalog
from planner.plan.evaluate import evaluate
from planner.plan.plan import Plan
from planner.plan.recommend.option import Acquisition, ExcludedCount, HardwareOption
from planner.plan.serving.service_simulation import deploy_evaluated
from planner.serving.deployment import Deployment, ServingSetup
from planner.serving.result import ServingSimulation
from planner.serving.simulate import simulate_traffic
from planner.serving.targets import Targets
from planner.serving.traffic import Traffic, share_of_traffic
from planner.workload.software.registry import serving_support
from planner.workload.workload import Inference

Objective = Literal["usd", "cards", "watts"]
"""What an answer needs least of: dollars per month, GPUs, or the rated power of all GPUs."""


class ServingWish(Spec):
    """The choices of a search for the hardware of a service, and the figure that it minimizes."""

    objective: Objective = "usd"
    gpus: tuple[str, ...] = Field(default=(), description="only these GPUs, by catalog id; empty: all that can be had")
    vendors: tuple[str, ...] = Field(default=(), description="only these makers; empty: all of them")
    cards_per_replica: tuple[Annotated[int, Field(ge=1, le=64)], ...] = Field(
        default=(1, 2, 4, 8), min_length=1, description="numbers of GPUs that share one copy of the model"
    )
    most_cards: int = Field(default=64, ge=1, le=4_096, description="GPUs of all replicas together")
    weights: tuple[str, ...] = Field(default=(), description="weight formats to try as well as the plan's")
    kv_caches: tuple[str, ...] = Field(default=(), description="formats of the KV cache to try as well as the plan's")
    step_tokens: tuple[Annotated[int, Field(ge=16, le=1_000_000)], ...] = Field(
        default=(), description="tokens of a step (`max_num_batched_tokens`) to try as well as the plan's"
    )
    having: tuple[Acquisition, ...] = Field(default=("rent", "own"), min_length=1, description="rent, own, or either")
    modes: tuple[RentMode, ...] = Field(default=("on-demand",), min_length=1, description="rental modes")
    budget_usd: float | None = Field(default=None, gt=0, le=1e9, allow_inf_nan=False, description="per month")
    surely: bool = Field(
        default=False, description="targets are met at the upper end of their ranges, not only in the estimate"
    )


WhatIf = Literal["longer-prompts", "longer-answers", "more-requests", "fewer-replicas", "fp8-cache", "no-prefix-cache"]


class Consequence(Spec):
    """Consequence of a change of traffic or settings for an option: the targets still met, or which are missed.

    `cache_factor` is the tokens that the cache then holds, relative to now.
    """

    change: WhatIf
    factor: float
    """Factor of the change: 1.05 for prompts that are 5 % longer."""
    holds: bool
    broken: tuple[str, ...] = ()
    """Titles of the targets that are missed then: `p95 time to first token`."""
    cache_factor: float | None = None


class ServingOption(Spec):
    """Hardware that meets the targets: GPUs, replicas and settings, with its cost and its simulation."""

    plan: Plan
    """The plan on these GPUs, which can be opened and launched."""
    replicas: int
    """Copies of the model."""
    cards_per_replica: int
    """GPUs that share one copy."""
    hardware: HardwareOption | None
    """How it is rented or bought, and what it costs per month; None if no price is known."""
    simulation: ServingSimulation
    """Its simulated service."""
    watts: float | None
    """Rated power of all GPUs together; None if unknown."""
    changes: tuple[str, ...] = ()
    """Settings that differ from those of the plan."""
    consequences: tuple[Consequence, ...] = ()
    """What would break its targets or ease them; of the best option only."""

    @property
    def cards(self) -> int:
        """Return the number of GPUs of all replicas."""
        return self.replicas * self.cards_per_replica

    @property
    def usd_per_month(self) -> float | None:
        """Return the cost per month in dollars, None if no price is known."""
        return None if self.hardware is None else self.hardware.usd


class ServingAnswer(Spec):
    """State of a search for the hardware of a service: the options so far, the best first.

    `done` of `total` configurations have been tried; the answer is complete when they are equal.
    """

    wish: ServingWish
    """What was asked for."""
    done: int
    """Configurations that were tried."""
    total: int
    """Configurations that were found so far."""
    options: tuple[ServingOption, ...] = ()
    """Options that meet the targets, the best first."""
    left_out: tuple[ExcludedCount, ...] = ()
    """Reasons for leaving configurations out, with their numbers."""
    nearest: ServingOption | None = None
    """The option that misses its targets least, if none meets them."""

    @property
    def best(self) -> ServingOption | None:
        """Return the best option, None if there is none (so far)."""
        return self.options[0] if self.options else None

    @property
    def complete(self) -> bool:
        """Return whether all configurations have been tried."""
        return self.done == self.total


SHOWN_OPTIONS: Final = 50


_LONGER: Final = (1.05, 1.1, 1.2, 1.5)
_MORE: Final = (1.05, 1.1, 1.25, 1.5, 2.0)
_FP8: Final = "fp8"


class OptionInputs(NamedTuple):
    """An option with the traffic and targets that it was found for."""

    option: ServingOption
    catalog: Catalog
    traffic: Traffic
    targets: Targets
    setup: ServingSetup
    requests: int
    seed: int
    stop: Stop


def find_consequences(inputs: OptionInputs) -> Iterator[Consequence]:
    """Yield what changes of the traffic or the settings do to an option.

    Of prompts, answers and requests it is the smallest increase, of those that are tried, that breaks a target, or else
    the largest, which does not.
    """
    deployment = _deployed(inputs, inputs.option.plan)
    if deployment is None:
        return
    grows: tuple[tuple[WhatIf, tuple[float, ...], Callable[[float], Traffic]], ...] = (
        ("longer-prompts", _LONGER, lambda factor: inputs.traffic.with_longer(input_factor=factor)),
        ("longer-answers", _LONGER, lambda factor: inputs.traffic.with_longer(output_factor=factor)),
        ("more-requests", _MORE, lambda factor: _more(inputs.traffic, factor)),
    )
    for change, factors, changed in grows:
        yield _first_that_breaks(inputs, deployment, change, factors, changed)
    if inputs.option.replicas > 1:
        fewer = inputs.option.replicas - 1
        found = _simulated(inputs, deployment._replace(replicas=fewer), inputs.traffic)
        yield _consequence("fewer-replicas", fewer / inputs.option.replicas, found)
    yield from _other_caches(inputs, deployment)


def _more(traffic: Traffic, factor: float) -> Traffic:
    rate = traffic.requests_per_second
    if rate is None:
        return traffic
    return traffic.at_rate(factor * rate)


def _first_that_breaks(
    inputs: OptionInputs,
    deployment: Deployment,
    change: WhatIf,
    factors: tuple[float, ...],
    changed: Callable[[float], Traffic],
) -> Consequence:
    found = None
    for factor in factors:
        found = _consequence(change, factor, _simulated(inputs, deployment, changed(factor)))
        if not found.holds:
            break
    assert found is not None
    return found


def _other_caches(inputs: OptionInputs, deployment: Deployment) -> Iterator[Consequence]:
    """Yield what a KV cache in FP8 would do, and serving without a prefix cache."""
    workload, tokens = inputs.option.plan.workload, deployment.cache_tokens
    assert isinstance(workload, Inference)
    if tokens and workload.kv_cache != _FP8 and _FP8 in serving_support(workload.profile).cache_formats:
        changed = _deployed(inputs, inputs.option.plan.evolve(workload=workload.evolve(kv_cache=_FP8)))
        assert changed is not None  # it needs less memory than the option, which fits
        found = _consequence("fp8-cache", 1.0, _simulated(inputs, changed, inputs.traffic))
        yield found.evolve(cache_factor=(changed.cache_tokens or 0) / tokens)
    cache = inputs.option.simulation.cache
    if cache is not None and cache.prefix_hit_fraction > 0:
        bare = deployment._replace(scheduling=deployment.scheduling.without_prefixes())
        yield _consequence("no-prefix-cache", 1.0, _simulated(inputs, bare, inputs.traffic))


def _deployed(inputs: OptionInputs, plan: Plan) -> Deployment | None:
    found = deploy_evaluated(evaluate(plan, inputs.catalog), inputs.setup)
    return None if isinstance(found, str) else found


def _simulated(inputs: OptionInputs, deployment: Deployment, traffic: Traffic) -> ServingSimulation | None:
    """Return the simulated share of one replica, which the others answer in the same way."""
    return simulate_traffic(
        deployment._replace(replicas=1),
        share_of_traffic(traffic, deployment.replicas),
        inputs.targets,
        requests=inputs.requests,
        seed=inputs.seed,
        ranges=False,
        detail=False,
        stop=inputs.stop,
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
