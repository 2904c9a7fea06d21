"""Everything that can be wrong: named on screen and in the recording, with since when and what to do.

Every fault is one of the driver's library in a sampler of its own, below the whole tab, whose event loop a probe
watches meanwhile.
"""

import os
import signal
import threading
from collections.abc import Callable
from math import inf
from pathlib import Path
from time import sleep, time

import psutil
import pytest
from fake_nvml_kit import CALM, HURRIED, LIBRARY, A, B, C, FakeNvml, card
from fault_kit import CARDS, DRIVER, HEALTHY, Case, Watched, first
from tab_kit import BEAT_SECONDS, MOST_BEATS, Probe, faults_of, wait

from planner.gui.monitor.replay import RecordingLoader
from planner.monitor.readings.events import EventKind
from planner.monitor.readings.faults import SILENCING_FAULTS, FaultKind
from planner.monitor.supervisor.sampler_process import SamplerProcess


@pytest.fixture
def watched(qtbot, make_tab, driver, recording) -> Callable[..., Watched]:
    """Return a way to watch two healthy cards."""

    def make(timeouts=CALM) -> Watched:
        driver.say(*HEALTHY)
        made = Watched(qtbot, make_tab(timeouts), driver, recording)
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
        released = Case(
            FaultKind.RELEASED, "Disconnected from the driver", "Reconnect to the driver", state="disconnected"
        )
        window.see(released, began)
        assert driver.calls()[-1] == "nvmlShutdown "
        driver.say_power_state("suspended")
        calls = len(driver.calls())
        window.tab.feed.resume()
        asleep = "The GPU is asleep"
        window.see(Case(FaultKind.ASLEEP, asleep, "as soon as a program uses the GPU", state="asleep"), began)
        assert len(driver.calls()) == calls
        driver.say_power_state("active")
        window.wait_until_well((FaultKind.ASLEEP, None))
    assert not probe.stood_still
    window.check_recording()


