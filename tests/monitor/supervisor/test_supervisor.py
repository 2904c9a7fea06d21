"""The supervisor with real sampler processes and a failing NVML library."""

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from time import monotonic

import psutil
import pytest
from fake_nvml_kit import CALM, FAST, HURRIED, A, B, FakeNvml, card, states_of

from planner.monitor.readings.faults import FaultKind
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.reading import Cause
from planner.monitor.readings.sample import Sample
from planner.monitor.supervisor.sampler_process import SamplerProcess


def test_a_call_that_hangs_is_named_then_ended_and_the_machine_is_read_meanwhile(fake_nvml):
    fake_nvml.say(card(0, A) | {"0.hang.nvmlDeviceGetPowerUsage": "2x0 1"}, card(1, B))
    with fake_nvml.supervisor(timeouts=HURRIED) as supervisor:
        fake_nvml.wait_for(lambda latest: latest.readings(B))
        first = supervisor.pid
        fake_nvml.wait_for_fault(FaultKind.NOT_ANSWERING, detail=f"nvmlDeviceGetPowerUsage of {A}")
        sample = fake_nvml.wait_for_sample(lambda sample: not sample.devices)
        assert sample.host["memory_used_bytes"].value
        assert not psutil.pid_exists(first)
        fake_nvml.say(card(0, A), card(1, B))
        fake_nvml.wait_for_sample(lambda sample: set(sample.devices) == {A, B})
        fake_nvml.wait_until_over(FaultKind.NOT_ANSWERING)
    assert states_of(fake_nvml.latest) == {A: "running", B: "running"}


HASTY = FAST._replace(hang_seconds=1.0)


def test_a_card_that_hangs_stops_neither_the_other_cards_nor_the_machine(fake_nvml):
    fake_nvml.say(card(0, A), card(1, B))
    with fake_nvml.supervisor(HASTY) as supervisor:
        fake_nvml.wait_for_sample(lambda sample: set(sample.devices) == {A, B})
        pid = supervisor.pid
        fake_nvml.say(card(0, A) | {"0.stall.nvmlDeviceGetPowerUsage": 1}, card(1, B))
        fake_nvml.wait_for_fault(FaultKind.CARD_NOT_ANSWERING, A, "nvmlDeviceGetPowerUsage")
        assert fake_nvml.latest.reading(A, "power_watts").cause is Cause.NO_ANSWER
        # The sample of the sweep that the call held up; every one from then on has the other card.
        fake_nvml.wait_for_sample()
        for _ in range(5):
            sample = fake_nvml.wait_for_sample()
            assert set(sample.devices) == {B}
            assert sample.host["memory_used_bytes"].value
        fake_nvml.say(card(0, A), card(1, B))
        fake_nvml.wait_until_over(FaultKind.CARD_NOT_ANSWERING, A)
        fake_nvml.wait_for_sample(lambda sample: set(sample.devices) == {A, B})
        assert supervisor.pid == pid
    assert {fault.kind for fault in fake_nvml.latest.inventory.faults} == set()


def test_a_driver_that_answers_for_no_card_is_opened_anew_while_the_machine_is_read(fake_nvml):
    fake_nvml.say(card(0, A))
    with fake_nvml.supervisor(HASTY, CALM._replace(kill=1.5)) as supervisor:
        fake_nvml.wait_for_sample(lambda sample: A in sample.devices)
        first = supervisor.pid
        fake_nvml.say(card(0, A) | {"0.hang.nvmlDeviceGetPowerUsage": 1})
        fault = fake_nvml.wait_for_fault(FaultKind.NOT_ANSWERING, detail=f"nvmlDeviceGetPowerUsage of {A}")
        fake_nvml.wait_for_sample(lambda sample: not sample.devices and bool(sample.host["memory_used_bytes"].value))
        assert supervisor.pid == first
        fake_nvml.wait_for_sample(lambda sample: supervisor.pid not in (None, first))
        assert fault in fake_nvml.latest.inventory.faults
        assert not psutil.pid_exists(first)
        fake_nvml.say(card(0, A))
        fake_nvml.wait_until_over(FaultKind.NOT_ANSWERING)
        fake_nvml.wait_for_sample(lambda sample: A in sample.devices)


