"""The band of events under the plots."""

import pytest
from each_record import for_each
from plots_kit import A, B
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QGuiApplication, QHelpEvent
from PySide6.QtWidgets import QApplication, QToolTip

from planner.gui.monitor.plots.band_layout import (
    TimeAxisScale,
    band_items,
    event_lines,
    gap_spans,
    item_lines,
    lane_title,
)
from planner.monitor.history import History
from planner.monitor.readings.events import Event, EventKind, Timestamp

LABELS = {A: "0", B: "1"}
PLACE = TimeAxisScale(0.0, 600.0, 10.0, 1.0)


def lanes(history, place=PLACE, labels=LABELS):
    return {(shape.lane, shape.text, shape.row): shape for shape in band_items(history, place, labels, 8)}


def test_everything_has_its_place(two_cards):
    items = lanes(two_cards)
    held = items["Slowed", "", 0]
    assert (held.left, held.right, held.role, held.is_hatched) == (310, 340, "warn", False)
    hot = items["Slowed", "", 1]
    assert (hot.left, hot.right, hot.is_hatched) == (600, 609, True)
    assert items["Events", "X 1", 0].left == 352
    assert items["Diagnosis", "0: input-bound", 0].right == 170
    assert items["Marks", "larger batch", 0].left == 410
    assert gap_spans(two_cards, PLACE) == [(209, 270)]


def test_events_of_cards_that_are_switched_off_are_left_out(two_cards):
    assert {lane for lane, *_ in lanes(two_cards, labels={A: "0"})} == {"Slowed", "Diagnosis", "Marks"}


def test_words_say_which_card_and_how_long(two_cards):
    items = lanes(two_cards)
    (held,) = item_lines(items["Slowed", "", 0], two_cards, LABELS)
    assert held.endswith("GPU 0: power limit, 30\u2009s")
    (hot,) = item_lines(items["Slowed", "", 1], two_cards, LABELS)
    assert hot.endswith("GPU 1: slowed by heat: near the hardware's limit, 9\u2009s so far")
    assert item_lines(items["Marks", "larger batch", 0], two_cards, LABELS)[0].endswith("larger batch")


def test_what_touches_becomes_one_sign_that_tells_all(two_cards):
    for offset, kind in enumerate((EventKind.PROCESS_STARTED, EventKind.PROCESS_ENDED, EventKind.PROCESS_STARTED)):
        moment = Timestamp(500.0 + offset, 0.0)
        two_cards.add_event(Event(kind, moment, moment, A, "python", 7 + offset))
    several = lanes(two_cards)["Events", "…", 0]
    assert len(several.events) == 3
    moment = Timestamp(503.0, 0.0)
    two_cards.add_event(Event(EventKind.XID, moment, moment, B, number=79))
    worst = max(lanes(two_cards).values(), key=lambda shape: len(shape.events))
    assert (worst.text, worst.role) == ("X 1", "bad")


def verdicts_on(history, *spans):
    for uuid, what, began, ended in spans:
        moments = (Timestamp(float(began), 0.0), Timestamp(float(ended), 0.0))
        history.add_event(Event(EventKind.DIAGNOSIS, *moments, uuid, what))
    items = band_items(history, PLACE, LABELS, 8)
    return [shape for shape in items if shape.lane == "Diagnosis" and shape.left >= 310]


def test_verdicts_on_several_cards_are_pieces_that_do_not_overlap(two_cards):
    pieces = verdicts_on(two_cards, (A, "rest", 300, 400), (B, "rest", 300, 450), (A, "work", 400, 500))
    told = [(piece.text, piece.left, piece.right, len(piece.events)) for piece in pieces]
    assert told == [("rest", 310, 410, 2), ("1: rest, 0: work", 410, 460, 2), ("0: work", 460, 510, 1)]


def test_verdicts_of_one_kind_on_end_are_one_piece(two_cards):
    pieces = verdicts_on(two_cards, (A, "rest", 300, 400), (A, "rest", 400, 450), (B, "rest", 350, 450))
    told = [(piece.text, piece.left, piece.right, len(piece.events)) for piece in pieces]
    assert told == [("0: rest", 310, 360, 1), ("rest", 360, 460, 3)]


def test_the_lane_of_slowdowns_names_its_cards(two_cards):
    items = band_items(two_cards, PLACE, LABELS, 8)
    assert lane_title("Slowed", items, LABELS) == "Slowed 0, 1"
    assert lane_title("Slowed", items, {A: "0"}) == lane_title("Slowed", (), {A: "0"}) == "Slowed"
    assert lane_title("Events", items, LABELS) == "Events"


def test_the_time_before_the_first_reading_is_hatched(two_cards):
    early = TimeAxisScale(-100.0, 500.0, 10.0, 1.0)
    assert gap_spans(two_cards, early)[0] == (10, 110)
    assert gap_spans(History(), early) == [(10, 610)]


