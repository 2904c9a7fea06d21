"""The lines of the cards: sparklines over the displayed span, columns that fit, totals below."""

import pytest

from planner.gui.monitor.card_lines import CardLines, fitted_columns, sparklines
from planner.gui.monitor.plots.plot_list import AxisRange
from planner.monitor.history import History
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.reading import Reading
from planner.monitor.readings.sample import Sample
from planner.present.monitor.diagnosis import DiagnosisView
from planner.present.monitor.headline import card_line
from planner.present.monitor.readings import card_rows
from planner.present.monitor.totals import card_totals

CARDS = tuple(Device(f"GPU-{n}", "NVIDIA H100", n, facts={"memory_total_bytes": Reading(80.0)}) for n in range(2))
TEXTS = (40, 110, 90, 40, 70)


@pytest.fixture
def history():
    """A minute of two cards; the first is silent for ten seconds."""
    history = History()
    history.note(Inventory("580", devices=CARDS))
    for second in range(60):
        values = {"utilization_fraction": 0.5, "memory_used_bytes": 40.0, "power_watts": 350.0}
        shown = {device.uuid: {name: Reading(value) for name, value in values.items()} for device in CARDS}
        if 20 <= second < 30:
            del shown["GPU-0"]
        history.note(Sample(float(second), 1e9 + second, shown))
    return history


def test_a_sparkline_is_relative_to_the_whole_and_broken_by_silence(history):
    silent, steady = (sparklines(history, device, AxisRange(0.0, 60.0), 59.0) for device in CARDS)
    assert [len(each.parts) for each in silent] == [2, 2, 2]
    assert [len(each.parts) for each in steady] == [1, 1, 1]
    use, memory, power = ({point.y() for part in each.parts for point in part} for each in steady)
    assert (use, memory, power) == ({0.5}, {0.5}, {1.0}), "without a limit the highest power is the top"


def test_a_sparkline_ends_at_the_displayed_time(history):
    (use, *_) = sparklines(history, CARDS[1], AxisRange(0.0, 60.0), 30.0)
    assert max(point.x() for point in use.parts[0]) == pytest.approx(0.5)
    (nothing, *_) = sparklines(history, CARDS[1], AxisRange(100.0, 160.0), 30.0)
    assert nothing.parts == ()


def test_columns_without_room_are_left_out_and_sparklines_take_what_is_left():
    wide, narrow, tiny = (fitted_columns(120, 60, TEXTS, room, 8) for room in (1200, 720, 520))
    assert wide.texts == TEXTS
    assert wide.spark > narrow.spark >= 40
    assert tiny.texts == (40, 110, 90, 0, 0)
    assert tiny.spark == 40


def test_the_list_shows_cards_totals_and_sparklines_that_change_only_with_a_new_column(qtbot, theme, history):
    lines = CardLines(theme)
    qtbot.addWidget(lines)
    lines.resize(1000, 120)
    lines.show()
    rows = card_rows(history.latest)
    diagnoses = {"GPU-0": DiagnosisView("Idle", "Idle. Nothing is running on the GPU.", "muted")}
    lines.show_cards([card_line(row) for row in rows], diagnoses, {"GPU-0": 0.4}, card_totals(rows, None, 0.0))
    assert lines.texts[0].endswith("Idle. Nothing is running on the GPU")
    assert lines.totals_text.startswith("2 × H100")
    qtbot.waitUntil(lambda: lines._lines["GPU-1"].isVisible() and lines._lines["GPU-1"].height() > 10)
    before = lines.grab().toImage()
    lines.show_courses(history, CARDS, AxisRange(0.0, 60.0), 59.0)
    drawn = lines.grab().toImage()
    assert drawn != before
    first = lines._lines["GPU-0"]._sparklines
    lines.show_courses(history, CARDS, AxisRange(0.2, 60.2), 59.2)
    assert lines._lines["GPU-0"]._sparklines is first
    lines.show_courses(history, [Device("GPU-9", "NVIDIA H100", 9), *CARDS], AxisRange(5.0, 65.0), 64.0)
    assert lines._lines["GPU-0"]._sparklines is not first
    lines.show_cards([card_line(row) for row in rows], {}, {}, None)
    assert lines.totals_text == ""
    theme.apply("dark")
    try:
        assert lines.grab().toImage() != drawn
    finally:
        theme.apply("light")
