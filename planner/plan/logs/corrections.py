"""Corrections to a memory estimate, derived from a log.

Only differences of the same engine on the plan's card count that no other setting explains: weights in another format
or a longer context are not errors of the estimate.
"""

from typing import Final

from planner.memory.corrections import Correction, TermCorrection
from planner.memory.logs.reading import LogReading
from planner.memory.result import TermName
from planner.plan.evaluate import Evaluation
from planner.plan.logs.log_amounts import LogAmounts, LogComparison, MeasuredAmount, RowName
from planner.units import MIB
from planner.workload.software.registry import DEFAULT, SOFTWARE
from planner.workload.workload import Inference

_MIN_DIFFERENCE: Final = 1 * MIB
MIN_FACTOR: Final = 0.7
MAX_FACTOR: Final = 1.4
"""Largest ratio of measured to estimated memory for a correction; beyond it, log and plan are from different runs:
checked runs are within 6 %."""
_MAX_WEIGHT_DIFFERENCE: Final = 0.1
_SCALING: Final[dict[RowName, tuple[TermName, ...]]] = {
    "kv_cache": ("kv_cache",),
    "state": ("state",),
    "working": ("activations", "logits", "temporaries", "buffers"),
}


def can_correct(evaluation: Evaluation, reading: LogReading) -> bool:
    """Return whether `reading` is from the plan's engine, and the plan is estimated for a card."""
    return evaluation.traced is None and evaluation.plan.gpu is not None and is_of_program(evaluation, reading)


def is_of_program(evaluation: Evaluation, reading: LogReading) -> bool:
    """Return whether `reading` is from the plan's program, or names none."""
    return reading.engine in (None, SOFTWARE[evaluation.workload.profile or DEFAULT].log_format)


def term_corrections(
    name: RowName,
    predicted: int,
    actual: MeasuredAmount,
    actuals: LogAmounts,
    evaluation: Evaluation,
    reading: LogReading,
) -> tuple[TermCorrection, ...]:
    """Return corrections that make one term match the log: a size in bytes for weights, a factor for other terms."""
    difference = actual.bytes - predicted
    if abs(difference) < max(_MIN_DIFFERENCE, actual.high - actual.bytes) or not predicted:
        return ()
    if name == "weights" and not actuals.host_weights and abs(difference) <= _MAX_WEIGHT_DIFFERENCE * predicted:
        return (TermCorrection(term="weights", added_bytes=difference),)
    factor = actual.bytes / predicted
    same_length = reading.context_length in (None, _context_tokens(evaluation)) or actuals.pool is not None
    if name in _SCALING and same_length and actuals.summed == 1 and MIN_FACTOR <= factor <= MAX_FACTOR:
        return tuple(TermCorrection(term=term, factor=factor) for term in _SCALING[name])
    return ()


def counter_correction(
    name: RowName, predicted: int, attributed: int, actual: MeasuredAmount, evaluation: Evaluation
) -> tuple[TermCorrection, ...]:
    """Return the correction for a counter's difference, less the bytes `attributed` to narrower counters.

    A value from one snapshot or from a failed run is a lower bound, so it never reduces the estimate.
    """
    residual = actual.bytes - predicted - attributed
    if not MIN_FACTOR * predicted <= actual.bytes <= MAX_FACTOR * predicted:
        return ()
    if abs(residual) < max(_MIN_DIFFERENCE, actual.high - actual.low) or (residual < 0 and actual.sense != "peak"):
        return ()
    if name == "allocated":
        return (TermCorrection(term=_largest_working_term(evaluation), added_bytes=residual),)
    if name == "reserved":
        return (TermCorrection(term="framework_overhead", added_bytes=residual, part="slack"),)
    if name == "process":
        return (TermCorrection(term="framework_overhead", added_bytes=residual),)
    return ()


def _context_tokens(evaluation: Evaluation) -> int | None:
    """Return the plan's context length in tokens; None for training."""
    return evaluation.workload.context_length if isinstance(evaluation.workload, Inference) else None


def _largest_working_term(evaluation: Evaluation) -> TermName:
    """Return the largest short-lived term at the peak, the least certain part of the allocated memory."""
    short_lived = [term for term in evaluation.memory.terms if term.name in ("activations", "logits", "temporaries")]
    return max(short_lived, key=lambda term: term.bytes).name if short_lived else "temporaries"


def suggest_correction(comparison: LogComparison, evaluation: Evaluation, date: str, digest: str) -> Correction | None:
    """Return the correction derived from the log of `date`, or None if there is nothing to correct."""
    terms = tuple(item for row in comparison.rows for item in row.corrections)
    key = evaluation.correction_key
    if not terms or key is None:
        return None
    profile, _, gpu, model_type = key
    return Correction(
        terms=terms,
        gpu=gpu,
        model_type=model_type,
        profile=profile,
        task=evaluation.workload.task,
        log=", ".join(comparison.reading.formats),
        date=date,
        digest=digest,
    )
