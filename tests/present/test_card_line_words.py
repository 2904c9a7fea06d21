"""A card as a line: what stands in each place, in which tone, and what its tooltip explains."""

import pytest

from planner.monitor.readings.faults import Fault, FaultKind
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import Sample
from planner.present.monitor.headline import card_line, exact_memory, numbered_card_name
from planner.present.monitor.readings import card_rows
from planner.units import GIB

CARD = Device("GPU-a", "NVIDIA GeForce RTX 4090", 0, facts={"memory_total_bytes": Reading(24 * GIB)})
ALL = {
    "utilization_fraction": 0.97,
    "memory_used_bytes": 18 * GIB,
    "memory_reserved_bytes": 0.25 * GIB,
    "power_watts": 312.4,
    "power_limit_watts": 450.0,
    "temperature_celsius": 64.4,
    "sm_clock_mhz": 2520.0,
    "clock_reasons": 0.0,
}


def row_of(device=CARD, **readings):
    latest = Latest()
    latest.note_inventory(Inventory("580", devices=(device,)))
    values = {name: value if isinstance(value, Reading) else Reading(value) for name, value in readings.items()}
    latest.note_sample(Sample(0.0, 0.0, {device.uuid: values}))
    return card_rows(latest)[0]


def plain(text):
    return text.replace("\u2009", " ")


def test_a_card_at_work_is_read_out_in_full():
    line = card_line(row_of(**ALL))
    assert plain(line.spoken) == "0  RTX 4090, busy, 97 %, 18.0 / 24.0 GiB, 312 / 450 W, 64 °C, 2,520 MHz"
    assert (line.use_share, line.memory_share, line.tone) == (0.97, 0.75, "")
    assert plain(line.tooltip).splitlines() == [
        "Memory used: 19,327,352,832 B",
        "Reserved by the driver: 0.250 GiB",
    ]


def test_what_is_not_known_has_no_bar_and_is_explained():
    line = card_line(row_of(utilization_fraction=missing(Cause.MIG), memory_used_bytes=GIB))
    assert (line.use, line.use_share, line.state, line.tone) == ("", None, "utilization unknown", "muted")
    assert line.tooltip.startswith("Utilization: not reported in MIG mode\nPower: ")
    line = card_line(row_of())
    assert (line.memory, line.memory_share, line.state) == ("", None, "no readings yet")
    assert plain(exact_memory(row_of(**ALL))) == "19,327,352,832 B"
    assert exact_memory(row_of()) == "unknown"


def test_a_card_whose_memory_has_no_known_size_has_no_bar():
    line = card_line(row_of(Device("GPU-a", "NVIDIA A", 0), memory_used_bytes=GIB))
    assert (plain(line.memory), line.memory_share) == ("1.00 / – GiB", None)


def test_more_than_all_is_a_full_bar_and_what_cannot_be_true_is_none():
    assert card_line(row_of(memory_used_bytes=30 * GIB)).memory_share == 1.0
    line = card_line(row_of(utilization_fraction=Reading(40.0, is_implausible=True)))
    assert (line.use_share, line.state, line.tone) == (None, "implausible reading", "warn")


@pytest.mark.parametrize(
    ("state", "readings", "tone"),
    [
        ("lost", {}, "bad"),
        ("asleep", {}, "muted"),
        ("running", {"utilization_fraction": 0.0, "clock_reasons": 4.0}, "muted"),
        ("running", {"utilization_fraction": 0.9, "clock_reasons": 4.0}, "warn"),
        ("running", {"utilization_fraction": 0.9}, ""),
    ],
)
def test_the_tone_says_how_a_card_is(state, readings, tone):
    line = card_line(row_of(Device("GPU-a", "A", 0, state=state), **readings))
    assert line.tone == tone
    assert (line.tooltip == "") == (state != "running")


def test_an_instance_stands_below_its_card():
    assert (
        numbered_card_name(row_of(Device("MIG-1", "NVIDIA H100 MIG 1g.10gb", 2, mig_parent="GPU-a")))
        == "└ 2  H100 MIG 1g.10gb"
    )


def test_a_card_that_the_driver_keeps_from_us_says_so():
    latest = Latest()
    fault = Fault(FaultKind.NO_DRIVER, 1.0)
    latest.note_inventory(Inventory("580", devices=(CARD,), faults=(fault,)))
    latest.note_sample(Sample(0.0, 0.0))
    line = card_line(card_rows(latest)[0])
    assert (line.state, line.tone) == ("no answer", "muted")
    assert "Power: the driver does not respond" in line.tooltip
