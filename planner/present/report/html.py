"""A report as one HTML file that needs no other, in light and dark and for printing, with its figures as SVG."""

import re
import textwrap
import tomllib
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Final, Literal, TypedDict
from xml.sax.saxutils import quoteattr

from planner.paths import resources_dir
from planner.plan.files import embedded_plan_html
from planner.present.format import unbroken
from planner.present.report.document import (
    Area,
    Block,
    Bullets,
    CodeListing,
    Drawing,
    Polyline,
    Prose,
    Rectangle,
    Report,
    ReportAnswer,
    ReportSection,
    ReportTable,
    Shape,
)

_FONT: Final = "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
_TEXT_PIXELS: Final = 13
_SMALL_PIXELS: Final = 11
_SHORT_CELL: Final = 20
"""Characters of a cell that stays on one line."""
_LISTING_CHARACTERS: Final = 95
_MARGIN: Final = 8
"""Room above the drawing for what rises over it."""


def figure_svg(figure: Drawing, color: Callable[[str], str]) -> str:
    """Return the figure as one SVG element; `color` gives the color for the name of a role."""
    shapes = "\n".join(_shape_element(shape, color) for shape in figure.shapes)
    width, height = _number(figure.width), _number(figure.height + _MARGIN)
    label = quoteattr(figure.caption)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {-_MARGIN} {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-label={label} font-family="{_FONT}">\n{shapes}\n</svg>'
    )


def _shape_element(shape: Shape, color: Callable[[str], str]) -> str:
    match shape:
        case Rectangle(x, y, width, height, role, opacity):
            place = f'x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" height="{_number(height)}"'
            return f'<rect {place} fill="{color(role)}"{_opacity(opacity)}/>'
        case Polyline(points, role, width, is_dashed):
            dashes = ' stroke-dasharray="4 3"' if is_dashed else ""
            path = f'<polyline points="{_points(points)}" fill="none" stroke="{color(role)}"'
            return f'{path} stroke-width="{_number(width)}" stroke-linejoin="round"{dashes}/>'
        case Area(points, role, opacity):
            return f'<polygon points="{_points(points)}" fill="{color(role)}"{_opacity(opacity)}/>'
        case _:
            x, y, text, anchor, role, is_small = shape
            size = _SMALL_PIXELS if is_small else _TEXT_PIXELS
            place = f'x="{_number(x)}" y="{_number(y)}" text-anchor="{anchor}"'
            return f'<text {place} font-size="{size}" fill="{color(role)}">{escape(text, quote=False)}</text>'


def _opacity(value: float) -> str:
    return "" if value == 1 else f' fill-opacity="{_number(value)}"'


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{_number(x)},{_number(y)}" for x, y in points)


def _number(value: float) -> str:
    """Return a coordinate with at most two decimals, so that a report is the same on every machine."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


_STYLE: Final = """
* { box-sizing: border-box; }
html { background: var(--sunken); }
body { margin: 2rem auto; padding: 2.5rem 3rem; max-width: 58rem; background: var(--surface); color: var(--text);
  font: 15px/1.5 system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif; font-variant-numeric: tabular-nums; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; padding-bottom: .3rem; border-bottom: 1px solid var(--border); }
p, li { max-width: 46rem; }
.question { font-size: 1.05rem; color: var(--muted); margin: 0 0 1.2rem; }
.answers { display: grid; gap: .7rem; margin: 0; }
.answer { border-left: 4px solid var(--outline); background: var(--sunken); padding: .6rem .9rem; }
.answer b { display: block; font-size: 1.15rem; }
.answer.ok { border-color: var(--ok); } .answer.ok b { color: var(--ok); }
.answer.warn { border-color: var(--warn); } .answer.warn b { color: var(--warn); }
.answer.bad { border-color: var(--bad); } .answer.bad b { color: var(--bad); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin: .8rem 0; font-size: .92rem; }
th { color: var(--muted); font-weight: 600; text-align: left; }
th, td { padding: .3rem .7rem .3rem 0; border-bottom: 1px solid var(--border); vertical-align: top; }
th.right, td.right { text-align: right; }
tr.total td { font-weight: 600; border-bottom: none; }
figure { margin: 1rem 0; }
figure svg { max-width: 100%; height: auto; display: block; }
figcaption { color: var(--muted); font-size: .9rem; margin-top: .3rem; }
pre { background: var(--sunken); padding: .8rem; overflow-x: auto; font: .85rem/1.45 ui-monospace, 'DejaVu Sans Mono',
  monospace; }
