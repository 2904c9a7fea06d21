"""Faults as data: what the library does, and what is said of it; and a tab that is watched meanwhile."""

import re
from collections.abc import Iterable, Mapping
from math import inf
from pathlib import Path
from time import monotonic, time
from types import MappingProxyType
from typing import NamedTuple

from fake_nvml_kit import A, B, FakeNvml, card
from pytestqt.qtbot import QtBot
from tab_kit import wait, wait_for_plots

from planner.gui.monitor.replay import RecordingLoader
from planner.gui.monitor.tab import MonitorTab
from planner.monitor.readings.events import EventKind
from planner.monitor.readings.faults import Fault, FaultKind
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.sample import LATE
from planner.monitor.recording.log_import import open_recording
from planner.monitor.recording.recording import MonitorRecording
from planner.present.monitor.events import clock_time

HEALTHY = (card(0, A), card(1, B))


class Case(NamedTuple):
    """What the library does, and what is said of it; some of it shows only when the driver is opened anew."""

    kind: FaultKind
    title: str
    advice: str
    cards: tuple[dict[str, object], ...] = HEALTHY
    general: Mapping[str, object] = MappingProxyType({})
    uuid: str | None = None
    state: str = "busy"
    opens_anew: bool = False

    @property
    def name(self) -> str:
        return f"{self.kind.value}, {self.title}"


# The cards of a driver that goes while it is read.
GONE = (card(0, A) | {"0.error.*": 1}, card(1, B) | {"1.error.*": 1})


def first(**changes: object) -> tuple[dict[str, object], ...]:
    """Return two cards, the first of which is odd; a name with __ for a dot."""
    return (card(0, A) | {f"0.{name.replace('__', '.')}": value for name, value in changes.items()}, card(1, B))


def _opening(code: int) -> dict[str, object]:
    return {"error.nvmlInitWithFlags": code}


DRIVER = (
    Case(
        FaultKind.NO_DRIVER,
        "The NVIDIA driver is not loaded (nvmlInit returned 9)",
        "modprobe nvidia",
        GONE,
        _opening(9),
        state="no answer",
    ),
    Case(
        FaultKind.NO_PERMISSION,
        "This user may not access the driver",
        "/dev/nvidiactl",
        GONE,
        _opening(4),
        state="no answer",
    ),
    Case(
        FaultKind.DRIVER_ERROR,
        "The driver cannot be accessed (nvmlInit returned 999)",
        "Restart a container",
        GONE,
        _opening(999),
        state="no answer",
    ),
    Case(
        FaultKind.MISMATCH,
        "The driver was updated, but the old kernel module is still loaded",
        "Reboot; nothing needs to be installed",
        GONE,
        _opening(18),
        state="no answer",
    ),
)
CARDS = (
    Case(
        FaultKind.LOST,
        "GPU 0 no longer responds (detected by nvmlDeviceGetPowerUsage)",
        "look for Xid 79 in dmesg",
        first(error__nvmlDeviceGetPowerUsage=15),
        uuid=A,
        state="lost",
    ),
    Case(
        FaultKind.LOST,
        "GPU 0 no longer responds (detected by every call)",
        "A reboot often helps",
        (card(0, A) | {"0.error.*": 999}, card(1, B)),
        uuid=A,
        state="lost",
    ),
    Case(
        FaultKind.RESET_REQUIRED,
        "GPU 0 requires a reset",
        "nvidia-smi --gpu-reset",
        first(error__nvmlDeviceGetFanSpeed=16),
        uuid=A,
        state="lost",
    ),
    Case(
        FaultKind.BAD_NAME,
        "GPU 0: the driver's name for the GPU is not valid text (\\xf8\\x9d)",
        "its PCI address is shown",
        first(name="\\xf8\\x9d"),
        uuid=A,
        opens_anew=True,
    ),
    Case(
        FaultKind.IMPLAUSIBLE,
        "GPU 0: the driver reports an implausible value (temperature_celsius)",
        "shown as reported, and marked",
        first(temperature__0=900),
        uuid=A,
    ),
    Case(
        FaultKind.UNRELIABLE_PROCESSES,
        "GPU 0: the driver reports implausible values for processes",
        "update either",
        first(process__compute=f"{2**30}:77"),
        uuid=A,
    ),
    Case(
        FaultKind.DRIVER_RESET,
        "The driver was reset or replaced",
        "detected again",
        first(error__nvmlDeviceGetMemoryInfo_v2="1 0"),
    ),
)


