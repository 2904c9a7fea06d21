"""Comparison of an estimate with a log: rows, a sentence, and text for the clipboard."""

from typing import Final, NamedTuple

from planner.memory.logs.read import FORMATS
from planner.plan.logs.log_amounts import LogComparison, LogComparisonRow, RowName
from planner.present import format as fmt

ROW_TITLES: Final[dict[RowName, str]] = {
    "weights": "Weights",
    "kv_cache": "KV cache",
    "state": "Recurrent state",
    "working": "Activations, logits, buffers",
    "overhead": "Non-tensor memory",
    "sum": "Sum of the above",
    "pool": "KV cache pool",
    "allocated": "Allocated by PyTorch",
    "reserved": "Reserved by PyTorch",
    "process": "Whole process",
    "card": "Used on the card",
    "capacity": "Usable memory of the card",
    "card-total": "nvidia-smi's total",
    "host": "Host memory",
}
_NOT_ESTIMATED: Final = "not estimated"
_NO_REASON: Final = "The cause of this difference is unknown."


class LogRow(NamedTuple):
    """A row of the comparison of a log with its estimate, with rounded texts and exact bytes."""

    name: RowName
    title: str
    predicted_bytes: int | None
    actual_bytes: int
    difference_bytes: int | None
    predicted: str
    actual: str
    difference: str
    why: str
    exact: str


class LogView(NamedTuple):
    """A comparison of an estimate with a log, ready for display."""

    sentence: str
    subject: str
    rows: tuple[LogRow, ...]
    notes: tuple[str, ...]

    def as_text(self) -> str:
        """Return the comparison as plain text."""
        rows = [
            f"{row.title:<28} {row.predicted:>14} {row.actual:>14} {row.difference:>11}  {row.why}" for row in self.rows
        ]
        head = f"{'':<28} {'estimated':>14} {'measured':>14} {'difference':>11}"
        blocks = ([self.sentence, self.subject], [head, *rows], [f"- {note}" for note in self.notes])
        return "\n\n".join("\n".join(block) for block in blocks if block)

    def csv_rows(self) -> tuple[dict[str, object], ...]:
        """Return one row per compared amount with exact bytes, for export."""
        return tuple(
            {
                "row": row.name,
                "predicted_bytes": row.predicted_bytes,
                "actual_bytes": row.actual_bytes,
                "difference_bytes": row.difference_bytes,
                "why": row.why,
            }
            for row in self.rows
        )


def log_view(comparison: LogComparison) -> LogView:
    """Return the comparison of an estimate with a log, ready for display."""
    return LogView(
        sentence=_log_comparison_sentence(comparison),
        subject=_log_subject(comparison),
        rows=tuple(_log_row(row) for row in comparison.rows),
        notes=comparison.notes,
    )


def _log_row(row: LogComparisonRow) -> LogRow:
    difference = row.difference_bytes
    at_least = "≥ " if row.at_least else ""
    return LogRow(
        name=row.name,
        title=ROW_TITLES[row.name],
        predicted_bytes=row.predicted_bytes,
        actual_bytes=row.actual_bytes,
        difference_bytes=difference,
        predicted=fmt.size(row.predicted_bytes, _NOT_ESTIMATED),
        actual=f"{at_least}{fmt.size(row.actual_bytes)}",
        difference="" if difference is None else _difference_text(difference, row.predicted_bytes),
        why=row.explanation or _NO_REASON,
        exact=_exact_amounts_text(row),
    )


def _exact_amounts_text(row: LogComparisonRow) -> str:
    ends = f"{fmt.exact_bytes(row.low_bytes)} to {fmt.exact_bytes(row.high_bytes)}"
    measured = fmt.exact_bytes(row.actual_bytes) if row.low_bytes == row.high_bytes else ends
    places = fmt.listing(tuple(map(str, row.lines)))
    return (
        f"estimated {fmt.exact_bytes(row.predicted_bytes, _NOT_ESTIMATED)}, measured {measured}, "
        f"{'line' if len(row.lines) == 1 else 'lines'} {places} of the log"
    )


def _difference_text(difference: int, predicted: int | None) -> str:
    """Return the difference as a percentage of the estimate, or as a size if nothing was estimated."""
    return fmt.signed_percent(difference / predicted) if predicted else fmt.size_difference(difference)


def _log_comparison_sentence(comparison: LogComparison) -> str:
    """Return a sentence on the most comprehensive amount in log and estimate, preferably an exactly measured one."""
    widest: tuple[RowName, ...] = ("process", "reserved", "allocated", "sum", "card", "weights")
    rows = [row for name in widest if (row := comparison.row(name)) and row.difference_bytes is not None]
    row = next(iter(sorted(rows, key=lambda row: row.at_least)), None)
    if row is None or row.difference_bytes is None or not row.predicted_bytes:
        return "The log has no total that can be compared with the estimate."
    at_least = "at least " if row.at_least else ""
    sizes = f"estimated {fmt.size(row.predicted_bytes)}, measured {at_least}{fmt.size(row.actual_bytes)}"
    what = "" if row.name == "sum" else f" ({ROW_TITLES[row.name][:1].lower()}{ROW_TITLES[row.name][1:]})"
    share = abs(row.difference_bytes) / row.predicted_bytes
    if row.agrees or row.difference_bytes == 0:
        return f"The estimate agrees with the log{what}: {sizes}."
    if row.difference_bytes < 0:
        return f"The run used {fmt.precise_percent(share)} less memory than estimated{what}: {sizes}."
    return f"The run used {at_least}{fmt.precise_percent(share)} more memory than estimated{what}: {sizes}."


def _log_subject(comparison: LogComparison) -> str:
    """Return what was read from the log: its formats, version, model and settings."""
    reading = comparison.reading
    read = fmt.listing(tuple(FORMATS[name].title for name in reading.formats))
    parts = [f"Read: {read}"]
    if reading.version is not None:
        parts.append(f"version {reading.version}")
    if reading.model is not None:
        parts.append(reading.model)
    return (
        f"{', '.join(parts)}; {fmt.plural(len(reading.measured), 'amount')}. Differences are measured minus estimated."
    )
