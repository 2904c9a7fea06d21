"""Text report of a trace, and the progress line while it runs."""

import shutil
from collections.abc import Iterator
from types import TracebackType
from typing import Final, Self, TextIO

from planner.cli.report import memory_report, prose_width, wrap
from planner.cli.table import TableColumn, table
from planner.present import format as fmt
from planner.present.trace.view import AliveRow, DifferenceRow, ModuleRow, ReservationRow, TraceView, notable_modules
from planner.trace.run import TraceProgress

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
    """Return the report; the tables of live tensors and of modules have at most `top` rows each."""
    memory = view.memory._replace(
        reason=f"{view.memory.reason} {view.runs_out}".strip(),
        terms=tuple(
            row._replace(how=row.numbers_put_in) if len(row.symbols) == 1 else row for row in view.memory.terms
        ),
    )
    prose = prose_width(width)
    more = (
        _alive(view.alive, width, top),
        _modules(view.modules, width, top) if view.modules else "",
        _reservation(view.reservation, width),
        "\n".join(line for row in view.differences for line in _difference(row, prose)),
        wrap(view.traced_with, prose),
    )
    return memory_report(memory, wrap(view.subject, prose), defaults, width, more=more)


def _alive(rows: tuple[AliveRow, ...], width: int | None, top: int) -> str:
    shown = [
        [row.title, row.size, row.share_text, row.module, row.operator, row.shape, row.place] for row in rows[:top]
    ]
    rest = sum(row.bytes for row in rows[top:])
    if rest:
        shown.append([f"{fmt.integer(len(rows) - top)} more", fmt.size(rest), "", "", "", "", ""])
    return table(_ALIVE_HEADS, shown, width)


def _modules(rows: tuple[ModuleRow, ...], width: int | None, top: int) -> str:
    kept = notable_modules(rows, top)
    shown = [[row.title, row.class_name, row.parameters_text, row.size, row.share_text, row.holds] for row in kept]
    left_out = len(rows) - len(kept)
    return table(_MODULE_HEADS, shown, width) + (
        f"\n{fmt.plural(left_out, 'smaller module')} left out" if left_out else ""
    )


def _reservation(rows: tuple[ReservationRow, ...], width: int | None) -> str:
    return table(_RESERVATION_HEADS, [list(row) for row in rows], width)


def _difference(row: DifferenceRow, width: int) -> Iterator[str]:
    place = f" ({row.place})" if row.place else ""
    bounds = f"; true value within {row.range_text}" if row.range_text else ""
    yield wrap(f"Assumed: {row.name}{place}: {row.explanation}", width, "", "    ")
    yield wrap(f"counted as {row.amount}{bounds} [{row.source}]", width, "    ")


class ProgressLine:
    """A progress line on `stream`, shown while the context is active and only if the stream is a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            self._write("")
            self._stream.write("\r")
            self._stream.flush()

    def show(self, progress: TraceProgress) -> None:
        """Replace the line by the progress."""
        self._write(f"Tracing: {progress.text}")

    def _write(self, text: str) -> None:
        if not self._stream.isatty():
            return
        # One column stays free: a full line would move the cursor to the next line.
        text = text[: shutil.get_terminal_size().columns - 1]
        # Blanks instead of an escape sequence, which Windows consoles do not interpret by default.
        self._stream.write(f"\r{text.ljust(self._shown)}")
        self._stream.flush()
        self._shown = max(self._shown, len(text))
