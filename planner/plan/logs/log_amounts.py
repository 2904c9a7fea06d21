"""Memory amounts in a log, added up to one amount per comparison row, and the corrections from them."""

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from planner.base import Spec
from planner.memory.corrections import Correction, TermCorrection
from planner.memory.logs.reading import Counter, LoggedAmount, LogReading, Sense
from planner.memory.logs.vllm import GRAPHS
from planner.memory.result import TermName
from planner.plan.evaluate import Evaluation
from planner.plan.logs.figures import FigureComparison
from planner.units import MIB
from planner.workload.software.registry import DEFAULT, SOFTWARE, serving_support
from planner.workload.workload import Inference, Workload

RowName = Literal[
    "weights",
    "kv_cache",
    "state",
    "working",
    "overhead",
    "sum",
    "pool",
    "allocated",
    "reserved",
    "process",
    "card",
    "capacity",
    "card-total",
    "host",
]


class MeasuredAmount(NamedTuple):
    """Memory that a log states for one comparison row, with its rounding interval in bytes."""

    bytes: int
    low: int
    high: int
    sense: Sense
    lines: tuple[int, ...]


class LogComparisonRow(Spec):
    """One amount of memory in bytes, as estimated with its range and as measured in the log.

    `low_bytes` to `high_bytes` is the rounding of the measured amount. `at_least` is true if the run may have used more
    than the log shows. `corrections` would remove the difference; there are none if its cause is a different setup.
    """

    name: RowName
    predicted_bytes: int | None
    actual_bytes: int
    low_bytes: int
    high_bytes: int
    predicted_low_bytes: int | None = None
    predicted_high_bytes: int | None = None
    at_least: bool = False
    explanation: str = ""
    lines: tuple[int, ...] = ()
    corrections: tuple[TermCorrection, ...] = ()

    @property
    def difference_bytes(self) -> int | None:
        """Return measured minus estimated memory in bytes; None without an estimate."""
        return None if self.predicted_bytes is None else self.actual_bytes - self.predicted_bytes

    @property
    def agrees(self) -> bool:
        """Return whether the estimate is within the rounding of the number in the log."""
        return self.predicted_bytes is not None and self.low_bytes <= self.predicted_bytes <= self.high_bytes

    @property
    def is_in_range(self) -> bool | None:
        """Return whether the measurement is within the estimated range; None without a range.

        What was measured of a run before its peak is within the range if it is not above it.
        """
        if self.predicted_low_bytes is None or self.predicted_high_bytes is None:
            return None
        reaches_low = self.at_least or self.high_bytes >= self.predicted_low_bytes
        return reaches_low and self.low_bytes <= self.predicted_high_bytes


class LogComparison(Spec):
    """An estimate compared with a log: rows of memory, figures of speed, and notes on the differences."""

    reading: LogReading
    rows: tuple[LogComparisonRow, ...]
    figures: tuple[FigureComparison, ...] = ()
    notes: tuple[str, ...] = ()

    def row(self, name: RowName) -> LogComparisonRow | None:
        """Return the row called `name`, or None if the comparison has no such row."""
        return next((row for row in self.rows if row.name == name), None)


_ROW_OF: Final[dict[TermName, RowName]] = {
    "weights": "weights",
    "kv_cache": "kv_cache",
    "state": "state",
    "activations": "working",
    "logits": "working",
    "framework_overhead": "overhead",
}
_COUNTED: Final[dict[Counter, RowName]] = {
    "allocated": "allocated",
    "reserved": "reserved",
    "process": "process",
    "card": "card",
    "capacity": "capacity",
    "card-total": "card-total",
    "host": "host",
}


class LogAmounts(NamedTuple):
    """Measured amount by comparison row, and further log data for explanations.

    `pool` is a cache that fills the GPU, `summed` the number of devices added up, `others` the memory of other
    processes, and `host_weights` the weights kept in host memory.
    """

    terms: dict[RowName, MeasuredAmount]
    counters: dict[RowName, MeasuredAmount]
    pool: MeasuredAmount | None
    summed: int
    others: int
    graphs: int
    host_weights: int


