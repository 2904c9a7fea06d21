"""What tests of the Monitor tab share: waiting for it, what it says is wrong, and whether it ever stood still."""

from collections.abc import Callable
from threading import Event, Thread
from typing import Self

from PySide6.QtCore import QTimer
from pytestqt.qtbot import QtBot

from planner.gui.monitor.tab import MonitorTab
from planner.monitor.readings.faults import FaultKind

BEAT_SECONDS = 0.005
MOST_BEATS = 200


class Probe:
    """Finds out whether the window ever waits for anything but its events: a driver, a process or a file.

    A thread beside it counts how often it has its own turn, at most every 5 ms, before the window has the next. What
    holds up the whole process, as a busy machine does, holds up both, so that the count says nothing about speed;
    `benchmarks/responsiveness.py` measures that. `most_beats` is the longest count so far.
    """

    def __init__(self) -> None:
        self.most_beats, self._beats, self._over = 0, 0, Event()
        self._thread = Thread(target=self._beat, daemon=True)
        self._timer = QTimer(interval=5)
        self._timer.timeout.connect(self._tick)

    def __enter__(self) -> Self:
        self._thread.start()
        self._timer.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._timer.stop()
        self._over.set()
        self._thread.join()

    @property
    def stood_still(self) -> bool:
        """Whether the window waited for about a second or longer."""
        return self.most_beats > MOST_BEATS

    def _beat(self) -> None:
        while not self._over.wait(BEAT_SECONDS):
            self._beats += 1
            self.most_beats = max(self.most_beats, self._beats)

    def _tick(self) -> None:
        self._beats = 0


def wait(qtbot: QtBot, holds: Callable[[], object]) -> None:
    """Wait until that holds."""
    qtbot.waitUntil(lambda: bool(holds()))


def wait_for_plots(qtbot: QtBot, tab: MonitorTab) -> None:
    """Wait until every plot that is in sight was drawn, which is a matter of the first second."""
    begun = tab.feed.now or 0.0
    wait(qtbot, lambda: (tab.feed.now or 0.0) > begun + 0.5)
    wait(qtbot, lambda: tab.plots.panels and all(panel.is_drawn for panel in tab.plots.panels if panel.is_in_sight))


def faults_of(tab: MonitorTab) -> set[FaultKind]:
    """Return the kinds of what is wrong now."""
    return {fault.kind for fault in tab.feed.latest.inventory.faults}
