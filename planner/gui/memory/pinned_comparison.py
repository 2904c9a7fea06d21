"""Comparison of the plan with the pinned plan: bars on one scale, changed settings, and a table of the memory parts."""

from collections.abc import Callable
from functools import cached_property
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import QWidget

from planner.gui.memory.devices import gib_column
from planner.gui.memory.stacked_bar import StackedBar, bar_end_bytes
from planner.gui.tab import PinButtons
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import IconButton
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import in_column, in_row
from planner.gui.widgets.result_menu import ResultFormats, ResultMenu, picture_of
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.tables.record_table import RecordTable, show_rows
from planner.gui.workspace import Workspace
from planner.plan.comparison import PlanComparison, compare_evaluations
from planner.plan.evaluate import Evaluation
from planner.present import format as fmt
from planner.present.columns import Column, rows_to_csv, text_column
from planner.present.memory.comparison import VersusRow, VersusView, versus_view


def _size_column(
    key: str,
    title: str,
    get_bytes: Callable[[VersusRow], int | None],
    cell_text: Callable[[VersusRow], str],
    about: str,
) -> Column[VersusRow]:
    return gib_column(key, title, get_bytes, cell_text, 16, "phase does not occur", about)


VERSUS_COLUMNS: Final[tuple[Column[VersusRow], ...]] = (
    text_column("part", "Part", lambda row: row.title, width=26, about="Part of the memory, or phase"),
    _size_column(
        "plan", "This plan", lambda row: row.bytes, lambda row: row.gib_texts[0], about="Size in the current plan"
    ),
    _size_column(
        "pinned",
        "Pinned plan",
        lambda row: row.other_bytes,
        lambda row: row.gib_texts[1],
        about="Size in the pinned plan",
    ),
    _size_column(
        "difference",
        "Difference",
        lambda row: row.difference_bytes,
        lambda row: row.gib_texts[2],
        about="Current plan minus pinned plan",
    ),
)

_NEXT_STEP: Final = "This plan is pinned. Now change a setting on the left; the difference appears here."
_NO_NUMBERS: Final = "The memory of the two plans cannot be compared in numbers."


class VersusPanel(QWidget):
    """Comparison with the pinned plan, hidden without a pinned plan; `activated` carries a clicked memory term."""

    activated = Signal(str)

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self._workspace = workspace
        self._found: PlanComparison | None = None
        self.view: VersusView | None = None
        self.sentence = make_label(font=theme.font(bold=True), wrap=True, selectable=True)
        self.export = IconButton(theme, "save", "Copy or save the comparison")
        self.pin_buttons = PinButtons(workspace, theme, self.export)
        self._here, self._there = make_label(role="muted", wrap=True), make_label(role="muted", wrap=True)
        self.answer = make_label(wrap=True, selectable=True)
        self.bars = (StackedBar(theme), StackedBar(theme))
        self.bars[1].setAccessibleName("Memory breakdown on one GPU, pinned plan")
        self.settings = make_label(wrap=True, selectable=True)
        self._model = RecordTableModel(VERSUS_COLUMNS, lambda row: f"{row.kind} {row.name}", self)
        self._theme = theme
        self._margin = theme.spacing.medium
        self._add_export_menu(workspace)
        self._lay_out(theme)
        self.hide()
        self.bars[0].activated.connect(self.activated)

    @cached_property
    def table(self) -> RecordTable:
        """Return the comparison table, built when a plan is first pinned."""
        table = RecordTable(self._model, self._theme, name="Memory of both plans by part")
        self._column.addWidget(table)
        return table

    def set_evaluation(self, evaluation: Evaluation) -> None:
        """Compare the current plan with the pinned plan, if a plan is pinned."""
        other = self._workspace.pin.evaluation
        self.setVisible(other is not None)
        if other is None:
            self._found = self.view = None
            return
        self._found = compare_evaluations(evaluation, other)
        self.view = versus_view(evaluation, self._found, self._workspace.catalog, "the pinned plan")
        self._show_comparison(self.view)

    def picture(self) -> QPixmap:
        """Return a picture of the comparison, without the buttons."""
        self.pin_buttons.hide()
        picture = picture_of(self, self.rect(), self._margin)
        self.pin_buttons.show()
        return picture

    def _show_comparison(self, view: VersusView) -> None:
        is_same = self._workspace.plan == self._workspace.pin.plan
        self.sentence.setText(fmt.unbroken(_NEXT_STEP if is_same else view.sentence or _NO_NUMBERS))
        self._here.setText(f"This plan: {view.subject}")
        self._there.setText(f"Pinned plan: {view.other_subject}")
        self.answer.setText(view.other.headline)
        self.settings.setText("; ".join(view.settings) + ".")
        scale_end_bytes = max(bar_end_bytes(view.view), bar_end_bytes(view.other))
        for bar, shown in zip(self.bars, (view.view, view.other), strict=True):
            bar.setVisible(shown.supported)
            if shown.supported:
                bar.set_view(shown, scale_end_bytes)
        self.table.setVisible(bool(view.rows))
        self._model.set_records(view.rows)
        show_rows(self.table, len(view.rows))
        self.pin_buttons.refresh()

    def _plain_text(self) -> str:
        return "" if self.view is None else self.view.as_text()

    def _csv_text(self) -> str:
        return "" if self.view is None else rows_to_csv(self.view.csv_rows())

    def _json_text(self) -> str:
        return "" if self._found is None else self._found.model_dump_json(indent=2)

    def _add_export_menu(self, workspace: Workspace) -> None:
        self.menu = ResultMenu(
            ResultFormats(self._plain_text, self._csv_text, self._json_text, self.picture), "comparison", self
        )
        self.menu.failed.connect(workspace.failed)
        self.export.set_menu(self.menu)

    def _lay_out(self, theme: Theme) -> None:
        head = in_row((self.sentence, 1), (self.pin_buttons, 0, Qt.AlignmentFlag.AlignTop), spacing=theme.spacing.small)
        small = theme.spacing.small
        here, there = (self._here, self.bars[0]), (self._there, self.answer, self.bars[1])
        items = (head, self.settings, small, *here, small, *there, small)
        self._column = in_column(*items, owner=self, spacing=theme.spacing.tiny)
