"""The diagnosis of what is shown: said of each card, and put on the time line."""

from diagnosis_kit import UUID, a_history
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton, QWidget

from planner.gui.monitor.controller import DEMO
from planner.gui.monitor.diagnoser import Diagnoser
from planner.gui.monitor.dialogs import VerdictDialog
from planner.gui.monitor.feed import DisplayedReadings
from planner.gui.monitor.replay import RecordingLoader
from planner.monitor.history import History
from planner.monitor.readings.events import EventKind
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.reading import Reading
from planner.monitor.readings.sample import Sample


class OneFeed:
    """A feed that shows one history."""

    def __init__(self, history, *, is_live=True):
        self.history, self.is_live = history, is_live

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


def test_the_dialog_tells_what_was_seen_and_what_to_do_next_and_copies_both(qtbot, theme):
    diagnoser, parent = Diagnoser(OneFeed(a_history(clock_reasons=0x20))), QWidget()
    qtbot.addWidget(parent)
    dialog = VerdictDialog("card 0", diagnoser.diagnose()[UUID], diagnoser.checklist(UUID), theme, parent)
    qtbot.addWidget(dialog)
    told = dialog.text.toPlainText()
    assert "What to try, most likely first" in told
    assert "1. Profile first: not measured here" in told
    copy = next(button for button in dialog.findChildren(QPushButton) if button.text() == "&Copy")
    copy.click()
    copied = QGuiApplication.clipboard().text()
    assert copied.startswith("Slowed because of heat.")
    assert "Use a larger batch: ✓ done" in copied


def test_a_recording_is_diagnosed_as_a_whole_while_it_is_read(qapp):
    history = RecordingLoader(DEMO, is_demo=True).load().history
    told = [event for event in history.events(history.start, history.end) if event.kind is EventKind.DIAGNOSIS]
    assert {"idle", "input-bound", "compute-bound", "thermal-throttled", "idle-held"} <= {event.what for event in told}


def test_a_jump_through_a_recording_forgets_what_was_said_and_leaves_its_time_line_alone():
    feed = OneFeed(a_history(), is_live=False)
    diagnoser = Diagnoser(feed)
    first = diagnoser.diagnose()
    feed.history.note(Sample(400.0, 1e9 + 400.0, {UUID: {"utilization_fraction": Reading(0.0)}}, {}))
    assert diagnoser.diagnose() is not first
    assert not [event for event in feed.history.events(0.0, 400.0) if event.kind is EventKind.DIAGNOSIS]