def test_a_library_that_hangs_while_it_is_opened_is_ended_too(fake_nvml):
    fake_nvml.say(card(0, A), hang__nvmlInitWithFlags=1)
    with fake_nvml.supervisor(timeouts=HURRIED._replace(start=0.5)):
        fake_nvml.wait_for_fault(FaultKind.NOT_ANSWERING, detail="nvmlInit")
        fake_nvml.say(card(0, A))
        fake_nvml.wait_for_sample(lambda sample: A in sample.devices)


def test_a_crash_in_the_library_is_named_and_survived(fake_nvml):
    fake_nvml.say(card(0, A) | {"0.crash.nvmlDeviceGetClockInfo": "4x0 1"})
    with fake_nvml.supervisor():
        fault = fake_nvml.wait_for_fault(FaultKind.SAMPLER_CRASHED)
        assert fault.detail == "SIGSEGV in nvmlDeviceGetClockInfo"
        fake_nvml.say(card(0, A))
        fake_nvml.wait_for_sample(lambda sample: A in sample.devices)
        fake_nvml.wait_until_over(FaultKind.SAMPLER_CRASHED)


def test_a_library_that_crashes_again_and_again_is_opened_ever_later(fake_nvml):
    fake_nvml.say(card(0, A), crash__nvmlInitWithFlags=1)
    waits: list[float] = []
    with fake_nvml.supervisor(timeouts=CALM._replace(last_retry=0.8)) as supervisor:
        while 0.8 not in waits:
            fake_nvml.wait_for_sample(lambda sample: not sample.devices)
            # What the sampler was started with; it may have crashed by now.
            with suppress(psutil.Error, ValueError, IndexError):
                started_with = json.loads(psutil.Process(supervisor.pid or 1).cmdline()[-1])
                waits += {started_with["driver_after_seconds"]} - {*waits}
    assert waits == sorted(waits)


def test_a_sampler_that_is_killed_is_started_again(fake_nvml):
    fake_nvml.say(card(0, A))
    with fake_nvml.supervisor() as supervisor:
        fake_nvml.wait_for(lambda latest: latest.readings(A))
        os.kill(supervisor.pid, signal.SIGKILL)
        fault = fake_nvml.wait_for_fault(FaultKind.SAMPLER_FAILED)
        assert fault.detail == "SIGKILL"
        fake_nvml.wait_for_sample(lambda sample: A in sample.devices)


def test_a_sampler_that_is_stopped_is_ended(fake_nvml):
    fake_nvml.say(card(0, A))
    with fake_nvml.supervisor(timeouts=HURRIED) as supervisor:
        fake_nvml.wait_for(lambda latest: latest.readings(A))
        os.kill(supervisor.pid, signal.SIGSTOP)
        fake_nvml.wait_for_fault(FaultKind.NOT_ANSWERING, detail="driver call unknown")
        fake_nvml.wait_for_sample(lambda sample: A in sample.devices)


def test_the_driver_is_let_go_and_taken_up_again(fake_nvml):
    fake_nvml.say(card(0, A))
    with fake_nvml.supervisor() as supervisor:
        fake_nvml.wait_for(lambda latest: latest.readings(A))
        supervisor.release()
        fake_nvml.wait_for_fault(FaultKind.RELEASED)
        assert fake_nvml.calls()[-1] == "nvmlShutdown "
        fake_nvml.wait_for_sample(lambda sample: not sample.devices)
        asked = len(fake_nvml.calls())
        fake_nvml.wait_for_sample()
        assert len(fake_nvml.calls()) == asked
        supervisor.resume()
        fake_nvml.wait_for_sample(lambda sample: A in sample.devices)
        fake_nvml.wait_until_over(FaultKind.RELEASED)


def test_a_sampler_started_while_the_driver_is_let_go_lets_it_go_too(fake_nvml):
    fake_nvml.say(card(0, A))
    with fake_nvml.supervisor() as supervisor:
        fake_nvml.wait_for(lambda latest: latest.readings(A))
        supervisor.release()
        fake_nvml.wait_for_fault(FaultKind.RELEASED)
        os.kill(supervisor.pid, signal.SIGKILL)
        fake_nvml.wait_for_fault(FaultKind.SAMPLER_FAILED)
        fake_nvml.wait_until_over(FaultKind.SAMPLER_FAILED)
        assert (FaultKind.RELEASED, None) in {fault.key for fault in fake_nvml.latest.inventory.faults}
    assert sum(call.startswith("nvmlInit") for call in fake_nvml.calls()) == 1


