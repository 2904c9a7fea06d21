"""The diagnosis of what is shown: said of each card, and put on the time line."""

from diagnosis_kit import UUID, a_history

from planner.gui.monitor.diagnoser import Diagnoser
from planner.gui.monitor.feed import Shown
from planner.monitor.events import EventKind
from planner.monitor.history import History
from planner.monitor.inventory import Inventory


class OneFeed:
    """A feed that shows one history."""

    def __init__(self, history):
        self.history = history

    @property
    def shown(self):
        history = self.history
        return Shown(history.latest, history.inventory, history.end, history.series)


def test_a_verdict_is_said_and_begins_a_span_on_the_time_line():
    feed = OneFeed(a_history(utilization_fraction=0.4, memory_used_bytes=5e9))
    diagnoser = Diagnoser(feed)
    assert diagnoser.look()[UUID].title == "Has room for more"
    assert diagnoser.is_under_filled
    events = [event for event in feed.history.events(0.0, 150.0) if event.kind is EventKind.DIAGNOSIS]
    assert [(event.what, event.uuid, event.ended) for event in events] == [("under-filled", UUID, None)]


def test_what_was_said_stays_until_it_is_time_or_the_cards_change():
    feed = OneFeed(a_history())
    diagnoser = Diagnoser(feed)
    first = diagnoser.look()
    assert diagnoser.look() is first
    feed.history.note(Inventory("580"))
    assert diagnoser.look() == {}
    events = [event for event in feed.history.events(0.0, 150.0) if event.kind is EventKind.DIAGNOSIS]
    assert [event.ended.monotonic_seconds for event in events] == [150.0]


def test_nothing_is_said_before_there_is_a_reading():
    assert Diagnoser(OneFeed(History())).look() == {}
