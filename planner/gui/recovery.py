"""Dialog of the plans that other windows left without saving them, such as after a crash."""

from functools import partial
from typing import Final

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QFileDialog,
    QListWidget,
    QListWidgetItem,
    QWidget,
)

from planner.errors import PlannerError
from planner.gui.autosave import Autosave, FreeSession
from planner.gui.documents import PLAN_FILTER, Documents
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import push_button
from planner.gui.widgets.dialogs import closing_buttons, confirmation
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import in_column, in_row
from planner.gui.workspace import Workspace
from planner.plan.evaluate import evaluate
from planner.plan.files import save_plan
from planner.present.plan.phrase import plan_phrase

_WIDTH: Final = 640
_SAID: Final = (
    "These plans were open in windows that ended before they were saved. Those that you leave here stay, and "
    "File › Recover plans… offers them again."
)


class RecoveryDialog(QDialog):
    """Lists the plans that windows left, to open one in this window, to save it as a file, or to delete it."""

    def __init__(
        self, autosave: Autosave, documents: Documents, workspace: Workspace, theme: Theme, parent: QWidget
    ) -> None:
        super().__init__(parent)
        self._autosave, self._documents, self._workspace = autosave, documents, workspace
        self.setWindowTitle("Recover plans")
        self.list = QListWidget()
        self.list.setAccessibleName("Plans to recover")
        self.list.setWordWrap(True)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.open_here = push_button("&Open here", "Show the plan in this window", "primary")
        self.save = push_button("&Save as…", "Save the plan as a file, without opening it")
        self.delete = push_button("&Delete…", "Delete the plan for good")
        self.open_here.clicked.connect(self._open)
        self.save.clicked.connect(self._save)
        self.delete.clicked.connect(self._ask_deletion)
        self.list.itemActivated.connect(self._open)
        self.list.currentItemChanged.connect(self._update_buttons)
        buttons = closing_buttons(self)
        in_column(
            make_label(_SAID, wrap=True),
            (self.list, 1),
            in_row(self.open_here, self.save, self.delete, buttons),
            owner=self,
            margins=theme.spacing.medium,
        )
        self.setMinimumWidth(_WIDTH)
        self.fill()

    @Slot()
    def fill(self) -> None:
        """List the plans anew."""
        self.list.clear()
        for left in self._autosave.unsaved_plans():
            item = QListWidgetItem(self._row_text(left), self.list)
            item.setData(Qt.ItemDataRole.UserRole, left)
        if self.list.count():
            self.list.setCurrentRow(0)
            self.list.setFocus()
        else:
            QListWidgetItem("There are no plans to recover.", self.list).setFlags(Qt.ItemFlag.NoItemFlags)
        self._update_buttons()

    def _row_text(self, left: FreeSession) -> str:
        session = left.session
        try:
            what = plan_phrase(evaluate(session.plan, self._workspace.catalog), self._workspace.catalog)
        except PlannerError:
            what = f"{session.plan.model.id} (the catalog does not know its GPU or model)"
        file = "not saved in a file" if session.path is None else f"changes of {session.path}"
        return f"{what}\n{file}{_time_text(left)}"

    @property
    def _current(self) -> FreeSession | None:
        item = self.list.currentItem()
        left = None if item is None else item.data(Qt.ItemDataRole.UserRole)
        return left if isinstance(left, FreeSession) else None

    @Slot()
    def _update_buttons(self) -> None:
        for button in (self.open_here, self.save, self.delete):
            button.setEnabled(self._current is not None)

    @Slot()
    def _open(self) -> None:
        left = self._current
        if left is not None and self._documents.may_leave():
            self._autosave.show_unsaved_plan(left)
            self.accept()
            self._documents.check_file()

    @Slot()
    def _save(self) -> None:
        left = self._current
        if left is None:
            return
        name, _ = QFileDialog.getSaveFileName(self, "Save the plan", left.session.path or "", PLAN_FILTER)
        if name:
            with self._workspace.reporting():
                save_plan(name, left.session.plan)
                self._autosave.delete_unsaved_plan(left)
            self.fill()

    @Slot()
    def _ask_deletion(self) -> None:
        left = self._current
        if left is None:
            return
        yes = push_button("&Delete")
        details = self._row_text(left)
        box = confirmation(
            "Delete a plan", "Delete this plan for good?", details, yes, self, partial(self._delete_if_agreed, left)
        )
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.open()

    def _delete_if_agreed(self, left: FreeSession, agreed: bool) -> None:
        if agreed:
            self._autosave.delete_unsaved_plan(left)
            self.fill()


def _time_text(left: FreeSession) -> str:
    """Return when the plan was last saved by itself: ` · last changed on 2026-11-24 at 14:05`."""
    at = left.session.saved_at
    return "" if at is None else f" · {at.astimezone():last changed on %Y-%m-%d at %H:%M}"
