"""Aligned plain tables that know how wide the terminal is."""

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from planner.present.columns import Align

_GAP: Final = "  "
_NARROWEST: Final = 12


@dataclass(frozen=True, slots=True)
class Head:
    """A column's header; `flexible` columns are cut with an ellipsis where the terminal is too narrow."""

    title: str
    align: Align = "left"
    flexible: bool = False


def terminal_width() -> int | None:
    """Return the columns of the terminal, none when the output goes to a file or a pipe and nothing may be cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def table(heads: Sequence[Head], rows: Sequence[Sequence[str]], width: int | None = None) -> str:
    """Return `rows` under `heads`, columns aligned, no wider than `width` where flexible columns allow it."""
    columns = [[head.title, *cells] for head, cells in zip(heads, zip(*rows, strict=True), strict=True)]
    widths = [max(map(len, column)) for column in columns]
    if width is not None:
        widths = _shrunk(heads, widths, width)
    lines = zip(
        *(
            [_cell(text, head, size) for text in column]
            for head, size, column in zip(heads, widths, columns, strict=True)
        ),
        strict=True,
    )
    return "\n".join(_GAP.join(line).rstrip() for line in lines)


def _shrunk(heads: Sequence[Head], widths: list[int], width: int) -> list[int]:
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) - width
    shrunk = list(widths)
    flexible = [place for place, head in enumerate(heads) if head.flexible]
    for place in sorted(flexible, key=lambda place: widths[place], reverse=True):
        if excess > 0:
            shrunk[place] = max(min(widths[place], _NARROWEST), widths[place] - excess)
            excess -= widths[place] - shrunk[place]
    return shrunk


def _cell(text: str, head: Head, size: int) -> str:
    shown = text if len(text) <= size else f"{text[: size - 1]}…"
    return shown.rjust(size) if head.align == "right" else shown.ljust(size)
