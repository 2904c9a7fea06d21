"""Catalog page of accelerators: filters, table and the details of a card."""

from dataclasses import replace
from typing import Final

from PySide6.QtCore import Slot
from PySide6.QtGui import QAction

from planner.gui.catalog.describe import RecordSummary, describe_gpu
from planner.gui.catalog.filters import CatalogFilter
from planner.gui.catalog.lookups import Lookups
from planner.gui.catalog.own_cards import OwnCards
from planner.gui.catalog.page import Page
from planner.gui.settings import TableLayout
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.widgets.labels import make_label
from planner.gui.workspace import Workspace
from planner.hardware.gpu import Gpu
from planner.hardware.kinds import describe_kinds
from planner.hardware.names import systems_named
from planner.hardware.power import CIRCUITS, DEFAULT_CIRCUIT
from planner.plan.evaluate import Evaluation, fits_by_gpu
from planner.present import format as fmt
from planner.present.catalog.column_sets import COLUMN_GROUPS, COLUMN_SETS
from planner.present.catalog.detected_cards import NO_CARDS, detect_cards
from planner.present.catalog.gpu_columns import GPU_COLUMNS, buying_phrase, lower_is_better
from planner.present.catalog.gpu_row import GpuRow, gpu_rows
from planner.present.catalog.records import GPU_FIELDS, gpu_fields

_PANE_WIDTHS: Final = (180, 714, 236)
_DEFAULT_COLUMNS: Final = (
    *("name", "fits", "buy", "job_time", "memory", "bandwidth", "job_cost", "bf16", "power", "fp32", "fp8", "year"),
    *("vendor", "segment", "architecture"),
)


