"""Plain-text tables and lists of details, aligned and fitted to the terminal's width."""

import os
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest
from typing import Final, Literal, NamedTuple

from planner.present.columns import Column, Detail, DetailGroup, Row

_GAP: Final = "  "
_NARROWEST_PROSE: Final = 20


class TableColumn(NamedTuple):
    """The header and layout of a column; `unit` is printed on a line below the title.

    `flexible` columns shrink if the terminal is too narrow, but not below `narrowest`; `keep` is the end of their texts
    that remains if they are cut.
    """

    title: str
    align: Literal["left", "right"] = "left"
    flexible: bool = False
    unit: str = ""
    narrowest: int = 12
    keep: Literal["start", "end"] = "start"


def terminal_width() -> int | None:
    """Return the number of columns of the output: COLUMNS if set, else that of the terminal.

    None if the output is a file or a pipe, where nothing may be cut.
    """
    said = os.environ.get("COLUMNS", "")
    if said.isascii() and said.isdigit() and int(said) > 0:
        return int(said)
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def table(
    heads: Sequence[TableColumn], rows: Sequence[Sequence[str]], width: int | None = None, *, wraps: bool = False
) -> str:
    """Return an aligned table, not wider than `width` if its flexible columns allow it.

    A text that is too long for its column is cut, or continued on further lines if the table `wraps`.
    """
    units = [[head.unit for head in heads]] if any(head.unit for head in heads) else []
    lines = [[head.title for head in heads], *units, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    if width is not None:
        widths = _shrunk_widths(heads, widths, width)
    whole = (part for line in lines for part in _wrapped_lines(widths, line)) if wraps else lines
    return "\n".join(_line(heads, widths, line) for line in whole)


def column_table(
    columns: Sequence[Column[Row]], rows: Sequence[Row], flexible: Collection[str], narrowest: int = 12
) -> str:
    """Return `rows` as a table fitted to the terminal, where the columns with the keys `flexible` may shrink."""
    heads = [
        TableColumn(column.title, column.align, column.key in flexible, column.unit, narrowest) for column in columns
    ]
    return table(heads, [[column.text(row) for column in columns] for row in rows], terminal_width())


def wrap_paragraph(text: str, width: int | None, first: str = "") -> str:
    """Wrap a paragraph after `first` at `width`; longer words, such as URLs, are not broken."""
    if width is None:
        return f"{first}{text}"
    return textwrap.fill(
        text,
        max(width, _NARROWEST_PROSE),
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_on_hyphens=False,
        break_long_words=False,
    )


def _wrapped_lines(widths: list[int], line: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the lines of one row whose cells are wrapped."""
    cells = [_text_parts(text, size) for text, size in zip(line, widths, strict=True)]
    yield from zip_longest(*cells, fillvalue="")


def _text_parts(text: str, size: int) -> list[str]:
    if len(text) <= size:
        return [text]
    hang = " " * (len(text) - len(text.lstrip()))
    return textwrap.wrap(text, size, subsequent_indent=hang, break_on_hyphens=False)


def _line(heads: Sequence[TableColumn], widths: list[int], line: Sequence[str]) -> str:
    cells = (_cell(text, head, size) for text, head, size in zip(line, heads, widths, strict=True))
    return _GAP.join(cells).rstrip()


def _shrunk_widths(heads: Sequence[TableColumn], widths: list[int], width: int) -> list[int]:
    """Shrink the widest flexible columns, down to their narrowest width, until the table fits."""
    shrunk = list(widths)
    for _ in range(sum(widths) + len(_GAP) * (len(widths) - 1) - width):
        flexible = (place for place, head in enumerate(heads) if head.flexible and shrunk[place] > head.narrowest)
        widest = max(flexible, key=shrunk.__getitem__, default=None)
        if widest is None:
            break
        shrunk[widest] -= 1
    return shrunk


def _cell(text: str, head: TableColumn, size: int) -> str:
    shown = text if len(text) <= size else (f"…{text[1 - size :]}" if head.keep == "end" else f"{text[: size - 1]}…")
    return shown.rjust(size) if head.align == "right" else shown.ljust(size)


_HEADS: Final = (
    TableColumn("Figure", flexible=True, narrowest=16),
    TableColumn("Value", flexible=True, narrowest=16),
    TableColumn("Certainty", flexible=True),
    TableColumn("Source"),
)


def details(name: str, groups: Sequence[DetailGroup], notes: Sequence[str]) -> str:
    """Return `name`, the groups of details as a table, the numbered sources and the notes."""
    numbers: dict[str, int] = {}
    rows: list[tuple[str, str, str, str]] = []
    for group in groups:
        rows.append((group.title, "", "", ""))
        rows.extend(_row(detail, numbers) for detail in group.details)
    used = [place for place in range(len(_HEADS)) if any(row[place] for row in rows)]
    cells = [[row[place] for place in used] for row in rows]
    width = terminal_width()
    shown = table([_HEADS[place] for place in used], cells, width, wraps=True)
    sources = "\n".join(wrap_paragraph(source, width, f"[{number}] ") for source, number in numbers.items())
    blocks = (name, shown, sources, "\n".join(wrap_paragraph(note, width, "- ") for note in notes))
    return "\n\n".join(block for block in blocks if block)


def _row(detail: Detail, numbers: dict[str, int]) -> tuple[str, str, str, str]:
    """Return the cells of one detail; a new source gets the next number."""
    text = f"{detail.text} ({detail.exact})" if detail.exact else detail.text
    source = "; ".join(part for part in (detail.basis, detail.source, detail.as_of) if part)
    mark = f"[{numbers.setdefault(source, len(numbers) + 1)}]" if source else ""
    return (f"  {detail.title}", text, detail.certainty, mark)
