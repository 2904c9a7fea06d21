"""From the amounts of a log to one amount a row: over lines, parts of a term, and devices."""

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from planner.base import Spec
from planner.memory.corrections import TermCorrection
from planner.memory.logs.reading import Counter, LogReading, Measured, Sense
from planner.memory.logs.vllm import GRAPHS
from planner.memory.result import TermName
from planner.plan.evaluate import Evaluation
from planner.workload.software.registry import serving
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
    """What the log has for one row, with the interval of its digits."""

    bytes: int
    low: int
    high: int
    sense: Sense
    lines: tuple[int, ...]


class ComparedRow(Spec):
    """One amount, estimated and measured.

    `at_least` says that the run may have held more than the log shows. `corrections` would make up for the difference;
    there are none where it comes from another way to run.
    """

    name: RowName
    predicted_bytes: int | None
    actual_bytes: int
    low_bytes: int
    high_bytes: int
    at_least: bool = False
    explanation: str = ""
    lines: tuple[int, ...] = ()
    corrections: tuple[TermCorrection, ...] = ()

    @property
    def difference_bytes(self) -> int | None:
        """Return how much more was measured than estimated."""
        return None if self.predicted_bytes is None else self.actual_bytes - self.predicted_bytes

    @property
    def agrees(self) -> bool:
        """Return whether the estimate is within what the printed digits leave open."""
        return self.predicted_bytes is not None and self.low_bytes <= self.predicted_bytes <= self.high_bytes


class Comparison(Spec):
    """An estimate beside a log, and what to know about both."""

    reading: LogReading
    rows: tuple[ComparedRow, ...]
    notes: tuple[str, ...] = ()

    def row(self, name: RowName) -> ComparedRow | None:
        """Return the row called `name`, if the log has it."""
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
    """What the log has for each row, and what its reasons need.

    `pool` is a cache that fills the card; `summed` is how many devices were added up; `others` is what other processes
    hold, and `host_weights` the weights that stay in the host's memory.
    """

    terms: dict[RowName, MeasuredAmount]
    counters: dict[RowName, MeasuredAmount]
    pool: MeasuredAmount | None
    summed: int
    others: int
    graphs: int
    host_weights: int


def amounts_in_log(evaluation: Evaluation, reading: LogReading) -> LogAmounts:
    """Return one amount a row of `reading`, on the devices that one card of the plan stands for."""
    by_device: dict[str, list[Measured]] = {}
    for item in reading.measured:
        if item.term is not None:
            by_device.setdefault(item.device or "", []).append(item)
    together = reading.splits_model and _model_parallel(evaluation) == 1
    chosen = list(by_device.values()) if together else [max(by_device.values(), key=_sum_without_pools, default=[])]
    terms = _terms((item for items in chosen for item in items), graphs_of(evaluation.workload))
    pool = terms.get("kv_cache")
    return LogAmounts(
        terms=_with_planned_cache(terms, evaluation, reading),
        counters=_counters(reading.measured),
        pool=pool if pool and pool.sense == "pool" else None,
        summed=len(chosen) if together else 1,
        others=sum(item.bytes for item in reading.measured if item.counter == "other-processes"),
        graphs=sum(item.bytes for items in chosen for item in items if item.name == GRAPHS),
        host_weights=sum(item.bytes for item in reading.measured if item.counter == "host" and "model" in item.name),
    )


def graphs_of(workload: Workload) -> Literal["overhead", "working"]:
    """Return the row in which the program of `workload` counts CUDA graphs."""
    return serving(workload.profile).graphs if isinstance(workload, Inference) else "overhead"


def _model_parallel(evaluation: Evaluation) -> int:
    """Return over how many cards the plan spreads one copy of the model."""
    return evaluation.plan.count // (evaluation.workload.parallel.data or evaluation.plan.count)


def _sum_without_pools(items: list[Measured]) -> int:
    return sum(item.bytes for item in items if item.sense != "pool")


def _terms(items: Iterable[Measured], graphs: RowName) -> dict[RowName, MeasuredAmount]:
    """Return the sum of each row; the estimate of vLLM has its `graphs` in another one than those of other engines."""
    found: dict[RowName, MeasuredAmount] = {}
    for item in items:
        row = _ROW_OF.get(item.term) if item.term else None
        if row is not None:
            row = graphs if item.name == GRAPHS else row
            found[row] = _add(found.get(row), item)
    return found


def _add(known: MeasuredAmount | None, item: Measured) -> MeasuredAmount:
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
    """Take of a pool what the plan's tokens take of it, if the log says how many it has."""
    pool, tokens = terms.get("kv_cache"), planned_tokens(evaluation)
    if pool is None or pool.sense != "pool":
        return terms
    if reading.cache_tokens is None or tokens is None:
        return {name: actual for name, actual in terms.items() if name != "kv_cache"}
    share = tokens / reading.cache_tokens
    low, high = round(pool.low * share), round(pool.high * share)
    return {**terms, "kv_cache": MeasuredAmount(round(pool.bytes * share), low, high, "peak", pool.lines)}


def planned_tokens(evaluation: Evaluation) -> int | None:
    """Return how many tokens the plan keeps in its cache, all sequences together."""
    workload = evaluation.workload
    return workload.batch * (workload.context_length or 0) if isinstance(workload, Inference) else None


def _counters(measured: Iterable[Measured]) -> dict[RowName, MeasuredAmount]:
    """Return the most of each counter over the devices; buffers of the host are added up."""
    found: dict[RowName, MeasuredAmount] = {}
    for item in measured:
        row = _COUNTED.get(item.counter) if item.counter else None
        if row is None:
            continue
        known = found.get(row)
        if row == "host":
            found[row] = _add(known, item)
        elif known is None or item.bytes > known.bytes:
            found[row] = _add(None, item)
    return found
