"""The supervisor in a thread of its own, and what it tells brought over to the window's."""

import logging
from collections import deque
from collections.abc import Mapping
from threading import Event, Thread

from PySide6.QtCore import QObject, Qt, Signal, Slot

from planner.monitor.settings import Settings, Timeouts
from planner.monitor.supervisor.supervisor import Supervisor, Update

_log = logging.getLogger(__name__)


class Live(QObject):
    """Watches this machine. `arrived` carries updates, oldest first, on the window's thread.

    Nothing here but `stop` waits for the driver or for a process, and that not for ever: starting and stopping happen
    in the thread that holds the supervisor.
    """

    arrived = Signal(object)
    _came = Signal()

    def __init__(
        self,
        settings: Settings,
        timeouts: Timeouts | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        self._updates: deque[Update] = deque()
        self._is_announced = False
        self._over = Event()
        self._timeouts = timeouts or Timeouts()
        self._supervisor = Supervisor(self._hear, settings, self._timeouts, environment)
        self._thread = Thread(target=self._hold, name="live", daemon=True)
        self._came.connect(self._deliver, Qt.ConnectionType.QueuedConnection)

    def start(self) -> None:
        """Begin; once only."""
        self._thread.start()

    def stop(self) -> None:
        """Let go of everything, and wait until it is gone; what is held up for good is left to the process's end."""
        self.begin_stop()
        if self._thread.is_alive():
            # Longer than the supervisor waits itself, so that it is it that gives up.
            self._thread.join(2 * self._timeouts.stop)
            if self._thread.is_alive():
                _log.warning("The monitor did not end within %g seconds", 2 * self._timeouts.stop)

    def begin_stop(self) -> None:
        """Let go of everything without waiting; nothing arrives any more."""
        self._over.set()
        self._updates.clear()

    def set_interval(self, seconds: float) -> None:
        """Read every so many seconds from now on."""
        self._supervisor.set_interval(seconds)

    def release(self) -> None:
        """Let the driver go; the machine itself is still read."""
        self._supervisor.release()

    def resume(self) -> None:
        """Take the driver up again."""
        self._supervisor.resume()

    def _hold(self) -> None:
        with self._supervisor:
            self._over.wait()

    def _hear(self, update: Update) -> None:
        if self._over.is_set():
            return
        self._updates.append(update)
        # One event for whatever has come by the time it is delivered: a busy window is not flooded.
        if not self._is_announced:
            self._is_announced = True
            self._came.emit()

    @Slot()
    def _deliver(self) -> None:
        self._is_announced = False
        updates = []
        while self._updates:
            updates.append(self._updates.popleft())
        if updates and not self._over.is_set():
            self.arrived.emit(tuple(updates))