def test_spans_side_by_side_become_one(two_cards):
    for second in range(400, 420, 2):
        began, ended = Timestamp(float(second), 0.0), Timestamp(second + 1.0, 0.0)
        two_cards.add_event(Event(EventKind.SLOWED, began, ended, A, "power-cap"))
    spans = [shape for shape in band_items(two_cards, PLACE, LABELS, 8) if shape.lane == "Slowed" and shape.row == 0]
    assert [(span.left, span.right) for span in spans] == [(310, 340), (410, 429)]


def test_all_events_are_told_as_text(two_cards):
    rows = event_lines(two_cards, 0.0, 600.0, LABELS)
    assert len(rows) == 6
    assert any("all GPUs: no readings" in row for row in rows)
    assert event_lines(two_cards, 0.0, 600.0, LABELS, 2) == rows[-2:]
    assert rows[0].endswith("GPU 0: input-bound, 1\u2009min")


def test_the_band_shows_the_lanes_that_there_are(grid):
    grid.view.set_span(None)
    assert {shape.lane for shape in grid.band.items} == {"Slowed", "Events", "Diagnosis", "Marks"}
    high = grid.band.sizeHint().height()
    grid.view.show(0.0, 60.0)
    assert grid.band.items == []
    assert grid.band.sizeHint().height() < high


def test_the_band_tells_what_is_under_the_pointer(grid):
    grid.view.set_span(None)
    shape = next(shape for shape in grid.band.items if shape.lane == "Events")
    where = QPoint(round(shape.left) + 2, round(1.5 * grid.band._lane_height))
    assert grid.band.items_at(where.x(), where.y()) == [shape]
    QApplication.sendEvent(grid.band, QHelpEvent(QEvent.Type.ToolTip, where, grid.band.mapToGlobal(where)))
    assert QToolTip.text().endswith("GPU 1: Xid 31")
    QToolTip.hideText()


def test_words_that_do_not_fit_and_signs_are_told_in_full_on_hover_and_in_the_list(grid, two_cards):
    moment = Timestamp(450.0, 0.0)
    two_cards.add_event(Event(EventKind.LOST, moment, moment, B))
    grid.view.set_span(None)
    grid.draw_visible()
    band = grid.band
    lanes = ["Slowed", "Events", "Diagnosis", "Marks"]
    said = {}
    for item in band.items:
        where = QPoint(round(item.left) + 2, round((lanes.index(item.lane) + 0.5) * band._lane_height))
        QApplication.sendEvent(band, QHelpEvent(QEvent.Type.ToolTip, where, band.mapToGlobal(where)))
        said[item.text] = QToolTip.text()
    QToolTip.hideText()
    assert said["! 1"].endswith("GPU 1: no longer responds")
    assert "GPU 0: input-bound, 1\u2009min" in said["0: input-bound"]
    assert said["larger batch"].endswith("larger batch")
    listed = "\n".join(band.latest_lines(20))
    assert all(text in listed for text in ("no longer responds", "input-bound", "larger batch"))


def test_a_mark_is_put_and_taken_away(grid, qtbot, two_cards):
    grid.view.set_span(None)
    with qtbot.waitSignal(grid.mark_wanted):
        qtbot.keyClick(grid.band, Qt.Key.Key_M)
    shape = next(shape for shape in grid.band.items if shape.mark is not None)
    menu = grid.band.menu_at(shape.left, 3.5 * grid.band._lane_height)
    put, remove, copy = menu.actions()
    with qtbot.waitSignal(grid.mark_wanted):
        put.trigger()
    remove.trigger()
    assert two_cards.marks == ()
    copy.trigger()
    assert "Xid 31" in QGuiApplication.clipboard().text()


@for_each(
    "case",
    [
        (Qt.Key.Key_Left, Qt.KeyboardModifier.NoModifier, lambda view: view.cursor == pytest.approx(498.0)),
        (Qt.Key.Key_Right, Qt.KeyboardModifier.NoModifier, lambda view: view.cursor == pytest.approx(499.0)),
        (Qt.Key.Key_Left, Qt.KeyboardModifier.ShiftModifier, lambda view: view.end == pytest.approx(489.0)),
        (Qt.Key.Key_Plus, Qt.KeyboardModifier.NoModifier, lambda view: view.span == pytest.approx(80.0)),
        (Qt.Key.Key_Minus, Qt.KeyboardModifier.NoModifier, lambda view: view.span == pytest.approx(125.0)),
        (Qt.Key.Key_Home, Qt.KeyboardModifier.NoModifier, lambda view: view.start == 0.0),
        (Qt.Key.Key_End, Qt.KeyboardModifier.NoModifier, lambda view: view.follow and view.end == 599.0),
        (Qt.Key.Key_F12, Qt.KeyboardModifier.NoModifier, lambda view: view.end == 499.0),
    ],
)
def test_the_keyboard_does_what_the_pointer_does(grid, qtbot, case):
    key, modifier, holds = case
    grid.view.show(399.0, 499.0)
    qtbot.keyClick(grid.band, key, modifier)
    assert holds(grid.view)


def test_escape_takes_the_cursor_away(grid, qtbot):
    grid.view.move_cursor(590.0)
    grid.band.setFocus()
    grid.grab()
    qtbot.keyClick(grid.band, Qt.Key.Key_Escape)
    assert grid.view.cursor is None
