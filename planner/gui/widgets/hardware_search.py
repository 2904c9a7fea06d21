"""Base of the dialogs that search hardware in the background, and search again when a choice changes."""

from collections.abc import Callable, Sequence
from datetime import date
from typing import Any, Final

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtGui import QCloseEvent, QGuiApplication
from PySide6.QtWidgets import QDialog, QProgressBar, QPushButton, QWidget

from planner.errors import PlannerError
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme, set_style_role
from planner.gui.widgets.buttons import push_button
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import InReadingOrder
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.tables.record_table import RecordTable
from planner.gui.workspace import Workspace
from planner.present.columns import Column, rows_to_csv

REST_MS: Final = 250
RENT_OR_OWN_CHOICES: Final = ((("rent", "own"), "rented or owned"), (("rent",), "rented"), (("own",), "owned"))
CARD_COUNTS: Final = (((1,), "one"), ((1, 2), "up to 2"), ((1, 2, 4), "up to 4"), ((1, 2, 4, 8), "up to 8"))


class HardwareSearchDialog(InReadingOrder, QDialog):
    """Non-modal dialog with a search's progress, a sentence, a table of options, and a button that applies one.

    `search_finished` follows each search. `task_key` names the search among the window's tasks.
    """

    search_finished = Signal()
    task_key: str

    def __init__(
        self,
        workspace: Workspace,
        theme: Theme,
        tasks: TaskRunner,
        parent: QWidget,
        today: Callable[[], date],
        columns: Sequence[Column[Any]],
        table_name: str,
    ) -> None:
        super().__init__(parent)
        self._workspace, self._theme, self._tasks, self._today = workspace, theme, tasks, today
        self.sentence = make_label(font=theme.font(bold=True), wrap=True, selectable=True)
        self.about = make_label(role="muted", font=theme.font("small"), wrap=True, selectable=True)
        self.progress = QProgressBar()
        self.progress.setTextVisible(False)
        self.progress.setFixedHeight(theme.spacing.small)
        self.progress.setAccessibleName("Searching")
        self.stop = push_button("St&op", "Stop the search and keep what it found")
        self.model = RecordTableModel(columns, lambda row: row.id, self)
        self.table = RecordTable(self.model, theme, name=table_name)
        self._use = push_button("&Use the selected option", "Make the selected option the plan")
        self._use.setEnabled(False)
        self._copy = push_button("&Copy", "Copy the answer and the table, as text and CSV")
        self._rest = QTimer(self, singleShot=True, interval=REST_MS)
        self._rest.timeout.connect(self.search)
        self.stop.clicked.connect(self.end)
        self.table.record_activated.connect(lambda row: self.use(row.option))
        self.table.current_changed.connect(lambda row: self._use.setEnabled(row is not None))
        self._use.clicked.connect(self._use_selected)
        self._copy.clicked.connect(self.copy)

    def search(self) -> None:
        """Search again in the background; options are shown as they are found."""
        raise NotImplementedError

    def use(self, option: Any) -> None:  # noqa: ANN401  # each search has options of its own
        """Make an option the plan in one undo step, and close."""
        raise NotImplementedError

    def texts(self) -> tuple[str, ...]:
        """Return the texts above the table, for the clipboard."""
        raise NotImplementedError

    @property
    def has_found(self) -> bool:
        """Return whether the search has found anything so far."""
        raise NotImplementedError

    @Slot()
    def copy(self) -> None:
        """Copy the texts and the table to the clipboard."""
        columns = self.table.visible_columns
        rows = [tuple(column.header for column in columns)]
        rows += [tuple(column.text(row) for column in columns) for row in self.model.records]
        QGuiApplication.clipboard().setText("\n\n".join(filter(None, (*self.texts(), rows_to_csv(rows)))))

    @Slot()
    def end(self) -> None:
        """Cancel the search; what was found stays."""
        self._rest.stop()
        self._tasks.cancel(self.task_key)
        self._set_busy(busy=False)
        if not self.has_found:
            self._tell("The search was stopped before anything was found.", "muted")

    def closeEvent(self, event: QCloseEvent) -> None:
        """Cancel the search."""
        self.end()
        super().closeEvent(event)

    def done(self, result: int) -> None:
        """Cancel the search."""
        self.end()
        super().done(result)

    def _set_busy(self, *, busy: bool) -> None:
        if busy:
            self.progress.setRange(0, 0)
        for part in (self.progress, self.stop):
            part.setVisible(busy)

    def _tell(self, text: str, role: str) -> None:
        """Show a sentence as the answer, or none."""
        set_style_role(self.sentence, role)
        self.sentence.setText(text)
        self.sentence.setVisible(bool(text))

    def _show_error(self, error: BaseException) -> None:
        self._set_busy(busy=False)
        if not isinstance(error, PlannerError):
            raise error
        self._tell(f"{error.message} {error.hint}".strip(), "bad")
        self.search_finished.emit()

    @Slot()
    def _use_selected(self) -> None:
        row = self.model.find(self.table.current_id)
        if row is not None:
            self.use(row.option)

    def _keep_enter_from_buttons(self) -> None:
        """Let Enter in a field search; it neither takes an option nor closes."""
        for button in self.findChildren(QPushButton):
            button.setAutoDefault(False)
