"""Text for the terminal: wrapped prose, tables that fit its width, and a progress line."""

import os
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from types import TracebackType
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Self, TextIO

if TYPE_CHECKING:
    from planner.present.columns import Column, Detail, DetailGroup, Row

_GAP: Final = "  "
NO_BREAK: Final = "\u00a0"
"""Blank at which no line is broken; to be replaced by a plain one after wrapping."""
_NARROWEST_PROSE: Final = 20
_WIDEST_PROSE: Final = 100
_NARROWEST_CUT: Final = 12
_NARROWEST_WRAPPED: Final = 8
_LONGEST_WHOLE_WORD: Final = 20
"""Characters of a word in a table that is not broken, where there is room."""
_MOST_LINES: Final = 1.5
"""Lines of a row, in the mean, above which a table leaves columns out."""
_HEADER_LINES: Final = 3


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


_DETAIL_COLUMNS: Final = (
    TableColumn("Figure", flexible=True, narrowest=16),
    TableColumn("Value", flexible=True, narrowest=16),
    TableColumn("Certainty", flexible=True),
    TableColumn("Source"),
)


class ProgressLine:
    """Progress line on `stream`, shown within the context and only if the stream is a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown_length = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown_length:
            self.show("")
            self._stream.write("\r")
            self._stream.flush()

    def show(self, text: str) -> None:
        """Replace the line by `text`."""
        if not self._stream.isatty():
            return
        # One column stays free: a full line would move the cursor to the next line.
        text = text[: _terminal_columns() - 1]
        # Blanks instead of an escape sequence, which Windows consoles do not interpret by default.
        self._stream.write(f"\r{text.ljust(self._shown_length)}")
        self._stream.flush()
        self._shown_length = max(self._shown_length, len(text))


def terminal_width() -> int | None:
    """Return the width of the output in characters: COLUMNS if set, else the terminal's width.

    None if the output is a file or a pipe, where nothing may be cut.
    """
    columns_variable = os.environ.get("COLUMNS", "")
    if columns_variable.isascii() and columns_variable.isdigit() and int(columns_variable) > 0:
        return int(columns_variable)
    if not sys.stdout.isatty():
        return None
    return _terminal_columns()


def _terminal_columns() -> int:
    """Return the width of the terminal in characters."""
    from shutil import get_terminal_size  # with all archives' modules

    return get_terminal_size().columns


def table(
    heads: Sequence[TableColumn],
    rows: Sequence[Sequence[str]],
    width: int | None = None,
    *,
    cuts: bool = False,
    whole: int = _LONGEST_WHOLE_WORD,
) -> str:
    """Return an aligned table, at most `width` characters wide if the flexible columns allow it.

    A text that is too long for its column continues on further lines, or is cut if the table `cuts`. No column is so
    narrow that it breaks words of up to `whole` characters.
    """
    units = [[head.unit for head in heads]] if any(head.unit for head in heads) else []
    lines = [[head.title for head in heads], *units, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    if width is not None:
        if not cuts:
            heads = [
                head._replace(narrowest=max(head.narrowest, min(_longest_word(column), whole)))
                for head, column in zip(heads, zip(*lines, strict=True), strict=True)
            ]
        widths = _shrunk_widths(heads, widths, width)
    all_lines = lines if cuts else (part for line in lines for part in _wrapped_row_lines(widths, line))
    return "\n".join(_table_line(heads, widths, line) for line in all_lines)


def column_table(
    columns: "Sequence[Column[Row]]", rows: "Sequence[Row]", *, dispensable: Sequence[str] = (), cut: str = ""
) -> str:
    """Return `rows` as a table fitted to the terminal's width.

    Texts that are too long for their columns are continued on further lines, since cut ones may look the same. With
    `cut`, the key of a column, each row is a line instead: only this column shrinks, and its texts are cut.
    If the table is too wide or most rows take several lines even so, the columns `dispensable` are left out in turn.
    """
    least = _NARROWEST_CUT if cut else _NARROWEST_WRAPPED
    heads = [
        TableColumn(column.title, column.align, not cut or column.key == cut, column.unit, least) for column in columns
    ]
    cells = [[column.text(row) for column in columns] for row in rows]
    keys = [column.key for column in columns]
    places = [keys.index(key) for key in dispensable if key in keys]
    return fitted_table(heads, cells, terminal_width(), places, cuts=bool(cut))


def fitted_table(
    heads: Sequence[TableColumn],
    rows: Sequence[Sequence[str]],
    width: int | None,
    dispensable: Sequence[int],
    *,
    cuts: bool = False,
) -> str:
    """Return `rows` as a table that fits `width`, if necessary without the columns at places `dispensable`, in turn.

    Columns are left out if the table is too wide, or if most rows take several lines; unless it `cuts`, it names them.
    """
    for count in range(len(dispensable) + 1):
        kept = [place for place in range(len(heads)) if place not in dispensable[:count]]
        text = table([heads[at] for at in kept], [[row[at] for at in kept] for row in rows], width, cuts=cuts)
        lines = text.splitlines()
        if width is None or (max(map(len, lines)) <= width and len(lines) <= _MOST_LINES * len(rows) + _HEADER_LINES):
            break
    missing = [head.title for place, head in enumerate(heads) if place in dispensable[:count]]
    return f"{text}\nLeft out in this width: {', '.join(missing)}" if missing and not cuts else text


def prose_width(width: int | None) -> int:
    """Return the line length for prose in a terminal of `width` columns, at most 100 for readability."""
    return min(width or _WIDEST_PROSE, _WIDEST_PROSE)


def wrap(text: str, width: int | None, first: str = "", rest: str | None = None) -> str:
    """Return a paragraph wrapped at `width`; `first` precedes the first line, `rest` (by default blanks) the others.

    Longer words (URLs) are not broken.
    """
    if width is None:
        return f"{first}{text}"
    return textwrap.fill(
        text,
        max(width, _NARROWEST_PROSE),
        initial_indent=first,
        subsequent_indent=" " * len(first) if rest is None else rest,
        break_on_hyphens=False,
        break_long_words=False,
    )


def wrap_phrase(phrase: str, width: int) -> str:
    """Return a plan as a phrase, wrapped at `width` only between its parts, so that no name is broken."""
    unbroken = re.sub(r"(?<![,·]) (?!·)", NO_BREAK, phrase)
    return wrap(unbroken, width).replace(NO_BREAK, " ")


def _longest_word(texts: Iterable[str]) -> int:
    return max((len(word) for text in texts for word in text.split(" ")), default=0)


def _wrapped_row_lines(widths: list[int], line: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the lines of one table row with wrapped cells."""
    cells = [_wrapped_cell(text, size) for text, size in zip(line, widths, strict=True)]
    yield from zip_longest(*cells, fillvalue="")


def _wrapped_cell(text: str, size: int) -> list[str]:
    if len(text) <= size:
        return [text]
    indent = " " * (len(text) - len(text.lstrip()))
    # A name that is longer than its column goes on after a hyphen rather than within a word.
    return textwrap.wrap(text, size, subsequent_indent=indent, break_on_hyphens=_longest_word((text,)) > size)


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
    shown = table([_DETAIL_COLUMNS[index] for index in used_indices], cells, width)
    sources = "\n".join(wrap(source, width, f"[{number}] ") for source, number in numbers.items())
    blocks = (name, shown, sources, "\n".join(wrap(note, width, "- ") for note in notes))
    return "\n\n".join(block for block in blocks if block)


def _detail_cells(detail: "Detail", numbers: dict[str, int]) -> tuple[str, str, str, str]:
    """Return the table cells of one detail; a new source gets the next number."""
    text = f"{detail.text} ({detail.exact})" if detail.exact else detail.text
    source = "; ".join(part for part in (detail.basis, detail.source, detail.as_of) if part)
    mark = f"[{numbers.setdefault(source, len(numbers) + 1)}]" if source else ""
    return (f"  {detail.title}", text, detail.certainty, mark)
