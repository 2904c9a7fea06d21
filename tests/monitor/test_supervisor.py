"""The sampler in a process of its own, against a library that fails in every way."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from time import monotonic

import psutil
import pytest
from fake_nvml_kit import CALM, FAST, HURRIED, LIBRARY, A, B, C, FakeNvml, build, card

from planner.monitor.child import Child
from planner.monitor.faults import FaultKind
from planner.monitor.inventory import Inventory
from planner.monitor.reading import Cause
from planner.monitor.sample import Sample


def states(latest):
    return {device.uuid: device.state for device in latest.inventory.devices}


@pytest.fixture(autouse=True)
def nothing_is_left():
    """Look for processes, threads and files that a supervisor left behind."""
    me = psutil.Process()
    before = threading.active_count(), me.num_fds(), len(me.children(recursive=True))
    yield
    assert (threading.active_count(), me.num_fds(), len(me.children(recursive=True))) == before


def test_readings_arrive_in_their_units(fake_nvml):
    fake_nvml.say(card(0, A))
    with fake_nvml.supervisor():
        latest = fake_nvml.wait_for(lambda latest: latest.readings(A))
    assert latest.reading(A, "utilization_fraction").value == 0.5
    assert latest.reading(A, "memory_used_bytes").value == 2**30
    assert latest.reading(A, "power_watts").value == 200
    assert latest.reading(A, "pcie_transmit_bytes_per_s").value == 1_000_000
    assert latest.reading(A, "pcie_receive_bytes_per_s").value == 7_000_000
    assert latest.reading(A, "memory_temperature_celsius").cause is Cause.NOT_SUPPORTED
    assert latest.inventory.driver_version == "580.65.06"
    assert latest.inventory.cuda_version == "13.0"


def test_a_library_that_is_missing_is_named_and_the_machine_is_still_read(fake_nvml):
    (fake_nvml.folder / "empty").mkdir()
    fake_nvml.library = fake_nvml.folder / "empty" / LIBRARY
    with fake_nvml.supervisor():
        fake_nvml.wait_for_fault(FaultKind.NO_LIBRARY)
        sample = fake_nvml.wait_for_sample(lambda sample: sample.host["cpu_fraction"].value is not None)
    assert sample.devices == {}


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (9, FaultKind.NO_DRIVER),
        (18, FaultKind.MISMATCH),
        (4, FaultKind.NO_PERMISSION),
        (999, FaultKind.DRIVER_ERROR),
    ],
)
def test_a_driver_that_cannot_be_opened_is_tried_again(fake_nvml, code, kind):
    fake_nvml.say(card(0, A), error__nvmlInitWithFlags=code)
    with fake_nvml.supervisor():
        fault = fake_nvml.wait_for_fault(kind)
        assert fault.since_seconds > 0
        fake_nvml.say(card(0, A))
        inventory = fake_nvml.wait_until_over(kind)
    assert [device.uuid for device in inventory.devices] == [A]


def test_a_driver_without_cards_says_so(fake_nvml):
    fake_nvml.say()
    with fake_nvml.supervisor():
        fake_nvml.wait_for_fault(FaultKind.NO_CARDS)


def test_a_card_that_is_lost_does_not_take_the_others_along(fake_nvml):
    # The card goes in the middle of its third sweep.
    lost = {"0.error.nvmlDeviceGetPowerUsage": "2x0 15"}
    fake_nvml.say(card(0, A) | lost, card(1, B))
    with fake_nvml.supervisor(FAST._replace(look_again_seconds=60.0)):
        fake_nvml.wait_for_fault(FaultKind.LOST, A)
        asked = len([call for call in fake_nvml.calls() if call.endswith(" 0")])
        fake_nvml.wait_for_sample(lambda sample: set(sample.devices) == {B})
        fake_nvml.wait_for_sample(lambda sample: set(sample.devices) == {B})
    assert states(fake_nvml.latest) == {A: "lost", B: "running"}
    assert fake_nvml.latest.reading(A, "utilization_fraction").cause is Cause.LOST
    assert len([call for call in fake_nvml.calls() if call.endswith(" 0")]) == asked


def test_a_card_that_was_lost_is_looked_for_and_found(fake_nvml):
    gone = {"0.error.*": "15"}
    fake_nvml.say(card(0, A), card(1, B))
    with fake_nvml.supervisor():
        fake_nvml.wait_for(lambda latest: latest.readings(A))
        fake_nvml.say(card(0, A) | gone, card(1, B))
        fake_nvml.wait_for_fault(FaultKind.LOST, A)
        # While it is looked for it cannot even be opened: it stays the card that it was.
        asked = sum(call.startswith("nvmlInit") for call in fake_nvml.calls())
        fake_nvml.wait_for_sample(lambda sample: sum(call.startswith("nvmlInit") for call in fake_nvml.calls()) > asked)
        assert states(fake_nvml.latest) == {A: "lost", B: "running"}
        fake_nvml.say(card(0, A), card(1, B))
        fake_nvml.wait_until_over(FaultKind.LOST, A)
        fake_nvml.wait_for_sample(lambda sample: set(sample.devices) == {A, B})
    assert states(fake_nvml.latest) == {A: "running", B: "running"}


def test_a_call_that_hangs_is_named_then_ended_and_the_machine_is_read_meanwhile(fake_nvml):
    fake_nvml.say(card(0, A) | {"0.hang.nvmlDeviceGetPowerUsage": "2x0 1"}, card(1, B))
    with fake_nvml.supervisor(patience=HURRIED) as supervisor:
        fake_nvml.wait_for(lambda latest: latest.readings(B))
        first = supervisor.pid
        fake_nvml.wait_for_fault(FaultKind.NOT_ANSWERING, detail=f"nvmlDeviceGetPowerUsage of {A}")
        sample = fake_nvml.wait_for_sample(lambda sample: not sample.devices)
        assert sample.host["memory_used_bytes"].value
        assert not psutil.pid_exists(first)
        fake_nvml.say(card(0, A), card(1, B))
        fake_nvml.wait_for_sample(lambda sample: set(sample.devices) == {A, B})
        fake_nvml.wait_until_over(FaultKind.NOT_ANSWERING)
    assert states(fake_nvml.latest) == {A: "running", B: "running"}


def test_a_library_that_hangs_while_it_is_opened_is_ended_too(fake_nvml):
    fake_nvml.say(card(0, A), hang__nvmlInitWithFlags=1)
    with fake_nvml.supervisor(patience=HURRIED._replace(start=0.5)):
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
    with fake_nvml.supervisor(patience=HURRIED) as supervisor:
        fake_nvml.wait_for(lambda latest: latest.readings(A))
        os.kill(supervisor.pid, signal.SIGSTOP)
        fake_nvml.wait_for_fault(FaultKind.NOT_ANSWERING, detail="the sampler does not say why")
        fake_nvml.wait_for_sample(lambda sample: A in sample.devices)


def test_a_driver_that_is_reset_is_opened_anew_and_the_cards_keep_their_names(fake_nvml):
    fake_nvml.say(card(0, A), card(1, B))
    with fake_nvml.supervisor():
        fake_nvml.wait_for(lambda latest: latest.readings(B))
        # The next call returns UNINITIALIZED; then the cards have changed places, and the driver its version.
        changed = {"0.error.nvmlDeviceGetMemoryInfo_v2": "1 0", "driver": "590.48.01"}
        fake_nvml.say(card(0, B) | changed, card(1, A))
        fake_nvml.wait_for_fault(FaultKind.DRIVER_RESET)
        fake_nvml.wait_for_sample(lambda sample: set(sample.devices) == {A, B})
    assert states(fake_nvml.latest) == {A: "running", B: "running"}
    assert fake_nvml.latest.inventory.driver_version == "590.48.01"
    assert {device.uuid: device.index for device in fake_nvml.latest.inventory.devices} == {A: 1, B: 0}


def test_a_card_that_comes_is_found_and_one_that_goes_is_told_as_lost(fake_nvml):
    fake_nvml.say(card(0, A))
    with fake_nvml.supervisor():
        fake_nvml.wait_for(lambda latest: latest.readings(A))
        fake_nvml.say(card(0, C), card(1, A))
        fake_nvml.wait_for_sample(lambda sample: set(sample.devices) == {A, C})
        fake_nvml.say(card(0, C))
        fake_nvml.wait_for_fault(FaultKind.LOST, A)
        assert states(fake_nvml.latest) == {A: "lost", C: "running"}
        fake_nvml.say(card(0, A), card(1, C))
        fake_nvml.wait_until_over(FaultKind.LOST, A)
    assert states(fake_nvml.latest) == {A: "running", C: "running"}


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


def test_a_name_that_is_no_text_is_replaced_by_the_place(fake_nvml):
    fake_nvml.say(card(0, A, name="NVIDIA \\xf8\\x9d"))
    with fake_nvml.supervisor():
        fake_nvml.wait_for_fault(FaultKind.BAD_NAME, A)
    (device,) = fake_nvml.latest.inventory.devices
    assert device.name == "00000000:00:00.0"
    assert device.raw_name == "NVIDIA \\xf8\\x9d"


def test_what_cannot_be_true_is_kept_and_marked(fake_nvml):
    fake_nvml.say(card(0, A, utilization=4000, temperature__0=900))
    with fake_nvml.supervisor():
        fake_nvml.wait_for_fault(FaultKind.IMPLAUSIBLE, A, "temperature_celsius, utilization_fraction")
        latest = fake_nvml.wait_for(lambda latest: latest.reading(A, "utilization_fraction").is_implausible)
        assert latest.reading(A, "utilization_fraction").value == 40
        fake_nvml.say(card(0, A))
        fake_nvml.wait_until_over(FaultKind.IMPLAUSIBLE, A)


def test_functions_that_an_old_driver_lacks_are_replaced_or_named(fake_nvml, tmp_path):
    lacking = (
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetTemperatureV",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetComputeRunningProcesses_v2",
        "nvmlDeviceGetFanSpeed",
        "nvmlDeviceGetFieldValues",
        "nvmlEventSetCreate",
        "nvmlGpmQueryDeviceSupport",
    )
    fake_nvml.library = build(tmp_path / "old", lacking)
    fake_nvml.say(card(0, A) | {"0.process.compute": f"{os.getpid()}:4096"})
    with fake_nvml.supervisor():
        latest = fake_nvml.wait_for(lambda latest: latest.readings(A) and latest.processes)
    assert latest.reading(A, "memory_used_bytes").value == 2**30 + 2**28
    assert latest.reading(A, "memory_reserved_bytes").cause is Cause.MISSING_SYMBOL
    assert latest.reading(A, "temperature_celsius").value == 60
    assert latest.reading(A, "clock_reasons").value == 0
    assert latest.reading(A, "fan_fraction").cause is Cause.MISSING_SYMBOL
    assert latest.reading(A, "energy_joules").cause is Cause.MISSING_SYMBOL
    assert latest.reading(A, "sm_active_fraction").cause is Cause.MISSING_SYMBOL
    assert [(one.pid, one.memory_bytes.value) for one in latest.processes] == [(os.getpid(), 4096)]


def test_the_wrong_binding_is_recognised(fake_nvml, monkeypatch):
    package = fake_nvml.folder / "shadow" / "pynvml"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("def nvmlInit(): pass\n")
    monkeypatch.setenv("PYTHONPATH", f"{package.parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    fake_nvml.say(card(0, A))
    with fake_nvml.supervisor():
        fault = fake_nvml.wait_for_fault(FaultKind.WRONG_BINDING)
        fake_nvml.wait_for_sample()
    assert fault.detail == str(package / "__init__.py")


def test_a_binding_that_is_missing_is_named(fake_nvml, monkeypatch):
    shadow = fake_nvml.folder / "shadow"
    shadow.mkdir()
    (shadow / "pynvml.py").write_text("raise ImportError('not here')\n")
    monkeypatch.setenv("PYTHONPATH", f"{shadow}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    with fake_nvml.supervisor():
        fake_nvml.wait_for_fault(FaultKind.NO_BINDING)


def _pci_card(folder: Path, place: str, status: str, control: str = "auto") -> Path:
    card_folder = folder / "pci" / place
    (card_folder / "power").mkdir(parents=True, exist_ok=True)
    (card_folder / "vendor").write_text("0x10de\n")
    (card_folder / "class").write_text("0x030200\n")
    (card_folder / "power" / "control").write_text(f"{control}\n")
    (card_folder / "power" / "runtime_status").write_text(f"{status}\n")
    return card_folder


def test_a_card_that_sleeps_is_not_woken(fake_nvml):
    place = _pci_card(fake_nvml.folder, "0000:01:00.0", "suspended")
    fake_nvml.say(card(0, A))
    with fake_nvml.supervisor():
        fake_nvml.wait_for_fault(FaultKind.ASLEEP)
        fake_nvml.wait_for_sample()
        fake_nvml.wait_for_sample()
        assert fake_nvml.calls() == []
        assert states(fake_nvml.latest) == {"pci-0000:01:00.0": "asleep"}
        (place / "power" / "runtime_status").write_text("active\n")
        fake_nvml.wait_for_sample(lambda sample: A in sample.devices)
    assert states(fake_nvml.latest) == {A: "running"}


def test_the_parent_may_die_and_nothing_is_left(fake_nvml):
    fake_nvml.say(card(0, A) | {"0.hang.nvmlDeviceGetPowerUsage": "1"})
    program = (
        "import sys, time\n"
        "from planner.monitor.settings import Settings\n"
        "from planner.monitor.supervisor import Supervisor\n"
        "supervisor = Supervisor(lambda update: None, Settings(0.1))\n"
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
    kill, reap = Child.kill, Child.reap
    monkeypatch.setattr(Child, "kill", lambda self, seconds: False if hangs.is_set() else kill(self, seconds))
    monkeypatch.setattr(Child, "reap", lambda self: False if hangs.is_set() else reap(self))
    fake_nvml.say(card(0, A) | {"0.hang.nvmlDeviceGetPowerUsage": "1x0 1"})
    with fake_nvml.supervisor(patience=HURRIED) as supervisor:
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
    with fake_nvml.supervisor(patience=HURRIED._replace(kill=60.0, start=60.0, end=60.0)):
        fake_nvml.wait_for_fault(FaultKind.NOT_ANSWERING)
        began = monotonic()
    assert monotonic() - began < 30


def test_commands_without_a_sampler_do_nothing(fake_nvml):
    supervisor = fake_nvml.supervisor()
    supervisor.set_interval(1.0)
    supervisor.release()
    supervisor.resume()
    assert supervisor.pid is None


def test_good_health_makes_the_next_pause_short_again(fake_nvml):
    fake_nvml.say(card(0, A))
    with fake_nvml.supervisor(patience=CALM._replace(healthy=0.0)) as supervisor:
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
