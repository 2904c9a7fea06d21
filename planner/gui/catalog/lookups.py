"""Background computation of each card's job time and cost, and of card and system prices."""

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from planner.errors import PlannerError
from planner.gui.tasks import TaskRunner
from planner.gui.workspace import Workspace
from planner.plan.catalog import Catalog
from planner.plan.plan import Plan
from planner.present.catalog.gpu_row import JobSummary

if TYPE_CHECKING:
    from planner.cost.card_prices import CardPrices, PriceSpread
    from planner.cost.terms import RentMode

    Rents = Mapping[str, Mapping[RentMode, PriceSpread]]

_JOBS: Final = "catalog-jobs"
_PRICES: Final = "catalog-prices"
_JOBS_DELAY_MS: Final = 300


class Lookups(QObject):
    """Computes job costs and prices for the current plan and catalog; `found` is emitted when results arrive.

    A change of the plan cancels the running job computation, and no stale results are kept. `prices` (of cards) and
    `rents` (of systems) are None until they have been read. `today` returns the date of the prices.
    """

    found = Signal()

    def __init__(
        self,
        workspace: Workspace,
        tasks: TaskRunner,
        today: Callable[[], date] = lambda: datetime.now(UTC).date(),
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.today = today
        self.jobs: Mapping[str, JobSummary] = {}
        self.prices: Mapping[str, CardPrices] | None = None
        self.rents: Rents | None = None
        self._workspace, self._tasks = workspace, tasks
        self._jobs_of: tuple[Plan, Catalog] | None = None
        self._prices_of: Catalog | None = None
        self._jobs_timer = QTimer(self, singleShot=True, interval=_JOBS_DELAY_MS)
        self._jobs_timer.timeout.connect(self._start_jobs)

    def follow(self) -> None:
        """Start what the current plan and catalog still need."""
        catalog = self._workspace.catalog
        plan = _without_card(self._workspace.plan)
        if self._jobs_of is None or self._jobs_of[0] != plan or self._jobs_of[1] is not catalog:
            self.jobs, self._jobs_of = {}, (plan, catalog)
            self._tasks.cancel(_JOBS)
            self._jobs_timer.start()
        if self._prices_of is not catalog:
            self._prices_of, self.prices, self.rents = catalog, None, None
            self._tasks.run(_PRICES, partial(_all_prices, catalog, self.today()), self._take_prices, self._report)

    @Slot()
    def _start_jobs(self) -> None:
        plan, catalog, stop = self._workspace.plan, self._workspace.catalog, Event()
        work = partial(find_jobs, plan, catalog, self.today(), stop.is_set)
        self._tasks.run(_JOBS, work, self._take_jobs, pass_over, stop.set)

    def _take_jobs(self, jobs: Mapping[str, JobSummary] | None) -> None:
        if jobs is not None:
            self.jobs = jobs
            self.found.emit()

    def _take_prices(self, found: "tuple[Mapping[str, CardPrices], Rents]") -> None:
        self.prices, self.rents = found
        self.found.emit()

    def _report(self, error: BaseException) -> None:
        if not isinstance(error, PlannerError):
            raise error
        self._workspace.failed.emit(error)


def _without_card(plan: Plan) -> Plan:
    """Return `plan` without its card, which other cards' jobs do not depend on unless a speed was measured on it."""
    return plan if plan.timing.measured is not None else plan.evolve(gpu=None)


def find_jobs(plan: Plan, catalog: Catalog, today: date, stop: Callable[[], bool]) -> Mapping[str, JobSummary] | None:
    """Return the job's time and cost on each card, or None if it was cancelled."""
    from planner.plan.job_costs import job_by_gpu  # loaded by the background thread, since drawing does not need it
    from planner.present.catalog.job_summary import job_summaries

    found = job_by_gpu(plan, catalog, today, stop)
    return None if found is None else job_summaries(found)


def pass_over(error: BaseException) -> None:
    """Leave the columns empty if the plan itself is invalid; other tabs report that."""
    if not isinstance(error, PlannerError):
        raise error


def _all_prices(catalog: Catalog, today: date) -> "tuple[Mapping[str, CardPrices], Rents]":
    from planner.plan.prices import prices_by_card, rents_by_system  # slow, and not needed for the first view

    # The details also need these; loading them here keeps the first arrow key fast.
    _ = catalog.software, catalog.speeds
    return prices_by_card(catalog, today), rents_by_system(catalog, today)
