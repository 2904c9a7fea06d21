"""Text report of a trace."""

from collections.abc import Iterator
from typing import Final

from planner.cli.report import memory_report, prose_width, wrap
from planner.cli.table import TableColumn, table
from planner.present import format as fmt
from planner.present.trace.view import AliveRow, DifferenceRow, ModuleRow, TraceView, notable_modules

_ALIVE_HEADS: Final = (
    TableColumn("Alive at the peak", flexible=True, narrowest=11),
    TableColumn("Size", "right"),
    TableColumn("Share", "right"),
    TableColumn("Module", flexible=True, narrowest=10, keep="end"),
    TableColumn("Operator", flexible=True, narrowest=10),
    TableColumn("Shape", flexible=True, narrowest=10),
    TableColumn("Line", flexible=True, keep="end"),
)
_MODULE_HEADS: Final = (
    TableColumn("Module", flexible=True, keep="end"),
    TableColumn("Class", flexible=True),
    TableColumn("Parameters", "right"),
    TableColumn("Size", "right"),
    TableColumn("Share", "right"),
    TableColumn("At the peak", flexible=True),
)
_RESERVATION_HEADS: Final = (TableColumn("Caching allocator"), TableColumn(""), TableColumn("", "right"))


def trace_report(view: TraceView, defaults: tuple[str, ...], width: int | None, top: int) -> str:
    """Return the report of a trace; the tables of live tensors and of modules have at most `top` rows each."""
    memory = view.memory._replace(
        reason=f"{view.memory.reason} {view.runs_out}".strip(),
        terms=tuple(
            row._replace(how=row.numbers_put_in) if len(row.symbols) == 1 else row for row in view.memory.terms
        ),
    )
    prose = prose_width(width)
    more = (
        _live_tensor_table(view.alive, width, top),
        _module_table(view.modules, width, top) if view.modules else "",
        table(_RESERVATION_HEADS, [list(row) for row in view.reservation], width),
        "\n".join(line for row in view.differences for line in _difference_lines(row, prose)),
        wrap(view.traced_with, prose),
    )
    return memory_report(memory, wrap(view.subject, prose), defaults, width, more=more)


def _live_tensor_table(rows: tuple[AliveRow, ...], width: int | None, top: int) -> str:
    shown = [
        [row.title, row.size, row.share_text, row.module, row.operator, row.shape, row.place] for row in rows[:top]
    ]
    rest = sum(row.bytes for row in rows[top:])
    if rest:
        shown.append([f"{fmt.integer(len(rows) - top)} more", fmt.size(rest), "", "", "", "", ""])
    return table(_ALIVE_HEADS, shown, width)


def _module_table(rows: tuple[ModuleRow, ...], width: int | None, top: int) -> str:
    notable = notable_modules(rows, top)
    shown = [[row.title, row.class_name, row.parameters_text, row.size, row.share_text, row.holds] for row in notable]
    left_out = len(rows) - len(notable)
    return table(_MODULE_HEADS, shown, width) + (
        f"\n{fmt.plural(left_out, 'smaller module')} left out" if left_out else ""
    )


def _difference_lines(row: DifferenceRow, width: int) -> Iterator[str]:
    place = f" ({row.place})" if row.place else ""
    yield wrap(f"Assumed: {row.name}{place}: {row.explanation}", width, "", "    ")
    yield wrap(f"counted as {row.amount}; true value within {row.range_text} [{row.source}]", width, "    ")
