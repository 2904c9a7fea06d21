"""Whole machines: facets, table, and the details of one with its accelerator."""

from typing import Final

from PySide6.QtCore import Slot

from planner.gui.catalog.describe import Described, describe_system
from planner.gui.catalog.faceted_page import FacetedPage
from planner.gui.catalog.lookups import Lookups
from planner.gui.catalog.system_filter import SystemFilter
from planner.gui.theme import Theme
from planner.gui.widgets.cells import Mark
from planner.gui.widgets.table_layout import default_layout
from planner.gui.widgets.verdict_badge import verdict_mark
from planner.gui.workspace import Workspace
from planner.plan.evaluate import Evaluation
from planner.plan.system_fits import fits_by_system
from planner.present.catalog.records import SYSTEM_FIELDS, system_fields
from planner.present.catalog.system_columns import SYSTEM_COLUMNS
from planner.present.catalog.system_row import SystemRow, system_rows, systems_sentence

_PANES: Final = (206, 648, 276)
_MARKS: Final = {verdict: Mark(*verdict_mark(verdict)) for verdict in ("fits", "tight", "does-not-fit", None)}


class SystemPage(FacetedPage):
    """The systems of the catalog, judged by the plan; using one takes its accelerators into it, as many as it has.

    What `lookups` reads for the cards tells what the systems are rented for, too.
    """

    key = "systems"
    title = "Systems"
    noun = "system"
    export_fields = SYSTEM_FIELDS
    everything = SystemFilter()
    saved_in = "system_filters"

    def __init__(self, workspace: Workspace, theme: Theme, lookups: Lookups) -> None:
        usual = default_layout(SYSTEM_COLUMNS, sort_key="name")
        rows = system_rows(workspace.catalog.hardware)
        super().__init__(workspace, theme, SYSTEM_COLUMNS, usual, {"fits": lambda row: _MARKS[row.verdict]}, rows)
        self._lookups = lookups
        self._values_of = workspace.catalog.hardware
        self.model.set_records(rows)
        self.restore(_PANES)
        lookups.found.connect(self._on_found)

    def describe(self, record: SystemRow) -> Described:
        """Return what to say of a system."""
        return describe_system(record, self.workspace.plan, self.workspace.catalog)

    def use(self, record: SystemRow) -> None:
        """Put the system's accelerators into the plan."""
        if record.gpu is None:
            return
        with self.workspace.reporting():
            label = "cards of %1".replace("%1", record.system.name)
            self.workspace.answer(label, {"gpu": record.gpu.id, "count": record.system.gpu_count or 1})

    def refresh(self, evaluation: Evaluation) -> None:
        """Judge every system by the plan."""
        if self._values_of is not self.workspace.catalog.hardware:
            self._values_of = self.workspace.catalog.hardware
            self.offer_values_of(system_rows(self._values_of))
        self._judge()
        super().refresh(evaluation)

    def sentence(self) -> str:
        """Return on how many systems the plan fits."""
        return systems_sentence(self.workspace.plan.model.id, self.model.all_records)

    def planned(self) -> str | None:
        """Return a system with the plan's cards, best as many of them; without one, the first row to begin with."""
        plan = self.workspace.plan
        alike = [row for row in self.model.records if row.gpu is not None and row.gpu.id == plan.gpu]
        exact = [row for row in alike if row.system.gpu_count == plan.count]
        first = self.model.records[:1] if self.table.current_id is None else ()
        return next((row.id for row in (*exact, *alike, *first)), None)

    def export_rows(self) -> list[dict[str, object]]:
        """Return the systems that are shown, as flat rows with sources."""
        return [system_fields(row) for row in self.model.records]

    def _judge(self) -> None:
        plan, catalog, rents = self.workspace.plan, self.workspace.catalog, self._lookups.rents
        software = () if rents is None else catalog.software  # read with the prices, beside this thread
        self.model.set_records(system_rows(catalog.hardware, fits_by_system(plan, catalog), software, rents))
        self.show_rows()
        self.count_facets()

    @Slot()
    def _on_found(self) -> None:
        self._judge()
        self.describe_current()
