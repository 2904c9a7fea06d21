"""The diagnosis of what is shown: said of each card, and put on the time line."""

import pytest
from diagnosis_kit import UUID, a_history
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton

from planner.gui.monitor.controller import DEMO
from planner.gui.monitor.dialogs import VerdictDialog, verdict_html
from planner.gui.monitor.feed import Diagnoser, DisplayedReadings, Feed
from planner.gui.monitor.replay import RecordingLoader, RecordingReplay
from planner.monitor.history import History
from planner.monitor.readings.events import EventKind
from planner.monitor.readings.inventory import Inventory
from planner.monitor.settings import AlertRules
from planner.present.monitor.headline import card_line, machine_headline
from planner.present.monitor.readings import card_rows


class OneFeed:
    """A feed that shows one history."""

    def __init__(self, history):
        self.history = history
        self.is_live = self.is_moving = True

    @property
    def displayed_readings(self):
        history = self.history
        return DisplayedReadings(history.latest, history.inventory, history.end, history.series)


def test_a_verdict_is_said_and_begins_a_span_on_the_time_line():
    feed = OneFeed(a_history(utilization_fraction=0.4, memory_used_bytes=5e9))
    diagnoser = Diagnoser(feed)
    assert diagnoser.diagnose()[UUID].title == "Has spare capacity"
    assert diagnoser.is_under_filled
    events = [event for event in feed.history.events(0.0, 150.0) if event.kind is EventKind.DIAGNOSIS]
    assert [(event.what, event.uuid, event.ended) for event in events] == [("under-filled", UUID, None)]


def test_what_was_said_stays_until_it_is_time_or_the_cards_change():
    feed = OneFeed(a_history())
    diagnoser = Diagnoser(feed)
    first = diagnoser.diagnose()
    assert diagnoser.diagnose() is first
    feed.history.note(Inventory("580"))
    assert diagnoser.diagnose() == {}
    events = [event for event in feed.history.events(0.0, 150.0) if event.kind is EventKind.DIAGNOSIS]
    assert [event.ended.monotonic_seconds for event in events] == [150.0]


def test_nothing_is_said_before_there_is_a_reading():
    assert Diagnoser(OneFeed(History())).diagnose() == {}


def test_the_list_of_what_to_do_next_is_of_the_card_that_is_shown():
    diagnoser = Diagnoser(OneFeed(a_history()))
    assert diagnoser.checklist(UUID)[0].title == "Profile first"


def verdict_dialog(qtbot, theme, **readings):
    """Return the dialog with the diagnosis of a card that had these readings."""
    diagnoser = Diagnoser(OneFeed(a_history(**readings)))
    dialog = VerdictDialog("GPU 0", diagnoser.diagnose()[UUID], (), diagnoser.checklist(UUID), theme, None)
    qtbot.addWidget(dialog)
    return dialog


def test_the_dialog_tells_what_was_seen_and_what_to_do_next_and_copies_both(qtbot, theme):
    dialog = verdict_dialog(qtbot, theme, power_watts=330.0)
    told = dialog.text.toPlainText()
    assert "1. Profile first: not measured here" in told
    copy = next(button for button in dialog.findChildren(QPushButton) if button.text() == "&Copy")
    copy.click()
    copied = QGuiApplication.clipboard().text()
    assert copied.startswith("Limited by compute.")
    assert "Use a larger batch: ✓ looks fine" in copied


def test_a_card_that_is_too_hot_is_not_told_to_tune_its_run(qtbot, theme):
    dialog = verdict_dialog(qtbot, theme, clock_reasons=0x20)
    told = dialog.text.toPlainText()
    assert "What to try, most likely first" in told
    assert "Profile first" not in told


@pytest.fixture(scope="module")
def demo():
    return RecordingLoader(DEMO, is_demo=True).load()


def test_a_recording_is_diagnosed_as_a_whole_while_it_is_read(demo):
    history = demo.history
    told = [event for event in history.events(history.start, history.end) if event.kind is EventKind.DIAGNOSIS]
    assert {"idle", "input-bound", "compute-bound", "thermal-throttled", "idle-held"} <= {event.what for event in told}


def replay_of(demo):
    """Return a feed that replays the demo, and its diagnoser, which looks at every move."""
    feed = Feed(1.0, AlertRules())
    feed.play(demo)
    feed.replay.stop()
    diagnoser = Diagnoser(feed)
    feed.updated.connect(diagnoser.diagnose)
    return feed, diagnoser


def told_by(feed, diagnoser):
    cards = [card_line(row).accessible_text for row in card_rows(feed.latest)]
    return machine_headline(diagnoser.verdicts, feed.latest.inventory, is_released=False), cards


def test_a_moment_of_a_replay_has_one_diagnosis_however_it_was_reached(qtbot, demo):
    (played, played_diagnoser), (sought, sought_diagnoser) = replay_of(demo), replay_of(demo)
    now = [0.0]
    played.replay = RecordingReplay(demo, lambda: now[0])
    played.replay.moved.connect(played.updated)
    played.replay.set_speed(60.0)
    played.replay.seek(0.0)
    for seconds in (246.0, 420.0, 899.0):
        played.replay.play()
        while played.replay.seconds < seconds and played.replay.is_playing:
            now[0] += min(0.1, (seconds - played.replay.seconds) / 60.0)
            with qtbot.waitSignal(played.replay.moved):
                pass
        played.replay.stop()
        sought.replay.seek(seconds)
        assert played.replay.seconds == sought.replay.seconds == seconds
        assert told_by(played, played_diagnoser) == told_by(sought, sought_diagnoser)


def test_a_lost_card_has_no_readings_and_nothing_to_optimize(qtbot, demo, theme):
    feed, diagnoser = replay_of(demo)
    feed.replay.seek(899.0)
    lost = feed.latest.inventory.devices[1]
    assert [card_line(row).accessible_text for row in card_rows(feed.latest)][1] == "1  RTX 4090, lost"
    assert diagnoser.checklist(lost.uuid) == ()
    assert "Optimization" not in verdict_html(diagnoser.diagnose()[lost.uuid], (), (), theme)
    assert told_by(feed, diagnoser)[0].sentence == "1 of 2 GPUs is lost: GPU 1."


def test_a_wait_that_is_over_is_no_longer_the_headline(qtbot, demo):
    feed, diagnoser = replay_of(demo)
    feed.replay.seek(200.0)
    assert "input-bound" in told_by(feed, diagnoser)[0].sentence
    feed.replay.seek(246.0)
    assert "limited by compute" in told_by(feed, diagnoser)[0].sentence


def test_replaying_leaves_the_time_line_alone(qtbot, demo):
    feed, _ = replay_of(demo)
    before = demo.history.events(demo.history.start, demo.history.end)
    feed.replay.seek(300.0)
    feed.replay.seek(310.0)
    assert demo.history.events(demo.history.start, demo.history.end) == before