class GpuPage(Page):
    """Cards of the catalog with the plan's verdict, job time and job cost; cards in this machine are on top."""

    key = "accelerators"
    title = "Accelerators"
    noun = "accelerator"
    export_fields = GPU_FIELDS
    everything = CatalogFilter()
    saved_in = "filters"
    column_groups = COLUMN_GROUPS
    column_sets = COLUMN_SETS

    def __init__(self, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> None:
        default_layout = TableLayout(shown=_DEFAULT_COLUMNS, sort_key="fits", descending=True)
        lookups = Lookups(workspace, tasks)
        super().__init__(workspace, theme, lookups, GPU_COLUMNS, default_layout, price_key="buy")
        lookups.setParent(self)
        self.own = OwnCards(workspace, theme, self, self._current_gpu, self.table.choose)
        self.here = make_label(role="muted", wrap=True)
        self.here.setIndent(theme.spacing.small)
        self._here = NO_CARDS
        self.middle.insertWidget(0, self.here)
        workspace.devices_found.connect(self._on_devices_detected)
        change = QAction("Your &figures…", self.table)
        change.triggered.connect(self.own.ask_change)
        self.table.addAction(change)
        self.restore(_PANE_WIDTHS)

    def describe(self, record: GpuRow) -> RecordSummary:
        """Return the details of a card."""
        chosen = CIRCUITS.get(self.workspace.settings.current.catalog.circuit, DEFAULT_CIRCUIT)
        return describe_gpu(record, self.workspace.plan, self.workspace.catalog, chosen)

    def use(self, record: GpuRow) -> None:
        """Put the card into the plan."""
        with self.workspace.reporting():
            self.workspace.answer(f"GPU {record.gpu.name}", {"gpu": record.id})

    def name_and_price(self, record: GpuRow) -> tuple[str, float | None]:
        """Return the name of a card and what it costs to buy in US dollars."""
        return record.gpu.name, None if record.buying is None else record.buying.value

    def can_be_combined(self, record: GpuRow) -> bool:
        """Return whether as many of a card as the plan needs can work on one model; whole computers cannot."""
        return self.workspace.plan.count == 1 or not record.gpu.is_whole_computer

    def price_phrase(self, record: GpuRow) -> str:
        """Return what as many of a card as the plan has cost to buy, with the year, and whether that was at launch."""
        if record.buying is None:
            return ""
        count, each = self.workspace.plan.count, buying_phrase(record.buying, record.gpu)
        return each if count == 1 else f"{count} for {fmt.rounded_money(count * record.buying.value)} at {each}"

    def each_text(self) -> str:
        """Return how many of each card the plan is for, if it is for several."""
        count = self.workspace.plan.count
        return f" ({fmt.integer(count)} of each)" if count > 1 else ""

    def planned(self) -> str | None:
        """Return the id of the plan's card."""
        return self.workspace.plan.gpu

    def export_rows(self) -> list[dict[str, object]]:
        """Return the shown cards as flat rows with sources."""
        return [gpu_fields(row) for row in self.model.records]

    def refresh(self, evaluation: Evaluation) -> None:
        """Update every card's verdict for the plan."""
        self.table.mark(self.workspace.plan.gpu)
        self.lookups.follow()
        self._find_cards_here()
        super().refresh(evaluation)

    def show_fitting(self) -> None:
        """Show only the cards on which the plan fits, with the plan's own selected if it is one, else the first."""
        self.narrow(CatalogFilter(only_fitting=True), "only_fitting")
        self.table.scrollToTop()
        if self.model.rowCount():
            planned = self.workspace.plan.gpu
            if planned is None or self.model.row_of(planned) is None:
                planned = self.model.identify(self.model.record(0))
            # The best choices stay in view, also when prices that arrive later sort the rows.
            self.table.choose(planned, scrolls=False)

    def show_columns(self, name: str) -> None:
        """Show a named set of columns."""
        self.table.show_columns(COLUMN_SETS[name])

    def sort_by_best(self, key: str) -> None:
        """Show the column `key`, sort by it with the best record on top, and select the best record."""
        self.table.show_column(key, shown=True)
        self.table.sort_by(key, descending=not lower_is_better(key))
        if self.model.records:
            self.table.choose(self.model.records[0].id)
        self.table.scrollToTop()
        self.table.setFocus()

    def use_circuit(self, key: str) -> None:
        """Show the cards' power needs for the electrical circuit `key`, and store the circuit in the settings."""
        self.workspace.settings.update_catalog(circuit=key)
        self.describe_current()

    def about(self, text: str) -> str:
        """Explain why the table lacks what the search `text` names: FPGAs and the like, or a system."""
        systems = systems_named(self.workspace.catalog.hardware, text)
        if systems:
            return f"The systems have this name: {', '.join(each.name for each in systems)}."
        return describe_kinds(text)

    def rows_without_verdicts(self) -> list[GpuRow]:
        """Return a table row for every card; the rows have no verdicts of the plan."""
        return [GpuRow(gpu) for gpu in self.workspace.catalog.hardware.gpus]

    def rows_with_verdicts(self) -> list[GpuRow]:
        """Return a table row for every card, with verdict, prices and job costs; cards in this machine are marked."""
        plan, catalog, known = self.workspace.plan, self.workspace.catalog, self.lookups
        software = () if known.prices is None else catalog.software  # loaded with the prices by the background thread
        rows = gpu_rows(catalog.hardware, fits_by_gpu(plan, catalog), known.jobs, known.prices, software, known.buying)
        here = self._here.words
        return [replace(row, here=here[row.id]) if row.id in here else row for row in rows]

    def _current_gpu(self) -> Gpu | None:
        row = self.model.find(self.table.current_id)
        return None if row is None else row.gpu

    def _find_cards_here(self) -> None:
        """Match the cards in this machine with the catalog, and list the matches first."""
        self._here = detect_cards(self.workspace.catalog.hardware, self.workspace.devices)
        self.model.set_first(self._here.words)
        self.here.setText(self._here.sentence)
        self.here.setToolTip(self._here.details)
        self.here.setVisible(bool(self._here.sentence))

    @Slot()
    def _on_devices_detected(self) -> None:
        self._find_cards_here()
        self.update_verdicts()