def amounts_in_log(evaluation: Evaluation, reading: LogReading) -> LogAmounts:
    """Return one amount per row of `reading`, for the devices that one GPU of the plan corresponds to."""
    by_device: dict[str, list[LoggedAmount]] = {}
    for item in reading.measured:
        if item.term is not None:
            by_device.setdefault(item.device or "", []).append(item)
    count = evaluation.plan.count
    together = reading.splits_model and count // (evaluation.workload.parallel.data or count) == 1
    chosen = (
        list(by_device.values()) if together else [max(by_device.values(), key=_total_outside_pools_bytes, default=[])]
    )
    terms = _term_sums((item for items in chosen for item in items), cuda_graphs_row(evaluation.workload))
    pool = terms.get("kv_cache")
    return LogAmounts(
        terms=_with_planned_cache(terms, evaluation, reading),
        counters=_largest_counters(reading.measured),
        pool=pool if pool and pool.sense == "pool" else None,
        summed=len(chosen) if together else 1,
        others=sum(item.bytes for item in reading.measured if item.counter == "other-processes"),
        graphs=sum(item.bytes for items in chosen for item in items if item.name == GRAPHS),
        host_weights=sum(item.bytes for item in reading.measured if item.counter == "host" and "model" in item.name),
    )


def cuda_graphs_row(workload: Workload) -> Literal["overhead", "working"]:
    """Return the comparison row that includes CUDA graphs in the logs of the workload's program."""
    return serving_support(workload.profile).graphs if isinstance(workload, Inference) else "overhead"


def _total_outside_pools_bytes(items: list[LoggedAmount]) -> int:
    return sum(item.bytes for item in items if item.sense != "pool")


def _term_sums(items: Iterable[LoggedAmount], graphs_row: RowName) -> dict[RowName, MeasuredAmount]:
    """Return the sum of each row's terms; CUDA graphs count in `graphs_row`, which depends on the engine."""
    sums: dict[RowName, MeasuredAmount] = {}
    for item in items:
        row = _ROW_OF.get(item.term) if item.term else None
        if row is not None:
            row = graphs_row if item.name == GRAPHS else row
            sums[row] = _added_amount(sums.get(row), item)
    return sums


def _added_amount(known: MeasuredAmount | None, item: LoggedAmount) -> MeasuredAmount:
    if known is None:
        return MeasuredAmount(item.bytes, item.low_bytes, item.high_bytes, item.sense, (item.line,))
    return MeasuredAmount(
        known.bytes + item.bytes,
        known.low + item.low_bytes,
        known.high + item.high_bytes,
        known.sense,
        (*known.lines, item.line),
    )


def _with_planned_cache(
    terms: dict[RowName, MeasuredAmount], evaluation: Evaluation, reading: LogReading
) -> dict[RowName, MeasuredAmount]:
    """Replace a cache pool by the part that the plan's tokens need, if the log states the pool's size in tokens."""
    pool, tokens = terms.get("kv_cache"), planned_tokens(evaluation)
    if pool is None or pool.sense != "pool":
        return terms
    if reading.cache_tokens is None or tokens is None:
        return {name: actual for name, actual in terms.items() if name != "kv_cache"}
    share = tokens / reading.cache_tokens
    low, high = round(pool.low * share), round(pool.high * share)
    return {**terms, "kv_cache": MeasuredAmount(round(pool.bytes * share), low, high, "peak", pool.lines)}


def planned_tokens(evaluation: Evaluation) -> int | None:
    """Return the number of tokens in the plan's KV cache, over all sequences."""
    workload = evaluation.workload
    return workload.batch * (workload.context_length or 0) if isinstance(workload, Inference) else None


def _largest_counters(measured: Iterable[LoggedAmount]) -> dict[RowName, MeasuredAmount]:
    """Return the largest value of each counter over the devices; host buffers are added up."""
    largest: dict[RowName, MeasuredAmount] = {}
    for item in measured:
        row = _COUNTED.get(item.counter) if item.counter else None
        if row is None:
            continue
        known = largest.get(row)
        if row == "host":
            largest[row] = _added_amount(known, item)
        elif known is None or item.bytes > known.bytes:
            largest[row] = _added_amount(None, item)
    return largest


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
    """Return whether `reading` is from the plan's engine, and the plan is estimated for a GPU."""
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
    same_length = reading.context_length in (None, context_tokens(evaluation)) or actuals.pool is not None
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


def context_tokens(evaluation: Evaluation) -> int | None:
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
