"""Everything that can be wrong: named on screen and in the recording, with since when and what to do.

Every fault is one of the driver's library in a sampler of its own, below the whole tab, whose event loop a probe
watches meanwhile.
"""

import os
import re
import signal
import threading
from collections.abc import Callable, Iterable, Mapping
from math import inf
from pathlib import Path
from time import monotonic, thread_time, time
from types import MappingProxyType
from typing import NamedTuple

import psutil
import pytest
from fake_nvml_kit import CALM, HURRIED, LIBRARY, A, B, FakeNvml, card
from tab_kit import Probe, faults_of, wait, wait_for_plots

from planner.gui.monitor.replay import Loader
from planner.gui.monitor.tab import MonitorTab
from planner.monitor.child import Child
from planner.monitor.events import EventKind
from planner.monitor.faults import Fault, FaultKind
from planner.monitor.inventory import Inventory
from planner.monitor.recording.logs.importing import open_recording
from planner.present.faults import clock

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


def _first(**changes: object) -> tuple[dict[str, object], ...]:
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
        "This user may not talk to the driver",
        "/dev/nvidiactl",
        GONE,
        _opening(4),
        state="no answer",
    ),
    Case(
        FaultKind.DRIVER_ERROR,
        "The driver cannot be talked to (nvmlInit returned 999)",
        "start it anew",
        GONE,
        _opening(999),
        state="no answer",
    ),
    Case(
        FaultKind.MISMATCH,
        "The driver was updated while its older part is still loaded",
        "Reboot; nothing needs to be installed",
        GONE,
        _opening(18),
        state="no answer",
    ),
)
CARDS = (
    Case(
        FaultKind.LOST,
        "Card 0: the card does not answer any more (seen by nvmlDeviceGetPowerUsage)",
        "Xid 79. The others are still read.",
        _first(error__nvmlDeviceGetPowerUsage=15),
        uuid=A,
        state="lost",
    ),
    Case(
        FaultKind.LOST,
        "Card 0: the card does not answer any more (seen by every call)",
        "only a reboot helps",
        (card(0, A) | {"0.error.*": 999}, card(1, B)),
        uuid=A,
        state="lost",
    ),
    Case(
        FaultKind.RESET_REQUIRED,
        "Card 0: the card asks for a reset",
        "nvidia-smi --gpu-reset",
        _first(error__nvmlDeviceGetFanSpeed=16),
        uuid=A,
        state="lost",
    ),
    Case(
        FaultKind.BAD_NAME,
        "Card 0: the driver's name for the card is no text (\\xf8\\x9d)",
        "named by its place",
        _first(name="\\xf8\\x9d"),
        uuid=A,
        opens_anew=True,
    ),
    Case(
        FaultKind.IMPLAUSIBLE,
        "Card 0: the driver tells a value that cannot be true (temperature_celsius)",
        "shown as it was told, and marked",
        _first(temperature__0=900),
        uuid=A,
    ),
    Case(
        FaultKind.UNRELIABLE_PROCESSES,
        "Card 0: what the driver tells of processes cannot be true",
        "update either",
        _first(process__compute=f"{2**30}:77"),
        uuid=A,
    ),
    Case(
        FaultKind.DRIVER_RESET,
        "The driver was reset or replaced",
        "found again",
        _first(error__nvmlDeviceGetMemoryInfo_v2="1 0"),
    ),
)


