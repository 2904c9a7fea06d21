"""Source of the fleet page: polls in the background, and reads the past of a card on request."""

from collections.abc import Callable, Iterator, Mapping
from datetime import date
from functools import partial
from threading import Event
from typing import Final, NamedTuple

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from planner.errors import PlannerError
from planner.fleet.cards import FleetCard
from planner.fleet.connection import FleetConnection
from planner.fleet.costs import FleetCosts, FleetPrices, ServingCost
from planner.fleet.fleet import Fleet, FleetWatch
from planner.fleet.gpu_history import gpu_history
from planner.fleet.sources import PrometheusSource, open_source
from planner.gui.tasks import TaskRunner
from planner.monitor.history import History
from planner.plan.catalog import Catalog
from planner.present.fleet import FleetRow, fleet_rows

_POLLING: Final = "fleet poll"
_READING_PAST: Final = "fleet past"
_FASTEST_SECONDS: Final = 5.0
_SLOWEST_SECONDS: Final = 300.0
_RETRY_SECONDS: Final = 30.0
_DIAGNOSED_PARTS: Final = 4
"""Polls after which every card was diagnosed again: a diagnosis considers minutes."""


class FleetView(NamedTuple):
    """A fleet with what is shown of it: a row for each card, costs and servers; `prices` know its cards."""

    fleet: Fleet
    rows: tuple[FleetRow, ...]
    costs: FleetCosts
    servers: tuple[ServingCost, ...]
    prices: FleetPrices


class FleetFeed(QObject):
    """Polls a fleet while it is wanted; nothing here waits for another machine on the window's thread.

    `updated` carries a `FleetView`, `failed` a `PlannerError`; the last view stays valid then, and polls go on.
    `past_read` carries the `History` of the card that was asked for.
    """

    updated = Signal(object)
    failed = Signal(object)
    past_read = Signal(object)

    def __init__(self, catalog: Catalog, parent: QObject) -> None:
        super().__init__(parent)
        self._catalog = catalog
        # Its own threads, since a slow server must not keep other work of the window waiting.
        self._tasks = TaskRunner()
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self.poll)
        self._stop = Event()
        self._open: Callable[[], FleetWatch] | None = None
        self._watch: FleetWatch | None = None
        self._prices: FleetPrices | None = None
        self._part = 0
        self._is_polling = self._is_wanted = False

    @property
    def is_connected(self) -> bool:
        """Return whether there is a fleet to poll."""
        return self._open is not None

    @property
    def is_polling(self) -> bool:
        """Return whether a poll is in progress."""
        return self._is_polling

    @property
    def has_past(self) -> bool:
        """Return whether the past of cards can be read, as from a Prometheus."""
        return self._watch is not None and isinstance(self._watch.source, PrometheusSource)

    def connect_to(self, connection: FleetConnection, environment: Mapping[str, str]) -> None:
        """Poll another fleet from now on; `environment` holds the secret if the connection says so."""
        self.disconnect_fleet()
        stop = self._stop = Event()
        self._open = lambda: FleetWatch(open_source([connection], environment, stop.is_set))
        self._is_wanted = True
        self.poll()

    def disconnect_fleet(self) -> None:
        """Stop polling, and forget the fleet; requests in progress end."""
        self._stop.set()
        self._timer.stop()
        self._tasks.cancel(_POLLING)
        self._tasks.cancel(_READING_PAST)
        self._open = self._watch = None
        self._is_polling = False
        self._part = 0

    def close(self) -> None:
        """Stop polling for good."""
        self.disconnect_fleet()
        self._tasks.shutdown()

    def set_wanted(self, is_wanted: bool) -> None:
        """Poll only while the fleet is in sight."""
        self._is_wanted = is_wanted
        if not is_wanted:
            self._timer.stop()
        elif self.is_connected and not self._is_polling and not self._timer.isActive():
            self.poll()

    @Slot()
    def poll(self) -> None:
        """Poll the fleet now, unless a poll is in progress."""
        if self._open is not None and not self._is_polling:
            self._is_polling = True
            self._timer.stop()
            self._tasks.run_in_rounds(_POLLING, self._views, self._on_view, self._on_polled, self._on_error)

    def read_past(self, card: FleetCard, seconds: float, pixels: int) -> None:
        """Read the last `seconds` of a card for plots `pixels` wide; an earlier request is given up."""
        watch = self._watch
        if watch is not None and watch.fleet is not None and isinstance(watch.source, PrometheusSource):
            fleet = watch.fleet
            work = partial(gpu_history, watch.source, card, fleet.at_seconds, seconds, pixels, fleet.interval_seconds)
            self._tasks.run(_READING_PAST, work, self._on_past, self._on_past_error)

    def _views(self, is_stopped: Callable[[], bool]) -> Iterator[FleetView]:
        """Yield the fleet with its diagnoses, at first also as soon as it was read; runs in a thread."""
        is_first = self._watch is None
        if self._watch is None and self._open is not None:
            self._watch = self._open()
        watch = self._watch
        if watch is None:
            return
        self._prices = self._prices or FleetPrices(self._catalog, date.today())
        fleet = watch.poll()
        if is_first:
            yield self._view(fleet, self._prices)
            watch.load_last_minutes()
        watch.read_last_day()
        if not is_stopped():
            part, self._part = self._part, (self._part + 1) % _DIAGNOSED_PARTS
            hosts = fleet.host_names if is_first else fleet.host_names[part::_DIAGNOSED_PARTS]
            yield self._view(watch.diagnose(hosts), self._prices)

    def _view(self, fleet: Fleet, prices: FleetPrices) -> FleetView:
        return FleetView(fleet, fleet_rows(fleet), prices.costs(fleet), prices.serving(fleet), prices)

    def _on_view(self, view: FleetView) -> None:
        self.updated.emit(view)

    def _on_polled(self, _none: None) -> None:
        self._is_polling = False
        fleet = None if self._watch is None else self._watch.fleet
        self._wait(_RETRY_SECONDS if fleet is None else fleet.interval_seconds)

    def _on_error(self, error: BaseException) -> None:
        self._is_polling = False
        self._wait(_RETRY_SECONDS)
        self.failed.emit(_planner_error(error))

    def _wait(self, seconds: float) -> None:
        if self._is_wanted:
            self._timer.start(round(1e3 * min(max(seconds, _FASTEST_SECONDS), _SLOWEST_SECONDS)))

    def _on_past(self, history: History) -> None:
        self.past_read.emit(history)

    def _on_past_error(self, error: BaseException) -> None:
        self.failed.emit(_planner_error(error))


def _planner_error(error: BaseException) -> PlannerError:
    if isinstance(error, PlannerError):
        return error
    raise error
