"""Corrections that apply to a plan, in a module of their own so that estimates need not load log reading."""

from planner.memory.corrections import Correction
from planner.plan.evaluate import Evaluation


def correction_key(evaluation: Evaluation) -> tuple[str, str, str, str] | None:
    """Return the kind of run that corrections apply to, as (engine, task, card, kind of model); None without a card."""
    if evaluation.plan.gpu is None or evaluation.architecture is None:
        return None
    workload = evaluation.workload
    return workload.profile or "hf", workload.task, evaluation.plan.gpu, evaluation.architecture.model_type


def applied_corrections(evaluation: Evaluation) -> tuple[Correction, ...]:
    """Return the plan's corrections that apply to its kind of run, and that its memory estimate includes."""
    key = correction_key(evaluation)
    return tuple(correction for correction in evaluation.plan.corrections if correction.key == key)


def with_correction(corrections: tuple[Correction, ...], correction: Correction) -> tuple[Correction, ...]:
    """Return `corrections` with `correction` added; it replaces a correction for the same kind of run."""
    return (*(known for known in corrections if known.key != correction.key), correction)
