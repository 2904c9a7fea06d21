"""Explanations of differences between a log and the estimate, one function per mechanism."""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from planner.memory.logs.reading import LogReading
from planner.plan.evaluate import Evaluation
from planner.plan.logs.log_amounts import (
    MAX_FACTOR,
    MIN_FACTOR,
    LogAmounts,
    MeasuredAmount,
    RowName,
    cuda_graphs_row,
    planned_tokens,
)
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


def explain_row(
    name: RowName,
    predicted: int | None,
    actual: MeasuredAmount,
    evaluation: Evaluation,
    reading: LogReading,
    actuals: LogAmounts,
) -> str:
    """Return the explanations of one row as sentences; empty if no mechanism is known."""
    case = _ExplainedRow(name, predicted, actual, evaluation, reading, actuals)
    sentences = (rule(case) for rule in (*_EXPLANATIONS.get(name, ()), _explain_agreement_or_mismatch))
    return " ".join(sentence for sentence in sentences if sentence)


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
    length = _context_tokens(evaluation)
    if reading.context_length and length and reading.context_length not in (length, _context_of_slots(evaluation)):
        yield f"The log's context is {reading.context_length:,} tokens, the plan's {length:,}."
    if actuals.summed > 1:
        yield f"The log splits the model over {actuals.summed} devices, which are added up here."
    yield from reading.notes


def _context_of_slots(evaluation: Evaluation) -> int | None:
    """Return the tokens of all slots together, as llama-server prints its context; None for a program without slots."""
    workload, length = evaluation.workload, _context_tokens(evaluation)
    if not isinstance(workload, Inference) or length is None or not hasattr(workload.engine, "slots"):
        return None
    slots: int | None = workload.engine.slots
    return length * (slots or workload.batch)


def _is_same_model(name: str, evaluation: Evaluation) -> bool:
    """Return whether the model `name` in a log is the plan's model."""
    own = evaluation.plan.model.id.rpartition("/")[2]
    plain = [text.lower().replace("-", "").replace("_", "").replace(" ", "") for text in (name, own)]
    return plain[1] in plain[0] or plain[0] in plain[1]


def _context_tokens(evaluation: Evaluation) -> int | None:
    """Return the plan's context length in tokens; None for training."""
    return evaluation.workload.context_length if isinstance(evaluation.workload, Inference) else None


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
    """Explain a measurement that is only a lower bound on the memory used."""
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
    """Explain smaller weights by the part in host memory."""
    host_bytes = case.actuals.host_weights
    return f"{_gib_text(host_bytes)} of the weights are in host memory." if host_bytes > _NOTABLE else None


def _explain_cache_pool(case: _ExplainedRow) -> str | None:
    """Explain a KV cache pool that fills the card."""
    pool, tokens = case.actuals.pool, planned_tokens(case.evaluation)
    if pool is None:
        return None
    title = SOFTWARE[case.evaluation.workload.profile or DEFAULT].title
    return (
        f"{title} fills its share of the card with the KV cache: the pool of {_gib_text(pool.bytes)} has room for "
        f"{case.reading.cache_tokens:,} tokens. This row is the part that the plan's {tokens:,} tokens need."
    )


def _explain_engine_share(case: _ExplainedRow) -> str:
    """Explain the rest of an engine's share of the card memory, which the other rows do not include."""
    title = SOFTWARE[case.evaluation.workload.profile or DEFAULT].title
    return (
        f"The rest of {title}'s share of the card: it depends on that share, on other processes and on the terms above."
    )


def _explain_cache_length(case: _ExplainedRow) -> str | None:
    """Explain a different KV cache by the log's context length."""
    length, logged = _context_tokens(case.evaluation), case.reading.context_length
    if case.actuals.pool is not None or not length or not logged:
        return None
    if logged in (length, _context_of_slots(case.evaluation)):
        return None
    return f"The log's cache is for {logged:,} tokens, {logged / length:.3g} times the plan's {length:,}."


def _explain_cache_format(case: _ExplainedRow) -> str | None:
    """Explain a KV cache of half or twice the size by its format."""
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
    """Explain overhead by the memory that the engine's libraries and CUDA graphs hold."""
    logged = SERVERS.get(case.reading.engine or "")
    if logged is None:
        return None
    inside = case.actuals.graphs and cuda_graphs_row(case.evaluation.workload) == "overhead"
    graphs = f" CUDA graphs take {_gib_text(case.actuals.graphs)} of it." if inside else ""
    return f"{serving_support(logged.name).outside_memory}{graphs}"


def _explain_allocator_slack(case: _ExplainedRow) -> str | None:
    """Explain reserved memory by the slack of PyTorch's caching allocator."""
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
    """Explain the memory used on the card by other processes and the driver."""
    process, others = case.actuals.counters.get("process"), case.actuals.others
    if process is None:
        return "This includes the card's other processes."
    rest = case.actual.bytes - process.bytes - others
    users = [f"other processes use {_gib_text(others)}"] if others else []
    users += [f"the driver and unlisted processes use {_gib_text(rest)}"] if rest > _NOTABLE else []
    return f"Of the card's memory, {' and '.join(users)}." if users else None


def _explain_other_card(case: _ExplainedRow) -> str | None:
    """Explain a different capacity by another card."""
    if case.predicted is None or abs(case.ratio - 1) <= _SIMILARITY / 2:
        return None
    return f"This is not the plan's card, which has {_gib_text(case.predicted)}."


def _gib_text(size_bytes: int) -> str:
    """Return a size in bytes as text such as `12.3 GiB`."""
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