.name { color: var(--muted); font-size: .9rem; margin-bottom: -.6rem; }
footer { margin-top: 2.5rem; padding-top: .8rem; border-top: 1px solid var(--border); color: var(--muted);
  font-size: .9rem; }
@media (max-width: 50rem) { body { margin: 0; padding: 1.2rem; } }
@page { margin: 18mm 16mm; }
@media print {
  html { background: none; font-size: 9pt; }
  body { margin: 0; padding: 0; max-width: none; font-size: 1rem; print-color-adjust: exact;
    -webkit-print-color-adjust: exact; }
  .wide, pre { overflow: visible; } pre { white-space: pre-wrap; }
  th, td { padding-right: .5rem; overflow-wrap: break-word; }
  h2 { break-after: avoid; } tr, figure, .answer { break-inside: avoid; }
}
"""


def scheme_colors(scheme: Literal["light", "dark"]) -> dict[str, str]:
    """Return the colors of a scheme by the names of their roles, from the window's own design tokens."""
    tokens = tomllib.loads((resources_dir() / "tokens" / f"{scheme}.toml").read_text(encoding="utf-8"))
    return {role: tokens["base"][base] for role, base in tokens["roles"].items()}


def report_html(report: Report) -> str:
    """Return `report` as an HTML document that contains its figures, its style and its plan."""
    sections = "\n".join(_section_html(section) for section in report.sections)
    answers = "\n".join(_answer_html(answer) for answer in report.answers)
    plan = "" if report.plan is None else f"\n{embedded_plan_html(report.plan)}"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="GPU Planner">
