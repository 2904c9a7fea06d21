"""What is found out about every card and system beside the window's thread: the plan's job, and prices."""

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
from planner.present.catalog.gpu_row import JobWords

if TYPE_CHECKING:
    from planner.cost.market import CardPrices, PriceSpread
    from planner.cost.terms import RentMode

    Rents = Mapping[str, Mapping[RentMode, PriceSpread]]

_JOBS: Final = "catalog-jobs"
_PRICES: Final = "catalog-prices"
_JOBS_DELAY_MS: Final = 300


class Lookups(QObject):
    """Follows the plan and the catalog; `found` says that more is known than before.

    The next change of the plan ends the search for what its job takes and costs, and nothing stale is kept. `prices`
    and `rents`, those of systems, are none while they have not been read. `today` says of which day they are.
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
        self.jobs: Mapping[str, JobWords] = {}
        self.prices: Mapping[str, CardPrices] | None = None
        self.rents: Rents | None = None
        self._workspace, self._tasks = workspace, tasks
        self._jobs_of: tuple[Plan, Catalog] | None = None
        self._prices_of: Catalog | None = None
        self._asking = QTimer(self, singleShot=True, interval=_JOBS_DELAY_MS)
        self._asking.timeout.connect(self._ask_jobs)

    def follow(self) -> None:
        """Find out what the plan and the catalog, as they are now, need to be told."""
        catalog = self._workspace.catalog
        asked = _without_card(self._workspace.plan)
        if self._jobs_of is None or self._jobs_of[0] != asked or self._jobs_of[1] is not catalog:
            self.jobs, self._jobs_of = {}, (asked, catalog)
            self._tasks.cancel(_JOBS)
            self._asking.start()
        if self._prices_of is not catalog:
            self._prices_of, self.prices, self.rents = catalog, None, None
            self._tasks.run(_PRICES, partial(_all_prices, catalog, self.today()), self._take_prices, self._tell)

    @Slot()
    def _ask_jobs(self) -> None:
        plan, catalog, stop = self._workspace.plan, self._workspace.catalog, Event()
        work = partial(find_jobs, plan, catalog, self.today(), stop.is_set)
        self._tasks.run(_JOBS, work, self._take_jobs, pass_over, stop.set)

    def _take_jobs(self, jobs: Mapping[str, JobWords] | None) -> None:
        if jobs is not None:
            self.jobs = jobs
            self.found.emit()

    def _take_prices(self, found: "tuple[Mapping[str, CardPrices], Rents]") -> None:
        self.prices, self.rents = found
        self.found.emit()

    def _tell(self, error: BaseException) -> None:
        if not isinstance(error, PlannerError):
            raise error
        self._workspace.failed.emit(error)


def _without_card(plan: Plan) -> Plan:
    """Return what of `plan` decides about every card: its own is no part of that, unless a speed was measured."""
    return plan if plan.timing.measured is not None else plan.evolve(gpu=None)


def find_jobs(plan: Plan, catalog: Catalog, today: date, stop: Callable[[], bool]) -> Mapping[str, JobWords] | None:
    """Return what the job takes and costs on each card, or None where nobody waits any more."""
    from planner.plan.job_costs import job_by_gpu  # not needed to draw the page, and loaded beside the window's thread
    from planner.present.catalog.job_words import job_words

    found = job_by_gpu(plan, catalog, today, stop)
    return None if found is None else job_words(found)


def pass_over(error: BaseException) -> None:
    """Leave the columns empty where the plan itself is at fault, which the other tabs say."""
    if not isinstance(error, PlannerError):
        raise error


def _all_prices(catalog: Catalog, today: date) -> "tuple[Mapping[str, CardPrices], Rents]":
    from planner.plan.prices import prices_by_card, rents_by_system  # takes a while, and the first look does without

    # What the details show beside the prices is read here too, or the first arrow key would wait for it.
    _ = catalog.software, catalog.speeds
    return prices_by_card(catalog, today), rents_by_system(catalog, today)
