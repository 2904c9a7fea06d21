"""The accelerators: facets, table, and the details of one card."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import partial
from threading import Event
from typing import Final

from PySide6.QtCore import QTimer, Slot
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from planner.errors import PlannerError
from planner.gui.catalog.chips import ChipRow
from planner.gui.catalog.describe import Described, describe_gpu
from planner.gui.catalog.empty import EmptyResult
from planner.gui.catalog.export import gpu_fields
from planner.gui.catalog.facets import FacetPanel
from planner.gui.catalog.filters import CatalogFilter, NameSearch, conditions, culprit
from planner.gui.catalog.page import Page
from planner.gui.settings import TableLayout
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.widgets.cells import Mark
from planner.gui.widgets.verdict_badge import verdict_mark
from planner.gui.workspace import Workspace
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation, find_fits, fits_by_gpu
from planner.plan.plan import Plan
from planner.present.gpus import GPU_COLUMNS, GpuRow, JobWords, gpu_rows

_COUNT_DELAY_MS: Final = 50
_JOBS: Final = "catalog-jobs"
_JOBS_DELAY_MS: Final = 300
_PANES: Final = (190, 655, 285)
_SHOWN: Final = (
    *("name", "fits", "job_time", "job_cost", "memory", "bandwidth", "bf16", "power", "fp32", "fp8", "year", "price"),
    *("vendor", "segment", "architecture"),
)


class GpuPage(Page):
    """The cards of the catalog; the verdict in the second column follows the plan.

    What the plan's job takes and costs on each card is found in the background, and shown when it is ready; the next
    change of the plan ends that. `today` says on which day prices are looked at.
    """

    key = "accelerators"
    title = "Accelerators"
    noun = "accelerator"

    def __init__(
        self,
        workspace: Workspace,
        theme: Theme,
        tasks: TaskRunner,
        today: Callable[[], date] = lambda: datetime.now(UTC).date(),
    ) -> None:
        usual = TableLayout(shown=_SHOWN, sort_key="year", descending=True)
        super().__init__(workspace, theme, GPU_COLUMNS, usual, {"fits": _fits_mark})
        self._tasks, self._today = tasks, today
        self._jobs: Mapping[str, JobWords] = {}
        self._jobs_of: tuple[Plan, Catalog] | None = None
        self._asking = QTimer(self, singleShot=True, interval=_JOBS_DELAY_MS)
        self._asking.timeout.connect(self._ask_jobs)
        self._filter = CatalogFilter()
        self._latest = ""
        self._names = NameSearch(workspace.catalog.hardware.gpus)
        self.facets = FacetPanel(theme, workspace.settings, workspace.catalog.hardware.gpus)
        self.chips = ChipRow(theme)
        self.empty = EmptyResult(theme)
        self._middle = QStackedWidget()
        # The counts are for the eye that wanders to the side; the table answers a keystroke first.
        self._counting = QTimer(self, singleShot=True, interval=_COUNT_DELAY_MS)
        self._counting.timeout.connect(self._count)
        self._lay_out()
        self.facets.changed.connect(self.narrow)
        self.chips.lifted.connect(self.narrow)
        self.empty.lifted.connect(self.narrow)
        self.restore(_PANES)

    @property
    def filter(self) -> CatalogFilter:
        """Return what the table is narrowed to."""
        return self._filter

    def describe(self, record: GpuRow) -> Described:
        """Return what to say of a card."""
        return describe_gpu(record, self.workspace.plan, self.workspace.catalog)

    def use(self, record: GpuRow) -> None:
        """Put the card into the plan."""
        with self.workspace.reporting():
            self.workspace.answer(self.tr("card %1").replace("%1", record.gpu.name), {"gpu": record.id})

    def search(self, text: str) -> None:
        """Show only cards whose name, aliases, vendor or architecture have every word of `text`."""
        self.narrow(self._filter.with_query(text=text), "text")

    def planned(self) -> str | None:
        """Return the plan's card; a plan without one begins with the smallest card that it fits on."""
        plan, catalog = self.workspace.plan, self.workspace.catalog
        if plan.gpu is not None or self.table.current_id is not None:
            return plan.gpu
        fits = find_fits(plan, catalog)
        return fits[0].gpu_id if fits else None

    def export_rows(self) -> list[dict[str, object]]:
        """Return the cards that are shown, as flat rows with sources."""
        return [gpu_fields(row) for row in self.model.records]

    def refresh(self, evaluation: Evaluation) -> None:
        """Judge every card by the plan."""
        plan, catalog = self.workspace.plan, self.workspace.catalog
        self.table.mark(plan.gpu)
        asked = _without_card(plan)
        if self._jobs_of is None or self._jobs_of[0] != asked or self._jobs_of[1] is not catalog:
            self._jobs, self._jobs_of = {}, (asked, catalog)
            self._tasks.cancel(_JOBS)
            self._asking.start()
        self._show_rows()
        super().refresh(evaluation)

    def show_fitting(self) -> None:
        """Show only the cards that the plan fits on, the one with the least memory first."""
        self.table.sort_by("memory")
        self.narrow(CatalogFilter(only_fitting=True), "fits")
        self.table.scrollToTop()

    def narrow(self, wanted: CatalogFilter, latest: str = "") -> None:
        """Show only what passes `wanted`; `latest` is the key of the condition that was changed last."""
        text_before = self._filter.query.text
        self._filter, self._latest = wanted, latest
        self.model.set_filter(None if wanted == CatalogFilter() else self._passing)
        self._show_result()
        self._counting.start()
        self.facets.show_filter(wanted)
        self.chips.show_conditions([found for found in conditions(wanted) if found.key != "text"])
        if wanted.query.text != text_before:
            self.searched.emit(wanted.query.text)

    @Slot()
    def _ask_jobs(self) -> None:
        plan, catalog, stop = self.workspace.plan, self.workspace.catalog, Event()
        work = partial(_find_jobs, plan, catalog, self._today(), stop.is_set)
        self._tasks.run(_JOBS, work, self._take_jobs, _pass_over, stop.set)

    def _take_jobs(self, found: Mapping[str, JobWords] | None) -> None:
        if found is not None:
            self._jobs = found
            self._show_rows()

    def _show_rows(self) -> None:
        plan, catalog = self.workspace.plan, self.workspace.catalog
        self.model.set_records(gpu_rows(catalog.hardware, fits_by_gpu(plan, catalog), self._jobs))
        self._show_result()
        self._count()

    @Slot()
    def _count(self) -> None:
        wide = self._filter.with_query(text="")
        self.facets.show_counts(wide.counts(self._named()))

    def _passing(self, _rows: Sequence[GpuRow]) -> frozenset[str]:
        wide = self._filter.with_query(text="")
        if wide == CatalogFilter():
            return self._names.having(self._filter.query.text)
        return wide.passing(self._named())

    def _named(self) -> list[GpuRow]:
        names = self._names.having(self._filter.query.text)
        return [row for name in names if (row := self.model.find(name)) is not None]

    def _show_result(self) -> None:
        if self.model.rowCount():
            self._middle.setCurrentWidget(self.table)
        else:
            self.empty.explain(culprit(self._filter, self.model.all_records, self._latest))
            self._middle.setCurrentWidget(self.empty)

    def _lay_out(self) -> None:
        self._middle.addWidget(self.table)
        self._middle.addWidget(self.empty)
        middle = QWidget()
        column = QVBoxLayout(middle)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(self.theme.spacing.small)
        column.addWidget(self.chips)
        column.addWidget(self._middle, 1)
        for pane in (self.facets, middle, self.detail):
            self.splitter.addWidget(pane)
        self.splitter.setStretchFactor(1, 1)


def _without_card(plan: Plan) -> Plan:
    """Return what of `plan` decides about every card: its own is no part of that, unless a speed was measured."""
    return plan if plan.timing.measured is not None else plan.evolve(gpu=None)


def _find_jobs(plan: Plan, catalog: Catalog, today: date, stop: Callable[[], bool]) -> Mapping[str, JobWords] | None:
    """Return what the job takes and costs on each card, or None where nobody waits any more."""
    from planner.plan.job_costs import job_by_gpu  # not needed to draw the page, and loaded beside the window's thread
    from planner.present.card_jobs import job_words

    found = job_by_gpu(plan, catalog, today, stop)
    return None if found is None else job_words(found)


def _pass_over(error: BaseException) -> None:
    """Leave the columns empty where the plan itself is at fault, which the other tabs say."""
    if not isinstance(error, PlannerError):
        raise error


_MARKS: Final = {verdict: Mark(*verdict_mark(verdict)) for verdict in ("fits", "tight", "does-not-fit", None)}


def _fits_mark(row: GpuRow) -> Mark:
    return _MARKS[row.verdict]
