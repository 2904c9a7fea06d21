"""A chart with what belongs to it: a heading, the read-out, the same figures as a table, copy and save."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import QStackedWidget, QWidget

from planner.gui.theme import Theme
from planner.gui.widgets.buttons import IconButton
from planner.gui.widgets.labels import ElidedLabel, make_label
from planner.gui.widgets.layout import in_column, in_row
from planner.gui.widgets.result_menu import Copied, ExportMenu, FileFormat
from planner.present.columns import Column
from planner.present.record_text import rows_to_csv

if TYPE_CHECKING:
    from planner.gui.plot.chart import Chart
    from planner.gui.widgets.tables.record_table import RecordTable

Rows = tuple[tuple[str, ...], ...]
_TABLE_HEIGHT: Final = 192


class PlotPanel(QWidget):
    """Shows a table instead of the chart when it is asked to; `failed` carries a `PlannerError` that saving met.

    `what` is the chart in one word, and `file_stem` what its file is called unless the person says otherwise.
    Subclasses make the chart when there is first something to draw, because its library takes half a second to import,
    and fill the table whenever it is shown.
    """

    failed = Signal(object)

    def __init__(self, theme: Theme, heading: str, what: str, file_stem: str, usual_height: int = 0) -> None:
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
        self.export = self._export_menu(what, file_stem)
        self._export_button = IconButton(theme, "save", f"Copy or save the {what}")
        self._export_button.set_menu(self.export)
        self._export_button.setEnabled(False)
        self._pages = _Pages(usual_height)
        self._pages.addWidget(make_label(f"Drawing the {what}…", "muted"))
        self._lay_out(heading)

    @property
    def read_out(self) -> str:
        """Return what is said about the point under the pointer, or in its absence."""
        return self._read_out.text()

    def csv_rows(self) -> Rows:
        """Return a header and a row a point, with exact figures; nothing before there is something to draw."""
        raise NotImplementedError

    def _fill_table(self) -> None:
        """Show what is drawn by now in the table, which is seen."""

    def _show_in_table(self, records: Sequence[Any], columns: tuple[Column[Any], ...]) -> "RecordTable":
        """Show records in the table, and return it; one with other columns takes the place of that before."""
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
        self.table.records().set_records(records)
        return self.table

    def _row_id(self, record: Any) -> str:  # noqa: ANN401  # each panel has records of its own
        """Return what a record is known by in the table."""
        raise NotImplementedError

    @Slot(object)
    def _on_activated(self, record: Any) -> None:  # noqa: ANN401  # as above
        """Take a record that was double-clicked in the table, or confirmed with Enter."""

    def _set_chart(self, chart: "Chart") -> None:
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

    def _export_menu(self, what: str, file_stem: str) -> ExportMenu:
        copies: dict[str, Copied] = {"Copy as picture": self._picture, "Copy as table": self._tabbed}
        formats = (
            FileFormat("Picture", ".png", self._picture),
            FileFormat("Drawing", ".svg", lambda: self._chart.drawing() if self._chart is not None else b""),
            FileFormat("Table", ".csv", lambda: rows_to_csv(self.csv_rows())),
        )
        menu = ExportMenu(what, file_stem, copies, formats, self)
        menu.failed.connect(self.failed)
        return menu

    def _picture(self) -> QPixmap:
        return QPixmap() if self._chart is None else self._chart.picture()

    def _tabbed(self) -> str:
        return "\n".join("\t".join(row) for row in self.csv_rows())

    def _lay_out(self, heading: str) -> None:
        title = make_label(heading, font=self._theme.font(bold=True))
        tiny = self._theme.spacing.tiny
        self._bar = in_row(title, (self._read_out, 1), self._as_table, self._export_button, spacing=tiny)
        self._column = in_column(self._bar, (self._pages, 1), owner=self, spacing=tiny)


class _Pages(QStackedWidget):
    """The chart or its table, which want at least the same height, so that nothing moves when one follows the other."""

    def __init__(self, usual_height: int) -> None:
        super().__init__()
        self._usual_height = usual_height

    def sizeHint(self) -> QSize:
        """Ask for the usual height."""
        return super().sizeHint().expandedTo(QSize(0, self._usual_height))


class PlotData(Protocol):
    """What a chart draws."""

    def csv_rows(self) -> Rows:
        """Return a header and a row a point, with exact figures."""


Data = TypeVar("Data", bound=PlotData)


class DataPanel(PlotPanel, Generic[Data]):
    """A panel whose chart draws one immutable `data`, if there is any yet, and reads out a point of it."""

    def __init__(self, theme: Theme, heading: str, what: str, file_stem: str) -> None:
        super().__init__(theme, heading, what, file_stem, _TABLE_HEIGHT)
        self.data: Data | None = None

    def set_data(self, data: Data) -> None:
        """Draw something else; the first time imports the plotting library."""
        self.data = data
        if self._chart is None:
            chart = self._make_chart()
            chart.hovered.connect(self._say)
            self._set_chart(chart)
        self._draw()
        self._show_page()

    def csv_rows(self) -> Rows:
        """Return a header and a row a point, with exact figures; nothing before there is something to draw."""
        return () if self.data is None else self.data.csv_rows()

    def _make_chart(self) -> "Chart":
        """Return the chart, whose module is imported only here."""
        raise NotImplementedError

    @Slot()
    def _draw(self) -> None:
        if self._chart is not None and self.data is not None:
            self._chart.set_data(self.data)

    def _words_of(self, data: Data, point: Any) -> str:  # noqa: ANN401  # each panel has points of its own
        """Return what is said of a point, or where there is none under the pointer."""
        raise NotImplementedError

    @Slot(object)
    def _say(self, point: object | None) -> None:
        if self.data is not None:
            self._read_out.setText(self._words_of(self.data, point))
