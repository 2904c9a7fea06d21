"""Catalog page of whole systems: filters, table and the details of a system."""

from typing import Final

from planner.gui.catalog.describe import RecordSummary, describe_system
from planner.gui.catalog.filters import RecordFilter, RecordKind, round_stops
from planner.gui.catalog.lookups import Lookups
from planner.gui.catalog.page import Page
from planner.gui.settings import TableLayout
from planner.gui.theme import Theme
from planner.gui.workspace import Workspace
from planner.hardware.query import SystemQuery
from planner.hardware.query_fields import SYSTEM_QUERY_SCHEMA
from planner.plan.placement import fits_by_system
from planner.present.catalog.column_sets import SYSTEM_COLUMN_GROUPS
from planner.present.catalog.records import SYSTEM_FIELDS, system_fields
from planner.present.catalog.system_columns import SYSTEM_COLUMNS
from planner.present.catalog.system_row import SystemRow, system_rows

_COUNT_STOPS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
_DEFAULT_COLUMNS: Final = (
    *("name", "fits", "price", "memory", "cards", "bandwidth", "bf16", "power", "rent", "year"),
    *("accelerators", "kind", "vendor"),
)
_PANE_WIDTHS: Final = (206, 648, 276)


def _row_itself(row: SystemRow) -> SystemRow:
    """Return `row` unchanged: queries read the row of a system as its record."""
    return row


SYSTEMS: Final = RecordKind(
    noun="system",
    columns={column.key: column for column in SYSTEM_COLUMNS},
    words=SYSTEM_QUERY_SCHEMA,
    ranges=("cards", "memory", "memory_each", "bandwidth", "bf16", "link", "power", "price", "rent", "year"),
    record_of=_row_itself,
    first=("vendor", "kind"),
    scales={"cards": _COUNT_STOPS, "rent": round_stops([1, 20_000])},
    value_words={"price_kind": {kind: f"{kind} price" for kind in ("list", "street", "used")}},
    prefix="systems-",
)


class SystemFilter(RecordFilter):
    """Conditions that a system must meet to be shown in the catalog."""

    kind = SYSTEMS
    query: SystemQuery = SystemQuery()


class SystemPage(Page):
    """The systems of the catalog with the plan's verdict; using a system puts all its accelerators into the plan.

    `lookups` is shared with the accelerators' page and also provides the rental prices of systems.
    """

    key = "systems"
    title = "Systems"
    noun = "system"
    export_fields = SYSTEM_FIELDS
    everything = SystemFilter()
    saved_in = "system_filters"
    column_groups = SYSTEM_COLUMN_GROUPS

    def __init__(self, workspace: Workspace, theme: Theme, lookups: Lookups) -> None:
        layout = TableLayout(shown=_DEFAULT_COLUMNS, sort_key="fits", descending=True)
        super().__init__(workspace, theme, lookups, SYSTEM_COLUMNS, layout, price_key="price")
        self.model.set_records(self.rows_without_verdicts())
        self.restore(_PANE_WIDTHS)

    def describe(self, record: SystemRow) -> RecordSummary:
        """Return the details of a system."""
        return describe_system(record, self.workspace.plan, self.workspace.catalog)

    def use(self, record: SystemRow) -> None:
        """Put the system's accelerators into the plan."""
        if record.gpu is None:
            return
        with self.workspace.reporting():
            self.workspace.answer(
                f"GPUs of {record.system.name}", {"gpu": record.gpu.id, "count": record.system.gpu_count or 1}
            )

    def name_and_price(self, record: SystemRow) -> tuple[str, float | None]:
        """Return the name of a system and its price in US dollars."""
        return record.system.name, record.system.price_usd

    def planned(self) -> str | None:
        """Return the id of a system with the plan's kind and, if possible, number of cards."""
        plan = self.workspace.plan
        alike = [row for row in self.model.records if row.gpu is not None and row.gpu.id == plan.gpu]
        exact = [row for row in alike if row.system.gpu_count == plan.count]
        return next((row.id for row in (*exact, *alike)), None)

    def export_rows(self) -> list[dict[str, object]]:
        """Return the shown systems as flat rows with sources."""
        return [system_fields(row) for row in self.model.records]

    def rows_without_verdicts(self) -> tuple[SystemRow, ...]:
        """Return a table row for every system; the rows have no verdicts of the plan."""
        return system_rows(self.workspace.catalog.hardware)

    def rows_with_verdicts(self) -> tuple[SystemRow, ...]:
        """Return a table row for every system, with the plan's verdict and the system's rents."""
        plan, catalog, rents = self.workspace.plan, self.workspace.catalog, self.lookups.rents
        software = () if rents is None else catalog.software  # loaded with the prices by the background thread
        return system_rows(catalog.hardware, fits_by_system(plan, catalog), software, rents)
