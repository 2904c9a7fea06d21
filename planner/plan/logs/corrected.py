"""Which corrections by logs are in a plan's estimate, and which may be: every estimate asks, so it loads no logs."""

from planner.memory.corrections import Correction
from planner.plan.evaluate import Evaluation


def correction_key(evaluation: Evaluation) -> tuple[str, str, str, str] | None:
    """Return what a correction of this plan is kept for: engine, task, card and kind of model; none without a card."""
    if evaluation.plan.gpu is None or evaluation.architecture is None:
        return None
    workload = evaluation.workload
    return workload.profile or "hf", workload.task, evaluation.plan.gpu, evaluation.architecture.model_type


def counting(evaluation: Evaluation) -> tuple[Correction, ...]:
    """Return the corrections of the plan that are in its estimate."""
    key = correction_key(evaluation)
    return tuple(correction for correction in evaluation.plan.corrections if correction.key == key)


def with_correction(corrections: tuple[Correction, ...], correction: Correction) -> tuple[Correction, ...]:
    """Return `corrections` with `correction` in the place of one for the same kind of run."""
    return (*(known for known in corrections if known.key != correction.key), correction)
