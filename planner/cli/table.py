"""Plain-text tables and lists of details, aligned and fitted to the terminal's width."""

import os
import sys
import textwrap
from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from planner.present.columns import Column, Detail, DetailGroup, Row


_GAP: Final = "  "
_NARROWEST_PROSE: Final = 20
_LONGEST_WHOLE_WORD: Final = 20
"""Characters of a word in a table that is not broken."""


class TableColumn(NamedTuple):
    """Header and layout of a table column; `unit` is printed on a line below the title.

    `flexible` columns shrink if the terminal is too narrow, but not below `narrowest`; `keep` says which
    end of a text remains if the text is cut.
    """

    title: str
    align: Literal["left", "right"] = "left"
    flexible: bool = False
    unit: str = ""
    narrowest: int = 12
    keep: Literal["start", "end"] = "start"


def terminal_width() -> int | None:
    """Return the width of the output in characters: COLUMNS if set, else the terminal's width.

    None if the output is a file or a pipe, where nothing may be cut.
    """
    columns_variable = os.environ.get("COLUMNS", "")
    if columns_variable.isascii() and columns_variable.isdigit() and int(columns_variable) > 0:
        return int(columns_variable)
    if not sys.stdout.isatty():
        return None
    from shutil import get_terminal_size  # with all archives' modules

    return get_terminal_size().columns


def table(
    heads: Sequence[TableColumn], rows: Sequence[Sequence[str]], width: int | None = None, *, wraps: bool = False
) -> str:
    """Return an aligned table, at most `width` characters wide if the flexible columns allow it.

    A text that is too long for its column is cut, or continued on further lines if the table `wraps`.
    """
    units = [[head.unit for head in heads]] if any(head.unit for head in heads) else []
    lines = [[head.title for head in heads], *units, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    if width is not None:
        widths = _shrunk_widths(heads, widths, width)
    all_lines = (part for line in lines for part in _wrapped_row_lines(widths, line)) if wraps else lines
    return "\n".join(_table_line(heads, widths, line) for line in all_lines)


def column_table(
    columns: "Sequence[Column[Row]]",
    rows: "Sequence[Row]",
    flexible: Collection[str],
    narrowest: int = 12,
    *,
    wraps: bool = True,
) -> str:
    """Return `rows` as a table fitted to the terminal's width; only columns with a key in `flexible` may shrink.

    Names that are too long for them are continued on further lines, since cut ones may look the same; or cut, so that
    each row is a line, if the table does not wrap.
    """
    cells = [[column.text(row) for column in columns] for row in rows]
    heads = []
    for number, column in enumerate(columns):
        words = (len(word) for row in cells for word in row[number].split()) if wraps else ()
        least = max(narrowest, min(max(words, default=0), _LONGEST_WHOLE_WORD))
        heads.append(TableColumn(column.title, column.align, column.key in flexible, column.unit, least))
    return table(heads, cells, terminal_width(), wraps=wraps)


def wrap_paragraph(text: str, width: int | None, first: str = "") -> str:
    """Return a paragraph wrapped at `width`, with `first` before its first line; longer words (URLs) are not broken."""
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


def _wrapped_row_lines(widths: list[int], line: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the lines of one table row with wrapped cells."""
    cells = [_wrapped_cell(text, size) for text, size in zip(line, widths, strict=True)]
    yield from zip_longest(*cells, fillvalue="")


def _wrapped_cell(text: str, size: int) -> list[str]:
    if len(text) <= size:
        return [text]
    indent = " " * (len(text) - len(text.lstrip()))
    return textwrap.wrap(text, size, subsequent_indent=indent, break_on_hyphens=False)


def _table_line(heads: Sequence[TableColumn], widths: list[int], line: Sequence[str]) -> str:
    cells = (_aligned_cell(text, head, size) for text, head, size in zip(line, heads, widths, strict=True))
    return _GAP.join(cells).rstrip()


def _shrunk_widths(heads: Sequence[TableColumn], widths: list[int], width: int) -> list[int]:
    """Return column widths with which the table fits `width`, if possible; the widest flexible columns shrink first."""
    shrunk = list(widths)
    for _ in range(sum(widths) + len(_GAP) * (len(widths) - 1) - width):
        flexible = (index for index, head in enumerate(heads) if head.flexible and shrunk[index] > head.narrowest)
        widest = max(flexible, key=shrunk.__getitem__, default=None)
        if widest is None:
            break
        shrunk[widest] -= 1
    return shrunk


def _aligned_cell(text: str, head: TableColumn, size: int) -> str:
    shown = text if len(text) <= size else (f"…{text[1 - size :]}" if head.keep == "end" else f"{text[: size - 1]}…")
    return shown.rjust(size) if head.align == "right" else shown.ljust(size)


_DETAIL_COLUMNS: Final = (
    TableColumn("Figure", flexible=True, narrowest=16),
    TableColumn("Value", flexible=True, narrowest=16),
    TableColumn("Certainty", flexible=True),
    TableColumn("Source"),
)


def details(name: str, groups: "Sequence[DetailGroup]", notes: Sequence[str]) -> str:
    """Return the details of a card, system or model as text: name, table, numbered sources and notes."""
    numbers: dict[str, int] = {}
    rows: list[tuple[str, str, str, str]] = []
    for group in groups:
        rows.append((group.title, "", "", ""))
        rows.extend(_detail_cells(detail, numbers) for detail in group.details)
    used_indices = [index for index in range(len(_DETAIL_COLUMNS)) if any(row[index] for row in rows)]
    cells = [[row[index] for index in used_indices] for row in rows]
    width = terminal_width()
    shown = table([_DETAIL_COLUMNS[index] for index in used_indices], cells, width, wraps=True)
    sources = "\n".join(wrap_paragraph(source, width, f"[{number}] ") for source, number in numbers.items())
    blocks = (name, shown, sources, "\n".join(wrap_paragraph(note, width, "- ") for note in notes))
    return "\n\n".join(block for block in blocks if block)


def _detail_cells(detail: "Detail", numbers: dict[str, int]) -> tuple[str, str, str, str]:
    """Return the table cells of one detail; a new source gets the next number."""
    text = f"{detail.text} ({detail.exact})" if detail.exact else detail.text
    source = "; ".join(part for part in (detail.basis, detail.source, detail.as_of) if part)
    mark = f"[{numbers.setdefault(source, len(numbers) + 1)}]" if source else ""
    return (f"  {detail.title}", text, detail.certainty, mark)
