"""Comparison of an estimate with a log: memory by term, or by counter without terms; speeds; and what to keep of it."""

from collections.abc import Callable, Iterable, Iterator
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
    MAX_FACTOR,
    MIN_FACTOR,
    LogAmounts,
    LogComparison,
    LogComparisonRow,
    MeasuredAmount,
    RowName,
    amounts_in_log,
    can_correct,
    context_tokens,
    counter_correction,
    cuda_graphs_row,
    is_of_program,
    planned_tokens,
    suggest_correction,
    term_corrections,
)
from planner.plan.measured import predict_card
from planner.plan.plan import Plan
from planner.units import GIB, MIB
from planner.workload.software.registry import DEFAULT, SERVERS, SOFTWARE, serving_support
from planner.workload.workload import Inference

_AGREEMENT: Final = 0.01
_SIMILARITY: Final = 0.12
_NOTABLE: Final = 64 * MIB
_BITS: Final = {32.0: "fp32", 16.0: "bf16 or fp16", 8.0: "8 bits per weight", 4.5: "4 bits per weight with scales"}
_COUNTED: Final = ("allocated", "reserved", "process")


class _ExplainedRow(NamedTuple):
    """A row of the log comparison, with the data from which its difference is explained."""

    name: RowName
    predicted: int | None
    actual: MeasuredAmount
    evaluation: Evaluation
    reading: LogReading
    actuals: LogAmounts

    @property
    def ratio(self) -> float:
        """Return the ratio of measured to estimated memory."""
        return self.actual.bytes / self.predicted if self.predicted else 0.0


_Explanation = Callable[[_ExplainedRow], str | None]


def log_notes(evaluation: Evaluation, reading: LogReading, actuals: LogAmounts) -> Iterator[str]:
    """Yield notes on differences between the run in the log and the plan."""
    program = SOFTWARE[evaluation.workload.profile or DEFAULT]
    if reading.engine not in (None, program.log_format):
        logged = SOFTWARE.get(reading.engine or "")
        yield (
            f"The log is from {logged.title if logged else 'PyTorch'}, but the plan is for {program.title}: "
            "their memory differs for the same model."
        )
    if reading.model is not None and not _is_same_model(reading.model, evaluation):
        yield f"The log is for the model {reading.model}, the plan for {evaluation.plan.model.id}."
    length = context_tokens(evaluation)
    if reading.context_length and length and reading.context_length not in (length, _context_of_slots(evaluation)):
        yield f"The log's context is {reading.context_length:,} tokens, the plan's {length:,}."
    if actuals.summed > 1:
        yield f"The log splits the model over {actuals.summed} devices, which are added up here."
    yield from reading.notes


def _context_of_slots(evaluation: Evaluation) -> int | None:
    """Return the tokens of all slots together, as llama-server prints its context; None for a program without slots."""
    workload, length = evaluation.workload, context_tokens(evaluation)
    if not isinstance(workload, Inference) or length is None or not hasattr(workload.engine, "slots"):
        return None
    slots: int | None = workload.engine.slots
    return length * (slots or workload.batch)


def _is_same_model(name: str, evaluation: Evaluation) -> bool:
    own = evaluation.plan.model.id.rpartition("/")[2]
    plain = [text.lower().replace("-", "").replace("_", "").replace(" ", "") for text in (name, own)]
    return plain[1] in plain[0] or plain[0] in plain[1]


def _explain_agreement_or_mismatch(case: _ExplainedRow) -> str | None:
    """Explain a difference that is negligible, or too large for a run of this plan."""
    if case.predicted is None:
        return "The estimate does not include this amount."
    if case.actual.sense in ("at-least", "moment"):
        return _explain_lower_bound(case)
    if abs(case.ratio - 1) <= _AGREEMENT:
        return "The log and the estimate agree within 1 %."
    far = case.name in _COUNTED and not MIN_FACTOR <= case.ratio <= MAX_FACTOR
    return "The log is not from a run of this plan: compare model, batch size, length and formats." if far else None


def _explain_lower_bound(case: _ExplainedRow) -> str:
    more = case.actual.low - (case.predicted or 0)
    usage = "The run used at least this much memory at that moment"
    if case.actual.sense == "at-least":
        requested = case.name == "allocated"
        usage = f"The run {'used or requested' if requested else 'used'} at least this much when it failed"
    if more <= 0:
        return f"{usage}; the estimate is not below it."
    return f"{usage}: {_gib_text(more)} more than estimated."


