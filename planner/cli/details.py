"""The details of one record as an aligned list, with numbered sources below."""

from collections.abc import Sequence
from typing import Final

from planner.cli.table import Head, folded, table, terminal_width
from planner.present.columns import Detail, DetailGroup

_HEADS: Final = (
    Head("Figure", flexible=True, narrowest=16),
    Head("Value", flexible=True, narrowest=16),
    Head("Certainty", flexible=True),
    Head("Source"),
)


def details(name: str, groups: Sequence[DetailGroup], notes: Sequence[str]) -> str:
    """Return `name`, its figures under their headings, their sources and the notes."""
    numbers: dict[str, int] = {}
    rows: list[tuple[str, str, str, str]] = []
    for group in groups:
        rows.append((group.title, "", "", ""))
        rows.extend(_row(detail, numbers) for detail in group.details)
    used = [place for place in range(len(_HEADS)) if any(row[place] for row in rows)]
    cells = [[row[place] for place in used] for row in rows]
    width = terminal_width()
    shown = table([_HEADS[place] for place in used], cells, width, wraps=True)
    sources = "\n".join(folded(source, width, f"[{number}] ") for source, number in numbers.items())
    blocks = (name, shown, sources, "\n".join(folded(note, width, "- ") for note in notes))
    return "\n\n".join(block for block in blocks if block)


def _row(detail: Detail, numbers: dict[str, int]) -> tuple[str, str, str, str]:
    """Return one line; a source that is new gets the next number."""
    text = f"{detail.text} ({detail.exact})" if detail.exact else detail.text
    source = "; ".join(part for part in (detail.basis, detail.source, detail.as_of) if part)
    mark = f"[{numbers.setdefault(source, len(numbers) + 1)}]" if source else ""
    return (f"  {detail.title}", text, detail.certainty, mark)
