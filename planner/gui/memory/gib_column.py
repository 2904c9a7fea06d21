"""A column of amounts of memory."""

from collections.abc import Callable
from typing import TypeVar

from planner.present import format as fmt
from planner.present.columns import Column

Row = TypeVar("Row")


def gib_column(
    key: str,
    title: str,
    get: Callable[[Row], int | None],
    text: Callable[[Row], str],
    width: int,
    unknown: str = fmt.UNKNOWN,
) -> Column[Row]:
    """Return a column of `text` in GiB that says every byte, or `unknown`, when it is pointed at."""
    return Column(
        key,
        title,
        get,
        text,
        unit="GiB",
        align="right",
        width=width,
        tooltip=lambda row: fmt.exact_bytes(get(row), unknown),
    )