class Watched:
    """A tab whose readings are recorded; each fault is noted as it was seen."""

    def __init__(self, qtbot: QtBot, tab: MonitorTab, driver: FakeNvml, file: Path) -> None:
        self._qtbot, self.tab, self.driver, self.file = qtbot, tab, driver, file
        self.seen: list[tuple[Case, Fault]] = []

    def begin(self) -> None:
        """Wait until both cards are read, and record."""
        self.wait_until_well()
        wait_for_plots(self._qtbot, self.tab)
        self.tab.feed.record_to(self.file)

    def wait_until_well(self, *gone: tuple[FaultKind, str | None]) -> None:
        """Wait until both cards are read again, and these faults are over."""
        wait(self._qtbot, lambda: all(self.tab.feed.latest.readings(uuid) for uuid in (A, B)))
        wait(self._qtbot, lambda: not {fault.key for fault in self._faults()} & set(gone))

    def wait_until_late(self) -> None:
        """Wait until the cards were not read for so long that it makes a gap, at the pace of this machine."""
        last, interval = self.tab.feed.history._detector._last_seen[A]
        wait(self._qtbot, lambda: monotonic() - last.monotonic_seconds > LATE * interval)

    def provoke(self, case: Case) -> None:
        """Let that happen, and see that it is said."""
        began = time()
        self.driver.say(*case.cards, **case.general)
        if case.opens_anew:
            self.renew()
        self.see(case, began)

    def see(self, case: Case, began: float) -> None:
        """Wait until a fault is told, and check every part of what is said."""
        wait(self._qtbot, lambda: self._told(case))
        (text,) = self._told(case)
        fault = next(one for one in self._faults() if one.key == (case.kind, case.uuid))
        assert began - 3 < fault.since_seconds <= time(), case.name
        assert f", since {clock_time(fault.since_seconds)} (" in text, case.name
        assert case.advice in text, case.name
        wait(self._qtbot, lambda: self._state(case) == case.state)
        self.seen.append((case, fault))

    def heal(self, case: Case) -> None:
        """Let everything be well again."""
        self.driver.say(*HEALTHY)
        self.renew()
        self.wait_until_well((case.kind, case.uuid))

    def renew(self) -> None:
        """Let the driver go and take it up again, which needs no waiting for the next try."""
        self.tab.feed.release()
        # Only what is read after this comes from the driver as it is now.
        wait(self._qtbot, self._is_released)
        self.tab.feed.resume()
        wait(self._qtbot, lambda: not self._is_released())

    def check_recording(self) -> None:
        """Check that the file holds every fault since when it was, and that replayed it is said again."""
        history = self.tab.feed.history
        until = monotonic()
        wait(self._qtbot, lambda: (self.tab.feed.now or 0.0) > until)
        told = {event.what for event in history.events(-inf, inf) if event.kind is EventKind.FAULT}
        assert told >= {case.kind.value for case, *_ in self.seen}
        self.tab.feed.stop_recording()
        recording = open_recording(self.file)
        stands = _stands(recording)
        assert {fault for _, fault in self.seen} <= set(stands)
        self.tab.feed.play(RecordingLoader(self.file).load())
        replay = self.tab.feed.replay
        assert replay is not None
        replay.stop()
        for case, fault in self.seen:
            replay.seek(stands[fault] - recording.start)
            assert self._told(case), case.name

    def _is_released(self) -> bool:
        return any(fault.kind is FaultKind.RELEASED for fault in self._faults())

    def _faults(self) -> Iterable[Fault]:
        return self.tab.feed.latest.inventory.faults

    def _told(self, case: Case) -> list[str]:
        return [text for text in self.tab.faults.texts if text.startswith(case.title)]

    def _state(self, case: Case) -> str:
        lines = self.tab.cards.texts
        return re.split(r", |\. ", lines[0])[1] if lines else ""


def _stands(recording: MonitorRecording) -> dict[Fault, float]:
    """Return a time of `recording` at which each fault, as it is told there, stands."""
    shown = [timed for timed in recording.timed() if isinstance(timed.update, Inventory)]
    ends = [*(timed.monotonic_seconds for timed in shown[1:]), inf]
    return {
        fault: timed.monotonic_seconds
        for timed, end in zip(shown, ends, strict=True)
        if timed.monotonic_seconds < end
        for fault in timed.update.faults
    }
