"""The report on a trace: the exact peak of a module, what is alive at it, and where it was allocated."""

from collections.abc import Sequence
from datetime import date
from typing import Final

from planner import __version__
from planner.present import format as fmt
from planner.present.report.document import (
    Bullets,
    Prose,
    Report,
    ReportAnswer,
    ReportColumn,
    ReportTable,
    Tone,
    section,
)
from planner.present.report.figures import memory_blocks, timeline_figure
from planner.present.trace import AliveRow, ModuleRow, notable_modules, trace_view
from planner.trace.result import TraceResult

_ROWS: Final = 25
_TONES: Final[dict[str | None, Tone]] = {"fits": "ok", "tight": "warn", "does-not-fit": "bad"}


def report_on_trace(result: TraceResult, today: date, card: str | None = None, count: int = 1) -> Report:
    """Return the report on the trace `result`, made on `today`, for `count` cards named `card`."""
    view = trace_view(result, card, count)
    memory = view.memory
    sections = (
        section("What was traced", Prose(view.subject), Prose(view.traced_with), Bullets(view.run_notes)),
        section("Memory", *memory_blocks(memory), Prose(view.runs_out)),
        section("Over the run", timeline_figure(result.timeline)),
        section("Alive at the peak", _alive_table(view.alive)),
        section("Modules", _module_table(view.modules)),
        section(
            "Allocator",
            ReportTable(
                (ReportColumn("Figure"), ReportColumn("", "right"), ReportColumn("Exactly", "right")),
                tuple((row.title, row.text, row.exact) for row in view.reservation),
            ),
        ),
        section(
            "Assumptions",
            ReportTable(
                tuple(map(ReportColumn, ("Assumption", "Counted as", "Range", "Source"))),
                tuple(
                    (f"{row.name}: {row.explanation}", row.amount, row.range_text, row.source)
                    for row in view.differences
                ),
            ),
            Bullets(tuple(note for note in memory.notes if note not in view.run_notes)),
        ),
    )
    return Report(
        title=f"Trace of {result.request.target.short_title}",
        question="How much memory does the module need at its peak, and what for?",
        answers=(ReportAnswer(memory.headline, memory.reason, _TONES.get(memory.verdict, "none")),),
        sections=tuple(part for part in sections if part.blocks),
        made=f"Made by GPU Planner {__version__} on {fmt.date(today.isoformat())}.",
    )


def _alive_table(rows: Sequence[AliveRow]) -> ReportTable:
    columns = (
        ReportColumn("Kind"),
        ReportColumn("Size", "right"),
        ReportColumn("Share", "right"),
        *map(ReportColumn, ("Module", "Operator", "Shape", "Line")),
    )
    cells = [
        (row.title, row.size, row.share_text, row.module, row.operator, row.shape, row.place) for row in rows[:_ROWS]
    ]
    rest = sum(row.bytes for row in rows[_ROWS:])
    if rest:
        cells.append((f"{fmt.integer(len(rows) - _ROWS)} more", fmt.size(rest), "", "", "", "", ""))
    return ReportTable(columns, tuple(cells))


def _module_table(rows: tuple[ModuleRow, ...]) -> ReportTable:
    columns = (
        ReportColumn("Module"),
        ReportColumn("Class"),
        ReportColumn("Parameters", "right"),
        ReportColumn("At the peak", "right"),
        ReportColumn("Holds"),
    )
    cells = (
        (row.title, row.class_name, row.parameters_text, row.size, row.holds) for row in notable_modules(rows, _ROWS)
    )
    return ReportTable(columns, tuple(cells))