def test_a_sampler_that_crashes_is_killed_or_hangs_is_told_recorded_and_started_again(watched, monkeypatch):
    window = watched(HURRIED._replace(kill=1.2))
    outlives = threading.Event()
    kill, reap = SamplerProcess.kill, SamplerProcess.reap
    monkeypatch.setattr(SamplerProcess, "kill", lambda self, seconds: not outlives.is_set() and kill(self, seconds))
    monkeypatch.setattr(SamplerProcess, "reap", lambda self: not outlives.is_set() and reap(self))
    hangs = first(hang__nvmlDeviceGetPowerUsage=1)
    crashed = Case(
        FaultKind.SAMPLER_CRASHED,
        "The process that reads the GPUs crashed inside the driver's library (SIGSEGV in nvmlDeviceGetClockInfo)",
        "update the driver",
        first(crash__nvmlDeviceGetClockInfo=1),
        state="no answer",
    )
    failed = Case(
        FaultKind.SAMPLER_FAILED,
        "The process that reads the GPUs ended (SIGKILL)",
        "restarts after a pause",
        state="no answer",
    )
    silent = Case(
        FaultKind.NOT_ANSWERING,
        f"The driver does not respond (nvmlDeviceGetPowerUsage of {A})",
        "check dmesg",
        hangs,
        state="no answer",
    )
    stuck = Case(
        FaultKind.STUCK,
        "A driver call hangs and cannot be interrupted",
        "only a reboot ends it",
        hangs,
        state="no answer",
    )
    with Probe() as probe:
        window.provoke(crashed)
        window.driver.say(*HEALTHY)
        window.wait_until_well((FaultKind.SAMPLER_CRASHED, None))
        # The next one takes its time, so that there is some to look.
        window.driver.say(*HEALTHY, slow__nvmlInitWithFlags=700)
        began = time()
        os.kill(sampler().pid, signal.SIGKILL)
        window.see(failed, began)
        window.wait_until_well((FaultKind.SAMPLER_FAILED, None), (FaultKind.NOT_ANSWERING, None))
        window.provoke(silent)
        window.driver.say(*HEALTHY)
        window.wait_until_well((FaultKind.NOT_ANSWERING, None))
        hung = sampler()
        outlives.set()
        window.provoke(stuck)
        # The machine goes on being watched by another process.
        assert hung.is_running()
        window.wait_until_late()
        window.driver.say(*HEALTHY)
        outlives.clear()
        hung.kill()
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
        Case(FaultKind.NO_LIBRARY, "NVIDIA's management library (NVML) is missing", "--gpus all", state=""),
        _without_library,
    ),
    (
        Case(FaultKind.NO_BINDING, "The package nvidia-ml-py is not installed (gone)", "pip install", state=""),
        lambda driver, patch: _shadow(driver, patch, "pynvml.py", "raise ImportError('gone')"),
    ),
    (
        Case(FaultKind.WRONG_BINDING, "Another package named pynvml hides", "Uninstall pynvml", state=""),
        lambda driver, patch: _shadow(driver, patch, "pynvml/__init__.py", ""),
    ),
    (
        Case(FaultKind.NO_CARDS, "The driver is loaded, but lists no GPU", "pass the GPUs in", (), state=""),
        lambda *_: None,
    ),
    (
        Case(FaultKind.FOREIGN_PIDS, "The driver reports the PIDs of the container's host", "--pid=host"),
        lambda driver, _: driver.say_surroundings(has_own_pids=True),
    ),
    (
        Case(FaultKind.WSL, "Some readings are unavailable under WSL", "a monitor on Windows shows more"),
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
    assert tab.empty_state.isHidden() == (case.state != "")
    assert case.kind in faults_of(tab)


def test_cards_and_instances_come_and_go_and_errors_are_told_without_the_window_stopping(qtbot, watched, driver):
    window = watched()
    feed, texts = window.tab.feed, lambda: window.tab.cards.texts
    divided = card(0, A, mig=1, mig_devices=1, utilization=None)
    instance = {"0:0.uuid": "MIG-1", "0:0.name": "NVIDIA 1g.10gb", "0:0.gpu_instance": 1, "0:0.compute_instance": 0}
    with Probe() as probe:
        driver.say(card(0, A), card(1, B), card(2, C))
        wait(qtbot, lambda: len(texts()) == 3 and "busy" in texts()[2])
        driver.say(divided | instance, card(1, B), events=("1 8 79",))
        wait(qtbot, lambda: len(texts()) == 4 and texts()[1].startswith("└ 0  MIG 1g.10gb"))
        wait(qtbot, lambda: "lost" in texts()[3] and xids(feed.history))
        driver.say(card(0, A), card(1, B), card(2, C))
        wait(qtbot, lambda: len(texts()) == 3 and "busy" in texts()[2])
    assert not probe.stood_still
    assert xids(feed.history) == [(B, 79)]
    kinds = [(event.kind, event.uuid) for event in feed.history.events(-inf, inf)]
    assert {(EventKind.ADDED, C), (EventKind.LOST, C), (EventKind.RETURNED, C), (EventKind.ADDED, "MIG-1")} <= set(
        kinds
    )
    feed.stop_recording()
    assert xids(RecordingLoader(window.file).load().history) == [(B, 79)]


def xids(history) -> list[tuple[str, int | None]]:
    """Return the errors that the driver told, each with its card."""
    return [(event.uuid, event.number) for event in history.events(-inf, inf) if event.kind is EventKind.XID]


def test_every_kind_of_fault_is_among_these():
    others = {
        FaultKind.CARD_NOT_ANSWERING,  # in test_monitor_tab.py
        FaultKind.RELEASED,
        FaultKind.ASLEEP,
        FaultKind.SAMPLER_CRASHED,
        FaultKind.SAMPLER_FAILED,
        FaultKind.NOT_ANSWERING,
        FaultKind.STUCK,
        *SILENCING_FAULTS,  # in test_another_machine.py and test_remote_machine.py
        FaultKind.CLOCK_OFF,
        FaultKind.HELPER_MISSING,  # in test_other_vendors_in_the_window.py
        FaultKind.SOURCE_FAILED,
    }
    starts = {case.kind for case, _ in STARTS}
    assert {case.kind for case in (*DRIVER, *CARDS)} | starts | others == set(FaultKind)


def test_the_probe_sees_a_window_that_stands_still(qtbot):
    """Without this, a probe that sees nothing would let every window pass."""
    with Probe() as probe:
        qtbot.wait(100)
        assert not probe.stood_still
        while probe.most_beats <= MOST_BEATS:
            sleep(BEAT_SECONDS)
        qtbot.wait(100)
    assert probe.stood_still
