"""List of the cards on which the plan fits, cheapest first, or what to do if there is none."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QPushButton, QWidget

from planner.gui.theme import Theme
from planner.gui.widgets.buttons import push_button
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import STRETCH, in_column, in_row
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.tables.record_table import RecordTable
from planner.gui.workspace import Workspace
from planner.plan.evaluate import find_fits, fits_by_gpu
from planner.plan.prices import buying_prices
from planner.present import format as fmt
from planner.present.catalog.gpu_columns import BUYING_COLUMN
from planner.present.catalog.gpu_row import GpuRow
from planner.present.columns import Column, number_column, text_column
from planner.present.memory.verdict import VERDICT_TITLES, margin_text
from planner.present.plan.phrase import work_phrase


def _gib_column(
    key: str, title: str, get_bytes: Callable[[GpuRow], int | None], width: int, about: str
) -> Column[GpuRow]:
    return number_column(
        key,
        title,
        get_bytes,
        unit="GiB",
        show=lambda value: fmt.gib(round(value)),
        unknown=fmt.UNKNOWN,
        width=width,
        about=about,
    )


_COLUMNS: Final[tuple[Column[GpuRow], ...]] = (
    text_column("name", "GPU", lambda row: row.gpu.name, width=34, about="GPU on which the plan fits"),
    BUYING_COLUMN,
    _gib_column("memory", "Memory", lambda row: row.gpu.memory_bytes, 12, about="Memory of the GPU"),
    _gib_column(
        "usable",
        "Usable",
        lambda row: row.usable.bytes if row.usable else None,
        11,
        about="Memory that a program can allocate on an otherwise empty GPU",
    ),
    _gib_column("free", "Free", lambda row: row.free_bytes, 9, about="Usable memory that the plan leaves"),
    text_column(
        "verdict",
        "Verdict",
        lambda row: VERDICT_TITLES[row.verdict] if row.verdict else None,
        width=9,
        about="Whether the plan fits, and how surely",
    ),
)


class FittingCards(QWidget):
    """List of the cards on which the plan fits; a double click or Enter puts a card into the plan and emits `done`.

    If there is none, it names the closest card and offers ways on; `advice_requested` asks for what would help.
    """

    done = Signal()
    advice_requested = Signal()

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self._workspace = workspace
        self._heading = make_label(font=theme.font(bold=True), wrap=True)
        self.model = RecordTableModel(_COLUMNS, lambda row: row.gpu.id, self)
        self.table = RecordTable(self.model, theme)
        self.table.sort_by(BUYING_COLUMN.key)
        self._use_button = push_button("&Use this GPU", role="primary")
        self._show_button = QPushButton("Show in the &catalog")
        self._advice_button = push_button("What &would help", "Show changes to the plan that make it fit.", "primary")
        self._choose_button = push_button(
            "Choose &hardware…", "Look for several GPUs, machines and rentals on which the plan fits."
        )
        self._use_button.setToolTip("Put the selected GPU into the plan.")
        self._show_button.setToolTip("Show all figures of these GPUs in the Catalog tab.")
        self.setFocusProxy(self.table)
        self._list, self._alternatives = QWidget(), QWidget()
        in_column((self.table, 1), in_row(self._show_button, STRETCH, self._use_button), owner=self._list)
        in_column(in_row(self._advice_button, self._choose_button, STRETCH), STRETCH, owner=self._alternatives)
        in_column(self._heading, (self._list, 1), (self._alternatives, 1), owner=self, margins=theme.spacing.tiny)
        self.table.record_activated.connect(self._use_card)
        self._use_button.clicked.connect(self._use_current_card)
        self._show_button.clicked.connect(self._show_in_catalog)
        self._advice_button.clicked.connect(self._ask_for_advice)
        self._choose_button.clicked.connect(self._choose_hardware)

    def refresh(self) -> None:
        """Find the cards on which the current plan fits."""
        plan, hardware = self._workspace.plan, self._workspace.catalog.hardware
        prices = buying_prices(self._workspace.catalog, datetime.now(UTC).date())
        rows = []
        for fit in find_fits(plan, self._workspace.catalog):
            gpu = hardware.gpu(fit.gpu_id)
            usable, price = hardware.usable_memory(gpu), prices.get(gpu.id)
            rows.append(GpuRow(gpu, fit.verdict, fit.free_bytes, usable=usable, buying=price))
        count = "" if plan.count == 1 else f" ({fmt.integer(plan.count)} of each)"
        phrase = f"{plan.model.id}: {work_phrase(self._workspace.evaluation)}"
        found = f"{fmt.plural(len(rows), 'suitable GPU')}{count} for {phrase}."
        self._heading.setText(found if rows else f"No GPU in the catalog{count} fits {phrase}. {self._closest_card()}")
        self._list.setVisible(bool(rows))
        self._alternatives.setVisible(not rows)
        self.setFocusProxy(self.table if rows else self._advice_button)
        self._choose_button.setVisible(not plan.workload.gpus)
        self.table.setAccessibleName(self._heading.text())
        self.model.set_records(rows)
        self.table.mark(plan.gpu)
        if rows:
            self.table.choose(self._first_choice().id)

    def _first_choice(self) -> GpuRow:
        """Return the cheapest card that surely fits, or the first in the list if none is sure."""
        shown = self.model.records
        return next((row for row in shown if row.verdict == "fits"), shown[0])

    def _closest_card(self) -> str:
        """Return the card on which the least memory is missing, in one sentence; empty if no card can run the plan."""
        fits = fits_by_gpu(self._workspace.plan, self._workspace.catalog).values()
        judged = [(fit.free_bytes, fit.gpu_id) for fit in fits if fit.verdict and fit.free_bytes is not None]
        if not judged:
            return "No GPU in it can run the plan."
        free_bytes, gpu_id = max(judged)
        return f"The closest is {self._workspace.catalog.hardware.gpu(gpu_id).name}: {margin_text(free_bytes)}."

    @Slot()
    def _ask_for_advice(self) -> None:
        self.done.emit()
        self.advice_requested.emit()

    @Slot()
    def _choose_hardware(self) -> None:
        self.done.emit()
        self._workspace.navigator.hardware_requested.emit()

    @Slot()
    def _use_current_card(self) -> None:
        self._use_card(self.table.current_record)

    @Slot(object)
    def _use_card(self, row: object) -> None:
        if isinstance(row, GpuRow):
            with self._workspace.step():
                self._workspace.answer("GPU", {"gpu": row.gpu.id})
            self.done.emit()

    @Slot()
    def _show_in_catalog(self) -> None:
        self.done.emit()
        self._workspace.navigator.fitting_cards_requested.emit()
