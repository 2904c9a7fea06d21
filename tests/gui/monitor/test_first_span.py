"""The span of the plots grows with what is known, until somebody chooses another."""

from diagnosis_kit import a_history

from planner.gui.monitor.plots.time_view import TimeSpanView
from planner.gui.monitor.tab import GrowingSpan
from planner.monitor.history import History


def begun(usual):
    view = TimeSpanView()
    first = GrowingSpan(view)
    first.set_full_span(usual)
    return view, first


def fitted(view, first, seconds):
    history = a_history(seconds=seconds)
    view.set_reading_times(history.start, history.end)
    first.grow_to_readings(history)
    return view.span


def test_it_grows_in_steps_up_to_what_is_usual():
    view, first = begun(600.0)
    assert [fitted(view, first, seconds) for seconds in (5, 61, 130, 301, 700)] == [60.0, 120.0, 300.0, 600.0, 600.0]


def test_a_short_usual_span_stays():
    view, first = begun(60.0)
    assert fitted(view, first, 150) == 60.0


def test_nothing_known_changes_nothing_and_all_there_is_stays_so():
    view, first = begun(600.0)
    first.grow_to_readings(History())
    assert view.span == 600.0
    view, first = begun(None)
    assert fitted(view, first, 150) == 150.0


def test_a_span_that_was_chosen_stays():
    view, first = begun(600.0)
    assert fitted(view, first, 5) == 60.0
    first.set_fixed_span(3600.0)
    assert fitted(view, first, 20) == 3600.0


def test_what_was_zoomed_or_panned_stays():
    view, first = begun(600.0)
    assert fitted(view, first, 50) == 60.0
    view.zoom(0.5, 50.0)
    assert fitted(view, first, 150) == 30.0
    first.set_full_span(600.0)
    assert fitted(view, first, 150) == 300.0
    view.pan(-20.0)
    assert fitted(view, first, 400) == 300.0
