"""The columns of an estimate beside a log."""

from typing import Final

from planner.present.columns import Column, words
from planner.present.memory.log_comparison import LogRow


def _difference(row: LogRow) -> int | None:
    return row.difference_bytes


LOG_COLUMNS: Final[tuple[Column[LogRow], ...]] = (
    words("part", "Part", lambda row: row.title, width=25),
    Column(
        "predicted",
        "Estimated",
        lambda row: row.predicted_bytes,
        lambda row: row.predicted,
        align="right",
        width=12,
        tooltip=lambda row: row.exact,
    ),
    Column(
        "actual",
        "Measured",
        lambda row: row.actual_bytes,
        lambda row: row.actual,
        align="right",
        width=12,
        tooltip=lambda row: row.exact,
    ),
    Column("difference", "Difference", _difference, lambda row: row.difference, align="right", width=10),
    words("why", "Why", lambda row: row.why, width=24, tooltip=lambda row: row.why),
)
