"""Verdicts as text: line, details, evidence and the optimization checklist."""

from dataclasses import replace

import pytest
from diagnosis_kit import OTHER, UUID, a_device, a_history, a_process

from planner.monitor.diagnosis.checklist import CHECKLIST, evaluate_checklist
from planner.monitor.diagnosis.diagnose import diagnose, diagnose_all
from planner.monitor.diagnosis.rules import RULES
from planner.monitor.diagnosis.verdict import Evidence, Verdict, VerdictKind
from planner.monitor.readings.inventory import Device, Inventory
from planner.present import format as fmt
from planner.present.monitor.diagnosis import (
    ChecklistRow,
    checklist_rows,
    checklist_text,
    diagnosis_view,
    evidence_row,
    verdict_details,
    verdict_lines,
)
from planner.units import GIB

T = fmt.THIN


def test_the_details_of_a_card_that_waits_for_data():
    history = a_history(
        utilization_fraction=0.0, host={"cpu_fraction": 0.97}, processes=[a_process()], memory_used_bytes=23.5 * GIB
    )
    found = diagnosis_view(diagnose(history, UUID))
    assert found.tone == "warn"
    assert found.sentence.startswith("Nearly out of memory. A larger batch or")
    assert found.sentence.endswith(" Also: input-bound (the CPU is fully used).")
    history = a_history(utilization_fraction=0.0, host={"cpu_fraction": 0.97}, processes=[a_process()])
    assert diagnosis_view(diagnose(history, UUID)).details.splitlines() == [
        f"For 2{T}min; observed in the last minutes:",
        f"• CPU over 90 % while the GPU is under 10 %: 100{T}% of the time (> 50{T}%; "
        "AWS SageMaker Debugger, CPUBottleneck (smdebug_rulesconfig 1.0.1))",
        f"• CPU: 97{T}% as the median",
        f"• Utilization: 0{T}% on average",
        "",
        "What to try, most likely first:",
        "1. Preprocess once instead of in every epoch: decode, resize and tokenize beforehand, and store the results.",
        "2. Run augmentation on the GPU (torchvision v2 on tensors, Kornia, NVIDIA DALI).",
        "3. Decode less: store images at the size that the model reads.",
        "4. Use a machine with more CPU cores per GPU; more loading processes do not help without free cores.",
        "5. Profile a few steps with torch.profiler: it shows what the GPU waits for.",
    ]


def test_unpublished_thresholds_are_named_heuristics():
    found = diagnosis_view(diagnose(a_history(), UUID))
    assert (found.tone, found.sentence) == ("ok", "Steadily used. Utilization is steadily above 70 %.")
    assert f"Utilization: 95{T}% at the 25th percentile (≥ 70{T}%; heuristic: utilization of 70 % (AWS" in found.details


def test_a_lost_card_has_advice_without_evidence():
    history = a_history(inventory=Inventory("580", devices=(a_device(state="lost"),)))
    assert verdict_details(diagnose(history, UUID)).startswith(
        "What to try, most likely first:\n1. The GPU may have fallen"
    )


def test_what_a_driver_does_not_report_is_named():
    verdict = Verdict(
        VerdictKind.HEALTHY, "good", "well used", "…", 0.0, 1.0, unreported=("clock_reasons", "power_watts")
    )
    text = "Not reported by this driver, so not judged: Clock reasons, Power."
    assert diagnosis_view(verdict).unreported == text
    assert text in diagnosis_view(verdict).details


def test_a_verdict_without_evidence_is_short():
    early = diagnose(a_history(seconds=5), UUID)
    assert verdict_details(early) == ""
    assert diagnosis_view(early).sentence.startswith("Too early to diagnose. A diagnosis needs 20 seconds")


@pytest.mark.parametrize(
    ("metric", "statistic", "value", "shown"),
    [
        ("pcie_bytes_per_s", "mean", 3.2e9, f"PCIe traffic, both directions: 3.2{T}GB/s on average"),
        ("memory_left_bytes", "last", GIB, f"Free memory: 1.00{T}GiB now"),
        ("power_watts", "median", 312.4, f"Power: 312{T}W as the median"),
        ("temperature_celsius", "most", 91.0, f"Temperature: 91{T}°C at most"),
        ("sm_clock_mhz", "median", 1980.0, f"SM clock: 1,980{T}MHz as the median"),
        ("memory_long_seconds", "last", 600.0, f"Observed time: 600{T}s now"),
        ("use_fraction", "swings", 4.0, "Utilization: 4 drops from over 70 to under 30 %"),
        ("host.io_wait_fraction", "median", 0.3, f"Waiting for disks: 30{T}% as the median"),
        (
            "peer_distance",
            "last",
            0.75,
            "Distance between the GPU's utilization histogram and the busiest GPU's: 0.75 now",
        ),
        ("pcie_width", "last", 16.0, "PCIe lanes: 16 now"),
    ],
)
def test_an_observed_value_has_its_unit(metric, statistic, value, shown):
    assert evidence_row(Evidence(metric, statistic, value)).as_text == shown


