"""The energy of a period: counted by the card, or integrated from its power."""

import pytest

from planner.monitor.energy import UsedEnergy, energy_used
from planner.monitor.history import History
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.reading import Reading
from planner.monitor.readings.sample import Sample

A, B = Device("GPU-a", "A", 0), Device("GPU-b", "B", 1)
INSTANCE = Device("MIG-1", "1g", 0, mig_parent="GPU-a")


def recorded(**cards):
    """Return a history of cards, each with a function from the second to its readings; None is a silent second."""
    history = History()
    history.note(Inventory(devices=(A, INSTANCE, B)))
    for second in range(11):
        readings = {f"GPU-{name}": read(second) for name, read in cards.items()}
        if None not in readings.values():
            values = {uuid: {key: Reading(value) for key, value in read.items()} for uuid, read in readings.items()}
            history.note(Sample(float(second), 1e9 + second, values))
    return history


def test_power_is_integrated_over_the_period():
    used = energy_used(recorded(a=lambda second: {"power_watts": 10.0 * second}), [A], 2.0, 6.0)
    assert used == (pytest.approx(160.0), True)


def test_a_gap_adds_nothing():
    history = recorded(a=lambda second: None if second in (4, 5, 6) else {"power_watts": 100.0})
    assert energy_used(history, [A], 0.0, 10.0) == (pytest.approx(600.0), True)


def test_a_counter_is_preferred_and_may_start_again():
    history = recorded(a=lambda second: {"power_watts": 1.0, "energy_joules": 50.0 * (second % 6)})
    assert energy_used(history, [A], 0.0, 10.0) == (pytest.approx(450.0), False)


def test_cards_are_added_up_without_their_instances_and_without_silent_cards():
    history = recorded(a=lambda _second: {"power_watts": 5.0})
    assert energy_used(history, [A, INSTANCE, B], 0.0, 10.0) == (pytest.approx(50.0), True)
    assert energy_used(history, [B], 0.0, 10.0) is None
    assert energy_used(history, [A], 3.0, 3.5) is None


def test_power_is_integrated_where_the_counter_stands_still():
    standing = recorded(a=lambda _second: {"power_watts": 100.0, "energy_joules": 5000.0})
    assert energy_used(standing, [A], 0.0, 10.0) == (pytest.approx(1000.0), True)
    stops = recorded(a=lambda second: {"power_watts": 100.0, "energy_joules": 120.0 * min(second, 4)})
    assert energy_used(stops, [A], 0.0, 10.0) == (pytest.approx(480.0 + 600.0), True)
    moments = recorded(a=lambda second: {"power_watts": 100.0, "energy_joules": 200.0 * (second // 2)})
    assert energy_used(moments, [A], 0.0, 10.0) == (pytest.approx(1000.0), False), "one second is no standstill"


def test_a_counter_that_stands_still_without_power_counts_zero():
    off = recorded(a=lambda _second: {"power_watts": 0.0, "energy_joules": 5000.0})
    assert energy_used(off, [A], 0.0, 10.0) == (0.0, False)
    alone = recorded(a=lambda _second: {"energy_joules": 5000.0})
    assert energy_used(alone, [A], 0.0, 10.0) == (0.0, False), "nothing else is known"


def test_two_readings_of_the_counter_are_enough():
    found = energy_used(recorded(a=lambda second: {"energy_joules": 100.0 * second}), [A], 3.0, 4.0)
    assert found == UsedEnergy(100.0, is_estimated=False)
