"""Every rule holds beyond its thresholds and does not hold below them."""

from functools import cache

import pytest
from diagnosis_kit import GPM, IDLE, OTHER, UUID, a_history, a_process, imbalanced

from planner.monitor.diagnosis.diagnose import diagnose, diagnose_all
from planner.monitor.diagnosis.rules import RULES
from planner.monitor.diagnosis.verdict import VerdictKind
from planner.units import GIB


def saw(high, low, period=10, share=0.5):
    return lambda time: high if time % period < share * period else low


def growing(start, per_second):
    return lambda time: (start + per_second * time) * GIB


LOW = {"utilization_fraction": 0.4, "memory_used_bytes": 20 * GIB}
# A verdict, and histories that lead to it.
CASES = [
    (VerdictKind.MEMORY_ERRORS, {"remapping_failed": 1.0}),
    (VerdictKind.MEMORY_ERRORS, {"remapping_failed": 0.0, "remapped_uncorrected": 2.0}),
    (VerdictKind.THERMAL, {"clock_reasons": 0x20}),
    (VerdictKind.THERMAL, {"clock_reasons": 0x20, "fan_fraction": 0.4}),
    (VerdictKind.THERMAL, {"clock_reasons": 0x40 | 0x8}),
    (VerdictKind.THERMAL, {"clock_reasons": 0x8}),
    (VerdictKind.POWER_BRAKE, {"clock_reasons": 0x80 | 0x8}),
    (VerdictKind.LEAK, {"seconds": 700, "memory_used_bytes": growing(10, 0.01)}),
    (VerdictKind.LEAK, {"seconds": 1700, "every": 5.0, "memory_used_bytes": growing(10, 2 / 3600)}),
    (VerdictKind.NEAR_FULL, {"memory_used_bytes": 23 * GIB}),
    (VerdictKind.NEAR_FULL, {"memory_free_bytes": 1 * GIB}),
    (VerdictKind.UNEXPLAINED, {"memory_used_bytes": 0.0}),
    (VerdictKind.HEALTHY, {**LOW, "processes": [a_process(kind="graphics")]}),
    (VerdictKind.MEDIA, {"utilization_fraction": 0.08, "encoder_fraction": 0.6}),
    (VerdictKind.MEDIA, {"utilization_fraction": 0.02, "decoder_fraction": 0.3}),
    (VerdictKind.INPUT_BOUND, {"utilization_fraction": saw(0.5, 0.02, share=0.3), "host": {"cpu_fraction": 0.97}}),
    (
        VerdictKind.INPUT_BOUND,
        {"utilization_fraction": 0.0, "host": {"cpu_fraction": 0.97}, "processes": [a_process()]},
    ),
    (VerdictKind.INPUT_BOUND, {"utilization_fraction": saw(0.5, 0.02, share=0.3), "host": {"io_wait_fraction": 0.6}}),
    (VerdictKind.INPUT_BOUND, {**LOW, "host": {"cpu_fraction": 0.95}}),
    (VerdictKind.INPUT_BOUND, {**LOW, "host": {"io_wait_fraction": 0.15}}),
    (VerdictKind.IDLE_HELD, {"utilization_fraction": 0.0, "processes": [a_process()]}),
    (VerdictKind.IDLE, IDLE),
    (VerdictKind.IDLE_HELD, {"utilization_fraction": 0.0}),
    (VerdictKind.IDLE, {**IDLE, "memory_used_bytes": 4 * GIB, "processes": [a_process(kind="graphics")]}),
    (VerdictKind.IDLE, {"utilization_fraction": 0.02, "processes": [a_process(memory=None, kind="graphics")]}),
    (VerdictKind.TRANSFER_BOUND, {"utilization_fraction": 0.5, "pcie_receive_bytes_per_s": 24e9}),
    (
        VerdictKind.TRANSFER_BOUND,
        {"utilization_fraction": 0.5, "pcie_receive_bytes_per_s": 14e9, "pcie_generation": None},
    ),
    (VerdictKind.TRANSFER_BOUND, {**LOW, **GPM, "sm_active_fraction": 0.2, "pcie_receive_bytes_per_s": 3e9}),
    (VerdictKind.HOST_BOUND, {**LOW, "processes": [a_process(cpu=1.0)]}),
    (VerdictKind.FLUCTUATING, {"utilization_fraction": saw(1.0, 0.0)}),
    (VerdictKind.FLUCTUATING, {"utilization_fraction": saw(1.0, 0.2)}),
    (VerdictKind.FLUCTUATING, {"utilization_fraction": lambda time: 0.0 if time % 20 < 2 else 0.97}),
    (VerdictKind.UNDER_FILLED, {"utilization_fraction": 0.4, "memory_used_bytes": 5 * GIB}),
    (VerdictKind.SYNC_BOUND, LOW),
    (VerdictKind.SYNC_BOUND, {**GPM, "sm_active_fraction": 0.2}),
    (VerdictKind.SYNC_BOUND, {**GPM, "sm_active_fraction": 0.45}),
    (VerdictKind.SYNC_BOUND, {"power_watts": 100.0}),
    (VerdictKind.UNDER_USED, {**LOW, "host": {"cpu_fraction": 0.8}}),
    (VerdictKind.UNDER_USED, {"utilization_fraction": saw(0.75, 0.6)}),
    # Two works in the time that is looked at: the later one is told.
    (VerdictKind.SYNC_BOUND, {**LOW, "utilization_fraction": lambda time: 1.0 if time < 80 else 0.4}),
    (VerdictKind.HEALTHY, {"utilization_fraction": lambda time: 0.4 if time < 85 else 1.0}),
    (VerdictKind.POWER_CAPPED, {"clock_reasons": 0x4, "power_watts": 348.0, "sm_clock_mhz": 1600}),
    (VerdictKind.MEMORY_BOUND, {**GPM, "sm_active_fraction": 0.45, "dram_active_fraction": 0.7}),
    (VerdictKind.MEMORY_BOUND, {"memory_controller_fraction": 0.8}),
    (VerdictKind.COMPUTE_BOUND, {**GPM, "sm_active_fraction": 0.7, "tensor_active_fraction": 0.6}),
    (VerdictKind.COMPUTE_BOUND, GPM),
    (VerdictKind.COMPUTE_BOUND, {"power_watts": 330.0}),
    (VerdictKind.HEALTHY, {}),
    # What looks like the worse, and is not.
    (VerdictKind.IDLE, {**IDLE, "clock_reasons": 0x4, "power_watts": 39.0}),
    (VerdictKind.HEALTHY, {"clock_reasons": 0x4}),
    (VerdictKind.COMPUTE_BOUND, {"clock_reasons": 0x4, "power_watts": 348.0, "sm_clock_mhz": 1950}),
    (VerdictKind.HEALTHY, {"clock_reasons": lambda time: 0x20 if time == 100 else 0}),
    (VerdictKind.IDLE, {**IDLE, "host": {"cpu_fraction": 0.99}}),
    (VerdictKind.IDLE, {**IDLE, "pcie_generation": 1, "memory_controller_fraction": 0.23}),
    (VerdictKind.HEALTHY, {"processes": [a_process(cpu=1.0)]}),
    (VerdictKind.HEALTHY, {"host": {"cpu_fraction": 0.99}}),
    (VerdictKind.HEALTHY, {"utilization_fraction": lambda time: 0.0 if 60 < time < 75 else 0.97}),
    (VerdictKind.HEALTHY, {"seconds": 700, "memory_used_bytes": lambda time: (4 if time < 300 else 18) * GIB}),
    (VerdictKind.HEALTHY, {"seconds": 200, "memory_used_bytes": growing(4, 0.05)}),
    (VerdictKind.HEALTHY, {"seconds": 700, "memory_used_bytes": saw(20 * GIB, 10 * GIB, 100)}),
    (VerdictKind.HEALTHY, {"pcie_generation": 9}),
    (VerdictKind.HEALTHY, {"power_limit_watts": 0.0}),
]


