"""Recordings, their losses and their summaries as text."""

import pytest
from recording_kit import CARDS, WALL, recording, sample

from planner.monitor.recording.recording import DataLoss
from planner.monitor.recording.records import RecordedMark
from planner.monitor.recording.summary import (
    JOULES_PER_KWH,
    DiagnosedTime,
    RecordingSummary,
    Statistic,
    summarize_recording,
)
from planner.present.monitor.recording import (
    SUMMARY_COLUMNS,
    diagnosed_text,
    energy_cost_text,
    energy_summary_text,
    energy_text,
    gap_sentence,
    loss_sentences,
    recording_line,
    summary_lines,
)

THIN = "\u2009"


@pytest.mark.parametrize(
    ("joules", "is_estimated", "text"),
    [
        (None, False, "–"),
        (1800.0, False, "0.5 Wh"),
        (JOULES_PER_KWH * 1.234, False, "1.23 kWh"),
        (JOULES_PER_KWH, True, "≈ 1 kWh"),
    ],
)
def test_an_energy_has_its_unit_and_a_sign_if_estimated(joules, is_estimated, text):
    assert energy_text(joules, is_estimated=is_estimated).replace(THIN, " ") == text


@pytest.mark.parametrize(("usd", "text"), [(None, "–"), (0.0, "$0.00"), (0.00412, "$0.0041"), (2.391, "$2.39")])
def test_a_small_cost_of_energy_is_not_rounded_to_zero(usd, text):
    assert energy_cost_text(usd) == text


def test_lost_parts_are_named():
    found = loss_sentences(DataLoss(is_cut=True, places=2, lost_bytes=2048, bad_lines=1, reason="a: 1e+30"))
    assert [sentence.replace(THIN, " ") for sentence in found] == [
        "The recording is truncated; its last second may be missing.",
        "2 places of the file cannot be read, 2.00 KiB at most.",
        "1 line of the file cannot be parsed (the first: a: 1e+30).",
    ]
    assert loss_sentences(DataLoss()) == ()


def test_the_contents_of_a_recording_in_one_line():
    assert recording_line(recording()) == "a test: no samples"


def test_a_card_without_readings_has_dashes():
    found = summarize_recording(recording(sample(0.0)))
    assert energy_summary_text(found) == ""
    texts = {column.key: column.text(found.cards[0]) for column in SUMMARY_COLUMNS}
    assert texts["name"] == CARDS.devices[0].name
    assert set(texts.values()) == {"0", CARDS.devices[0].name, f"0{THIN}s", "–"}
    assert {column.key for column in SUMMARY_COLUMNS if column.value(found.cards[0]) is None} >= {"energy", "power"}


def test_gaps_are_named_if_the_energy_is_estimated():
    samples = [sample(float(at), a={"power_watts": 100.0}) for at in (0, 1, 2, 3, 33, 34)]
    found = recording(*samples)
    assert (
        gap_sentence(summarize_recording(found), found.seconds).replace(THIN, " ")
        == "The estimated energy does not include gaps of 30 s."
    )
    assert gap_sentence(summarize_recording(recording(*samples[:4])), 3.0) == ""
    counted = recording(*(sample(float(at), a={"energy_joules": at}) for at in (0, 1, 2, 3, 33, 34)))
    assert gap_sentence(summarize_recording(counted), counted.seconds) == ""


def test_every_cell_of_a_card_in_the_summary():
    readings = {"utilization_fraction": 0.5, "memory_used_bytes": 2**33, "power_watts": 100.0, "clock_reasons": 0x24}
    found = summarize_recording(recording(*(sample(float(at), a=readings) for at in range(3))), 0.5)
    card = found.cards[0]
    assert card.statistics["power_watts"] == Statistic(100.0, 100.0)
    texts = {column.key: column.text(card).replace(THIN, " ") for column in SUMMARY_COLUMNS}
    assert (texts["utilization"], texts["memory"], texts["power"]) == ("50 / 50", "8.00 / 8.00", "100 / 100")
    assert texts["slowed"] == "power limit 2 s, slowed by heat: at the target temperature 2 s"
    assert SUMMARY_COLUMNS[6].value(card) == 2**33


def test_the_energy_comes_before_the_lost_parts():
    found = recording(*(sample(float(at), a={"power_watts": 100.0}) for at in range(4)), is_ended=False)
    first, *others = summary_lines(found, summarize_recording(found).at_price(0.36))
    assert first.replace(THIN, " ").startswith("≈ 0.0833 Wh used by the GPUs, $0.000030 at $0.36 per kWh")
    assert others == ["The recording is truncated; its last second may be missing."]
    assert summarize_recording(found).at_price(0.36).cards[0].usd == summarize_recording(found, 0.36).cards[0].usd
    assert summary_lines(found, RecordingSummary((), None))[0] == "No GPU reported its energy or power."


def test_the_line_of_a_recording_counts_its_marks():
    found = recording(sample(0.0), RecordedMark(0.5, WALL + 0.5, "here"), sample(1.0))
    assert recording_line(found).endswith("2 samples, 1 mark")


def test_an_energy_without_a_price_has_no_cost():
    found = summarize_recording(recording(*(sample(float(at), a={"power_watts": 100.0}) for at in range(4))))
    assert "$" not in energy_summary_text(found)


def test_each_diagnosis_says_how_long_it_lasted_and_on_which_cards():
    cards = summarize_recording(recording(sample(0.0), sample(1.0))).cards
    devices = [card.device for card in cards]
    everywhere = DiagnosedTime("input-bound", 60.0 * len(devices), tuple(device.uuid for device in devices), WALL)
    first = DiagnosedTime("thermal", 30.0, (devices[0].uuid,), WALL)
    told = diagnosed_text(RecordingSummary(cards, None, (everywhere, first))).replace(THIN, " ")
    assert told.startswith("Diagnosed: ")
    assert " 1 min (from " in told
    assert " 30 s (GPU 0, from " in told
    assert diagnosed_text(RecordingSummary(cards, None)) == ""
