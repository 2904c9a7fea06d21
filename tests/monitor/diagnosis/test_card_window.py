"""Quantities that rules derive from the readings of a card, and the window of readings."""

from dataclasses import replace

import pytest
from diagnosis_kit import GPM, IDLE, OTHER, UUID, a_history, a_process, imbalanced

from planner.monitor.diagnosis import card_window
from planner.monitor.diagnosis.card_window import link_bytes_per_s
from planner.monitor.diagnosis.diagnose import diagnose, diagnose_all
from planner.monitor.diagnosis.verdict import VerdictKind
from planner.monitor.readings.faults import Fault, FaultKind
from planner.monitor.readings.reading import Cause, missing


@pytest.mark.parametrize(
    ("generation", "lanes", "gigabytes"), [(1, 16, 4.0), (3, 16, 15.75), (4, 16, 31.5), (5, 8, 31.5)]
)
def test_the_bandwidth_of_a_pcie_link(generation, lanes, gigabytes):
    assert link_bytes_per_s(generation, lanes) == pytest.approx(gigabytes * 1e9, rel=1e-3)
    assert link_bytes_per_s(9, lanes) is None


def test_the_less_busy_of_two_cards_on_one_job_is_named():
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
def test_cards_on_different_jobs_are_not_compared(history):
    assert VerdictKind.IMBALANCE not in {verdict.kind for verdict in diagnose_all(history).values()}


def test_a_card_without_readings_is_no_peer():
    processes = [a_process(UUID), a_process(OTHER, pid=2)]
    history = a_history(devices={UUID: {}, OTHER: {"utilization_fraction": None}}, processes=processes)
    assert diagnose(history, UUID).kind is VerdictKind.HEALTHY
    assert diagnose(history, OTHER).kind is VerdictKind.UNKNOWN


def test_processes_hidden_by_wsl_are_unknown():
    wsl = (Fault(FaultKind.WSL, 0.0),)
    assert diagnose(a_history(**IDLE, faults=wsl), UUID).kind is VerdictKind.IDLE
    history = a_history(utilization_fraction=0.0, faults=wsl, processes=[a_process()])
    assert diagnose(history, UUID).kind is VerdictKind.IDLE_HELD


def test_gpm_replaces_the_utilization_of_mig_instances():
    history = a_history(utilization_fraction=missing(Cause.MIG), **GPM)
    assert diagnose(history, UUID).kind is VerdictKind.COMPUTE_BOUND


def test_a_quantity_first_read_during_the_wait_keeps_its_first_value():
    history = a_history(
        utilization_fraction=lambda time: 0.0 if time > 140 else 0.95,
        power_limit_watts=lambda time: 350.0 if time > 145 else None,
    )
    assert diagnose(history, UUID).kind is VerdictKind.HEALTHY


def test_a_quantity_last_read_before_the_work_keeps_its_last_value():
    history = a_history(
        utilization_fraction=lambda time: 0.95 if time > 60 else 0.0,
        power_watts=330.0,
        power_limit_watts=lambda time: 350.0 if time < 50 else None,
    )
    assert diagnose(history, UUID).kind is VerdictKind.COMPUTE_BOUND


def test_full_cores_count_only_where_the_job_on_the_card_uses_half_of_them():
    kinds = []
    for tree in (1.0, 7.0):
        process = a_process()
        known = replace(process, host=process.host._replace(tree_cpu_fraction=tree))
        stalls = a_history(
            utilization_fraction=lambda time: 0.5 if time % 10 < 3 else 0.0,
            host={"cpu_fraction": 0.97},
            processes=[known],
        )
        kinds.append(diagnose(stalls, UUID).kind)
    assert [kind is VerdictKind.INPUT_BOUND for kind in kinds] == [False, True]


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ((40e9, None), (40.4e9, None), True),
        ((40e9, None), (55e9, None), False),
        ((40e9, None), (40e9, 60.0), False),
        ((40e9, 50.0), (40e9, 60.0), True),
        ((40e9, 10.0), (40e9, 60.0), False),
    ],
)
def test_cards_of_one_job_took_as_much_memory_at_about_the_same_time(first, second, is_same):
    shapes = (card_window._MemoryShape(*shape) for shape in (first, second))
    assert card_window._is_same_shape(*shapes) is is_same
