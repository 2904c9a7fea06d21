"""Which corrections of a plan count, and why others do not."""

from planner.memory.corrections import Correction
from planner.models.architecture import Architecture
from planner.plan.plan import Plan

Key = tuple[str, str, str, str]


def correction_key(plan: Plan, architecture: Architecture) -> Key | None:
    """Return what a correction must be for to count for `plan`: engine, task, card and kind of model.

    None without a card: a log is of one, and nothing is known of others from it.
    """
    if plan.gpu is None:
        return None
    return plan.workload.profile, plan.workload.task, plan.gpu, architecture.model_type


def corrections_of(plan: Plan, architecture: Architecture) -> tuple[Correction, ...]:
    """Return the corrections in `plan` that are for its model and its way to run, on any card."""
    if not plan.corrections:
        return ()
    way = (plan.workload.profile, plan.workload.task, architecture.model_type)
    return tuple(item for item in plan.corrections if (item.profile, item.task, item.model_type) == way)


def unused_corrections(plan: Plan, architecture: Architecture) -> tuple[str, ...]:
    """Return a sentence for each correction in `plan` that does not count for it."""
    key = correction_key(plan, architecture)
    return tuple(
        f"A correction by {item.source} does not count here: it is for {item.model_type} in {item.profile} "
        f"({item.task}) on {item.gpu}."
        for item in plan.corrections
        if item.key != key
    )
