"""Comparison of an estimate with a log: memory by term, or by counter without terms; speeds; and what to keep of it."""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, get_args

from planner.errors import SpecError
from planner.memory.corrections import TermCorrection, with_correction
from planner.memory.logs.reading import LogReading
from planner.memory.result import Term, TermName
from planner.performance.setting import MeasuredSpeed
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation, evaluate
from planner.plan.logs.figures import compare_figures, condition_notes, measured_speed
from planner.plan.logs.files import Log
from planner.plan.logs.log_amounts import (
    LogAmounts,
    LogComparison,
    LogComparisonRow,
    MeasuredAmount,
    RowName,
    amounts_in_log,
    can_correct,
    counter_correction,
    is_of_program,
    suggest_correction,
    term_corrections,
)
from planner.plan.logs.reasons import explain_row, log_notes
from planner.plan.measured import predict_card
from planner.plan.plan import Plan

GROUPS: Final[dict[RowName, tuple[TermName, ...]]] = {
    "weights": ("weights", "draft", "master_weights", "adapters"),
    "kv_cache": ("kv_cache",),
    "state": ("state",),
    # Engines print one peak for all of these terms.
    "working": ("activations", "logits", "temporaries", "buffers"),
    "overhead": ("framework_overhead", "communication"),
}
"""Memory terms of the estimate that each comparison row includes."""


class EstimatedBytes(NamedTuple):
    """An estimated amount of memory with its range, None where it has none."""

    bytes: int
    low: int | None
    high: int | None


_COUNTERS: Final[tuple[RowName, ...]] = tuple(name for name in get_args(RowName) if name not in (*GROUPS, "sum"))
_FEWEST_SUMMED: Final = 2


def compare_plan(plan: Plan, catalog: Catalog, reading: LogReading) -> LogComparison:
    """Compare `plan`, estimated without corrections and measured speeds, with the log `reading`.

    Raises:
        SpecError: If the plan cannot be evaluated, or nothing in the log has a counterpart in an estimate.
    """
    return compare_with_log(evaluate(without_measurements(plan), catalog), reading, catalog)


def without_measurements(plan: Plan) -> Plan:
    """Return `plan` without the corrections and the speed that were measured, so that the estimate itself is left."""
    return plan.evolve(corrections=(), timing=plan.timing.evolve(measured=None))


def compare_with_log(evaluation: Evaluation, reading: LogReading, catalog: Catalog) -> LogComparison:
    """Compare the estimate in `evaluation` with the log `reading`, with explanations for the differences.

    Each term has its largest value in any phase. Of several devices the fullest counts, or the sum over the devices if
    they hold parts of a model that the plan has on one. Speeds are compared with the plan under their own conditions.

    Raises:
        SpecError: If nothing in the log has a counterpart in an estimate.
    """
    actuals = amounts_in_log(evaluation, reading)
    terms = tuple(_term_rows(evaluation, actuals, reading))
    rows = (*terms, *_sum_rows(terms), *_counter_rows(evaluation, actuals, reading, with_terms=bool(terms)))
    figures = tuple(compare_figures(evaluation, reading, catalog))
    if not rows and not figures:
        hint = "Choose a log with the size of weights, caches, or allocated, reserved or used memory, or with speeds."
        raise SpecError("log", "nothing in this log can be compared with an estimate", hint)
    notes = (*log_notes(evaluation, reading, actuals), *condition_notes(figures))
    return LogComparison(reading=reading, rows=rows, figures=figures, notes=notes)


def estimated_bytes(evaluation: Evaluation, name: RowName) -> EstimatedBytes | None:
    """Return the estimate of a comparison row with its range, None if the plan has none."""
    if name in GROUPS:
        amount: int | None = _largest_bytes(evaluation, GROUPS[name])
    else:
        amount = _predicted_counter_bytes(evaluation, name)
    return None if amount is None else EstimatedBytes(amount, *_bounds(evaluation, name, amount))


def _bounds(evaluation: Evaluation, name: RowName, amount: int) -> tuple[int | None, int | None]:
    """Return the range of a row: one case in twenty lies below, and one above.

    The bounds of the whole are sums of the terms' bounds; PyTorch's live tensors are all but the framework's own.
    """
    memory = evaluation.memory
    if name == "capacity":
        return memory.capacity_low_bytes, memory.capacity_high_bytes
    if name == "pool":
        return memory.cache_pool_bounds or (None, None)
    if name in GROUPS:
        alive = [term for term in memory.terms if term.name in GROUPS[name]]
        below, above = _margins(alive)
        return (amount - below, amount + above) if alive else (None, None)
    if name not in ("allocated", "reserved", "process", "card"):
        return None, None
    below, above = memory.total_bytes - memory.low_bytes, memory.high_bytes - memory.total_bytes
    if name == "allocated":
        less, more = _margins([term for term in memory.terms if term.name == "framework_overhead"])
        below, above = max(below - less, 0), max(above - more, 0)
    return amount - below, amount + above


def _margins(terms: Iterable[Term]) -> tuple[int, int]:
    """Return by how much the terms together may be smaller, and by how much larger."""
    pairs = [(term.bytes - term.low_bytes, term.high_bytes - term.bytes) for term in terms]
    return sum(below for below, _ in pairs), sum(above for _, above in pairs)


