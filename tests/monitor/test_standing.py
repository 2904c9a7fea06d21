"""What stands now: put together, kept over samplers, and told as JSON and as a check-up."""

import json

import pytest
from pydantic_core import to_json

from planner.monitor.doctor import binding_version, check_up, what_blocked, what_blocks
from planner.monitor.host.surroundings import Surroundings
from planner.monitor.readings.faults import Fault, FaultKind
from planner.monitor.readings.inventory import Device, Inventory, sort_devices
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.metrics import DEVICE_METRICS, FACTS, HOST_METRICS
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.report import report
from planner.monitor.readings.sample import CardProcess, Cost, HostProcess, Sample
from planner.monitor.supervisor.roster import is_startup_inventory, merge_inventories

A, B = "GPU-a", "GPU-b"
DEVICE = Device(A, "NVIDIA A", 0, "00000000:01:00.0", facts={"memory_total_bytes": Reading(100)})
PLAIN = Surroundings("Linux 6", is_container=False, is_wsl=False, has_own_pids=False)
HOST = HostProcess("python", "me", "python train.py", 0.0, 0.5, 2**30, is_own=True)


def latest_of(*devices, faults=(), **readings):
    latest = Latest()
    latest.note_inventory(Inventory("580", "13", "13.0", devices, faults))
    values = {name: value if isinstance(value, tuple) else Reading(value) for name, value in readings.items()}
    processes = (
        CardProcess(7, A, "compute", Reading(10), host=HOST),
        CardProcess(8, A, "compute", missing(Cause.HIDDEN)),
    )
    latest.note_sample(
        Sample(
            1.0,
            2.0,
            {A: values} if values else {},
            {"cpu_fraction": Reading(0.5), "io_wait_fraction": missing(Cause.NOT_SUPPORTED)},
            (0.5, 0.5),
            processes,
            cost=Cost(0.002, 90, 0.001, 40, 0.003, 2**24),
        )
    )
    return latest


def test_a_reading_stands_until_the_next_of_its_kind():
    latest = latest_of(DEVICE, fan_fraction=0.3, sm_clock_mhz=1)
    latest.note_sample(Sample(2.0, 3.0, {A: {"sm_clock_mhz": Reading(2)}}, {"cpu_fraction": Reading(0.25)}))
    assert latest.reading(A, "fan_fraction").value == 0.3
    assert latest.reading(A, "sm_clock_mhz").value == 2
    assert latest.reading(A, "power_watts").cause is Cause.NOT_YET
    assert latest.host["cpu_fraction"].value == 0.25
    assert len(latest.processes) == 2
    assert latest.reading(B, "power_watts").cause is Cause.NOT_YET


def test_a_card_that_does_not_run_keeps_no_readings():
    latest = latest_of(DEVICE, fan_fraction=0.3)
    latest.note_inventory(Inventory(devices=(Device(A, "a", 0, state="lost"), Device(B, "b", 1, state="asleep"))))
    assert latest.reading(A, "fan_fraction").cause is Cause.LOST
    assert latest.reading(B, "fan_fraction").cause is Cause.ASLEEP
    assert latest.readings(A) == {}
    assert latest.processes == ()


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        (FaultKind.NO_DRIVER, Cause.NO_ANSWER),
        (FaultKind.NOT_ANSWERING, Cause.NO_ANSWER),
        (FaultKind.SAMPLER_CRASHED, Cause.NO_ANSWER),
        (FaultKind.RELEASED, Cause.RELEASED),
    ],
)
def test_what_was_read_before_the_driver_was_gone_does_not_stand(kind, cause):
    latest = latest_of(DEVICE, fan_fraction=0.3)
    latest.note_sample(Sample(2.0, 3.0))
    assert latest.reading(A, "fan_fraction").value == 0.3
    latest.note_inventory(Inventory("580", devices=(DEVICE,), faults=(Fault(kind, 3.0),)))
    assert latest.reading(A, "fan_fraction").value == 0.3
    latest.note_sample(Sample(3.0, 4.0))
    assert latest.reading(A, "fan_fraction").cause is cause
    assert latest.processes == ()
    latest.note_sample(Sample(4.0, 5.0, {A: {"power_watts": Reading(9)}}))
    assert latest.reading(A, "power_watts").value == 9
    assert latest.reading(A, "fan_fraction").cause is Cause.NOT_YET


