"""Panel of the memory timeline with legend, table, copy and save."""

from typing import TYPE_CHECKING, Final

from planner.gui.memory.trace.timeline_data import TimelineData, TimelineRow, role_of
from planner.gui.plot.legend import Legend, LegendEntry
from planner.gui.plot.panel import DataPanel
from planner.gui.theme import Theme
from planner.present import format as fmt
from planner.present.columns import Column, number_column, text_column
from planner.present.trace.view import short_source_line

if TYPE_CHECKING:
    from planner.gui.memory.trace.timeline_plot import TimelinePlot

_COLUMNS: Final[tuple[Column[TimelineRow], ...]] = (
    number_column(
        "time",
        "Moment",
        lambda row: row.moment.time,
        show=lambda value: fmt.integer(round(value)),
        width=9,
        about="Number of the allocation or release since the start of the step",
    ),
    number_column(
        "bytes",
        "Alive",
        lambda row: row.moment.bytes,
        show=lambda value: fmt.size(round(value)),
        tooltip=lambda row: fmt.exact_bytes(row.moment.bytes),
        meter=True,
        about="Memory that is alive at this moment",
    ),
    text_column(
        "phase",
        "Phase",
        lambda row: row.moment.phase,
        width=24,
        about="Phase of the step: forward, backward or optimizer",
    ),
    text_column(
        "operator",
        "Last operator",
        lambda row: row.moment.operator,
        unknown="",
        width=24,
        about="Last operator that ran before this moment",
    ),
    text_column(
        "module", "Module", lambda row: row.moment.module, unknown="", width=24, about="Module that was running"
    ),
    text_column(
        "line",
        "Line",
        lambda row: short_source_line(row.moment.line),
        unknown="",
        width=20,
        tooltip=lambda row: row.moment.line,
        about="Line of the program that was running",
    ),
)


class TimelinePanel(DataPanel[TimelineData]):
    """Live memory over the traced run; the legend hides and shows categories."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Live memory over the run", "timeline", "timeline")
        self.legend = Legend(theme)
        self._column.addWidget(self.legend)

    def set_data(self, data: TimelineData) -> None:
        """Draw a memory timeline; the first call imports the plotting library."""
        # In the order of the stack, the top first.
        legend_items = [(series, f"Show {series.title.lower()} in the timeline") for series in reversed(data.series)]
        entries = (
            LegendEntry(series.category, series.title, role_of(series), description)
            for series, description in legend_items
        )
        self.legend.set_entries(tuple(entries))
        super().set_data(data)

    def _make_chart(self) -> "TimelinePlot":
        from planner.gui.memory.trace.timeline_plot import TimelinePlot

        chart = TimelinePlot(self._theme)
        self.legend.toggled.connect(chart.hide_categories)
        return chart

    def _fill_table(self) -> None:
        data = self.data
        if data is not None:
            rows = [data.row(point) for point in range(len(data.times))]
            table = self._show_in_table(rows, _COLUMNS)
            table.setAccessibleName("Live memory over the run")
            table.mark(str(data.peak_point))

    def _row_id(self, row: TimelineRow) -> str:
        return str(row.point)

    def _read_out_text(self, data: TimelineData, point: int | None) -> str:
        if point is not None:
            return data.row(point).moment.description
        return f"At the peak: {data.sum_text}"
