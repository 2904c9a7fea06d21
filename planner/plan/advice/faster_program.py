"""The program that answers faster than Hugging Face Transformers on several cards or for several users."""

from collections.abc import Iterator
from typing import Final

from planner.plan.advice.change import PlanChange
from planner.plan.advice.inference_changes import TEXT_GENERATION_ONLY
from planner.plan.advice.search import ChangedPlan, ChangeSearch
from planner.plan.evaluate import evaluate
from planner.workload.software.transformers import TRANSFORMERS
from planner.workload.software.vllm import VLLM
from planner.workload.workload import Workload

CONTINUOUS_BATCHING: Final = PlanChange(
    name=VLLM.title,
    lever="program",
    sentence="Serve the model with vLLM, whose cards compute each layer together instead of one after another.",
    source="vLLM, Parallelism and Scaling; both rates are the estimates of these plans",
    settings={"profile": VLLM.name},
    applies={**TEXT_GENERATION_ONLY, "profile": (TRANSFORMERS.name,)},
    costs=f"{VLLM.title} reserves most of the memory for its KV cache",
    needs="vllm",
    keeps="the model",
)
"""The change from a program that answers a batch as a whole to one that takes new requests into the running batch."""
_WORTHWHILE: Final = 1.2
"""Factor on the tokens per second below which another program is not worth the change."""


def faster_program(search: ChangeSearch, workload: Workload) -> Iterator[ChangedPlan]:
    """Yield the change of the program if the plan still fits and generates more tokens per second; else nothing.

    `workload` is the plan's, with its defaults filled in.
    """
    several = search.start.plan.count > 1 or getattr(workload, "batch", 1) > 1
    if not several or not CONTINUOUS_BATCHING.applies_to(workload, None):
        return
    changed = search.evaluate(search.start, CONTINUOUS_BATCHING)
    if changed is None or changed.fit.verdict != "fits":
        return
    before, after = (_tokens_per_second(search, each) for each in (search.start, changed))
    if before and after and after > _WORTHWHILE * before:
        name = f"Run in {CONTINUOUS_BATCHING.name}: {after:,.0f} instead of {before:,.0f} tokens/s"
        yield changed._replace(changes=(CONTINUOUS_BATCHING._replace(name=name, slower_by_about=before / after),))


def _tokens_per_second(search: ChangeSearch, changed: ChangedPlan) -> float | None:
    time = evaluate(changed.plan, search.catalog).time
    return None if time is None else time.tokens_per_second
