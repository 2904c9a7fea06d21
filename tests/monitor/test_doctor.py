"""The setup check."""

from state_kit import DEVICE, PLAIN, A, latest_of

from planner.monitor.doctor import (
    binding_version,
    check_setup,
    current_blocking_fault,
    readings_blocking_fault,
    unavailable_error,
)
from planner.monitor.host.environment import HostEnvironment
from planner.monitor.readings.faults import Fault, FaultKind
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.metrics import DEVICE_METRICS


def _outcomes(checks):
    return {check.subject: check.outcome for check in checks}


def test_the_setup_checks_of_a_working_machine():
    checks = check_setup(latest_of(DEVICE, fan_fraction=0.3), PLAIN, {"0000:01:00.0": "active"}, "13.0")
    assert _outcomes(checks) == {
        "nvidia-ml-py": "works",
        "Driver": "works",
        "PCI": "works",
        "GPU 0 NVIDIA A": "works",
        "Host (CPU, RAM, disks, network)": "works",
        "System": "note",
        "This monitor": "note",
    }
    assert f"1 of {len(DEVICE_METRICS)} readings available" in checks[3].found
    assert "1 of 2 readings available; not reported by this driver: Waiting for disks" in checks[4].found


def test_failed_setup_checks_have_advice():
    lost = Device(A, "NVIDIA A", 0, "00000000:01:00.0", state="lost")
    asleep = Device("MIG-1", "1g", 0, mig_parent=A, state="asleep")
    faults = (Fault(FaultKind.LOST, 0.0, A, "seen by nvmlX"), Fault(FaultKind.WSL, 0.0))
    latest = latest_of(lost, asleep, faults=faults)
    place = HostEnvironment("Linux 6", is_container=True, is_wsl=True, has_own_pids=True)
    checks = check_setup(latest, place, {"0000:02:00.0": "asleep"}, None)
    assert [check.outcome for check in checks[:7]] == ["fails", "works", "partly", "fails", "note", "fails", "note"]
    assert all(check.advice for check in checks if check.outcome == "partly")
    assert "0000:02:00.0" in checks[2].advice
    assert checks[5].found == "the GPU no longer responds (seen by nvmlX)"
    assert "()" not in checks[6].found
    assert {"GPU 0 NVIDIA A", "Instance 1g"} <= {check.subject for check in checks}
    assert checks[-2].found == "Linux 6, in a container, under WSL, in its own PID namespace"


def test_the_setup_checks_of_a_machine_without_cards():
    checks = check_setup(Latest(), PLAIN, {}, None)
    assert _outcomes(checks)["Driver"] == "fails"
    assert _outcomes(checks)["PCI"] == "note"
    assert "This monitor" not in _outcomes(checks)


def test_the_fault_that_prevents_reading_all_cards():
    silent = Fault(FaultKind.NOT_ANSWERING, 0.0)
    assert current_blocking_fault(latest_of(DEVICE, faults=(silent,))) is None
    assert readings_blocking_fault(latest_of(DEVICE, faults=(silent,))) is silent
    assert readings_blocking_fault(latest_of(DEVICE, faults=(silent,), fan_fraction=0.3)) is None
    assert readings_blocking_fault(Latest()) is None
    worst = Fault(FaultKind.NO_DRIVER, 5.0)
    latest = Latest()
    latest.note_inventory(Inventory(faults=(Fault(FaultKind.WSL, 0.0), silent, worst)))
    assert current_blocking_fault(latest) is worst


def test_the_error_names_the_fault_with_its_detail_and_advice():
    error = unavailable_error(Fault(FaultKind.NOT_ANSWERING, 0.0, detail="nvmlInit"))
    assert error.kind == "not-answering"
    assert error.reason.endswith(" (nvmlInit)")
    assert error.hint.endswith("See also: gpu-planner monitor --doctor")
    assert unavailable_error(Fault(FaultKind.NO_DRIVER, 0.0)).reason.count("(") == 0


def test_the_installed_binding_has_a_version():
    assert binding_version()


def test_a_binding_that_is_not_installed_has_no_version(monkeypatch):
    monkeypatch.setattr("planner.monitor.doctor._DISTRIBUTION", "no-such-distribution")
    assert binding_version() is None


def test_the_setup_check_of_this_machine_is_no_advice_for_another():
    error = unavailable_error(Fault(FaultKind.UNREACHABLE, 1.0))
    assert "--doctor" not in error.hint


def test_cards_of_other_drivers_work_without_nvidias():
    latest = latest_of()
    latest.note_inventory(Inventory(devices=(Device("AMD-1", "AMD X", 0, driver="amdgpu"),)))
    checks = {check.subject: check for check in check_setup(latest, PLAIN, {}, None)}
    assert (checks["Driver"].outcome, checks["Driver"].found) == ("works", "amdgpu")
    assert current_blocking_fault(latest) is None
