"""A single snapshot, also if the driver hangs or crashes."""

from fake_nvml_kit import HURRIED, A, B, card

from planner.monitor.doctor import readings_blocking_fault
from planner.monitor.readings.faults import FaultKind
from planner.monitor.readings.reading import Cause
from planner.monitor.supervisor.snapshot import take_snapshot


def test_what_needs_two_readings_has_them(near_nvml):
    counters = {"0.field.139": "0 1000 2000", "0.gpm": 1, "0.gpm.2": 50, "0.field.83": "0 100000 200000 300000 400000"}
    near_nvml.say(card(0, A) | counters, card(1, B))
    latest = take_snapshot()
    assert latest.reading(A, "nvlink_receive_bytes_per_s").value > 0
    assert latest.reading(A, "sm_active_fraction").value == 0.5
    assert latest.reading(A, "energy_joules").value >= 200
    causes = {reading.cause for uuid in (A, B) for reading in latest.readings(uuid).values()}
    assert causes == {None, Cause.NOT_SUPPORTED}
    assert latest.host["cpu_fraction"].value is not None


def test_a_driver_that_hangs_while_it_is_opened_is_given_up(near_nvml):
    near_nvml.say(card(0, A), hang__nvmlInitWithFlags=1)
    latest = take_snapshot(HURRIED._replace(start=0.5, first_retry=60.0))
    fault = readings_blocking_fault(latest)
    assert (fault.kind, fault.detail) == (FaultKind.NOT_ANSWERING, "nvmlInit")
    assert latest.host["memory_used_bytes"].value > 0


def test_a_card_that_hangs_does_not_keep_the_others_waiting(near_nvml):
    near_nvml.say(card(0, A) | {"0.hang.nvmlDeviceGetPowerUsage": 1}, card(1, B))
    latest = take_snapshot()
    assert readings_blocking_fault(latest) is None
    assert latest.reading(B, "power_limit_watts").value == 450
    assert latest.reading(A, "power_limit_watts").cause is Cause.NO_ANSWER
    assert latest.inventory.silent_uuids == {A}


def test_a_driver_that_is_opened_slowly_is_waited_for(near_nvml):
    near_nvml.say(card(0, A), slow__nvmlInitWithFlags=400)
    latest = take_snapshot(HURRIED._replace(quiet=0.0, kill=0.3, start=20.0))
    assert latest.readings(A)


def test_a_driver_that_crashes_is_told(near_nvml):
    near_nvml.say(card(0, A), crash__nvmlInitWithFlags=1)
    latest = take_snapshot(HURRIED._replace(first_retry=60.0, last_retry=60.0))
    fault = readings_blocking_fault(latest)
    assert (fault.kind, fault.detail) == (FaultKind.SAMPLER_CRASHED, "SIGSEGV in nvmlInitWithFlags")