def test_the_interval_can_be_changed(fake_nvml):
    fake_nvml.say(card(0, A))
    with fake_nvml.supervisor(FAST._replace(fast_seconds=10.0)) as supervisor:
        first = fake_nvml.wait_for_sample()
        supervisor.set_interval(0.01)
        # A tick that was due in ten seconds still is; the next ones follow quickly, at the lowest that is possible.
        os.kill(supervisor.pid, signal.SIGKILL)
        second = fake_nvml.wait_for_sample(lambda sample: sample.monotonic_seconds > first.monotonic_seconds)
        third = fake_nvml.wait_for_sample()
    assert third.monotonic_seconds - second.monotonic_seconds == pytest.approx(0.1, abs=0.09)


def test_calls_never_overlap(fake_nvml):
    fake_nvml.say(card(0, A), card(1, B))
    with fake_nvml.supervisor() as supervisor:
        fake_nvml.wait_for(lambda latest: latest.readings(B))
        supervisor.release()
        supervisor.resume()
        fake_nvml.wait_for_sample()
    assert fake_nvml.calls()
    assert not any(call.startswith("OVERLAP") for call in fake_nvml.calls())


def test_the_parent_may_die_and_nothing_is_left(fake_nvml):
    fake_nvml.say(card(0, A) | {"0.hang.nvmlDeviceGetPowerUsage": "1"})
    program = (
        "import sys, time\n"
        "from planner.monitor.settings import SamplerSettings\n"
        "from planner.monitor.supervisor.supervisor import Supervisor\n"
        "supervisor = Supervisor(lambda update: None, SamplerSettings(0.1))\n"
        "supervisor.start()\n"
        "print(supervisor.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=fake_nvml.environment
    )
    sampler = psutil.Process(int(parent.stdout.readline()))
    # Only when it hangs inside the library is it seen that even then it ends.
    while not any(call.startswith("nvmlDeviceGetPowerUsage") for call in fake_nvml.calls()):
        assert sampler.is_running()
    parent.kill()
    parent.communicate()
    _gone, alive = psutil.wait_procs([sampler], timeout=10)
    assert not alive


def test_inventories_come_before_their_samples(fake_nvml):
    fake_nvml.say(card(0, A))
    with fake_nvml.supervisor():
        fake_nvml.wait_for(lambda latest: latest.readings(A))
    kinds = [type(update) for update in fake_nvml.updates]
    assert kinds.index(Inventory) < kinds.index(Sample)


def test_it_can_be_stopped_at_once_and_twice(fake_nvml: FakeNvml):
    fake_nvml.say(card(0, A))
    supervisor = fake_nvml.supervisor()
    supervisor.stop()
    supervisor.start()
    supervisor.stop()
    supervisor.stop()
    assert supervisor.pid is None


def test_a_driver_that_was_replaced_is_read_by_a_new_process(fake_nvml):
    fake_nvml.say(card(0, A))
    with fake_nvml.supervisor() as supervisor:
        fake_nvml.wait_for(lambda latest: latest.readings(A))
        first = supervisor.pid
        fake_nvml.say(card(0, A) | {"0.error.*": 1}, error__nvmlInitWithFlags=18)
        fake_nvml.wait_for_fault(FaultKind.MISMATCH)
        fake_nvml.wait_for_sample(lambda sample: supervisor.pid not in (None, first))
        assert FaultKind.SAMPLER_FAILED not in {fault.kind for fault in fake_nvml.latest.inventory.faults}
        fake_nvml.say(card(0, A))
        fake_nvml.wait_for_sample(lambda sample: A in sample.devices)


