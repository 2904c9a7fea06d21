"""Faults of the driver and the cards, as the supervisor reports them."""

import os

import pytest
from fake_nvml_kit import FAST, LIBRARY, A, B, C, build, card, states_of

from planner.monitor.readings.faults import FaultKind
from planner.monitor.readings.reading import Cause

pytestmark = pytest.mark.sweep


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
    assert states_of(fake_nvml.latest) == {A: "lost", B: "running"}
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
        assert states_of(fake_nvml.latest) == {A: "lost", B: "running"}
        fake_nvml.say(card(0, A), card(1, B))
        fake_nvml.wait_until_over(FaultKind.LOST, A)
        fake_nvml.wait_for_sample(lambda sample: set(sample.devices) == {A, B})
    assert states_of(fake_nvml.latest) == {A: "running", B: "running"}


def test_a_driver_that_is_reset_is_opened_anew_and_the_cards_keep_their_names(fake_nvml):
    fake_nvml.say(card(0, A), card(1, B))
    with fake_nvml.supervisor():
        fake_nvml.wait_for(lambda latest: latest.readings(B))
        # The next call returns UNINITIALIZED; then the cards have changed places, and the driver its version.
        changed = {"0.error.nvmlDeviceGetMemoryInfo_v2": "1 0", "driver": "590.48.01"}
        fake_nvml.say(card(0, B) | changed, card(1, A))
        fake_nvml.wait_for_fault(FaultKind.DRIVER_RESET)
        fake_nvml.wait_for_sample(lambda sample: set(sample.devices) == {A, B})
    assert states_of(fake_nvml.latest) == {A: "running", B: "running"}
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
        assert states_of(fake_nvml.latest) == {A: "lost", C: "running"}
        fake_nvml.say(card(0, A), card(1, C))
        fake_nvml.wait_until_over(FaultKind.LOST, A)
    assert states_of(fake_nvml.latest) == {A: "running", C: "running"}


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


def test_a_card_that_sleeps_is_not_woken(fake_nvml):
    fake_nvml.say_power_state("suspended")
    fake_nvml.say(card(0, A))
    with fake_nvml.supervisor():
        fake_nvml.wait_for_fault(FaultKind.ASLEEP)
        fake_nvml.wait_for_sample()
        fake_nvml.wait_for_sample()
        assert fake_nvml.calls() == []
        assert states_of(fake_nvml.latest) == {"pci-0000:01:00.0": "asleep"}
        fake_nvml.say_power_state("active")
        fake_nvml.wait_for_sample(lambda sample: A in sample.devices)
    assert states_of(fake_nvml.latest) == {A: "running"}
