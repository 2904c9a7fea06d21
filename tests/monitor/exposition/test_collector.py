"""What is exposed is what was read last; what is unknown has no series."""

from typing import NamedTuple

from prometheus_client import generate_latest

from planner.monitor.diagnosis.verdict import OtherFinding, Verdict, VerdictKind
from planner.monitor.exposition.collector import Exposition
from planner.monitor.readings.faults import Fault, FaultKind
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import CardProcess, Sample, Xid

CARD = Device("GPU-a", 'NVIDIA "Test"', 0, "00000000:01:00.0", facts={"memory_total_bytes": Reading(24e9)})
PART = Device("MIG-b", "NVIDIA Test 1g", 1, mig_parent="GPU-a", mig_instance=(1, 0))
READINGS = {
    "utilization_fraction": Reading(0.5),
    "power_watts": Reading(0xFFFFFFFF, is_implausible=True),
    "sm_clock_mhz": missing(Cause.NOT_SUPPORTED),
    "clock_reasons": Reading(0x4),
}
PROCESS = CardProcess(7, "GPU-a", "compute", Reading(1e9))


class Predicted(NamedTuple):
    memory_bytes: int
    power_watts: float | None


def samples(exposition):
    """Return the lines of samples, less the age, which changes."""
    lines = generate_latest(exposition.registry).decode().splitlines()
    return [line for line in lines if not line.startswith(("#", "gpu_planner_build", "gpu_planner_scrape"))]


def having(lines, name):
    return [line.partition("{")[2] for line in lines if line.startswith(f"{name}{{")]


def test_before_the_first_reading_only_the_program_is_exposed():
    exposition = Exposition()
    assert samples(exposition) == []
    assert b"gpu_planner_build_info{version=" in generate_latest(exposition.registry)


def test_readings_states_and_errors_are_exposed():
    exposition = Exposition()
    exposition.note(Inventory("580", "13", "13.0", (CARD, PART)))
    readings = {"GPU-a": READINGS, "MIG-b": {"utilization_fraction": Reading(0.0)}}
    sample = Sample(1.0, 2.0, readings, {"cpu_fraction": Reading(0.25)}, (), (PROCESS,), (Xid("GPU-a", 79),) * 2)
    exposition.note(sample)
    found = samples(exposition)
    assert having(found, "gpu_planner_gpu_utilization_ratio") == [
        'gpu="0",uuid="GPU-a"} 0.5',
        'gpu="0:1",uuid="MIG-b"} 0.0',
    ]
    assert having(found, "gpu_planner_gpu_memory_total_bytes") == ['gpu="0",uuid="GPU-a"} 2.4e+10']
    assert having(found, "gpu_planner_gpu_power_watts") == having(found, "gpu_planner_gpu_sm_clock_hertz") == []
    reasons = having(found, "gpu_planner_gpu_clock_reason")
    assert 'gpu="0",reason="power-cap",uuid="GPU-a"} 1.0' in reasons
    assert 'gpu="0",reason="idle",uuid="GPU-a"} 0.0' in reasons
    assert having(found, "gpu_planner_gpu_xid_events_total") == ['gpu="0",uuid="GPU-a",xid="79"} 2.0']
    assert having(found, "gpu_planner_gpu_processes")[0] == 'gpu="0",uuid="GPU-a"} 1.0'
    assert "gpu_planner_host_cpu_ratio 0.25" in found
    assert 'name="NVIDIA \\"Test\\"",pci_bus_id="00000000:01:00.0",uuid="GPU-a"} 1.0' in "".join(found)
    assert b"gpu_planner_scrape_age_seconds" in generate_latest(exposition.registry)


def test_a_card_that_is_silent_or_lost_has_its_state_and_no_readings():
    exposition = Exposition()
    exposition.note(Inventory("580", devices=(CARD,)))
    exposition.note(Sample(1.0, 2.0, {"GPU-a": READINGS}, xids=(Xid("GPU-gone", 31),)))
    faults = (Fault(FaultKind.CARD_NOT_ANSWERING, 1.0, "GPU-a"), Fault(FaultKind.WSL, 1.0))
    exposition.note(Inventory("580", devices=(CARD,), faults=faults))
    found = samples(exposition)
    assert 'gpu="0",state="silent",uuid="GPU-a"} 1.0' in having(found, "gpu_planner_gpu_state")
    assert 'gpu="0",state="ok",uuid="GPU-a"} 0.0' in having(found, "gpu_planner_gpu_state")
    assert having(found, "gpu_planner_gpu_utilization_ratio") == []
    assert having(found, "gpu_planner_fault") == [
        'fault="card-not-answering",gpu="0",severity="warning",uuid="GPU-a"} 1.0',
        'fault="wsl",gpu="",severity="note",uuid=""} 1.0',
    ]
    assert having(found, "gpu_planner_gpu_xid_events_total") == ['gpu="",uuid="GPU-gone",xid="31"} 1.0']
    exposition.note(Inventory("580", devices=(Device("GPU-a", "Test", 0, state="lost"),)))
    assert 'gpu="0",state="lost",uuid="GPU-a"} 1.0' in having(samples(exposition), "gpu_planner_gpu_state")


def test_verdicts_and_predictions_are_exposed():
    exposition = Exposition()
    exposition.note(Inventory("580", devices=(CARD, Device("GPU-b", "Test", 1))))
    also = (OtherFinding(VerdictKind.THERMAL, "warning", "hot"),)
    verdict = Verdict(VerdictKind.HEALTHY, "good", "well used", "All is well.", 0.0, 1.0, also=also)
    exposition.note_verdicts({"GPU-a": verdict})
    exposition.note_predictions({"GPU-a": Predicted(10, 300.0), "GPU-b": Predicted(20, None)})
    found = samples(exposition)
    assert having(found, "gpu_planner_diagnosis") == [
        'gpu="0",severity="good",uuid="GPU-a",verdict="healthy"} 1.0',
        'gpu="0",severity="warning",uuid="GPU-a",verdict="thermal-throttled"} 1.0',
    ]
    assert len(having(found, "gpu_planner_plan_memory_bytes")) == 2
    assert having(found, "gpu_planner_plan_power_watts") == ['gpu="0",uuid="GPU-a"} 300.0']
    exposition.note(Inventory("580", devices=(CARD,), faults=(Fault(FaultKind.CARD_NOT_ANSWERING, 1.0, "GPU-a"),)))
    assert having(samples(exposition), "gpu_planner_diagnosis") == []
