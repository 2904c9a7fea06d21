"""The totals of all cards."""

from planner.monitor.energy import UsedEnergy
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.reading import Reading
from planner.monitor.readings.sample import Sample
from planner.present.monitor.readings import card_rows
from planner.present.monitor.totals import card_totals, energy_in_text
from planner.units import GIB


def rows_of(*cards, names=("NVIDIA H100",)):
    facts = {"memory_total_bytes": Reading(80.0 * GIB)}
    devices = [Device(f"GPU-{n}", names[n % len(names)], n, facts=facts) for n in range(len(cards))]
    instance = Device("MIG-1", "1g", 0, mig_parent="GPU-0", facts=facts)
    latest = Latest()
    latest.note_inventory(Inventory("580", devices=(*devices, instance)))
    everything = {"MIG-1": {"memory_used_bytes": Reading(1.0)}}
    everything |= {f"GPU-{n}": {name: Reading(float(v)) for name, v in card.items()} for n, card in enumerate(cards)}
    latest.note_sample(Sample(0.0, 0.0, everything))
    return card_rows(latest)


def plain(text):
    return text.replace("\u2009", " ")


BUSY = {"memory_used_bytes": 60 * GIB, "power_watts": 650, "power_limit_watts": 700}


def test_memory_power_and_energy_of_equal_cards_are_added_up():
    totals = card_totals(rows_of(BUSY, BUSY), UsedEnergy(3.6e6, is_estimated=True), 600.0)
    assert plain(totals.as_text) == "2 × H100  ·  120 / 160 GiB  ·  1,300 / 1,400 W  ·  ≈ 1 kWh in 10 min"


def test_a_card_that_is_silent_is_not_counted_as_zero():
    totals = card_totals(rows_of(BUSY, {"power_watts": 50}, names=("A", "B")), None, 0.0)
    assert totals.name == "2 GPUs"
    assert plain(totals.memory) == "60.0 GiB (1 of 2)"
    assert plain(totals.power) == "700 W"
    assert totals.energy == ""


def test_what_no_card_tells_is_left_out():
    totals = card_totals(rows_of({}, {}), None, 0.0)
    assert totals.as_text == "2 × H100"
    assert energy_in_text(None, 10.0) == ""
