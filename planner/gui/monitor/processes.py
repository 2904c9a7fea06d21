"""The table of processes on the cards, which can be searched, copied and, if permitted, killed."""

from collections.abc import Sequence

from PySide6.QtCore import QObject, QPoint, Qt, Signal, Slot
from PySide6.QtWidgets import QCheckBox, QLineEdit, QMenu, QMessageBox, QPushButton, QWidget

from planner.errors import PlannerError
from planner.gui.settings import TableLayout
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import push_button
from planner.gui.widgets.dialogs import confirmation
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import in_column, in_row
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.tables.record_table import RecordTable
from planner.gui.workspace import Workspace
from planner.monitor.host.processes import terminate, termination_refusal
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.sample import CardProcess
from planner.present import format as fmt
from planner.present.monitor.events import clock_time
from planner.present.monitor.processes import (
    DETAILED_PROCESS_COLUMNS,
    ProcessRow,
    matching_process_ids,
    process_row_id,
    process_rows,
)
from planner.units import GIB

_TABLE = "processes"
_LEAST_ROWS = 2


class KillProcess(QObject):
    """Ends a process that uses a card, after asking for confirmation."""

    def __init__(self, workspace: Workspace, parent: QWidget) -> None:
        super().__init__(parent)
        self._workspace, self._parent = workspace, parent
        self.box: QMessageBox | None = None

    def ask(self, process: CardProcess) -> None:
        """Ask whether to end `process`; if that is not permitted, show why in the banner."""
        refusal = termination_refusal(process, may_end_others=self._may_end_others)
        if refusal or process.host is None:
            self._workspace.failed.emit(PlannerError(f"Process {process.pid} cannot be ended from here.", refusal))
            return
        started = clock_time(process.host.started_seconds)
        text = f"End process {process.pid}?\n\n{process.host.command or process.host.name}"
        details = f"It belongs to {process.host.user} and was started at {started}. Unsaved data will be lost."
        force = QCheckBox("&Kill it immediately, without letting it clean up")
        box = confirmation(
            "End this process?",
            text,
            details,
            QPushButton("&End it"),
            self._parent,
            lambda agreed: self._on_answer(process, agreed, force.isChecked()),
        )
        box.setCheckBox(force)
        self.box = box
        box.open()

    @property
    def _may_end_others(self) -> bool:
        return self._workspace.settings.current.monitor.may_end_others

    def _on_answer(self, process: CardProcess, agreed: bool, by_force: bool) -> None:
        box, self.box = self.box, None
        if box is not None:
            box.deleteLater()
        if agreed:
            with self._workspace.reporting():
                terminate(process, may_end_others=self._may_end_others, by_force=by_force)


class Processes(QWidget):
    """Table of the processes on the cards, with a search; `summarised` carries their number and memory as a text."""

    summarised = Signal(str)

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self._workspace = workspace
        self._model = RecordTableModel(DETAILED_PROCESS_COLUMNS, process_row_id, self)
        default_layout = TableLayout(
            shown=tuple(column.key for column in DETAILED_PROCESS_COLUMNS), sort_key="memory", descending=True
        )
        self.table = RecordTable(self._model, theme, default_layout, name="Processes")
        self.search = QLineEdit(clearButtonEnabled=True, placeholderText="Search processes (Ctrl+F)")
        self.search.setToolTip("Show only processes whose line contains this text")
        self.search.setAccessibleName("Search processes")
        self.only_own = QCheckBox("O&nly mine")
        self.only_own.setToolTip("Hide the processes of other users")
        self.end = push_button("End process…", "End the selected process, after you confirm.")
        self._copy = QPushButton("Cop&y")
        self._copy.setToolTip("Copy the selected processes")
        self.kill_process = KillProcess(workspace, self)
        self._empty = make_label("No process is known to use a GPU.", "muted")
        self._lay_out(theme)
        self._connect()
        if (layout := workspace.settings.current.tables.get(_TABLE)) is not None:
            self.table.arrange(layout)
        self.set_live(True)

    def set_live(self, is_live: bool) -> None:
        """Allow ending processes only if live readings are displayed (`is_live`)."""
        self._is_live = is_live
        self._update_end_button()

    def show_processes(self, latest: Latest) -> None:
        """Show the running processes; selection and scroll position are kept."""
        rows = process_rows(latest)
        if rows != self._model.all_records:
            bar = self.table.verticalScrollBar()
            before = bar.value()
            self._model.set_records(rows)
            bar.setValue(before)
        self._fit_height(len(rows))
        self._empty.setVisible(not rows)
        self.table.setVisible(bool(rows))
        self.summarised.emit(_summary_text(rows))
        self._update_end_button()

    def copy(self) -> None:
        """Copy the selected rows, or all rows if none is selected."""
        if not self.table.selected_records:
            self.table.selectAll()
        self.table.copy_selected()

    def _fit_height(self, rows: int) -> None:
        """Set the height of the table to fit `rows` rows: the tab scrolls, not the table in it."""
        row = self.table.verticalHeader().defaultSectionSize()
        # There may be a horizontal scroll bar below the rows.
        edges = self.table.horizontalHeader().sizeHint().height() + self.table.horizontalScrollBar().sizeHint().height()
        self.table.setFixedHeight(edges + row * max(rows, _LEAST_ROWS))

    def _lay_out(self, theme: Theme) -> None:
        bar = in_row((self.search, 1), self.only_own, self._copy, self.end, spacing=theme.spacing.small)
        self.search.setMaximumWidth(360)
        bar.insertStretch(1, 1)
        in_column(bar, self._empty, (self.table, 1), owner=self, margins=None, spacing=theme.spacing.small)
        self._fit_height(0)
        self.table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)

    def _connect(self) -> None:
        self.search.textChanged.connect(self._apply_filter)
        self.only_own.toggled.connect(self._apply_filter)
        self.end.clicked.connect(self._end_selected_process)
        self._copy.clicked.connect(self.copy)
        self.table.current_changed.connect(self._update_end_button)
        self.table.selectionModel().selectionChanged.connect(self._update_end_button)
        self.table.customContextMenuRequested.connect(self._open_context_menu)
        self.table.arranged.connect(self._store_layout)

    @Slot()
    def _apply_filter(self) -> None:
        text, only_own = self.search.text(), self.only_own.isChecked()
        self._model.set_filter(lambda rows: matching_process_ids(rows, text, only_own=only_own))

    @Slot()
    def _update_end_button(self) -> None:
        self.end.setEnabled(self._is_live and len(self.table.selected_records) == 1)

    @Slot()
    def _end_selected_process(self) -> None:
        self.kill_process.ask(self.table.selected_records[0].process)

    @Slot(QPoint)
    def _open_context_menu(self, where: QPoint) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction("Copy", self.copy)
        end = menu.addAction("End process…", self._end_selected_process)
        end.setEnabled(self.end.isEnabled())
        menu.popup(self.table.viewport().mapToGlobal(where))

    @Slot()
    def _store_layout(self) -> None:
        self._workspace.settings.keep_table(_TABLE, self.table.layout_now())


def _summary_text(rows: Sequence[ProcessRow]) -> str:
    if not rows:
        return "none"
    used = sum(row.process.memory_bytes.value or 0 for row in rows if row.process.is_reliable)
    count = len({row.process.pid for row in rows})
    noun = "process" if count == 1 else "processes"
    return f"{fmt.integer(count)} {noun}" + (f", {fmt.significant(used / GIB)}{fmt.THIN}GiB" if used else "")
