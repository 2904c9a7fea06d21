"""A report as Markdown; figures are named by their captions, since a text file has no drawings."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from planner.plan.files import embedded_plan_markdown
from planner.present.format import THIN
from planner.present.report.document import (
    Block,
    Bullets,
    CodeListing,
    Prose,
    Report,
    ReportColumn,
    ReportTable,
)

_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>|])")
_STARTS_BLOCK: Final = re.compile(r"^(\d*)([#+\-=.)])(?=\s)")
"""The start of a text that Markdown would take for a heading or a list."""


def report_markdown(report: Report) -> str:
    """Return `report` as a Markdown document, with the plan at its end."""
    lines = [f"# {_escaped(report.title)}", "", f"**{_escaped(report.question)}**", ""]
    lines += [
        f"- **{_escaped(answer.title)}** – {_escaped(answer.text.replace(chr(10), '. '))}".rstrip(" –")
        for answer in report.answers
    ]
    for part in report.sections:
        lines += ["", f"## {_escaped(part.title)}"]
        for block in part.blocks:
            lines += ["", *_block_lines(block)]
    lines += ["", "---", "", _escaped(report.made)]
    if report.plan is not None:
        lines += ["", embedded_plan_markdown(report.plan)]
    return "\n".join(lines) + "\n"


def _block_lines(block: Block) -> Iterator[str]:
    match block:
        case Prose(text):
            yield _escaped(text)
        case Bullets(items):
            yield from (f"- {_escaped(item)}" for item in items)
        case ReportTable(columns, rows, last_is_total):
            yield from _table_lines(columns, rows, last_is_total=last_is_total)
        case CodeListing(text, name):
            if name:
                yield f"`{name}`"
                yield ""
            fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
            yield f"{fence}\n{text.rstrip()}\n{fence}"
        case _:
            yield f"*Figure in the HTML and PDF reports: {_escaped(block.caption)}*"


def _table_lines(
    columns: Sequence[ReportColumn], rows: Sequence[Sequence[str]], *, last_is_total: bool
) -> Iterator[str]:
    yield _row_line([_escaped(column.title) for column in columns])
    yield _row_line(["---:" if column.align == "right" else "---" for column in columns])
    for index, row in enumerate(rows):
        cells = [_escaped(cell) for cell in row]
        if last_is_total and index == len(rows) - 1:
            cells = [f"**{cell}**" if cell else "" for cell in cells]
        yield _row_line(cells)


def _row_line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    """Return plain text as Markdown that shows the same characters."""
    plain = text.replace("\n", "; ").replace(THIN, " ")
    return _STARTS_BLOCK.sub(r"\1\\\2", _SPECIAL.sub(r"\\\1", plain))
