"""The small values that everything else is made of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.monitor.host.usage import CounterRates, EnergyMeter
from planner.monitor.readings.clock_reasons import CLOCK_REASONS, slowing
from planner.monitor.readings.faults import (
    FAULTS,
    RESTART_EXIT_CODE,
    ActiveFaults,
    Fault,
    FaultKind,
    explain_sampler_exit,
)
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.metrics import BY_NAME, DEVICE_METRICS, FACTS, HOST_METRICS, checked_reading
from planner.monitor.readings.reading import EXPLANATIONS, Cause, Reading, missing, reading_from_json, reading_to_json
from planner.monitor.sampler.nvml_queries import FACTS as FACT_QUESTIONS
from planner.monitor.sampler.nvml_queries import FAST, FAST_FIELDS, GPM, HIDDEN_BY_MIG, SLOW, SLOW_FIELDS
from planner.monitor.settings import BackOff, bounded

READINGS = st.one_of(
    st.builds(Reading, st.integers(-(2**63), 2**64) | st.floats(allow_nan=False), st.none(), st.booleans()),
    st.sampled_from(Cause).map(missing),
)


@given(READINGS)
def test_a_reading_survives_being_written(reading):
    assert reading_from_json(reading_to_json(reading)) == reading


@pytest.mark.parametrize("plain", ["no-such-cause", [], [1, 2], ["x"], True, [True], None, {}])
def test_what_is_no_reading_is_refused(plain):
    with pytest.raises(ValueError, match="is not a reading"):
        reading_from_json(plain)


def test_every_cause_has_its_words():
    assert set(EXPLANATIONS) == set(Cause)


def test_every_fault_has_its_words():
    assert set(FAULTS) == set(FaultKind)
    assert all(about.title and about.advice for about in FAULTS.values())


def test_names_of_quantities_are_unique_and_end_in_their_unit():
    endings = {
        "fraction": "_fraction",
        "bytes": "_bytes",
        "bytes/s": "_bytes_per_s",
        "W": "_watts",
        "J": "_joules",
        "°C": "_celsius",
        "MHz": "_mhz",
    }
    for metrics in ((*DEVICE_METRICS, *FACTS), HOST_METRICS):
        names = [metric.name for metric in metrics]
        assert len(names) == len(set(names))
        assert all(metric.name.endswith(endings.get(metric.unit, "")) for metric in metrics)


def test_everything_that_is_asked_for_is_a_known_quantity():
    asked = [question.name for question in (*FAST, *SLOW, *FAST_FIELDS, *SLOW_FIELDS, *FACT_QUESTIONS)]
    names = {*asked, *(name for name, _ in GPM), *HIDDEN_BY_MIG}
    assert names <= set(BY_NAME)
    assert all(BY_NAME[question.name].cadence == "fast" for question in (*FAST, *FAST_FIELDS))
    assert all(BY_NAME[question.name].cadence == "slow" for question in (*SLOW, *SLOW_FIELDS))


@pytest.mark.parametrize(
    ("name", "value", "most", "implausible"),
    [
        ("utilization_fraction", 1.0, None, False),
        ("utilization_fraction", 1.01, None, True),
        ("temperature_celsius", -10, None, False),
        ("temperature_celsius", -300, None, True),
        ("memory_used_bytes", 2**40, None, False),
        ("memory_used_bytes", 2**40, 2**35, True),
    ],
)
def test_what_cannot_be_true_is_marked_and_kept(name, value, most, implausible):
    assert checked_reading(BY_NAME[name], value, most) == Reading(value, is_implausible=implausible)


def test_rates_need_two_readings_and_begin_anew_with_the_counter():
    rates = CounterRates()
    assert rates.per_second("a", 0.0, 100) is None
    assert rates.per_second("a", 2.0, 300) == 100
    assert rates.per_second("a", 2.0, 300) is None
    assert rates.per_second("a", 3.0, 50) is None
    assert rates.per_second("a", 4.0, 60) == 10


def test_power_is_the_energy_of_the_last_second_whatever_the_interval():
    meter = EnergyMeter()
    watts = [meter.watts(at / 10, 30.0 * at) for at in range(31)]
    assert watts[0] is None
    assert watts[5] is None
    assert watts[12:] == pytest.approx([300.0] * 19)
    assert meter.watts(3.1, 0.0) is None


def test_pauses_double_until_a_success():
    pauses = BackOff(1.0, 5.0)
    assert [pauses.next_seconds() for _ in range(5)] == [1, 2, 4, 5, 5]
    pauses.reset()
    assert pauses.next_seconds() == 1


def test_the_power_limit_of_an_idle_card_holds_nothing_back():
    assert slowing(0x4, 0.0) == ()
    assert [reason.name for reason in slowing(0x4, 0.5)] == ["power-cap"]
    assert [reason.name for reason in slowing(0x4, None)] == ["power-cap"]
    assert [reason.name for reason in slowing(0x1 | 0x40 | 0x100, 0.0)] == ["hardware-thermal"]
    assert len({reason.bit for reason in CLOCK_REASONS}) == len(CLOCK_REASONS)


def test_a_fault_that_goes_on_keeps_its_first_time():
    book = ActiveFaults()
    book.note(Fault(FaultKind.LOST, 5.0, "GPU-a", "first"))
    book.note(Fault(FaultKind.LOST, 9.0, "GPU-a", "second"))
    book.note(Fault(FaultKind.NO_DRIVER, 1.0))
    assert [(fault.since_seconds, fault.detail) for fault in book.current] == [(1.0, ""), (5.0, "second")]
    assert book.current[1].about is FAULTS[FaultKind.LOST]
    book.keep_devices(frozenset({"GPU-b"}))
    assert [fault.kind for fault in book.current] == [FaultKind.NO_DRIVER]
    book.clear(FaultKind.NO_DRIVER, FaultKind.LOST)
    assert book.current == ()


@pytest.mark.parametrize(("asked", "kept"), [(0.01, 0.1), (1.5, 1.5), (60, 10.0)])
def test_intervals_stay_within_what_is_possible(asked, kept):
    assert bounded(asked) == kept


@pytest.mark.parametrize(
    ("code", "report", "kind", "detail"),
    [
        (RESTART_EXIT_CODE, "", None, ""),
        (-11, 'File "pynvml.py", line 12 in nvmlInit', FaultKind.SAMPLER_CRASHED, "SIGSEGV in nvmlInit"),
        (-9, "", FaultKind.SAMPLER_FAILED, "SIGKILL"),
        (-250, "", FaultKind.SAMPLER_FAILED, "signal 250"),
        (0xC0000005, "", FaultKind.SAMPLER_CRASHED, "0xc0000005"),
        (1, "Traceback\nValueError: no", FaultKind.SAMPLER_FAILED, "ValueError: no"),
        (3, "", FaultKind.SAMPLER_FAILED, "exit code 3"),
        (None, "", FaultKind.SAMPLER_FAILED, "exit code None"),
    ],
)
def test_how_a_sampler_ended_is_told(code, report, kind, detail):
    assert explain_sampler_exit(code, report) == (kind, detail)


def test_a_fact_that_is_not_known_is_none():
    device = Device("GPU-a", "a", 0, facts={"memory_total_bytes": Reading(5), "ecc_enabled": missing(Cause.MIG)})
    assert device.fact("memory_total_bytes") == 5
    assert device.fact("ecc_enabled") is None
    assert device.fact("shutdown_celsius") is None
