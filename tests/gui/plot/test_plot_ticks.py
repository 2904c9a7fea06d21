"""The positions and labels of axis ticks."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from planner.gui.plot.ticks import clock_text, clock_ticks, log_ticks, round_ticks

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC).timestamp()


def test_ticks_are_fine_where_there_is_room_and_coarse_where_not():
    assert [text for _, text in log_ticks(0, 1, 9, str)] == ["1.0", "2.0", "5.0", "10.0"]
    assert [text for _, text in log_ticks(0, 2, 3, str)] == ["1.0", "10.0", "100.0"]
    assert log_ticks(0.1, 0.2, 9, str) == []


@pytest.mark.parametrize(
    ("low", "high", "wanted", "whole", "values"),
    [
        (0, 103, 6, False, [0, 20, 40, 60, 80, 100]),
        (0, 1, 4, False, [0, 0.25, 0.5, 0.75, 1]),
        (0, 1, 4, True, [0, 1]),
        (0, 9, 4, True, [0, 5]),
        (0, 90, 4, True, [0, 25, 50, 75]),
    ],
)
def test_ticks_are_round_numbers(low, high, wanted, whole, values):
    assert [value for value, _ in round_ticks(low, high, wanted, whole=whole)] == values


def texts(span: float, wanted: int, began: float = NOON, zone=UTC) -> list[str]:
    return [text for _, text in clock_ticks(0.0, span, wanted, lambda time: began + time, zone)]


@pytest.mark.parametrize(
    ("span", "wanted", "expected"),
    [
        (1.0, 5, ["12:00:00.0", "12:00:00.2", "12:00:00.4", "12:00:00.6", "12:00:00.8", "12:00:01.0"]),
        (60.0, 4, ["12:00:00", "12:00:15", "12:00:30", "12:00:45", "12:01:00"]),
        (3600.0, 4, ["12:00", "12:15", "12:30", "12:45", "13:00"]),
        (86_400.0, 4, ["12:00", "18:00", "5 March", "06:00", "12:00"]),
        (4 * 86_400.0, 2, ["5 March", "6 March", "7 March", "8 March"]),
    ],
)
def test_marks_of_time_stand_at_round_times(span, wanted, expected):
    assert texts(span, wanted) == expected


def test_marks_of_hours_stand_at_the_hours_of_the_place():
    india = timezone(timedelta(hours=5, minutes=30))
    assert texts(3 * 3600.0, 3, zone=india) == ["18:00", "19:00", "20:00"]


def test_marks_are_where_their_time_is():
    began = NOON + 0.25
    for time, text in clock_ticks(100.0, 160.0, 6, lambda time: began + time, UTC):
        assert clock_text(began + time + 1e-6, UTC) == text
