"""The time that the plots show."""

import pytest
from pytestqt.qtbot import QtBot

from planner.gui.monitor.plots.time_view import NARROWEST_SECONDS, TimeSpanView


@pytest.fixture
def view(qtbot: QtBot) -> TimeSpanView:
    """A minute's view of an hour."""
    made = TimeSpanView()
    made.set_reading_times(0.0, 3600.0)
    made.set_span(60.0)
    return made


def ends(view: TimeSpanView) -> tuple[float, float]:
    return view.start, view.end


def test_it_follows_the_latest_reading(view, qtbot):
    assert ends(view) == (3540.0, 3600.0)
    with qtbot.waitSignal(view.moved):
        view.set_reading_times(0.0, 3610.0)
    assert ends(view) == (3550.0, 3610.0)


def test_paused_it_stands_still_and_then_catches_up(view, qtbot):
    view.set_follow(False)
    assert not view.follow
    with qtbot.assertNotEmitted(view.moved):
        view.set_reading_times(0.0, 3700.0)
    view.set_follow(True)
    assert view.end == 3700.0


def test_panning_stops_following_and_ends_at_what_is_known(view):
    view.pan(-1000.0)
    assert not view.follow
    assert ends(view) == (2540.0, 2600.0)
    view.pan(-1e9)
    assert ends(view) == (0.0, 60.0)
    view.pan(1e9)
    assert ends(view) == (3540.0, 3600.0)


def test_zooming_keeps_the_time_under_the_pointer(view):
    view.pan(-1000.0)
    view.zoom(0.5, 2555.0)
    assert ends(view) == (2547.5, 2577.5)
    view.zoom(1e-9, 2560.0)
    assert view.span == NARROWEST_SECONDS


def test_zooming_while_it_follows_keeps_the_latest_reading(view):
    view.zoom(2.0, 3550.0)
    assert ends(view) == (3480.0, 3600.0)
    view.zoom(1e9, 3550.0)
    assert ends(view) == (0.0, 3600.0)
    assert view.follow


def test_another_span_is_told(view, qtbot):
    with qtbot.waitSignal(view.moved):
        view.set_span(30.0)
    assert ends(view) == (3570.0, 3600.0)


def test_all_there_is_grows_with_it(view):
    view.set_span(None)
    view.set_reading_times(0.0, 7200.0)
    assert ends(view) == (0.0, 7200.0)


def test_a_history_of_seconds_is_shown_on_a_minute(qtbot):
    view = TimeSpanView()
    view.set_reading_times(100.0, 103.0)
    view.set_span(None)
    assert ends(view) == (43.0, 103.0)


def test_a_time_can_be_shown(view):
    view.show(1000.0, 1100.0)
    assert ends(view) == (1000.0, 1100.0)
    assert not view.follow


def test_the_cursor_is_told_once(view, qtbot):
    with qtbot.waitSignal(view.cursor_moved):
        view.move_cursor(5.0)
    with qtbot.assertNotEmitted(view.cursor_moved):
        view.move_cursor(5.0)