def _term_rows(evaluation: Evaluation, actuals: LogAmounts, reading: LogReading) -> Iterator[LogComparisonRow]:
    """Yield a comparison row for each memory term that the log states."""
    correctable = can_correct(evaluation, reading)
    for name, terms in GROUPS.items():
        actual = actuals.terms.get(name)
        if actual is None:
            continue
        predicted = _largest_bytes(evaluation, terms)
        corrections = term_corrections(name, predicted, actual, actuals, evaluation, reading) if correctable else ()
        reason = explain_row(name, predicted, actual, evaluation, reading, actuals)
        yield _comparison_row(name, estimated_bytes(evaluation, name), actual, reason, corrections)


def _counter_rows(
    evaluation: Evaluation, actuals: LogAmounts, reading: LogReading, *, with_terms: bool
) -> Iterator[LogComparisonRow]:
    """Yield a comparison row for each memory counter that the log states."""
    correctable = can_correct(evaluation, reading) and not with_terms
    attributed = 0
    for name in _COUNTERS:
        actual = actuals.pool if name == "pool" else actuals.counters.get(name)
        if actual is None:
            continue
        predicted = _predicted_counter_bytes(evaluation, name)
        corrections: tuple[TermCorrection, ...] = ()
        if correctable and predicted is not None:
            corrections = counter_correction(name, predicted, attributed, actual, evaluation)
            attributed += sum(item.added_bytes for item in corrections)
        reason = explain_row(name, predicted, actual, evaluation, reading, actuals)
        yield _comparison_row(name, estimated_bytes(evaluation, name), actual, reason, corrections)


def _comparison_row(
    name: RowName,
    predicted: EstimatedBytes | None,
    actual: MeasuredAmount,
    reason: str,
    corrections: tuple[TermCorrection, ...],
) -> LogComparisonRow:
    """Return the row that compares an estimated with a measured amount."""
    return LogComparisonRow(
        name=name,
        predicted_bytes=predicted.bytes if predicted else None,
        predicted_low_bytes=predicted.low if predicted else None,
        predicted_high_bytes=predicted.high if predicted else None,
        actual_bytes=actual.bytes,
        low_bytes=actual.low,
        high_bytes=actual.high,
        at_least=actual.sense in ("at-least", "moment"),
        explanation=reason,
        lines=actual.lines,
        corrections=corrections,
    )


def _sum_rows(rows: tuple[LogComparisonRow, ...]) -> Iterator[LogComparisonRow]:
    """Yield one row with the sum of the terms that both log and estimate have, if there are several."""
    summed = [row for row in rows if row.name in GROUPS and row.predicted_bytes is not None]
    if len(summed) >= _FEWEST_SUMMED:
        yield LogComparisonRow(
            name="sum",
            predicted_bytes=sum(row.predicted_bytes or 0 for row in summed),
            predicted_low_bytes=_sum_of(row.predicted_low_bytes for row in summed),
            predicted_high_bytes=_sum_of(row.predicted_high_bytes for row in summed),
            actual_bytes=sum(row.actual_bytes for row in summed),
            low_bytes=sum(row.low_bytes for row in summed),
            high_bytes=sum(row.high_bytes for row in summed),
            explanation="Sum of the rows above, which may peak at different times.",
            lines=tuple(sorted({line for row in summed for line in row.lines})),
        )


def _sum_of(bounds: Iterable[int | None]) -> int | None:
    """Return the sum of the bounds, None if one is not known."""
    known = list(bounds)
    return None if None in known else sum(bound or 0 for bound in known)


def _largest_bytes(evaluation: Evaluation, names: tuple[TermName, ...]) -> int:
    """Return the largest sum of the terms `names` in any phase, in bytes."""
    phases = evaluation.memory.phases
    return max(sum(share.bytes for share in phase.shares if share.name in names) for phase in phases)


def _predicted_counter_bytes(evaluation: Evaluation, name: RowName) -> int | None:
    """Return the estimate for a memory counter, such as allocated or reserved memory, in bytes."""
    memory, filled = evaluation.memory, predict_card(evaluation).memory_bytes
    amounts: dict[RowName, int | None] = {
        "pool": memory.cache_pool.bytes if memory.cache_pool else None,
        "allocated": memory.allocated_bytes,
        "reserved": memory.reserved_bytes,
        "process": filled,
        "card": filled + memory.other_processes_bytes,
        "capacity": memory.capacity_bytes,
        "card-total": evaluation.gpu.smi_memory_bytes if evaluation.gpu else None,
        "host": memory.host_bytes,
    }
    return amounts[name]


_LONGEST_NAME: Final = 200


def with_measurements(plan: Plan, catalog: Catalog, comparison: LogComparison, log: Log) -> Plan:
    """Return `plan` with the speed that `log` measured under its own conditions, and its memory corrected by it.

    Raises:
        SpecError: If the log measured neither.
    """
    evaluation = evaluate(without_measurements(plan), catalog)
    speed = speed_to_keep(comparison, evaluation, log)
    correction = suggest_correction(comparison, evaluation, log.date, log.digest)
    if speed is None and correction is None:
        raise SpecError(
            "log",
            "it measured nothing that the plan can keep",
            "It needs the plan's program, and its card for memory, or its prompt, answer and requests for a speed.",
        )
    if speed is not None:
        plan = plan.evolve(timing=plan.timing.evolve(measured=speed))
    if correction is not None:
        plan = plan.evolve(corrections=with_correction(plan.corrections, correction))
    return plan


def speed_to_keep(comparison: LogComparison, evaluation: Evaluation, log: Log) -> MeasuredSpeed | None:
    """Return the speed of the plan's program that `log` measured under the plan's own conditions, None without one."""
    if not is_of_program(evaluation, comparison.reading):
        return None
    return measured_speed(comparison.figures, evaluation, f"measured in {log.name[:_LONGEST_NAME]} of {log.date}")