class Watched:
    """A tab whose readings are recorded; each fault is noted as it was seen, with the time."""

    def __init__(self, qtbot, tab: MonitorTab, driver: FakeNvml, file: Path) -> None:
        self._qtbot, self.tab, self.driver, self.file = qtbot, tab, driver, file
        self.seen: list[tuple[Case, Fault, float]] = []

    def begin(self) -> None:
        """Wait until both cards are read, and record."""
        self.wait_until_well()
        wait_for_plots(self._qtbot, self.tab)
        self.tab.feed.record_to(self.file)

    def wait_until_well(self, *gone: tuple[FaultKind, str | None]) -> None:
        """Wait until both cards are read again, and these faults are over."""
        wait(self._qtbot, lambda: all(self.tab.feed.latest.readings(uuid) for uuid in (A, B)))
        wait(self._qtbot, lambda: not {fault.key for fault in self._faults()} & set(gone))

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
        assert f", since {clock(fault.since_seconds)} (" in text, case.name
        assert case.advice in text, case.name
        wait(self._qtbot, lambda: self._state(case) == case.state)
        self.seen.append((case, fault, monotonic()))

    def heal(self, case: Case) -> None:
        """Let everything be well again."""
        self.driver.say(*HEALTHY)
        self.renew()
        self.wait_until_well((case.kind, case.uuid))

    def renew(self) -> None:
        """Let the driver go and take it up again, which needs no waiting for the next try."""
        self.tab.feed.release()
        self.tab.feed.resume()

    def check_recording(self) -> None:
        """Check that the file holds every fault since when it was, and that replayed it is said again."""
        history = self.tab.feed.history
        told = {event.what for event in history.events(-inf, inf) if event.kind is EventKind.FAULT}
        assert told >= {case.kind.value for case, *_ in self.seen}
        self.tab.feed.stop_recording()
        recording = open_recording(self.file)
        inventories = [update for update in recording if isinstance(update, Inventory)]
        recorded = {(fault.key, fault.since_seconds) for one in inventories for fault in one.faults}
        assert {(fault.key, fault.since_seconds) for _, fault, _ in self.seen} <= recorded
        self.tab.feed.play(Loader(self.file).load())
        replay = self.tab.feed.replay
        assert replay is not None
        replay.stop()
        for case, _fault, at in self.seen:
            replay.seek(at - recording.start)
            assert self._told(case), case.name

    def _faults(self) -> Iterable[Fault]:
        return self.tab.feed.latest.inventory.faults

    def _told(self, case: Case) -> list[str]:
        return [text for text in self.tab.faults.texts if text.startswith(case.title)]

    def _state(self, case: Case) -> str:
        lines = self.tab.cards.texts
        return re.split(r", |\. ", lines[0])[1] if lines else ""


@pytest.fixture
def watched(qtbot, make_tab, driver, recording) -> Callable[..., Watched]:
    """Return a way to watch two healthy cards."""

    def make(patience=CALM) -> Watched:
        driver.say(*HEALTHY)
        made = Watched(qtbot, make_tab(patience), driver, recording)
        made.begin()
        return made

    return make


@pytest.mark.parametrize("cases", [DRIVER, CARDS], ids=["driver", "cards"])
def test_what_is_wrong_with_the_driver_or_a_card_is_told_recorded_and_never_holds_up_the_window(watched, cases):
    window = watched()
    with Probe() as probe:
        for case in cases:
            window.provoke(case)
            if case is not cases[-1]:
                window.heal(case)
    assert not probe.stood_still
    window.check_recording()


def test_a_driver_that_is_let_go_and_a_card_that_sleeps_are_told_and_recorded(watched, driver):
    window = watched()
    with Probe() as probe:
        began = time()
        window.tab.feed.release()
        released = Case(FaultKind.RELEASED, "The driver was let go", "when it is asked for", state="let go")
        window.see(released, began)
        assert driver.calls()[-1] == "nvmlShutdown "
        driver.say_power_state("suspended")
        calls = len(driver.calls())
        window.tab.feed.resume()
        asleep = "The card sleeps and is not woken"
        window.see(Case(FaultKind.ASLEEP, asleep, "as soon as something uses it", state="asleep"), began)
        assert len(driver.calls()) == calls
        driver.say_power_state("active")
        window.wait_until_well((FaultKind.ASLEEP, None))
    assert not probe.stood_still
    window.check_recording()


def test_a_sampler_that_crashes_is_killed_or_hangs_is_told_recorded_and_started_again(watched, monkeypatch):
    window = watched(HURRIED._replace(kill=1.2))
    outlives = threading.Event()
    kill, reap = Child.kill, Child.reap
    monkeypatch.setattr(Child, "kill", lambda self, seconds: not outlives.is_set() and kill(self, seconds))
    monkeypatch.setattr(Child, "reap", lambda self: not outlives.is_set() and reap(self))
    hangs = _first(hang__nvmlDeviceGetPowerUsage=1)
    crashed = Case(
        FaultKind.SAMPLER_CRASHED,
        "The process that reads the cards crashed inside the driver's library (SIGSEGV in nvmlDeviceGetClockInfo)",
        "update the driver",
        _first(crash__nvmlDeviceGetClockInfo=1),
        state="no answer",
    )
    failed = Case(
        FaultKind.SAMPLER_FAILED, "The process that reads the cards ended (SIGKILL)", "started again", state="no answer"
    )
    silent = Case(
        FaultKind.NOT_ANSWERING,
        f"The driver does not answer (nvmlDeviceGetPowerUsage of {A})",
        "see dmesg",
        hangs,
        state="no answer",
    )
    stuck = Case(
        FaultKind.STUCK, "A call into the driver cannot even be ended", "only a reboot clears", hangs, state="no answer"
    )
    with Probe() as probe:
        window.provoke(crashed)
        window.driver.say(*HEALTHY)
        window.wait_until_well((FaultKind.SAMPLER_CRASHED, None))
        began = time()
        os.kill(sampler().pid, signal.SIGKILL)
        window.see(failed, began)
        window.wait_until_well((FaultKind.SAMPLER_FAILED, None))
        window.provoke(silent)
        window.driver.say(*HEALTHY)
        window.wait_until_well((FaultKind.NOT_ANSWERING, None))
        first = sampler()
        outlives.set()
        window.provoke(stuck)
        # The machine goes on being watched by another process.
        assert first.is_running()
        window.driver.say(*HEALTHY)
        outlives.clear()
        first.kill()
        window.wait_until_well((FaultKind.STUCK, None))
    assert not probe.stood_still
    gaps = [event.uuid for event in window.tab.feed.history.events(-inf, inf) if event.kind is EventKind.GAP]
    assert set(gaps) == {A, B}
    window.check_recording()