def test_the_report_names_every_quantity_and_says_why_one_is_missing():
    fault = Fault(FaultKind.IMPLAUSIBLE, 0.0, A, "utilization_fraction")
    latest = latest_of(
        DEVICE,
        faults=(fault,),
        utilization_fraction=Reading(40.0, is_implausible=True),
        clock_reasons=0x44,
        fan_fraction=missing(Cause.NOT_SUPPORTED),
    )
    found = json.loads(to_json(report(latest)))
    assert list(found) == ["devices", "host", "state"]
    (device,) = found["devices"]
    assert set(device["metrics"]) == {metric.name for metric in DEVICE_METRICS}
    assert set(device["facts"]) == {metric.name for metric in FACTS}
    assert set(found["host"]["metrics"]) == {metric.name for metric in HOST_METRICS}
    assert device["metrics"]["utilization_fraction"] == 40
    assert device["implausible"] == ["utilization_fraction"]
    assert device["metrics"]["fan_fraction"] is None
    assert device["missing"]["fan_fraction"] == "not-supported"
    assert device["missing"]["power_watts"] == "not-yet"
    assert device["clock_reasons"] == ["power-cap", "hardware-thermal"]
    assert device["processes"][0]["host"]["started"] == "1970-01-01T00:00:00.000+00:00"
    assert device["processes"][1]["missing"]["memory_bytes"] == "hidden"
    assert found["host"]["cores"] == [0.5, 0.5]
    assert found["state"]["faults"][0]["kind"] == "implausible"
    assert found["state"]["sampler"]["calls"] == 90


def test_a_report_of_nothing_is_one_too():
    found = report(Latest())
    assert found["devices"] == []
    assert found["state"]["at"] is None
    assert found["state"]["driver_version"] is None
    assert found["state"]["sampler"] is None
    assert found["host"]["missing"]["cpu_fraction"] is Cause.NOT_YET


def test_cards_are_not_forgotten_with_their_sampler():
    before = Inventory("580", "13", "13.0", (DEVICE, Device(B, "b", 1)))
    without_driver = merge_inventories(before, Inventory(faults=(Fault(FaultKind.NO_DRIVER, 1.0),)), 9.0)
    assert without_driver.devices == before.devices
    assert without_driver.driver_version == "580"
    assert [fault.kind for fault in without_driver.faults] == [FaultKind.NO_DRIVER]
    other = merge_inventories(before, Inventory("590", devices=(Device(B, "b", 0),)), 9.0)
    assert {device.uuid: device.state for device in other.devices} == {A: "lost", B: "running"}
    assert other.driver_version == "590"
    (lost,) = other.faults
    assert (lost.kind, lost.uuid, lost.since_seconds) == (FaultKind.LOST, A, 9.0)
    assert merge_inventories(other, Inventory("590", devices=(Device(B, "b", 0),)), 12.0).faults[0].since_seconds == 9.0
    assert merge_inventories(other, before, 12.0) == before


def test_cards_keep_their_places_with_their_instances_after_them():
    parts = [Device(f"MIG-{at}", "i", at, mig_parent=A) for at in (1, 0)]
    stray = Device("MIG-9", "i", 2, mig_parent="GPU-unknown")
    found = sort_devices((stray, Device(B, "b", 1), *parts, Device(A, "a", 0, state="lost")))
    assert [device.uuid for device in found] == [A, "MIG-0", "MIG-1", B, "MIG-9"]


def test_instances_and_places_are_not_kept():
    instance = Device("MIG-1", "i", 0, mig_parent=A)
    before = Inventory("580", devices=(DEVICE, instance, Device("pci-0000:01:00.0", "p", 0, state="asleep")))
    assert merge_inventories(before, Inventory("580", devices=(DEVICE,)), 0.0).devices == (DEVICE,)


