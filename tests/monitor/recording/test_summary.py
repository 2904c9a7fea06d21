"""Energy, cost, means, peaks and slowed time, compared with hand-computed values."""

import pytest
from recording_kit import CARDS, WALL, A, B, plain, recording, sample

from planner.monitor.diagnosis.verdict import VerdictKind
from planner.monitor.history import History
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import Sample
from planner.monitor.recording.records import RecordedMark
from planner.monitor.recording.summary import (
    JOULES_PER_KWH,
    Statistic,
    diagnosed_history,
    diagnosed_times,
    summarize_recording,
)

POWER_CAP, IDLE = 0x4, 0x1


def history_of(*updates):
    history = History()
    for update in (CARDS, *updates):
        history.note(update)
    return history


@pytest.mark.parametrize("make", [recording, history_of])
def test_integrated_power_is_marked_as_an_estimate(make):
    found = summarize_recording(make(*(sample(float(at), a={"power_watts": 100.0 + 10 * at}) for at in range(11))), 0.5)
    card = found.cards[0]
    assert card.energy_joules == pytest.approx(150.0 * 10)
    assert (card.is_estimated, found.is_estimated, card.seconds) == (True, True, 10.0)
    assert card.statistics == {"power_watts": Statistic(pytest.approx(150.0), 200.0)}
    assert card.usd == found.usd == pytest.approx(1500 / 3.6e6 * 0.5)
    assert found.cards[1].energy_joules is None
    assert (found.cards[1].is_estimated, found.cards[1].usd, found.cards[1].seconds) == (False, None, 0.0)


def test_the_energy_counter_is_preferred_and_a_reset_counts_zero():
    counter = [1000.0, 1300.0, 1600.0, 50.0, 350.0]
    samples = (sample(float(at), a={"energy_joules": joules, "power_watts": 1.0}) for at, joules in enumerate(counter))
    found = summarize_recording(recording(*samples))
    assert (found.energy_joules, found.is_estimated, found.usd) == (900.0, False, None)


def test_gaps_are_excluded_from_energy_and_time():
    samples = [sample(float(at), a={"power_watts": 100.0}) for at in (*range(5), *range(100, 105))]
    card = summarize_recording(recording(*samples)).cards[0]
    assert (card.energy_joules, card.seconds) == (pytest.approx(800.0), 8.0)


def test_means_are_over_time_not_over_samples():
    values = {0.0: 0.0, 0.2: 0.0, 0.4: 0.0, 0.6: 0.0, 1.6: 1.0}
    samples = [sample(at, a={"utilization_fraction": value}) for at, value in values.items()]
    assert summarize_recording(recording(*samples)).cards[0].statistics["utilization_fraction"].mean == pytest.approx(
        0.5 / 1.6
    )


def test_slowed_seconds_by_reason():
    bits = [0, POWER_CAP, POWER_CAP | 0x20, 0, POWER_CAP, IDLE]
    use = [1.0, 1.0, 1.0, 1.0, 0.0, 0.0]
    samples = [
        sample(float(at), a={"clock_reasons": reason, "utilization_fraction": busy})
        for at, (reason, busy) in enumerate(zip(bits, use, strict=True))
    ]
    late = sample(100.0, a={"clock_reasons": 0})
    # The last but one is the bit of the power limit on an idle card, which says nothing.
    assert summarize_recording(recording(*samples, late)).cards[0].slowed_seconds == {
        "power-cap": 2.0,
        "software-thermal": 1.0,
    }


def test_the_mean_of_one_reading_is_its_value():
    card = summarize_recording(recording(sample(1.0, a={"temperature_celsius": 60.0}))).cards[0]
    assert card.statistics == {"temperature_celsius": Statistic(60.0, 60.0)}
    assert (card.seconds, card.energy_joules) == (0.0, None)


def test_missing_and_implausible_readings_do_not_count():
    odd = Sample(2.0, 2.0, {A: {"power_watts": Reading(1e6, is_implausible=True)}})
    none = Sample(3.0, 3.0, {A: {"power_watts": missing(Cause.LOST)}})
    again = sample(1.0, a={"power_watts": 500.0})
    found = summarize_recording(recording(again, again, odd, none, sample(4.0, a={"power_watts": 100.0})))
    assert found.cards[0].statistics["power_watts"].peak == 500.0


def test_removed_cards_are_summarized():
    gone = Inventory(devices=(Device(B, "NVIDIA Test 1", 1),))
    found = summarize_recording(
        recording(sample(0.0, a={"power_watts": 1.0}), gone, sample(1.0, b={"power_watts": 1.0}))
    )
    assert [card.device.uuid for card in found.cards] == [A, B]
    assert summarize_recording(recording()).energy_joules is None


def test_one_kilowatt_for_an_hour_is_one_kilowatt_hour():
    hour = [Sample(at, at, {A: plain({"power_watts": 1000.0})}) for at in map(float, range(0, 3601, 60))]
    assert summarize_recording(recording(*hour)).energy_joules == pytest.approx(JOULES_PER_KWH)


def test_a_counter_that_stands_still_is_replaced_by_the_integrated_power():
    samples = (sample(float(at), a={"energy_joules": 5000.0, "power_watts": 360.0}) for at in range(101))
    found = summarize_recording(recording(*samples), 0.5)
    assert (found.energy_joules, found.is_estimated) == (pytest.approx(36_000.0), True)
    assert found.usd == pytest.approx(0.005)


HEAT = 0x20


def busy(at, bits):
    return {"utilization_fraction": 0.95, "clock_reasons": bits, "power_watts": 200.0, "memory_used_bytes": 1e10}


def hot_later():
    """A recording of five minutes, in which the first card is too hot from the third on."""
    return recording(*(sample(float(at), a=busy(at, HEAT if at >= 180 else 0), b=busy(at, 0)) for at in range(0, 300)))


def test_the_time_of_a_diagnosis_is_summed_over_its_cards():
    found = {each.kind: each for each in diagnosed_times(diagnosed_history(hot_later()))}
    hot = found[VerdictKind.THERMAL.value]
    assert hot.uuids == (A,)
    assert 90.0 <= hot.seconds <= 120.0
    history = diagnosed_history(hot_later())
    spans = [
        (event.ended.monotonic_seconds if event.ended else history.end) - event.began.monotonic_seconds
        for event in history.events(history.start, history.end)
        if event.what == hot.kind
    ]
    assert hot.seconds == pytest.approx(sum(spans))
    other = next(each for kind, each in found.items() if kind != hot.kind)
    assert set(other.uuids) == {A, B}
    assert other.seconds > hot.seconds


def test_loading_can_be_stopped():
    assert diagnosed_history(hot_later(), lambda: True).end is None
    stopped_once = iter([False, True])
    assert diagnosed_history(hot_later(), lambda: next(stopped_once, False)).events(0.0, 1e9) == ()


def test_an_empty_history_has_no_diagnosis():
    assert diagnosed_times(History()) == ()


def test_marks_are_part_of_the_history():
    marked = recording(sample(0.0), RecordedMark(0.5, WALL + 0.5, "here"), sample(1.0))
    assert [mark.text for mark in diagnosed_history(marked).marks] == ["here"]