<title>{escape(report.title)}</title>
<style>
:root {{ color-scheme: light dark; {_variables("light")} }}
@media (prefers-color-scheme: dark) {{ @media screen {{ :root {{ {_variables("dark")} }} }} }}
{_STYLE.strip()}
</style>
</head>
<body>
<header>
<h1>{_text(report.title)}</h1>
<p class="question">{_text(report.question)}</p>
<div class="answers">
{answers}
</div>
</header>
<main>
{sections}
</main>
<footer>{_text(report.made)}</footer>{plan}
</body>
</html>
"""


def _variables(scheme: Literal["light", "dark"]) -> str:
    return " ".join(f"--{role}: {color};" for role, color in scheme_colors(scheme).items())


def _answer_html(answer: ReportAnswer) -> str:
    return f'<div class="answer {answer.tone}"><b>{_text(answer.title)}</b>{_text(answer.text)}</div>'


def _section_html(section: ReportSection) -> str:
    blocks = "\n".join(line for block in section.blocks for line in _block_html(block))
    return f"<section>\n<h2>{_text(section.title)}</h2>\n{blocks}\n</section>"


def _block_html(block: Block) -> Iterator[str]:
    match block:
        case Prose(text):
            yield f"<p>{_text(text)}</p>"
        case Bullets(items):
            yield "\n".join(("<ul>", *(f"<li>{_text(item)}</li>" for item in items), "</ul>"))
        case ReportTable():
            yield f'<div class="wide">{table_html(block)}</div>'
        case CodeListing(text, name):
            if name:
                yield f'<p class="name">{_text(name)}</p>'
            yield f"<pre>{listing_html(text)}</pre>"
        case _:
            svg = figure_svg(block, lambda role: f"var(--{role})")
            yield f"<figure>{svg}<figcaption>{_text(block.caption)}</figcaption></figure>"


def listing_html(text: str) -> str:
    """Return a listing whose long comments stand above their lines, so that it fits a page and a copy of it runs."""
    return escape("\n".join(map(_listing_line, text.rstrip().splitlines())))


def _listing_line(line: str) -> str:
    code, mark, comment = line.partition("  # ")
    if len(line) <= _LISTING_CHARACTERS or not mark:
        return line
    start = f"{' ' * (len(code) - len(code.lstrip()))}# "
    above = textwrap.fill(comment, _LISTING_CHARACTERS, initial_indent=start, subsequent_indent=start)
    return f"{above}\n{code}"


def table_html(table: ReportTable) -> str:
    """Return a table as an HTML element, with the classes `right` and `total` on cells and rows."""
    sides = [' class="right"' if column.align == "right" else "" for column in table.columns]
    heads = "".join(f"<th{side}>{_text(column.title)}</th>" for column, side in zip(table.columns, sides, strict=True))
    rows = []
    for index, row in enumerate(table.rows):
        texts = (cell.replace(" ", "\N{NO-BREAK SPACE}") if len(cell) <= _SHORT_CELL else cell for cell in row)
        cells = "".join(f"<td{side}>{_text(text)}</td>" for text, side in zip(texts, sides, strict=True))
        is_total = table.last_is_total and index == len(table.rows) - 1
        kind = ' class="total"' if is_total else ""
        rows.append(f"<tr{kind}>{cells}</tr>")
    return "\n".join(("<table>", f"<thead><tr>{heads}</tr></thead>", "<tbody>", *rows, "</tbody>", "</table>"))


def _text(text: str) -> str:
    return escape(unbroken(text).replace(" × ", "\N{NO-BREAK SPACE}× ")).replace("\n", "<br>")


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
    yield f"<h1>{_cell_text(report.title)}</h1>"
    yield f'<p class="muted">{_cell_text(report.question)}</p>'
    for answer in report.answers:
        title = f'<b class="{answer.tone}" style="font-size: 11pt">{_cell_text(answer.title)}</b>'
        yield f"<p>{title}<br>{_cell_text(answer.text)}</p>"
    for part in report.sections:
        yield f"<h2>{_cell_text(part.title)}</h2>"
        for block in part.blocks:
            yield from _block_lines(block, figures)
    yield f'<hr><p class="muted">{_cell_text(report.made)}</p>'


def _block_lines(block: Block, figures: list[Drawing]) -> Iterator[str]:
    match block:
        case Prose(text):
            yield f"<p>{_cell_text(text)}</p>"
        case Bullets(items):
            yield "\n".join(("<ul>", *(f"<li>{_cell_text(item)}</li>" for item in items), "</ul>"))
        case ReportTable():
            yield _table(block)
        case CodeListing(text, name):
            yield f'<p class="muted">{_cell_text(name)}</p>' if name else ""
            yield f"<pre>{listing_html(text)}</pre>"
        case _:
            place = _FIGURE.format(next(index for index, one in enumerate(figures) if one is block))
            yield f'<p><img src="{place}"></p><p class="muted">{_cell_text(block.caption)}</p>'


def _table(table: ReportTable) -> str:
    sides = [column.align for column in table.columns]
    heads = "".join(
        f'<th align="{column.align}" valign="bottom" width="{width}%" style="{_CELL}">{_cell_text(column.title)}</th>'
        for column, width in zip(table.columns, _widths(table), strict=True)
    )
    rows = [f"<thead><tr>{heads}</tr></thead>"]
    for index, row in enumerate(table.rows):
        bold = table.last_is_total and index == len(table.rows) - 1
        texts = [f"<b>{_cell_text(cell)}</b>" if bold else _cell_text(cell) for cell in row]
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


def _cell_text(text: str) -> str:
    return escape(unbroken(text)).replace("\n", "<br>")