def sampler() -> psutil.Process:
    """Return the process that reads the cards."""
    (process,) = psutil.Process().children()
    return process


def _without_library(driver: FakeNvml, _monkeypatch) -> None:
    (driver.folder / "empty").mkdir()
    driver.library = driver.folder / "empty" / LIBRARY


def _shadow(driver: FakeNvml, monkeypatch, name: str, content: str) -> None:
    file = driver.folder / "shadow" / name
    file.parent.mkdir(parents=True)
    file.write_text(content)
    monkeypatch.setenv("PYTHONPATH", f"{driver.folder / 'shadow'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")


STARTS: tuple[tuple[Case, Callable[[FakeNvml, pytest.MonkeyPatch], None]], ...] = (
    (
        Case(FaultKind.NO_LIBRARY, "NVIDIA's management library is not on this machine", "--gpus all", state=""),
        _without_library,
    ),
    (
        Case(FaultKind.NO_BINDING, "The package nvidia-ml-py is not installed (gone)", "pip install", state=""),
        lambda driver, patch: _shadow(driver, patch, "pynvml.py", "raise ImportError('gone')"),
    ),
    (
        Case(FaultKind.WRONG_BINDING, "Another package named pynvml stands in the way", "pip uninstall", state=""),
        lambda driver, patch: _shadow(driver, patch, "pynvml/__init__.py", ""),
    ),
    (
        Case(FaultKind.NO_CARDS, "The driver is there, but shows no card", "pass the cards in", (), state=""),
        lambda *_: None,
    ),
    (
        Case(FaultKind.FOREIGN_PIDS, "The driver numbers processes as the host of this container does", "--pid=host"),
        lambda driver, _: driver.say_surroundings(has_own_pids=True),
    ),
    (
        Case(FaultKind.WSL, "Windows keeps some readings to itself under WSL", "a monitor on Windows sees more"),
        lambda driver, _: driver.say_surroundings(is_wsl=True),
    ),
)


@pytest.mark.parametrize(("case", "prepare"), STARTS, ids=[case.kind.value for case, _ in STARTS])
def test_what_is_wrong_from_the_start_is_told_beside_the_machine(qtbot, make_tab, driver, monkeypatch, case, prepare):
    driver.say(*case.cards)
    prepare(driver, monkeypatch)
    began = time()
    tab = make_tab()
    window = Watched(qtbot, tab, driver, Path())
    window.see(case, began)
    wait(qtbot, lambda: "RAM" in tab.machine.text())
    assert tab.nothing.isHidden() == (case.state != "")
    assert case.kind in faults_of(tab)


def test_every_kind_of_fault_is_among_these():
    others = {
        FaultKind.RELEASED,
        FaultKind.ASLEEP,
        FaultKind.SAMPLER_CRASHED,
        FaultKind.SAMPLER_FAILED,
        FaultKind.NOT_ANSWERING,
        FaultKind.STUCK,
    }
    starts = {case.kind for case, _ in STARTS}
    assert {case.kind for case in (*DRIVER, *CARDS)} | starts | others == set(FaultKind)


def test_the_probe_sees_a_window_that_stands_still(qtbot):
    """Without this, a probe that sees nothing would let every window pass."""
    with Probe() as probe:
        end = thread_time() + 0.15
        while thread_time() < end:
            continue
        wait(qtbot, lambda: probe.longest_ms > 0)
    assert probe.stood_still