def _explain_number_format(case: _ExplainedRow) -> str | None:
    """Explain a difference of weights by their number format.

    **Formula**: bits per parameter = 8 × bytes ÷ parameters, of the log and of the plan.
    """
    if case.predicted is None or abs(case.ratio - 1) <= _SIMILARITY or not case.evaluation.parameters:
        return None
    bits = 8 * (case.actual.bytes + case.actuals.host_weights) / case.evaluation.parameters
    planned = 8 * case.predicted / case.evaluation.parameters
    likely = next((name for known, name in _BITS.items() if abs(bits / known - 1) <= _SIMILARITY), None)
    if likely is None or abs(bits / planned - 1) <= _SIMILARITY:
        return None
    return f"The log has {bits:.1f} bits per parameter, which suggests {likely}; the plan has {planned:.1f}."


def _explain_host_weights(case: _ExplainedRow) -> str | None:
    host_bytes = case.actuals.host_weights
    return f"{_gib_text(host_bytes)} of the weights are in host memory." if host_bytes > _NOTABLE else None


def _explain_cache_pool(case: _ExplainedRow) -> str | None:
    pool, tokens = case.actuals.pool, planned_tokens(case.evaluation)
    if pool is None:
        return None
    title = SOFTWARE[case.evaluation.workload.profile or DEFAULT].title
    return (
        f"{title} fills its share of the GPU with the KV cache: the pool of {_gib_text(pool.bytes)} has room for "
        f"{case.reading.cache_tokens:,} tokens. This row is the part that the plan's {tokens:,} tokens need."
    )


def _explain_engine_share(case: _ExplainedRow) -> str:
    """Explain the rest of an engine's share of the GPU memory, which the other rows do not include."""
    title = SOFTWARE[case.evaluation.workload.profile or DEFAULT].title
    return (
        f"The rest of {title}'s share of the GPU: it depends on that share, on other processes and on the terms above."
    )


def _explain_cache_length(case: _ExplainedRow) -> str | None:
    length, logged = context_tokens(case.evaluation), case.reading.context_length
    if case.actuals.pool is not None or not length or not logged:
        return None
    if logged in (length, _context_of_slots(case.evaluation)):
        return None
    return f"The log's cache is for {logged:,} tokens, {logged / length:.3g} times the plan's {length:,}."


def _explain_cache_format(case: _ExplainedRow) -> str | None:
    if _explain_cache_length(case) or case.predicted is None:
        return None
    if abs(case.ratio - 0.5) <= _SIMILARITY / 2:
        return "The log's cache is half the size of the plan's, which suggests an 8-bit cache."
    return (
        "The log's cache is twice the size of the plan's, which suggests a cache in a wider format."
        if abs(case.ratio - 2) <= _SIMILARITY
        else None
    )


def _explain_profiled_batch(case: _ExplainedRow) -> str | None:
    """Explain working memory by the engine in the log, if it is not the plan's."""
    logged = SERVERS.get(case.reading.engine or "")
    if logged is None or logged.name == case.evaluation.workload.profile:
        return None
    return serving_support(logged.name).working_memory or None


def _explain_library_memory(case: _ExplainedRow) -> str | None:
    logged = SERVERS.get(case.reading.engine or "")
    if logged is None:
        return None
    inside = case.actuals.graphs and cuda_graphs_row(case.evaluation.workload) == "overhead"
    graphs = f" CUDA graphs take {_gib_text(case.actuals.graphs)} of it." if inside else ""
    return f"{serving_support(logged.name).outside_memory}{graphs}"


def _explain_allocator_slack(case: _ExplainedRow) -> str | None:
    if case.actual.sense == "at-least":
        return None  # a failed request counts as allocated, but was never reserved
    allocated = case.actuals.counters.get("allocated")
    if allocated is None:
        return "The log has the reserved memory, which includes more than the allocated memory."
    unused = max(case.actual.bytes - allocated.bytes, 0)
    memory = case.evaluation.memory
    expected = memory.reserved_bytes - memory.allocated_bytes
    return (
        f"PyTorch's allocator holds {_gib_text(unused)} beyond its tensors; the estimate allows {_gib_text(expected)}."
    )