def test_a_sampler_that_cannot_even_begin_is_tried_again_after_a_pause(fake_nvml, monkeypatch):
    shadow = fake_nvml.folder / "shadow"
    shadow.mkdir()
    (shadow / "psutil.py").write_text("raise RuntimeError('no psutil here')\n")
    monkeypatch.setenv("PYTHONPATH", f"{shadow}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    fake_nvml.say(card(0, A))
    with fake_nvml.supervisor():
        fault = fake_nvml.wait_for_fault(FaultKind.SAMPLER_FAILED)
        assert fault.detail == "RuntimeError: no psutil here"
        (shadow / "psutil.py").unlink()
        fake_nvml.wait_for_sample(lambda sample: A in sample.devices)
        fake_nvml.wait_until_over(FaultKind.SAMPLER_FAILED)


def test_a_sampler_that_cannot_be_ended_is_left_and_the_driver_too(fake_nvml, monkeypatch):
    """A process that hangs in the kernel outlives SIGKILL; here it only seems so, for as long as the test wants."""
    hangs = threading.Event()
    hangs.set()
    kill, reap = SamplerProcess.kill, SamplerProcess.reap
    monkeypatch.setattr(SamplerProcess, "kill", lambda self, seconds: False if hangs.is_set() else kill(self, seconds))
    monkeypatch.setattr(SamplerProcess, "reap", lambda self: False if hangs.is_set() else reap(self))
    fake_nvml.say(card(0, A) | {"0.hang.nvmlDeviceGetPowerUsage": "1x0 1"})
    with fake_nvml.supervisor(timeouts=HURRIED) as supervisor:
        first = supervisor.pid
        fake_nvml.wait_for_fault(FaultKind.STUCK)
        fake_nvml.say(card(0, A))
        opened = sum(call.startswith("nvmlInit") for call in fake_nvml.calls())
        fake_nvml.wait_for_sample(lambda sample: not sample.devices)
        fake_nvml.wait_for_sample(lambda sample: not sample.devices)
        assert sum(call.startswith("nvmlInit") for call in fake_nvml.calls()) == opened
        hangs.clear()
        os.kill(first, signal.SIGKILL)
        fake_nvml.wait_until_over(FaultKind.STUCK)
        fake_nvml.wait_for_sample(lambda sample: A in sample.devices)


def test_a_supervisor_that_is_stopped_while_the_driver_hangs_does_not_wait(fake_nvml):
    fake_nvml.say(card(0, A) | {"0.hang.nvmlDeviceGetPowerUsage": "1x0 1"})
    with fake_nvml.supervisor(timeouts=HURRIED._replace(kill=600.0, start=600.0, end=600.0)):
        fake_nvml.wait_for_fault(FaultKind.NOT_ANSWERING)
        began = monotonic()
    assert monotonic() - began < 300


def test_commands_without_a_sampler_do_nothing(fake_nvml):
    supervisor = fake_nvml.supervisor()
    supervisor.set_interval(1.0)
    supervisor.release()
    supervisor.resume()
    assert supervisor.pid is None


def test_good_health_makes_the_next_pause_short_again(fake_nvml):
    fake_nvml.say(card(0, A))
    with fake_nvml.supervisor(timeouts=CALM._replace(healthy=0.0)) as supervisor:
        for _ in range(3):
            fake_nvml.wait_for_sample(lambda sample: A in sample.devices)
            os.kill(supervisor.pid, signal.SIGKILL)
            fake_nvml.wait_for_fault(FaultKind.SAMPLER_FAILED)
            fake_nvml.wait_until_over(FaultKind.SAMPLER_FAILED)
        fake_nvml.wait_for_sample(lambda sample: A in sample.devices)
        retry = supervisor._retry.next_seconds()
    assert retry == CALM.first_retry


def test_a_process_that_cannot_be_started_is_told_and_tried_again(fake_nvml, monkeypatch):
    fake_nvml.say(card(0, A))
    monkeypatch.setattr(sys, "executable", str(fake_nvml.folder / "no-python"))
    with fake_nvml.supervisor():
        fault = fake_nvml.wait_for_fault(FaultKind.SAMPLER_FAILED)
        assert "No such file" in fault.detail
        monkeypatch.undo()
        fake_nvml.wait_for_sample(lambda sample: A in sample.devices)
        fake_nvml.wait_until_over(FaultKind.SAMPLER_FAILED)
