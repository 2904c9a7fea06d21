"""What tests of the Monitor tab share: waiting for it, what it says is wrong, and whether it ever stood still."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import thread_time
from typing import Self

from PySide6.QtCore import QElapsedTimer, QTimer
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from planner.gui.monitor.tab import MonitorTab
from planner.monitor.readings.faults import FaultKind

# Measuring coverage makes the same work take longer; the limit itself is held by a run without it.
LONGEST_BLOCK_MS = 100 if sys.gettrace() is None else 200


class Probe:
    """A timer that finds out for how long the window did nothing else, beside waiting for a busy processor.

    `longest_work_ms` is what the window's own thread worked at a stretch, however busy the machine is.
    """

    def __init__(self) -> None:
        self.longest_ms, self._waited_ms = 0.0, _waited_ms()
        self.longest_work_ms, self._worked_seconds = 0.0, thread_time()
        self._clock = QElapsedTimer()
        self._timer = QTimer(interval=5)
        self._timer.timeout.connect(self._tick)

    def __enter__(self) -> Self:
        self._clock.start()
        self._worked_seconds = thread_time()
        self._timer.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._timer.stop()

    @property
    def stood_still(self) -> str:
        """Return for how long the window stood still, where that was too long.

        Its own work is held against the limit as it is. Waiting for the processor is not counted; where more want it
        than there are, holding the interpreter's lock takes longer for every thread, and so much more is allowed.
        """
        if self.longest_work_ms > LONGEST_BLOCK_MS:
            return f"{self.longest_work_ms:.0f} ms of work"
        crowd = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
        return f"{self.longest_ms:.0f} ms" if self.longest_ms > LONGEST_BLOCK_MS * crowd else ""

    def _tick(self) -> None:
        before, self._waited_ms = self._waited_ms, _waited_ms()
        self.longest_ms = max(self.longest_ms, self._clock.restart() - (self._waited_ms - before))
        before, self._worked_seconds = self._worked_seconds, thread_time()
        self.longest_work_ms = max(self.longest_work_ms, 1e3 * (self._worked_seconds - before))


def _waited_ms() -> float:
    """Return for how long this thread was ready to run, and others had the processor (proc(5), schedstat)."""
    return int(Path("/proc/thread-self/schedstat").read_text(encoding="ascii").split()[1]) / 1e6


def wait(qtbot: QtBot, holds: Callable[[], object]) -> None:
    """Wait until that holds."""
    qtbot.waitUntil(lambda: bool(holds()))


def wait_for_plots(qtbot: QtBot, tab: MonitorTab) -> None:
    """Wait until every plot that is in sight was drawn, which is a matter of the first second."""
    begun = tab.feed.now or 0.0
    wait(qtbot, lambda: (tab.feed.now or 0.0) > begun + 0.5)
    wait(qtbot, lambda: tab.plots.panels and all(panel.is_drawn for panel in tab.plots.panels if _in_sight(panel)))


def _in_sight(panel: QWidget) -> bool:
    return not panel.visibleRegion().isEmpty()


def faults_of(tab: MonitorTab) -> set[FaultKind]:
    """Return the kinds of what is wrong now."""
    return {fault.kind for fault in tab.feed.latest.inventory.faults}
