"""How long a plan takes on its cards: estimated, by its trace, or as it was measured.

Apart from `planner.plan.evaluate`, so that who asks for memory alone does not load what estimates time.
"""

from functools import lru_cache

from planner.hardware.gpu import Gpu
from planner.models.architecture import Architecture
from planner.performance.estimate import CardCounts, estimate_time
from planner.performance.links import links_of
from planner.performance.measured import scaled
from planner.performance.result import TimeResult
from planner.performance.setting import TimeSetting
from planner.performance.traced import step_time
from planner.plan.plan import Plan
from planner.trace.facts import TracedFacts
from planner.trace.timing import step_of
from planner.workload.workload import Workload


def time_of(
    plan: Plan, workload: Workload, architecture: Architecture | None, cards: CardCounts, measured_on: Gpu | None
) -> TimeResult | None:
    """Return how long one step, or one request, of `plan` takes on `cards`, of which there is at least one.

    `workload` is the plan's with its defaults; `measured_on` is the card of the plan's measured speed, where that is
    another one. A traced module has no architecture.
    """
    if architecture is not None:
        return _estimated(architecture, workload, cards, plan.timing, measured_on)
    return None if plan.model.trace is None else _traced(plan.model.trace, cards[0][0], plan, measured_on)


@lru_cache(maxsize=256)
def _estimated(
    architecture: Architecture,
    workload: Workload,
    cards: CardCounts,
    setting: TimeSetting,
    measured_on: Gpu | None,
) -> TimeResult:
    return estimate_time(architecture, workload, cards, setting, measured_on)


def _traced(facts: TracedFacts, gpu: Gpu, plan: Plan, measured_on: Gpu | None) -> TimeResult:
    """Return how long the traced step takes; a speed that was measured takes the place of the estimate."""
    setting = plan.timing
    step, measured = step_of(facts, compiled=setting.compiled, channels_last=setting.channels_last), setting.measured
    if step is None:
        task = facts.request.task
        reason = "this trace is from before operations were counted: trace it again"
        return TimeResult(task=task, kind="step" if task == "training" else "service", unsupported=reason)

    def on(card: Gpu, count: int) -> TimeResult:
        links = links_of(card, plan.timing)
        return step_time(step, card, links, count, plan.timing.input_samples_per_second)

    estimated = on(gpu, plan.count)
    if measured is None or estimated.seconds is None:
        return estimated
    there_on, there_count = measured_on or gpu, measured.count or plan.count
    is_same = (there_on.id, there_count) == (gpu.id, plan.count)
    return scaled(estimated, on(there_on, there_count), measured, is_same=is_same)
