"""What all trackers share: fields of a plan by their path, and dated texts."""

import pytest
from recording_kit import CARDS, WALL, A, B, plain, sample

from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import Sample, Xid
from planner.present.trackers.run import MomentStream, TextNote, TrackedMoment, dated_line


def test_a_dated_text_begins_with_its_time():
    assert dated_line(TextNote(1_700_000_000.4, 0.0, "first step")) == "- 2023-11-14T22:13:20+00:00 first step"


def moments(updates, interval=1.0):
    stream = MomentStream(interval)
    found = [stream.note(update)[0] for update in updates]
    return [moment for moment in (*found, stream.finish()) if moment is not None]


def test_single_readings_stay_as_they_are_with_their_own_times():
    jitter = [100.0, 101.04, 101.97, 103.0, 107.5]
    found = moments([CARDS, *(sample(at, a={"power_watts": at}) for at in jitter)])
    assert [moment.values for moment in found] == [{"gpu/0": {"power_watts": at}} for at in jitter]
    assert [moment.wall_seconds for moment in found] == [WALL + at for at in jitter]
    assert [moment.step for moment in found] == [0, 10, 20, 30, 75]
    assert [moment.peaks for moment in found] == [{}] * 5
    assert (found[0].value_count, MomentStream(1.0).finish()) == (1, None)


def test_frequent_readings_become_a_mean_and_a_peak_a_second():
    updates = [sample(100 + tenth / 10, a={"power_watts": float(tenth), "pcie_replays": 3.0}) for tenth in range(30)]
    found = moments([CARDS, *updates])
    assert len(found) == 3
    second = found[1]
    assert second.values == {"gpu/0": {"power_watts": pytest.approx(14.5), "pcie_replays": 3.0}}
    assert second.peaks == {"gpu/0": {"power_watts": 19.0}}
    assert (second.seconds, second.wall_seconds) == (pytest.approx(1.45), pytest.approx(WALL + 101.45))
    assert second.value_count == 3


def test_readings_every_six_tenths_of_a_second_are_merged_in_pairs():
    found = moments([CARDS, *(sample(0.6 * number, a={"power_watts": 1.0}) for number in range(6))])
    assert [moment.seconds for moment in found] == pytest.approx([0.3, 1.5, 2.7])


def test_unknown_implausible_and_bit_values_are_left_out():
    odd = {"power_watts": Reading(1e9, is_implausible=True), "fan_fraction": missing(Cause.LOST)}
    readings = {**odd, "clock_reasons": Reading(4.0), "temperature_celsius": Reading(50.0)}
    (found,) = moments([Sample(0.0, WALL, {A: readings})])
    assert found.values == {f"gpu/{A}": {"temperature_celsius": 50.0}}


def test_energy_begins_at_zero_and_again_when_the_driver_does():
    counters = [5e9, 5e9 + 100, 20.0, 50.0]
    found = moments([CARDS, *(sample(float(at), a={"energy_joules": value}) for at, value in enumerate(counters))])
    assert [moment.values["gpu/0"]["energy_joules"] for moment in found] == [0.0, 100.0, 20.0, 50.0]


def test_the_limits_are_the_memory_and_the_latest_power_limit():
    host = {"memory_used_bytes": 1.0, "memory_available_bytes": 3.0}
    at = sample(0.0, host, a={"power_watts": 90.0, "power_limit_watts": 300.0, "memory_used_bytes": 6.0 * 2**30})
    (found,) = moments([CARDS, at])
    assert found.share("gpu/0", "power_watts", 90.0) == 0.3
    assert found.share("gpu/0", "memory_used_bytes", 6.0 * 2**30) == 0.25
    assert found.share("host", "memory_used_bytes", 1.0) == 0.25
    assert found.share("gpu/1", "power_watts", 90.0) is None
    assert moments([sample(0.0, {"cpu_fraction": 0.5})])[0].limits == {}


def test_instances_of_a_card_are_named_after_it():
    devices = (Device(A, "A100", 3), Device(B, "A100 MIG 1g.10gb", 1, mig_parent=A), Device("X", "", 0, mig_parent="?"))
    stream = MomentStream(1.0)
    stream.note(Inventory(devices=devices))
    assert [stream.owner(uuid) for uuid in (A, B, "X")] == ["gpu/3", "gpu/3/mig/1", "gpu/mig/0"]


def test_events_are_texts_with_their_times():
    stream = MomentStream(1.0)
    stream.note(CARDS)
    stream.note(sample(10.0, a={"clock_reasons": 0x20, "utilization_fraction": 1.0}))
    _, xid = stream.note(Sample(11.0, WALL + 11, {A: plain({"clock_reasons": 0x20})}, xids=(Xid(A, 79),)))
    _, ended = stream.note(sample(12.5, a={"clock_reasons": 0.0}))
    assert xid == (TextNote(WALL + 11, 1.0, "gpu/0: Xid 79"),)
    (span,) = ended
    assert (span.seconds, span.step, span.wall_seconds) == (2.5, 25, WALL + 12.5)
    assert span.text.endswith("lasted 2.5\N{THIN SPACE}s")
    _, gone = stream.note(Inventory("590.1", devices=CARDS.devices))
    assert [note.text for note in gone] == ["driver 580.65.06 → 590.1"]
    assert stream.seconds_at(13.0) == 3.0
    assert MomentStream(1.0).seconds_at(13.0) == 0.0


def test_a_slow_log_has_no_gaps():
    stream = MomentStream(1.0)
    notes = [
        stream.note(update)[1] for update in (CARDS, *(sample(10.0 * n, a={"power_watts": 1.0}) for n in range(5)))
    ]
    assert not any(notes[2:])


def test_a_moment_without_values_counts_none():
    assert TrackedMoment(0.0, 0.0, {}).value_count == 0
