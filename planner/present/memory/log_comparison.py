"""Comparison of an estimate with a log: rows, a sentence, text for the clipboard, and commands that measure."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from planner.launch.verify import ExpectedAmount, PlanCheck
from planner.memory.logs.read import FORMATS
from planner.memory.logs.reading import FigureName, LoggedFigure
from planner.plan.logs.figures import FigureComparison, FigureUnit
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
    "card": "Used on the GPU",
    "capacity": "Usable memory of the GPU",
    "card-total": "nvidia-smi's total",
    "host": "Host memory",
}
FIGURE_TITLES: Final[dict[FigureName, str]] = {
    "prompt": "Prompt",
    "generation": "Generation",
    "throughput": "Throughput",
    "first-token": "Time to first token",
    "output-token": "Time per output token",
    "step": "Optimizer step",
    "request": "Request",
    "cache-tokens": "KV cache in tokens",
}
_NOT_ESTIMATED: Final = "not estimated"
_NO_REASON: Final = "The cause of this difference is unknown."
_CLOSE: Final = 0.01


class LogRow(NamedTuple):
    """A row of the comparison of a log with its estimate: rounded texts, and exact values in `unit`."""

    name: RowName | FigureName
    title: str
    unit: str
    predicted_value: float | None
    actual_value: float
    difference_value: float | None
    predicted: str
    actual: str
    difference: str
    in_range: str
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
            f"{row.title:<34} {row.predicted:>26} {row.actual:>14} {row.difference:>11} {row.in_range:>11}  {row.why}"
            for row in self.rows
        ]
        head = f"{'':<34} {'estimated':>26} {'measured':>14} {'difference':>11} {'in range':>11}"
        blocks = ([self.sentence, self.subject], [head, *rows], [f"- {note}" for note in self.notes])
        return "\n\n".join("\n".join(block) for block in blocks if block)

    def csv_rows(self) -> tuple[dict[str, object], ...]:
        """Return one row per compared amount with exact values, for export."""
        return tuple(
            {
                "row": row.name,
                "unit": row.unit,
                "predicted": row.predicted_value,
                "actual": row.actual_value,
                "difference": row.difference_value,
                "in_range": row.in_range,
                "why": row.why,
            }
            for row in self.rows
        )


def log_view(comparison: LogComparison) -> LogView:
    """Return the comparison of an estimate with a log, ready for display."""
    return LogView(
        sentence=_log_comparison_sentence(comparison),
        subject=_log_subject(comparison),
        rows=(*map(_log_row, comparison.rows), *map(_figure_row, comparison.figures)),
        notes=comparison.notes,
    )


def _log_row(row: LogComparisonRow) -> LogRow:
    difference = row.difference_bytes
    at_least = "≥ " if row.at_least else ""
    return LogRow(
        name=row.name,
        title=ROW_TITLES[row.name],
        unit="bytes",
        predicted_value=row.predicted_bytes,
        actual_value=row.actual_bytes,
        difference_value=difference,
        predicted=estimated_size_text(row.predicted_bytes, row.predicted_low_bytes, row.predicted_high_bytes),
        actual=f"{at_least}{fmt.size(row.actual_bytes)}",
        difference="" if difference is None else _difference_text(difference, row.predicted_bytes),
        in_range=_range_text(row.is_in_range, difference, row.predicted_bytes),
        why=row.explanation or _NO_REASON,
        exact=_exact_amounts_text(row),
    )


def _figure_row(figure: FigureComparison) -> LogRow:
    measured, difference = figure.measured, figure.difference
    is_close = difference is not None and figure.is_in_range
    return LogRow(
        name=measured.name,
        title=_figure_title(measured),
        unit=figure.unit,
        predicted_value=figure.predicted,
        actual_value=measured.value,
        difference_value=difference,
        predicted=estimated_figure_text(figure.unit, figure.predicted, figure.predicted_low, figure.predicted_high),
        actual=_figure_text(figure.unit, measured.value),
        difference=fmt.signed_percent(difference / figure.predicted) if difference and figure.predicted else "",
        in_range=_range_text(figure.is_in_range, difference, figure.predicted),
        why=figure.explanation or ("The measurement is within the estimated range." if is_close else _NO_REASON),
        exact=f"measured {measured.low:,.6g} to {measured.high:,.6g} {figure.unit}, line {measured.line} of the log",
    )


def _figure_title(figure: LoggedFigure) -> str:
    """Return what was measured: `Generation, 128 tokens after 512, 8 requests`."""
    parts = [FIGURE_TITLES[figure.name]]
    if figure.name == "prompt" and figure.prompt_tokens:
        parts.append(fmt.plural(figure.prompt_tokens, "token"))
    elif figure.answer_tokens:
        before = figure.depth_tokens + (figure.prompt_tokens or 0)
        parts.append(f"{fmt.plural(figure.answer_tokens, 'token')}{f' after {fmt.integer(before)}' if before else ''}")
    if (figure.requests or 1) > 1:
        parts.append(fmt.plural(figure.requests or 1, "request"))
    return ", ".join(parts)


def estimated_size_text(value: int | None, low: int | None, high: int | None) -> str:
    """Return an estimated size with its range if it has one: `17.4 GiB (16.9 – 18.3)`."""
    if value is None or low is None or high is None:
        return fmt.size(value, _NOT_ESTIMATED)
    return fmt.size_with_range(value, low, high)


def estimated_figure_text(unit: FigureUnit, value: float | None, low: float | None, high: float | None) -> str:
    """Return an estimated speed with its range: `6,610 (5,800 – 7,500) tokens/s`."""
    if value is None:
        return _NOT_ESTIMATED
    if unit == "s":
        return fmt.duration_with_range(value, low, high)
    return f"{fmt.number_range(value, low, high)}{fmt.THIN}{unit}"


def _figure_text(unit: FigureUnit, value: float) -> str:
    return fmt.duration(value) if unit == "s" else f"{fmt.significant(value)}{fmt.THIN}{unit}"


def _range_text(is_in_range: bool | None, difference: float | None, predicted: float | None) -> str:
    """Return whether a measurement is within the estimated range, or as close as programs print."""
    if is_in_range is None or difference is None or not predicted:
        return ""
    if is_in_range:
        return "yes"
    return "within 1 %" if abs(difference / predicted) <= _CLOSE else "no"


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
        return _speed_sentence(comparison)
    at_least = "at least " if row.at_least else ""
    sizes = f"estimated {fmt.size(row.predicted_bytes)}, measured {at_least}{fmt.size(row.actual_bytes)}"
    what = "" if row.name == "sum" else f" ({ROW_TITLES[row.name][:1].lower()}{ROW_TITLES[row.name][1:]})"
    share = abs(row.difference_bytes) / row.predicted_bytes
    if row.agrees or row.difference_bytes == 0:
        return f"The estimate agrees with the log{what}: {sizes}."
    if row.difference_bytes < 0:
        return f"The run used {fmt.precise_percent(share)} less memory than estimated{what}: {sizes}."
    return f"The run used {at_least}{fmt.precise_percent(share)} more memory than estimated{what}: {sizes}."


def _speed_sentence(comparison: LogComparison) -> str:
    """Return a sentence on how many of the speeds are in their range, for a log without a total of memory."""
    texts = [figure.is_in_range for figure in comparison.figures if figure.is_in_range is not None]
    if not texts:
        return "The log has no total that can be compared with the estimate."
    return f"{fmt.integer(sum(texts))} of {fmt.plural(len(texts), 'speed')} within the estimated range."


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
        f"{', '.join(parts)}; {fmt.plural(len(reading.measured) + len(reading.figures), 'amount')}. "
        "Differences are measured minus estimated."
    )


class ExpectedRow(NamedTuple):
    """An amount that a command should show: its title, its estimate with its range, and the words beside it."""

    title: str
    estimated: str
    prints: str


class CheckView(NamedTuple):
    """A command that measures a plan, ready for display."""

    title: str
    command: str
    expected: tuple[ExpectedRow, ...]


def check_views(checks: tuple[PlanCheck, ...]) -> tuple[CheckView, ...]:
    """Return the commands that measure a plan, ready for display."""
    return tuple(CheckView(check.title, check.command.rstrip(), tuple(map(_row, check.expected))) for check in checks)


def _row(amount: ExpectedAmount) -> ExpectedRow:
    if amount.unit != "bytes":
        text = estimated_figure_text(amount.unit, amount.value, amount.low, amount.high)
        return ExpectedRow(_TITLES[amount.name], text, amount.prints)
    low, high = (None if bound is None else int(bound) for bound in (amount.low, amount.high))
    return ExpectedRow(_TITLES[amount.name], estimated_size_text(int(amount.value), low, high), amount.prints)


_TITLES: Final[Mapping[RowName | FigureName, str]] = dict((*ROW_TITLES.items(), *FIGURE_TITLES.items()))
