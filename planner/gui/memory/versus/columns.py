"""The columns of two plans side by side."""

from collections.abc import Callable
from typing import Final

from planner.gui.memory.gib_column import gib_column
from planner.present.columns import Column, words
from planner.present.memory.comparison import VersusRow


def _amount(
    key: str, title: str, get: Callable[[VersusRow], int | None], text: Callable[[VersusRow], str]
) -> Column[VersusRow]:
    return gib_column(key, title, get, text, 16, "no such phase")


VERSUS_COLUMNS: Final[tuple[Column[VersusRow], ...]] = (
    words("part", "Part", lambda row: row.title, width=26),
    _amount("plan", "This plan", lambda row: row.bytes, lambda row: row.texts[0]),
    _amount("pinned", "Pinned", lambda row: row.other_bytes, lambda row: row.texts[1]),
    _amount("difference", "Difference", lambda row: row.difference_bytes, lambda row: row.texts[2]),
)