def test_every_quantity_in_the_rules_has_a_title_and_a_unit():
    conditions = [condition for rule in (*RULES, *CHECKLIST) for condition in rule.conditions]
    told = [Evidence(one.metric, one.statistic, one.threshold, one) for one in conditions]
    told += [Evidence(metric, statistic, 1.0) for rule in RULES for metric, statistic in rule.shown]
    assert all("_" not in evidence_row(one).as_text.split(" (")[0] for one in told)


def test_command_line_verdicts_name_the_card_and_the_first_advice():
    cards = {UUID: {}, OTHER: {"clock_reasons": 0x20}}
    history = a_history(devices=cards)
    lines = verdict_lines(diagnose_all(history), history.inventory.devices)
    assert lines[0] == ("✓ GPU 0: Steadily used. Utilization is steadily above 70 %.", "ok")
    assert lines[1].text.startswith("! GPU 0: Slowed because of heat. The GPU lowers its clock")
    assert lines[2] == ("    Remove dust and whatever blocks the airflow; check that the fans turn.", "")


def test_command_line_verdicts_of_equal_cards_are_one_line():
    devices = tuple(Device(f"GPU-{number}", "NVIDIA H100", number) for number in range(4))
    idle = Verdict(VerdictKind.IDLE, "note", "idle", "Nothing is running on the GPU.", 0.0, 1.0)
    hot = Verdict(VerdictKind.THERMAL, "warning", "too hot", "It is hot.", 0.0, 1.0)
    (line,) = verdict_lines({device.uuid: idle for device in devices}, devices)
    assert line.text == "· 4 × H100: Idle. Nothing is running on the GPU."
    mixed = verdict_lines({device.uuid: hot if device.index == 1 else idle for device in devices}, devices)
    assert [line.text.partition(":")[0] for line in mixed] == ["· GPUs 0, 2, 3", "! GPU 1"]


def test_the_command_line_omits_verdicts_that_are_unknown_or_shown_elsewhere():
    instance = Device("MIG-1", "1g", 3, mig_parent=UUID)
    lost = a_device(state="lost")
    history = a_history(seconds=5, inventory=Inventory("580", devices=(lost, instance)))
    verdict = Verdict(VerdictKind.IDLE, "note", "idle", "Nothing is running on the GPU.", 0.0, 1.0)
    found = {**diagnose_all(history), "MIG-1": verdict}
    assert verdict_lines(found, history.inventory.devices) == (
        ("· instance 3: Idle. Nothing is running on the GPU.", "muted"),
    )
    assert verdict_lines({}, history.inventory.devices) == ()


def test_the_rows_of_the_optimization_checklist():
    history = a_history(utilization_fraction=lambda time: 0.9 if time % 10 < 5 else 0.0, memory_used_bytes=18 * GIB)
    rows = checklist_rows(evaluate_checklist(history, UUID))
    assert [row.standing for row in rows] == [
        "not measured here",
        "worth trying",
        "✓ looks fine",
        "not measured here",
        "✓ looks fine",
        "not measured here",
        "worth trying",
    ]
    assert rows[2].title == "Use a larger batch"
    assert rows[2].seen.startswith(f"Memory in use: 75{T}% at the 95th percentile (≥ 70{T}%; AWS SageMaker")
    assert rows[0].source == "PyTorch, Performance Tuning Guide"
    assert len(rows) == len(CHECKLIST)


def test_the_optimization_checklist_as_text():
    row = ChecklistRow("Profile first", "to do", "Utilization: low", "It shows more.", ("So.", "Or so."), "a guide")
    assert checklist_text((row, replace(row, seen=""))) == (
        "1. Profile first: to do\n   It shows more.\n   Utilization: low\n   • So.\n   • Or so.\n   Source: a guide\n\n"
        "2. Profile first: to do\n   It shows more.\n   • So.\n   • Or so.\n   Source: a guide"
    )
