"""Every rule holds where it should, and on the near side of its thresholds it does not."""

from dataclasses import replace
from functools import cache

import pytest
from diagnosis_kit import OTHER, UUID, a_device, a_history, a_process

from planner.monitor.diagnosis.diagnose import diagnose, diagnose_all
from planner.monitor.diagnosis.rules import RULES
from planner.monitor.diagnosis.verdict import VerdictKind
from planner.monitor.readings.faults import Fault, FaultKind
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.reading import Cause, missing
from planner.monitor.readings.sample import Sample
from planner.units import GIB


def saw(high, low, period=10, share=0.5):
    return lambda time: high if time % period < share * period else low


def growing(start, per_second):
    return lambda time: (start + per_second * time) * GIB


GPM = {"graphics_active_fraction": 0.95, "sm_active_fraction": 0.9, "tensor_active_fraction": 0.2}
LOW = {"utilization_fraction": 0.4, "memory_used_bytes": 20 * GIB}

# A verdict, and histories that lead to it.
CASES = [
    (VerdictKind.MEMORY_ERRORS, {"remapping_failed": 1.0}),
    (VerdictKind.MEMORY_ERRORS, {"remapping_failed": 0.0, "remapped_uncorrected": 2.0}),
    (VerdictKind.THERMAL, {"clock_reasons": 0x20}),
    (VerdictKind.THERMAL, {"clock_reasons": 0x40 | 0x8}),
    (VerdictKind.THERMAL, {"clock_reasons": 0x8}),
    (VerdictKind.POWER_BRAKE, {"clock_reasons": 0x80 | 0x8}),
    (VerdictKind.LEAK, {"seconds": 700, "memory_used_bytes": growing(10, 0.01)}),
    (VerdictKind.NEAR_FULL, {"memory_used_bytes": 23 * GIB}),
    (VerdictKind.NEAR_FULL, {"memory_free_bytes": 1 * GIB}),
    (VerdictKind.UNEXPLAINED, {"memory_used_bytes": 0.0}),
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
    (VerdictKind.IDLE, {"utilization_fraction": 0.0}),
    (VerdictKind.IDLE, {"utilization_fraction": 0.02, "processes": [a_process(kind="graphics")]}),
    (VerdictKind.IDLE, {"utilization_fraction": 0.02, "processes": [a_process(memory=None)]}),
    (VerdictKind.TRANSFER_BOUND, {"utilization_fraction": 0.5, "pcie_receive_bytes_per_s": 24e9}),
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
    (VerdictKind.IDLE, {"utilization_fraction": 0.0, "clock_reasons": 0x4, "power_watts": 39.0}),
    (VerdictKind.HEALTHY, {"clock_reasons": 0x4}),
    (VerdictKind.COMPUTE_BOUND, {"clock_reasons": 0x4, "power_watts": 348.0, "sm_clock_mhz": 1950}),
    (VerdictKind.HEALTHY, {"clock_reasons": lambda time: 0x20 if time == 100 else 0}),
    (VerdictKind.IDLE, {"utilization_fraction": 0.0, "host": {"cpu_fraction": 0.99}}),
    (VerdictKind.IDLE, {"utilization_fraction": 0.0, "pcie_generation": 1, "memory_controller_fraction": 0.23}),
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
def test_shapes(place):
    verdict = verdict_on(place)
    assert verdict.kind is CASES[place][0], verdict
    assert verdict.sentence.endswith(".")
    assert all(one.condition is None or one.condition.holds(one.seen) for one in verdict.evidence)


def imbalanced(first=0.95, second=0.5, **changes):
    same = {"command": "python train.py --local_rank=0"}, {"command": "python train.py --local_rank=1", **changes}
    processes = [a_process(UUID, pid=1, **same[0]), a_process(OTHER, pid=2, **same[1])]
    cards = {UUID: {"utilization_fraction": first}, OTHER: {"utilization_fraction": second}}
    return a_history(devices=cards, processes=processes)


def test_of_cards_that_work_at_the_same_the_one_that_works_less_is_told():
    found = diagnose_all(imbalanced())
    assert [verdict.kind for verdict in found.values()] == [VerdictKind.HEALTHY, VerdictKind.IMBALANCE]
    lag = next(one.seen for one in found[OTHER].evidence if one.metric == "peer_lag")
    assert lag == pytest.approx(0.45)


@pytest.mark.parametrize(
    "history",
    [
        imbalanced(0.99, 0.89),
        imbalanced(command="python other.py"),
        imbalanced(user="bob"),
        imbalanced(kind="graphics"),
        imbalanced(command=""),
    ],
    ids=["a little less", "another task", "another user", "a desktop", "not known"],
)
def test_cards_that_work_at_different_things_are_not_compared(history):
    assert VerdictKind.IMBALANCE not in {verdict.kind for verdict in diagnose_all(history).values()}


def test_a_peer_that_was_not_read_is_no_peer():
    processes = [a_process(UUID), a_process(OTHER, pid=2)]
    history = a_history(devices={UUID: {}, OTHER: {"utilization_fraction": None}}, processes=processes)
    assert diagnose(history, UUID).kind is VerdictKind.HEALTHY
    assert diagnose(history, OTHER).kind is VerdictKind.UNKNOWN


def test_every_rule_is_the_verdict_of_some_history():
    verdicts = [*map(verdict_on, range(len(CASES))), diagnose(imbalanced(), OTHER)]
    told = {tuple(one.condition for one in verdict.evidence if one.condition) for verdict in verdicts}
    assert [rule.title for rule in RULES if rule.conditions not in told] == []


def test_troubles_come_first_and_what_else_is_wrong_beside_them():
    history = a_history(clock_reasons=0x20, memory_used_bytes=23.5 * GIB, power_watts=330.0)
    verdict = diagnose(history, UUID)
    assert verdict.kind is VerdictKind.THERMAL
    assert [also.kind for also in verdict.also] == [VerdictKind.NEAR_FULL, VerdictKind.COMPUTE_BOUND]


def test_what_was_just_begun_is_not_judged_but_for_what_shows_at_once():
    assert diagnose(a_history(seconds=10), UUID).kind is VerdictKind.TOO_EARLY
    assert "20 seconds of steady work; so far there are 10" in diagnose(a_history(seconds=10), UUID).sentence
    assert diagnose(a_history(seconds=10, memory_used_bytes=23.9 * GIB), UUID).kind is VerdictKind.NEAR_FULL
    assert diagnose(a_history(seconds=40, every=10), UUID).kind is VerdictKind.HEALTHY
    started = a_history(utilization_fraction=lambda time: 0.98 if time > 140 else 0.0)
    assert diagnose(started, UUID).kind is VerdictKind.TOO_EARLY
    stopped = a_history(utilization_fraction=lambda time: 0.98 if time < 100 else 0.0)
    assert diagnose(stopped, UUID).kind is VerdictKind.IDLE
    assert diagnose(stopped, UUID).since == 100.0


def test_of_a_driver_that_does_not_answer_it_says_so_in_place_of_how_long_a_verdict_takes():
    history = a_history(seconds=10)
    history.note(replace(history.inventory, faults=(Fault(FaultKind.NOT_ANSWERING, 1e9),)))
    history.note(Sample(11.0, 1e9 + 11))
    verdict = diagnose(history, UUID)
    assert verdict.kind is VerdictKind.UNKNOWN
    assert "not known: the driver does not respond." in verdict.sentence


def test_an_earlier_time_is_judged_without_the_processes_of_now():
    history = a_history(utilization_fraction=0.0, processes=[a_process()])
    assert diagnose(history, UUID).kind is VerdictKind.IDLE_HELD
    assert diagnose(history, UUID, at=100.0).kind is VerdictKind.IDLE


def test_processes_that_windows_hides_are_not_known():
    wsl = (Fault(FaultKind.WSL, 0.0),)
    assert diagnose(a_history(utilization_fraction=0.0, faults=wsl), UUID).kind is VerdictKind.IDLE
    history = a_history(utilization_fraction=0.0, faults=wsl, processes=[a_process()])
    assert diagnose(history, UUID).kind is VerdictKind.IDLE_HELD


def test_instances_with_the_counters_of_hopper_are_judged_by_these():
    history = a_history(utilization_fraction=missing(Cause.MIG), **GPM)
    assert diagnose(history, UUID).kind is VerdictKind.COMPUTE_BOUND


@pytest.mark.parametrize(("state", "kind", "severity"), [("lost", "lost", "error"), ("asleep", "asleep", "note")])
def test_a_card_that_does_not_run(state, kind, severity):
    history = a_history(inventory=Inventory("580", devices=(a_device(state=state),)))
    verdict = diagnose(history, UUID)
    assert (verdict.kind, verdict.severity) == (kind, severity)
    assert verdict.advice


def test_nothing_read_yet_and_no_such_card():
    history = a_history(seconds=-1)
    assert diagnose(history, UUID).kind is VerdictKind.UNKNOWN
    assert "second reading" in diagnose(history, UUID).sentence
    with pytest.raises(KeyError):
        diagnose(history, "GPU-none")


def test_a_log_without_utilisation_is_told_as_such():
    found = diagnose(a_history(utilization_fraction=None), UUID)
    assert (found.kind, found.sentence.split(": ")[1][:24]) == (VerdictKind.UNKNOWN, "not in the recorded data")


def test_a_card_whose_size_is_not_known_is_judged_by_the_rest():
    bare = {"inventory": Inventory("580", devices=(a_device(facts={}),)), "host": {"cpu_fraction": None}, "cores": 0}
    assert diagnose(a_history(**bare), UUID).kind is VerdictKind.HEALTHY
    processes = [a_process(), a_process(OTHER)]
    found = diagnose(a_history(**bare, utilization_fraction=None, processes=processes), UUID)
    assert (found.kind, [one.metric for one in found.evidence]) == (VerdictKind.UNKNOWN, ["power_of_limit_fraction"])


def test_verdicts_on_unpublished_thresholds_say_so():
    assert not diagnose(a_history(utilization_fraction=0.0), UUID).is_heuristic
    assert diagnose(a_history(), UUID).is_heuristic
    assert diagnose(a_history(), UUID).evidence[-1].source is None
