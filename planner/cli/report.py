"""Text report of a memory result, with the answer first and the evidence below."""

import re
import textwrap
from collections.abc import Iterator
from typing import Final

from planner.cli.table import TableColumn, table
from planner.present import format as fmt
from planner.present.memory.view import MemoryView, PartRow, TermRow

_TERM_HEADS: Final = (
    TableColumn("Term"),
    TableColumn("GiB", "right"),
    TableColumn("Share", "right"),
    TableColumn("Certainty"),
    TableColumn("How", flexible=True),
)
_PHASE_HEADS: Final = (
    TableColumn("Phase"),
    TableColumn("GiB", "right"),
    TableColumn(""),
    TableColumn("Why", flexible=True),
)
_CARD_HEADS: Final = (
    TableColumn("Cards", flexible=True),
    TableColumn("Layers", "right"),
    TableColumn("Needs GiB", "right"),
    TableColumn("Usable", "right"),
    TableColumn("Free", "right"),
    TableColumn(""),
    TableColumn(""),
)
_WIDEST_PROSE: Final = 100
_NO_BREAK: Final = "\u00a0"


def memory_report(
    view: MemoryView,
    subject: str,
    defaults: tuple[str, ...],
    width: int | None,
    *,
    explain: bool = False,
    more: tuple[str, ...] = (),
) -> str:
    """Return the report: the answer, its reason, the terms, the phases, the notes and the defaults used.

    `subject` is the plan as a phrase; with `explain` each term has its formula, numbers and sources. `more` are further
    blocks below the phases.
    """
    prose = prose_width(width)
    blocks = [
        "\n".join(
            wrap(sentence, prose) for sentence in (view.answer, view.sharing, view.reason, view.certainty) if sentence
        ),
        _phrase(subject, prose),
        _terms(view, width) if view.terms else "",
        *(_explained(row, prose) for row in view.terms if explain),
        _phases(view, width) if view.phases else "",
        _cards(view, width) if view.devices else "",
        *more,
        "\n".join(wrap(note, prose, "- ") for note in view.notes),
        wrap(f"Defaults used: {_together(defaults)}", prose).replace(_NO_BREAK, " ") if defaults else "",
    ]
    return "\n\n".join(block for block in blocks if block)


def _phrase(subject: str, width: int) -> str:
    """Wrap `subject` only between its parts, so that no name is broken."""
    whole = re.sub(r"(?<![,·]) (?!·)", _NO_BREAK, subject)
    return wrap(whole, width).replace(_NO_BREAK, " ")


def _terms(view: MemoryView, width: int | None) -> str:
    rows = [[row.title, row.gib, row.share_text, row.certainty, row.how] for row in view.terms]
    total = ["Total", fmt.gib(view.total_bytes), "", "", fmt.exact_bytes(view.total_bytes)]
    return table(_TERM_HEADS, [*rows, total], width)


def _phases(view: MemoryView, width: int | None) -> str:
    rows = [[row.title, fmt.gib(row.bytes), "peak" if row.is_peak else "", row.explanation] for row in view.phases]
    return table(_PHASE_HEADS, rows, width)


def _cards(view: MemoryView, width: int | None) -> str:
    rows = [[row.card, row.layers, row.needs, row.usable, row.free, row.verdict, row.scarcity] for row in view.devices]
    return table(_CARD_HEADS, rows, width)


def _explained(row: TermRow, width: int) -> str:
    head = f"{row.title}: {row.exact} ({row.range_text}), {row.certainty}"
    return "\n".join([head, *(wrap(line, width, "    ", "      ") for line in _evidence(row))])


def _evidence(row: TermRow) -> Iterator[str]:
    yield f"= {row.how}"
    if row.numbers_put_in != row.how:
        yield f"= {row.numbers_put_in}"
    for symbol in row.symbols:
        yield f"{symbol.name} = {symbol.value}: {symbol.meaning} (from the {symbol.origin})"
    yield from map(_part, row.parts)
    if not all(part.source in row.source for part in row.parts) or not row.parts:
        yield f"source: {row.source}"


def _part(part: PartRow) -> str:
    how = "" if part.numbers_put_in in part.exact else f" = {part.numbers_put_in}"
    return f"{part.title}: {part.exact}{how} [{part.source}]"


def _together(options: tuple[str, ...]) -> str:
    """Join options so that no line break separates one from its value."""
    return " ".join(option.replace(" ", _NO_BREAK) for option in options)


def prose_width(width: int | None) -> int:
    """Return the width of prose in a terminal of `width` columns, limited for readability."""
    return min(width or _WIDEST_PROSE, _WIDEST_PROSE)


def wrap(text: str, width: int, first: str = "", rest: str | None = None) -> str:
    """Wrap `text` at `width`; `first` precedes the first line, `rest` (by default blanks) the others."""
    hang = " " * len(first) if rest is None else rest
    return textwrap.fill(text, width, initial_indent=first, subsequent_indent=hang, break_on_hyphens=False)