def _explain_other_processes(case: _ExplainedRow) -> str | None:
    process, others = case.actuals.counters.get("process"), case.actuals.others
    if process is None:
        return "This includes the GPU's other processes."
    rest = case.actual.bytes - process.bytes - others
    users = [f"other processes use {_gib_text(others)}"] if others else []
    users += [f"the driver and unlisted processes use {_gib_text(rest)}"] if rest > _NOTABLE else []
    return f"Of the GPU's memory, {' and '.join(users)}." if users else None


def _explain_other_card(case: _ExplainedRow) -> str | None:
    if case.predicted is None or abs(case.ratio - 1) <= _SIMILARITY / 2:
        return None
    return f"This is not the plan's GPU, which has {_gib_text(case.predicted)}."


def _gib_text(size_bytes: int) -> str:
    return f"{size_bytes / GIB:,.2f} GiB"


_EXPLANATIONS: Final[dict[RowName, tuple[_Explanation, ...]]] = {
    "weights": (_explain_number_format, _explain_host_weights),
    "kv_cache": (_explain_cache_pool, _explain_cache_length, _explain_cache_format),
    "pool": (_explain_engine_share,),
    "working": (_explain_profiled_batch,),
    "overhead": (_explain_library_memory,),
    "reserved": (_explain_allocator_slack,),
    "card": (_explain_other_processes,),
    "capacity": (_explain_other_card,),
    "card-total": (_explain_other_card,),
}


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
    amount = _predicted_bytes(evaluation, name)
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
    correctable = can_correct(evaluation, reading)
    for name in GROUPS:
        if (actual := actuals.terms.get(name)) is not None:
            predicted = _largest_bytes(evaluation, GROUPS[name])
            found = term_corrections(name, predicted, actual, actuals, evaluation, reading) if correctable else ()
            yield _comparison_row(_ExplainedRow(name, predicted, actual, evaluation, reading, actuals), found)


def _counter_rows(
    evaluation: Evaluation, actuals: LogAmounts, reading: LogReading, *, with_terms: bool
) -> Iterator[LogComparisonRow]:
    correctable = can_correct(evaluation, reading) and not with_terms
    attributed = 0
    for name in _COUNTERS:
        actual = actuals.pool if name == "pool" else actuals.counters.get(name)
        if actual is None:
            continue
        predicted = _predicted_bytes(evaluation, name)
        corrections: tuple[TermCorrection, ...] = ()
        if correctable and predicted is not None:
            corrections = counter_correction(name, predicted, attributed, actual, evaluation)
            attributed += sum(item.added_bytes for item in corrections)
        yield _comparison_row(_ExplainedRow(name, predicted, actual, evaluation, reading, actuals), corrections)


def _comparison_row(case: _ExplainedRow, corrections: tuple[TermCorrection, ...]) -> LogComparisonRow:
    actual, predicted = case.actual, case.predicted
    low, high = (None, None) if predicted is None else _bounds(case.evaluation, case.name, predicted)
    sentences = (rule(case) for rule in (*_EXPLANATIONS.get(case.name, ()), _explain_agreement_or_mismatch))
    return LogComparisonRow(
        name=case.name,
        predicted_bytes=predicted,
        predicted_low_bytes=low,
        predicted_high_bytes=high,
        actual_bytes=actual.bytes,
        low_bytes=actual.low,
        high_bytes=actual.high,
        at_least=actual.sense in ("at-least", "moment"),
        explanation=" ".join(filter(None, sentences)),
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
    known = list(bounds)
    return None if None in known else sum(bound or 0 for bound in known)


def _largest_bytes(evaluation: Evaluation, names: tuple[TermName, ...]) -> int:
    phases = evaluation.memory.phases
    return max(sum(share.bytes for share in phase.shares if share.name in names) for phase in phases)


def _predicted_bytes(evaluation: Evaluation, name: RowName) -> int | None:
    if name in GROUPS:
        return _largest_bytes(evaluation, GROUPS[name])
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
            "It needs the plan's program, and its GPU for memory, or its prompt, answer and requests for a speed.",
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