def test_a_place_is_the_card_that_was_known_there():
    before = Inventory("580", devices=(DEVICE, Device(B, "b", 1, "00000000:02:00.0")))
    asleep = Device("pci-0000:01:00.0", "NVIDIA card at 0000:01:00.0", 0, "0000:01:00.0", state="asleep")
    merged = merge_inventories(before, Inventory(devices=(asleep,)), 0.0)
    assert [(device.uuid, device.state) for device in merged.devices] == [(A, "asleep"), (B, "running")]
    closed = Device("index-1", "card 1", 1, state="lost")
    fault = Fault(FaultKind.LOST, 5.0, "index-1", "returned 15")
    merged = merge_inventories(before, Inventory("580", devices=(DEVICE, closed), faults=(fault,)), 9.0)
    assert [(device.uuid, device.state) for device in merged.devices] == [(A, "running"), (B, "lost")]
    assert merged.faults == (Fault(FaultKind.LOST, 5.0, B, "returned 15"),)


def test_the_first_word_of_a_sampler_says_nothing():
    assert is_startup_inventory(Inventory())
    assert not is_startup_inventory(Inventory(faults=(Fault(FaultKind.NO_DRIVER, 0.0),)))
    assert not is_startup_inventory(Inventory("580"))


def _outcomes(checks):
    return {check.subject: check.outcome for check in checks}


def test_the_check_up_of_a_machine_in_order():
    checks = check_up(latest_of(DEVICE, fan_fraction=0.3), PLAIN, {"0000:01:00.0": "active"}, "13.0")
    assert _outcomes(checks) == {
        "nvidia-ml-py": "works",
        "Driver": "works",
        "PCI": "works",
        "Card 0 NVIDIA A": "works",
        "Machine": "works",
        "System": "note",
        "This monitor": "note",
    }
    assert "1 of 42 quantities" in checks[3].found
    assert "1 of 2 quantities; not reported by this GPU or driver: Waiting for disks" in checks[4].found


def test_the_check_up_says_what_fails_and_what_to_do():
    lost = Device(A, "NVIDIA A", 0, "00000000:01:00.0", state="lost")
    asleep = Device("MIG-1", "1g", 0, mig_parent=A, state="asleep")
    faults = (Fault(FaultKind.LOST, 0.0, A, "seen by nvmlX"), Fault(FaultKind.WSL, 0.0))
    latest = latest_of(lost, asleep, faults=faults)
    place = Surroundings("Linux 6", is_container=True, is_wsl=True, has_own_pids=True)
    checks = check_up(latest, place, {"0000:02:00.0": "asleep"}, None)
    assert [check.outcome for check in checks[:7]] == ["fails", "works", "partly", "fails", "note", "fails", "note"]
    assert all(check.advice for check in checks if check.outcome == "partly")
    assert "0000:02:00.0" in checks[2].advice
    assert checks[5].found == "the card no longer responds (seen by nvmlX)"
    assert checks[-2].found == "Linux 6, in a container, under WSL, in its own PID namespace"


def test_the_check_up_of_a_machine_without_anything():
    checks = check_up(Latest(), PLAIN, {}, None)
    assert _outcomes(checks)["Driver"] == "fails"
    assert _outcomes(checks)["PCI"] == "note"
    assert "This monitor" not in _outcomes(checks)


def test_what_keeps_cards_from_being_read():
    silent = Fault(FaultKind.NOT_ANSWERING, 0.0)
    assert what_blocks(latest_of(DEVICE, faults=(silent,))) is None
    assert what_blocked(latest_of(DEVICE, faults=(silent,))) is silent
    assert what_blocked(latest_of(DEVICE, faults=(silent,), fan_fraction=0.3)) is None
    assert what_blocked(Latest()) is None
    worst = Fault(FaultKind.NO_DRIVER, 5.0)
    latest = Latest()
    latest.note_inventory(Inventory(faults=(Fault(FaultKind.WSL, 0.0), silent, worst)))
    assert what_blocks(latest) is worst


def test_the_binding_of_this_installation_is_known():
    assert binding_version()


def test_a_binding_that_is_not_installed_has_no_version(monkeypatch):
    monkeypatch.setattr("planner.monitor.doctor._DISTRIBUTION", "no-such-distribution")
    assert binding_version() is None
