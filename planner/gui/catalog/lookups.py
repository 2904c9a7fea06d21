"""Background computation of each card's job time and cost, and of card and system prices."""

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from functools import partial
from threading import Event
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from planner.cost.card_prices import CardPrices, PriceSpread
from planner.cost.figure import Figure
from planner.cost.terms import RentMode
from planner.errors import PlannerError
from planner.gui.tasks import TaskRunner
from planner.gui.workspace import Workspace
from planner.plan.catalog import Catalog
from planner.plan.cost import job_by_gpu
from planner.plan.plan import Plan
from planner.plan.prices import buying_prices, prices_by_card, rents_by_system
from planner.present.catalog.gpu_row import JobSummary, job_summaries

Rents = Mapping[str, Mapping[RentMode, PriceSpread]]

_JOBS_TASK: Final = "catalog-jobs"
_PRICES_TASK: Final = "catalog-prices"
_JOBS_DELAY_MS: Final = 300


class Lookups(QObject):
    """Computes job costs and prices for the current plan and catalog; `results_arrived` is emitted when results arrive.

    A change of the plan cancels the running job computation, and no stale results are kept. `prices` (of cards),
    `buying` (what one card costs) and `rents` (of systems) are None until they have been read. `today` returns the date
    of the prices.
    """

    results_arrived = Signal()

    def __init__(
        self,
        workspace: Workspace,
        tasks: TaskRunner,
        today: Callable[[], date] = lambda: datetime.now(UTC).date(),
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.today = today
        self.jobs: Mapping[str, JobSummary] | None = None
        self.prices: Mapping[str, CardPrices] | None = None
        self.rents: Rents | None = None
        self.buying: Mapping[str, Figure] | None = None
        self._workspace, self._tasks = workspace, tasks
        self._jobs_input: tuple[Plan, Catalog] | None = None
        self._prices_catalog: Catalog | None = None
        self._jobs_timer = QTimer(self, singleShot=True, interval=_JOBS_DELAY_MS)
        self._jobs_timer.timeout.connect(self._start_job_lookup)

    def follow(self) -> None:
        """Start those background computations whose results for the current plan and catalog are missing."""
        catalog = self._workspace.catalog
        plan = _without_card(self._workspace.plan)
        if self._jobs_input is None or self._jobs_input[0] != plan or self._jobs_input[1] is not catalog:
            self.jobs, self._jobs_input = None, (plan, catalog)
            self._tasks.cancel(_JOBS_TASK)
            self._jobs_timer.start()
        if self._prices_catalog is not catalog:
            self._prices_catalog, self.prices, self.rents, self.buying = catalog, None, None, None
            self._tasks.run(
                _PRICES_TASK,
                partial(_read_prices_and_rents, catalog, self.today()),
                self._set_prices_and_rents,
                self._workspace.report,
            )

    @Slot()
    def _start_job_lookup(self) -> None:
        plan, catalog, stop = self._workspace.plan, self._workspace.catalog, Event()
        work = partial(find_jobs, plan, catalog, self.today(), stop.is_set)
        self._tasks.run(_JOBS_TASK, work, self._set_job_summaries, self._set_no_jobs, stop.set)

    def _set_job_summaries(self, jobs: Mapping[str, JobSummary] | None) -> None:
        if jobs is not None:
            self.jobs = jobs
            self.results_arrived.emit()

    def _set_no_jobs(self, error: BaseException) -> None:
        """Leave the columns without jobs; other tabs report an invalid plan."""
        if not isinstance(error, PlannerError):
            raise error
        self._set_job_summaries({})

    def _set_prices_and_rents(self, found: tuple[Mapping[str, CardPrices], Rents, Mapping[str, Figure]]) -> None:
        self.prices, self.rents, self.buying = found
        self.results_arrived.emit()


def _without_card(plan: Plan) -> Plan:
    """Return `plan` without its card: jobs on other cards depend on the plan's card only through a measured speed."""
    return plan if plan.timing.measured is not None else plan.evolve(gpu=None)


def find_jobs(plan: Plan, catalog: Catalog, today: date, stop: Callable[[], bool]) -> Mapping[str, JobSummary] | None:
    """Return the job's time and cost on each card, or None if the computation was cancelled."""
    jobs = job_by_gpu(plan, catalog, today, stop)
    return None if jobs is None else job_summaries(jobs)


def _read_prices_and_rents(
    catalog: Catalog, today: date
) -> tuple[Mapping[str, CardPrices], Rents, Mapping[str, Figure]]:

    # The details also need these; loading them here keeps the first arrow key fast.
    _ = catalog.software, catalog.speeds
    return prices_by_card(catalog, today), rents_by_system(catalog, today), buying_prices(catalog, today)
