"""Grouping of log lines into samples."""

from datetime import date

import pytest
from logs_kit import cards, samples

from planner.errors import RecordingError
from planner.monitor.recording.logs.log_updates import updates_from_lines


def test_unnamed_cards_are_distinguished_by_the_time_of_their_lines(imported):
    found = imported("timestamp,power.draw\n" + "".join(f"2026/01/03 10:00:0{at},{at}\n" for at in (0, 0, 0, 1, 1, 1)))
    assert [len(look.devices) for look in samples(found)] == [3, 3]


def test_a_clock_set_back_gives_increasing_times(imported):
    times = ("2026/01/03 10:00:00", "2026/01/03 10:00:02", "2026/01/03 09:00:00", "2026/01/03 09:00:01")
    found = imported("timestamp,power.draw\n" + "".join(f"{at},1\n" for at in times))
    assert [look.monotonic_seconds for look in samples(found)] == [0.0, 2.0, 4.0, 5.0]


def test_no_lines_give_no_updates():
    assert list(updates_from_lines([], date(2026, 1, 1))) == []


def test_the_size_of_the_memory_is_a_fact_of_the_card_and_no_reading(imported):
    found = imported("index,memory.total [MiB],power.draw [W]\n0,1024 MiB,100 W\n0,1024 MiB,110 W\n")
    (card,) = cards(found)
    assert {name: fact.value for name, fact in card.facts.items()} == {"memory_total_bytes": 2**30}
    assert [set(look.devices[card.uuid]) for look in samples(found)] == [{"power_watts"}] * 2


def test_a_log_with_too_many_cards_is_an_error(imported):
    with pytest.raises(RecordingError, match="names more than 1,024 cards"):
        imported("index,power.draw\n" + "".join(f"{number},1\n" for number in range(2000)))