@cache
def verdict_on(place):
    return diagnose(a_history(**CASES[place][1]), UUID)


@pytest.mark.parametrize("place", range(len(CASES)), ids=[f"{place}-{kind}" for place, (kind, _) in enumerate(CASES)])
def test_each_history_leads_to_its_verdict(place):
    verdict = verdict_on(place)
    assert verdict.kind is CASES[place][0], verdict
    assert verdict.sentence.endswith(".")
    assert all(one.condition is None or one.condition.holds(one.seen) for one in verdict.evidence)


SPINNING = {"utilization_fraction": 1.0, "memory_controller_fraction": 0.0, "power_watts": 110.0}


def of_one_job(*cards):
    """Return the history of equal cards without process data."""
    return a_history(devices=dict(zip((UUID, OTHER), cards, strict=True)))


def test_every_rule_is_reached_by_some_history():
    verdicts = [
        *map(verdict_on, range(len(CASES))),
        diagnose(imbalanced(), OTHER),
        *diagnose_all(of_one_job({"power_watts": 320.0}, {"power_watts": 120.0})).values(),
        diagnose(of_one_job(SPINNING, SPINNING), UUID),
        diagnose(of_one_job(SPINNING, {"utilization_fraction": 0.0}), UUID),
    ]
    told = {tuple(one.condition for one in verdict.evidence if one.condition) for verdict in verdicts}
    assert [rule.title for rule in RULES if rule.conditions not in told] == []
