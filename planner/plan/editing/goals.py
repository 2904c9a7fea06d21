"""Goals, to run, fine-tune or train a model, and the workload and cost with which a plan for each starts."""

from collections.abc import Mapping
from itertools import product
from types import MappingProxyType
from typing import Final

from planner.cost.terms import DEFAULT_JOBS, CostTerms
from planner.errors import SpecError
from planner.plan.catalog import Catalog
from planner.plan.editing.conflicts import resolve_conflicts
from planner.plan.editing.draft import WORKLOAD
from planner.plan.evaluate import evaluate
from planner.plan.plan import Plan
from planner.workload.choices import Checkpointing, Goal, Method, Task
from planner.workload.workload import Training

TASK_OF_GOAL: Final[Mapping[Goal, Task]] = MappingProxyType(
    {"run": "inference", "fine-tune": "training", "train": "training"}
)
_METHODS: Final[tuple[Method, ...]] = ("lora", "qlora")
_CHECKPOINTING: Final[tuple[Checkpointing, ...]] = ("none", "full")
_MICRO_BATCHES: Final = (4, 2, 1)
"""Sizes to try: a card is busy with the 8,192 tokens of four usual sequences, and more only need more memory."""


def goal_fields(plan: Plan, goal: Goal, catalog: Catalog) -> dict[str, object]:
    """Return the fields of the workload, such as `workload.method`, with which `goal` starts.

    The workload of `plan` has the task of the goal. Training starts with all parameters. Fine-tuning starts with the
    first adapter that fits the cards, from LoRA without checkpointing to QLoRA with a micro-batch of one, or with the
    last if none fits; without a card, with plain LoRA. A workload that trains a part of the model and may fit stays.

    Raises:
        PlannerError: If the plan cannot be evaluated, for example because its model cannot be trained.
    """
    if goal == "run":
        return {}
    if goal == "train":
        return {f"{WORKLOAD}method": "full", f"{WORKLOAD}trainable": ()}
    is_adapted = isinstance(plan.workload, Training) and plan.workload.trains_part
    if is_adapted and evaluate(plan, catalog).memory.verdict != "does-not-fit":
        return {}
    if plan.gpu is None and not plan.workload.gpus:
        return _adapter_fields("lora")  # a card would decide between the others
    return _first_adapter_that_fits(plan, catalog)


def goal_terms(terms: CostTerms, goal: Goal) -> CostTerms:
    """Return `terms` with the usual job for `goal`: training is a run that ends; a job of the person's own stays."""
    if goal == "run":
        return terms.evolve(job=DEFAULT_JOBS["daily-hours"]) if terms.job == DEFAULT_JOBS["run"] else terms
    return terms if terms.job.kind == "run" else terms.evolve(job=DEFAULT_JOBS["run"])


def _first_adapter_that_fits(plan: Plan, catalog: Catalog) -> dict[str, object]:
    """Return the fields of the first adapter that fits, or of the one that needs the least memory."""
    variants: list[dict[str, object]] = []
    for method, checkpointing in product(_METHODS, _CHECKPOINTING):
        # Left unset where LoRA fits without it, since nobody chose it: a later change to QLoRA then turns it on.
        is_open = method == "lora" and not _checkpoints(plan) and checkpointing == "none"
        checkpoints = {} if is_open else {f"{WORKLOAD}activation_checkpointing": checkpointing}
        variants = [
            {**_adapter_fields(method), **checkpoints, f"{WORKLOAD}micro_batch": size} for size in _MICRO_BATCHES
        ]
        if _fits(plan, variants[-1], catalog):
            return next(variant for variant in variants if _fits(plan, variant, catalog))
    return variants[-1]


def _checkpoints(plan: Plan) -> bool:
    """Return whether the plan recomputes activations."""
    return isinstance(plan.workload, Training) and plan.workload.activation_checkpointing != "none"


def _adapter_fields(method: Method) -> dict[str, object]:
    return {f"{WORKLOAD}method": method, f"{WORKLOAD}weights": None, f"{WORKLOAD}trainable": ()}


def _fits(plan: Plan, fields: Mapping[str, object], catalog: Catalog) -> bool:
    """Return whether `plan` with `fields` changed surely fits."""
    try:
        changed = resolve_conflicts(plan, fields, catalog).plan
    except SpecError:
        return False
    return evaluate(changed, catalog).memory.verdict == "fits"
