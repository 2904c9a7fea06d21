"""Whole machines: a table, and the details of one with its accelerator."""

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QWidget

from planner.gui.catalog.describe import Described, describe_system
from planner.gui.catalog.lookups import Lookups
from planner.gui.catalog.page import Page
from planner.gui.theme import Theme
from planner.gui.widgets.cells import Mark
from planner.gui.widgets.label import make_label
from planner.gui.widgets.table_layout import default_layout
from planner.gui.widgets.verdict_badge import verdict_mark
from planner.gui.workspace import Workspace
from planner.plan.evaluate import Evaluation
from planner.plan.system_fits import fits_by_system
from planner.present.flat_records import SYSTEM_FIELDS, system_fields
from planner.present.systems import SYSTEM_COLUMNS, SystemRow, system_rows, systems_sentence

_PANES: Final = (852, 278)
_MARKS: Final = {verdict: Mark(*verdict_mark(verdict)) for verdict in ("fits", "tight", "does-not-fit", None)}


class SystemPage(Page):
    """The systems of the catalog, judged by the plan; using one takes its accelerators into it, as many as it has.

    What `lookups` reads for the cards tells when there are prices to show.
    """

    key = "systems"
    title = "Systems"
    noun = "system"
    export_fields = SYSTEM_FIELDS

    def __init__(self, workspace: Workspace, theme: Theme, lookups: Lookups) -> None:
        usual = default_layout(SYSTEM_COLUMNS, sort_key="name")
        super().__init__(workspace, theme, SYSTEM_COLUMNS, usual, {"fits": lambda row: _MARKS[row.verdict]})
        self._lookups = lookups
        self._nothing = make_label(role="muted", wrap=True)
        self._nothing.setContentsMargins(*(theme.spacing.huge,) * 4)
        self.results.addWidget(self._nothing)
        self.splitter.addWidget(self.results)
        self.splitter.addWidget(self.detail)
        self.splitter.setStretchFactor(0, 1)
        self.model.set_records(system_rows(workspace.catalog.hardware))
        self.restore(_PANES)
        lookups.found.connect(self._on_found)

    def describe(self, record: SystemRow) -> Described:
        """Return what to say of a system."""
        today = None if self._lookups.prices is None else self._lookups.today()
        return describe_system(record, self.workspace.plan, self.workspace.catalog, today)

    def use(self, record: SystemRow) -> None:
        """Put the system's accelerators into the plan."""
        if record.gpu is None:
            return
        with self.workspace.reporting():
            label = self.tr("cards of %1").replace("%1", record.system.name)
            self.workspace.answer(label, {"gpu": record.gpu.id, "count": record.system.gpu_count or 1})

    def refresh(self, evaluation: Evaluation) -> None:
        """Judge every system by the plan."""
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

    def search(self, text: str) -> None:
        """Show only systems whose name, vendor or accelerator have every word of `text`."""
        words = text.lower().split()

        def keep(rows: Sequence[SystemRow]) -> frozenset[str]:
            return frozenset(row.id for row in rows if all(word in row.search_text for word in words))

        self.model.set_filter(keep)
        self._nothing.setText(self.tr("No system has “%1” in its name, vendor or accelerator.").replace("%1", text))
        self.show_rows()

    def nothing(self) -> QWidget:
        """Return what says that the search finds nothing."""
        return self._nothing

    def export_rows(self) -> list[dict[str, object]]:
        """Return the systems that are shown, as flat rows with sources."""
        return [system_fields(row) for row in self.model.records]

    def _judge(self) -> None:
        plan, catalog = self.workspace.plan, self.workspace.catalog
        software = () if self._lookups.prices is None else catalog.software  # read with the prices, beside this thread
        self.model.set_records(system_rows(catalog.hardware, fits_by_system(plan, catalog), software))
        self.show_rows()

    @Slot()
    def _on_found(self) -> None:
        self._judge()
        self.describe_current()
