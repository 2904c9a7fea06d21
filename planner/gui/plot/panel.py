"""Panel of a chart: heading, read-out of the hovered point, the data as a table, copy and save."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import QStackedWidget, QWidget

from planner.gui.plot.chart import Chart, DataChart
from planner.gui.plot.legend import Legend
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import IconButton
from planner.gui.widgets.labels import ElidedLabel, make_label
from planner.gui.widgets.layout import in_column, in_row
from planner.gui.widgets.result_menu import Copied, ExportMenu, FileFormat
from planner.present.columns import Column, rows_to_csv

if TYPE_CHECKING:
    from planner.gui.widgets.tables.record_table import RecordTable

Rows = tuple[tuple[str, ...], ...]
_TABLE_HEIGHT: Final = 192


class PlotPanel(QWidget):
    """Panel whose chart can be switched to a table of its data; `failed` carries the `PlannerError` of a failed save.

    `noun` names the chart in one word, such as `curve`; `file_stem` is the suggested file name. Subclasses create the
    chart when there is first something to draw, because the plotting library takes half a second to import, and fill
    the table when the table is shown.
    """

    failed = Signal(object)

    def __init__(self, theme: Theme, heading: str, noun: str, file_stem: str, preferred_height: int = 0) -> None:
        super().__init__()
        self._theme = theme
        self._chart: Chart | None = None
        self.table: RecordTable | None = None
        self._read_out = ElidedLabel(role="muted", is_live=True)
        self._read_out.setFont(theme.font("small"))
        self._read_out.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._as_table = IconButton(theme, "table", "Show as table")
        self._as_table.setCheckable(True)
        self._as_table.toggled.connect(self._show_page)
        self.export = self._export_menu(noun, file_stem)
        self._export_button = IconButton(theme, "save", f"Copy or save the {noun}")
        self._export_button.set_menu(self.export)
        self._export_button.setEnabled(False)
        self._pages = _ChartOrTable(preferred_height)
        self._pages.addWidget(make_label(f"Drawing the {noun}…", "muted"))
        self._lay_out(heading)

    @property
    def read_out(self) -> str:
        """Return the text about the hovered point, or the default text without a hovered point."""
        return self._read_out.text()

    def csv_rows(self) -> Rows:
        """Return the CSV rows of the chart: a header, and a row per point; empty without data."""
        raise NotImplementedError

    def _fill_table(self) -> None:
        """Fill the table, which is about to be shown, with the current data."""

    def _show_in_table(self, records: Sequence[Any], columns: tuple[Column[Any], ...], name: str) -> "RecordTable":
        """Show records in the table, called `name`, and return it; a table with other columns is replaced."""
        if self.table is not None and self.table.records().columns != columns:
            self._pages.removeWidget(self.table)
            self.table.deleteLater()
            self.table = None
        if self.table is None:
            # Imported here: it takes 20 ms, which must not delay the window.
            from planner.gui.widgets.tables.record_model import RecordTableModel
            from planner.gui.widgets.tables.record_table import RecordTable

            model = RecordTableModel(columns, self._row_id)
            self.table = RecordTable(model, self._theme)
            model.setParent(self.table)
            self.table.record_activated.connect(self._on_activated)
            self._pages.addWidget(self.table)
        self.table.setAccessibleName(name)
        self.table.records().set_records(records)
        return self.table

    def _row_id(self, record: Any) -> str:  # noqa: ANN401  # each panel has records of its own
        """Return the id of a record in the table."""
        raise NotImplementedError

    @Slot(object)
    def _on_activated(self, record: Any) -> None:  # noqa: ANN401  # as above
        """Handle a table record that was double-clicked or confirmed with Enter."""

    def _set_chart(self, chart: Chart) -> None:
        self._chart = chart
        self._export_button.setEnabled(True)
        self._pages.addWidget(chart)
        self._show_page()

    @Slot()
    def _show_page(self) -> None:
        if self._chart is None:
            return
        shown: QWidget = self._chart
        if self._as_table.isChecked():
            self._fill_table()
            shown = self.table or shown
        self._pages.setCurrentWidget(shown)

    def _export_menu(self, noun: str, file_stem: str) -> ExportMenu:
        copies: dict[str, Copied] = {
            "Copy as picture": self._chart_picture,
            "Copy as table": self._data_as_tab_separated_text,
        }
        formats = (
            FileFormat("Picture", ".png", self._chart_picture),
            FileFormat("Drawing", ".svg", lambda: self._chart.drawing() if self._chart is not None else b""),
            FileFormat("Table", ".csv", lambda: rows_to_csv(self.csv_rows())),
        )
        menu = ExportMenu(noun, file_stem, copies, formats, self)
        menu.failed.connect(self.failed)
        return menu

    def _chart_picture(self) -> QPixmap:
        return QPixmap() if self._chart is None else self._chart.picture()

    def _data_as_tab_separated_text(self) -> str:
        return "\n".join("\t".join(row) for row in self.csv_rows())

    def _lay_out(self, heading: str) -> None:
        title = make_label(heading, font=self._theme.font(bold=True))
        tiny = self._theme.spacing.tiny
        self._bar = in_row(title, (self._read_out, 1), self._as_table, self._export_button, spacing=tiny)
        self._column = in_column(self._bar, (self._pages, 1), owner=self, spacing=tiny)


class _ChartOrTable(QStackedWidget):
    """Stack of a chart and its table with a common preferred height, so that switching moves nothing else."""

    def __init__(self, preferred_height: int) -> None:
        super().__init__()
        self._usual_height = preferred_height

    def sizeHint(self) -> QSize:
        """Return at least the preferred height."""
        return super().sizeHint().expandedTo(QSize(0, self._usual_height))


class PlotData(Protocol):
    """Data that can be exported as a table."""

    def csv_rows(self) -> Rows:
        """Return the CSV rows of the data: a header, and a row per point with exact figures."""


Data = TypeVar("Data", bound=PlotData)


class DataPanel(PlotPanel, Generic[Data]):
    """Panel with a chart that draws one immutable `data` object and reads out its points.

    `make_chart` is called when there is first something to draw. The entries of `legend`, which is placed by the
    subclass that uses it, hide and show the chart's series.
    """

    _chart: DataChart[Data] | None

    def __init__(
        self, theme: Theme, heading: str, noun: str, file_stem: str, make_chart: Callable[[Theme], DataChart[Data]]
    ) -> None:
        super().__init__(theme, heading, noun, file_stem, _TABLE_HEIGHT)
        self.data: Data | None = None
        self._make_chart = make_chart

    @cached_property
    def legend(self) -> Legend:
        """Return the legend, created on first use."""
        return Legend(self._theme)

    def set_data(self, data: Data) -> None:
        """Draw `data`; the first call imports the plotting library."""
        self.data = data
        chart = self._chart
        if chart is None:
            chart = self._make_chart(self._theme)
            chart.hovered.connect(self._show_read_out)
            chart.chosen.connect(self._on_activated)
            if "legend" in vars(self):
                self.legend.toggled.connect(chart.hide_series)
            self._set_chart(chart)
        chart.set_data(data)
        self._show_page()

    def csv_rows(self) -> Rows:
        """Return the CSV rows of the chart: a header, and a row per point; empty without data."""
        return () if self.data is None else self.data.csv_rows()

    def _fill_table(self) -> None:
        if self.data is not None:
            self._show_table_of(self.data)

    def _show_table_of(self, data: Data) -> None:
        """Show the points of `data` in the table."""
        raise NotImplementedError

    def _read_out_text(self, data: Data, point: Any) -> str:  # noqa: ANN401  # each panel has points of its own
        """Return the text about a point, or the default text if `point` is None."""
        raise NotImplementedError

    @Slot(object)
    def _show_read_out(self, point: object | None) -> None:
        if self.data is not None:
            self._read_out.setText(self._read_out_text(self.data, point))
