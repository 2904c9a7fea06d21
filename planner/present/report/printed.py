"""A report for printing: rich text as Qt's documents read it, and figures as SVG."""

import re
from collections.abc import Iterator
from html import escape
from typing import Final, TypedDict

from planner.plan.files import embedded_plan_html
from planner.present.format import unbroken
from planner.present.report.document import Block, Bullets, CodeListing, Drawing, Prose, Report, ReportTable
from planner.present.report.html import figure_svg, listing_html, scheme_colors

_TABLE: Final = "border-collapse: collapse; margin-top: 6px; margin-bottom: 8px"
_CELL: Final = "padding: 2px 10px 2px 0; border-bottom: 1px solid #dde0e6"
_FIGURE: Final = "figure:{}"
_BREAKS: Final = re.compile(r"[ \n/-]")
"""Where a line of a cell may end."""
_GAP: Final = 2
_BOLD: Final = 1.15
"""Width of a bold letter beside a plain one."""
_PAGE_CHARACTERS: Final = 88
_LONGEST_LINE: Final = 60
"""Characters of a line beyond which a column gets no more room: longer texts run over several lines in any case."""
STYLE: Final = """
body { font-size: 9pt; } h1 { font-size: 17pt; margin-bottom: 4px; } h2 { font-size: 12.5pt; margin-top: 14px; }
p { margin-top: 3px; margin-bottom: 5px; } .muted { color: @muted; } .ok { color: @ok; } .warn { color: @warn; }
.bad { color: @bad; } th { color: @muted; font-weight: 600; } pre { font-size: 8pt; white-space: pre-wrap; }
"""


class PrintedFigure(TypedDict):
    """A figure as SVG, with its size in pixels."""

    svg: str
    width: float
    height: float


class PrintedReport(TypedDict):
    """A report as rich text with figures, which the text names `figure:0`, `figure:1` and so on."""

    title: str
    html: str
    style: str
    figures: tuple[PrintedFigure, ...]
    plan: str
    """The plan as it is stored in HTML, to be attached; empty without one."""


def printed_report(report: Report) -> PrintedReport:
    """Return `report` as rich text for printing."""
    colors = scheme_colors("light")
    figures = [block for part in report.sections for block in part.blocks if isinstance(block, Drawing)]
    style = STYLE
    for role in ("muted", "ok", "warn", "bad"):
        style = style.replace(f"@{role}", colors[role])
    return PrintedReport(
        title=report.title,
        html="\n".join(_lines(report, figures)),
        style=style,
        figures=tuple(
            PrintedFigure(svg=figure_svg(one, colors.__getitem__), width=one.width, height=one.height)
            for one in figures
        ),
        plan="" if report.plan is None else embedded_plan_html(report.plan),
    )


def _lines(report: Report, figures: list[Drawing]) -> Iterator[str]:
    yield f"<h1>{_text(report.title)}</h1>"
    yield f'<p class="muted">{_text(report.question)}</p>'
    for answer in report.answers:
        title = f'<b class="{answer.tone}" style="font-size: 11pt">{_text(answer.title)}</b>'
        yield f"<p>{title}<br>{_text(answer.text)}</p>"
    for part in report.sections:
        yield f"<h2>{_text(part.title)}</h2>"
        for block in part.blocks:
            yield from _block_lines(block, figures)
    yield f'<hr><p class="muted">{_text(report.made)}</p>'


def _block_lines(block: Block, figures: list[Drawing]) -> Iterator[str]:
    match block:
        case Prose(text):
            yield f"<p>{_text(text)}</p>"
        case Bullets(items):
            yield "\n".join(("<ul>", *(f"<li>{_text(item)}</li>" for item in items), "</ul>"))
        case ReportTable():
            yield _table(block)
        case CodeListing(text, name):
            yield f'<p class="muted">{_text(name)}</p>' if name else ""
            yield f"<pre>{listing_html(text)}</pre>"
        case _:
            place = _FIGURE.format(next(index for index, one in enumerate(figures) if one is block))
            yield f'<p><img src="{place}"></p><p class="muted">{_text(block.caption)}</p>'


def _table(table: ReportTable) -> str:
    sides = [column.align for column in table.columns]
    heads = "".join(
        f'<th align="{column.align}" valign="bottom" width="{width}%" style="{_CELL}">{_text(column.title)}</th>'
        for column, width in zip(table.columns, _widths(table), strict=True)
    )
    rows = [f"<thead><tr>{heads}</tr></thead>"]
    for index, row in enumerate(table.rows):
        bold = table.last_is_total and index == len(table.rows) - 1
        texts = [f"<b>{_text(cell)}</b>" if bold else _text(cell) for cell in row]
        cells = "".join(
            f'<td align="{side}" valign="top" style="{_CELL}">{cell}</td>'
            for cell, side in zip(texts, sides, strict=True)
        )
        rows.append(f"<tr>{cells}</tr>")
    return "\n".join((f'<table width="100%" cellspacing="0" style="{_TABLE}">', *rows, "</table>"))


def _widths(table: ReportTable) -> list[int]:
    """Return each column's share of the page in percent: room for its longest word, the rest by its longest line."""
    columns = list(zip((column.title for column in table.columns), *table.rows, strict=True))
    words = [max(map(len, _BREAKS.split(" ".join(map(unbroken, cells))))) * _BOLD + _GAP for cells in columns]
    lines = [
        min(max(len(line) for cell in cells for line in cell.split("\n")) + _GAP, _LONGEST_LINE) for cells in columns
    ]
    more = [max(line - word, 0) for line, word in zip(lines, words, strict=True)]
    room = max(_PAGE_CHARACTERS - sum(words), 0)
    wanted = [word + room * extra / (sum(more) or 1) for word, extra in zip(words, more, strict=True)]
    return [round(100 * each / sum(wanted)) for each in wanted]


def _text(text: str) -> str:
    return escape(unbroken(text)).replace("\n", "<br>")
