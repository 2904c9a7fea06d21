"""Aligned plain tables that know how wide the terminal is."""

import shutil
import sys
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

_GAP: Final = "  "


class Head(NamedTuple):
    """A column's header, `unit` in a line below.

    `flexible` columns are cut where the terminal is too narrow, but never below `narrowest`; `keep` says which end of
    their texts stays.
    """

    title: str
    align: Literal["left", "right"] = "left"
    flexible: bool = False
    unit: str = ""
    narrowest: int = 12
    keep: Literal["start", "end"] = "start"


def terminal_width() -> int | None:
    """Return the columns of the terminal, none when the output goes to a file or a pipe and nothing may be cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def table(heads: Sequence[Head], rows: Sequence[Sequence[str]], width: int | None = None) -> str:
    """Return `rows` under `heads`, columns aligned, no wider than `width` where flexible columns allow it."""
    units = [[head.unit for head in heads]] if any(head.unit for head in heads) else []
    lines = [[head.title for head in heads], *units, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    if width is not None:
        widths = _shrunk(heads, widths, width)
    return "\n".join(_line(heads, widths, line) for line in lines)


def _line(heads: Sequence[Head], widths: list[int], line: Sequence[str]) -> str:
    cells = (_cell(text, head, size) for text, head, size in zip(line, heads, widths, strict=True))
    return _GAP.join(cells).rstrip()


def _shrunk(heads: Sequence[Head], widths: list[int], width: int) -> list[int]:
    """Take what is too much from the widest flexible columns, down to a width at which they still say something."""
    shrunk = list(widths)
    for _ in range(sum(widths) + len(_GAP) * (len(widths) - 1) - width):
        flexible = (place for place, head in enumerate(heads) if head.flexible and shrunk[place] > head.narrowest)
        widest = max(flexible, key=shrunk.__getitem__, default=None)
        if widest is None:
            break
        shrunk[widest] -= 1
    return shrunk


def _cell(text: str, head: Head, size: int) -> str:
    shown = text if len(text) <= size else _cut(text, size, head)
    return shown.rjust(size) if head.align == "right" else shown.ljust(size)


def _cut(text: str, size: int, head: Head) -> str:
    return f"…{text[1 - size :]}" if head.keep == "end" else f"{text[: size - 1]}…"
