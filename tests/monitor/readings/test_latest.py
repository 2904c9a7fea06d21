"""The current state, accumulated from samples."""

import pytest
from state_kit import DEVICE, A, B, latest_of

from planner.monitor.readings.faults import Fault, FaultKind
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.latest import card_sharing
from planner.monitor.readings.reading import Cause, Reading
from planner.monitor.readings.sample import CardProcess, Link, Sample


def test_a_reading_stays_valid_until_the_next():
    latest = latest_of(DEVICE, fan_fraction=0.3, sm_clock_mhz=1)
    latest.note_sample(Sample(2.0, 3.0, {A: {"sm_clock_mhz": Reading(2)}}, {"cpu_fraction": Reading(0.25)}))
    assert latest.reading(A, "fan_fraction").value == 0.3
    assert latest.reading(A, "sm_clock_mhz").value == 2
    assert latest.reading(A, "power_watts").cause is Cause.NOT_YET
    assert latest.host["cpu_fraction"].value == 0.25
    assert len(latest.processes) == 2
    assert latest.reading(B, "power_watts").cause is Cause.NOT_YET


def test_a_card_that_is_not_running_has_no_readings():
    latest = latest_of(DEVICE, fan_fraction=0.3)
    latest.note_inventory(Inventory(devices=(Device(A, "a", 0, state="lost"), Device(B, "b", 1, state="asleep"))))
    assert latest.reading(A, "fan_fraction").cause is Cause.LOST
    assert latest.reading(B, "fan_fraction").cause is Cause.ASLEEP
    assert latest.readings(A) == {}
    assert latest.processes == ()


def test_a_card_that_alone_does_not_answer_has_no_readings_while_the_others_keep_theirs():
    latest = latest_of(DEVICE, fan_fraction=0.3)
    latest.note_sample(Sample(2.0, 3.0, {B: {"fan_fraction": Reading(0.4)}}))
    cards = (DEVICE, Device(B, "b", 1))
    latest.note_inventory(Inventory("580", devices=cards, faults=(Fault(FaultKind.CARD_NOT_ANSWERING, 3.0, A),)))
    assert latest.reading(A, "fan_fraction").cause is Cause.NO_ANSWER
    assert latest.reading(B, "fan_fraction").value == 0.4
    assert {process.uuid for process in latest.processes} <= {B}
    latest.note_inventory(Inventory("580", devices=cards))
    assert latest.reading(A, "fan_fraction").cause is Cause.NOT_YET


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        (FaultKind.NO_DRIVER, Cause.NO_ANSWER),
        (FaultKind.NOT_ANSWERING, Cause.NO_ANSWER),
        (FaultKind.SAMPLER_CRASHED, Cause.NO_ANSWER),
        (FaultKind.RELEASED, Cause.RELEASED),
    ],
)
def test_readings_are_dropped_when_the_driver_is_gone(kind, cause):
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


@pytest.mark.parametrize("kind", [FaultKind.UNREACHABLE, FaultKind.REMOTE_SILENT])
def test_readings_are_dropped_at_once_when_another_machine_is_cut_off(kind):
    latest = latest_of(DEVICE, fan_fraction=0.3)
    latest.note_sample(Sample(2.0, 3.0, host={"cpu_fraction": Reading(0.5)}, cores=(0.5,)))
    latest.note_inventory(Inventory("580", devices=(DEVICE,), faults=(Fault(kind, 3.0),)))
    assert latest.reading(A, "fan_fraction").cause is Cause.NO_ANSWER
    assert (latest.processes, latest.host, latest.cores) == ((), {}, ())


def test_links_stay_until_they_are_read_again_or_their_card_is_gone():
    latest = latest_of(DEVICE)
    links = (Link(0, True, 25e9),)
    latest.note_sample(Sample(2.0, 3.0, {A: {}}, links={A: links}))
    latest.note_sample(Sample(3.0, 4.0, {A: {}}))
    assert latest.links == {A: links}
    latest.note_inventory(Inventory(devices=(Device(A, "a", 0, state="lost"),)))
    assert latest.links == {}


def _sharing(*kinds, **facts):
    device = Device(A, "NVIDIA A", 0, facts=facts)
    latest = latest_of(device)
    processes = tuple(CardProcess(number, A, kind, Reading(1)) for number, kind in enumerate(kinds))
    latest.note_sample(Sample(2.0, 3.0, processes=(*processes, CardProcess(9, "GPU-other", "compute", Reading(1)))))
    return card_sharing(device, latest)


def test_what_shares_a_card_follows_from_its_mode_and_its_processes():
    assert _sharing("compute") is None
    assert _sharing("compute", "graphics") is None
    assert _sharing("compute", "compute") == "time-slicing"
    assert _sharing("compute", "mps") == "mps"
    assert _sharing("compute", mig_enabled=Reading(1)) == "mig"
