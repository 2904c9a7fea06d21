"""Alerts of what the driver tells: after a while, once, again only after it was over; marked and on the desktop."""

import pytest
from fake_nvml_kit import FAST, A, B, card
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QSystemTrayIcon
from tab_kit import wait

from planner.monitor.recording.log_import import open_recording
from planner.monitor.settings import AlertRules, AlertTargets

HOLD_SECONDS = 0.2
NOTHING = AlertRules(
    is_on=True,
    temperature_celsius=None,
    memory_fraction=None,
    lost=False,
    process_ended=False,
    silent=False,
    xid=False,
    hold_seconds=HOLD_SECONDS,
)


class Told:
    """What was told across the window, and on a desktop that has a place for it; the icons that are there."""

    def __init__(self, workspace, monkeypatch) -> None:
        self.window: list[str] = []
        self.desktop: list[str] = []
        self.icons: list[QSystemTrayIcon] = []
        workspace.noticed.connect(lambda sentence, _hint: self.window.append(plain(sentence)))
        monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", staticmethod(lambda: True))
        monkeypatch.setattr(QSystemTrayIcon, "supportsMessages", staticmethod(lambda: True))
        monkeypatch.setattr(QSystemTrayIcon, "show", lambda icon: self.icons.append(icon))
        monkeypatch.setattr(QSystemTrayIcon, "hide", lambda icon: self.icons.remove(icon))
        monkeypatch.setattr(QSystemTrayIcon, "showMessage", lambda _icon, *message: self._tell(*message))

    def _tell(self, sentence: str, advice: str, _icon: QIcon) -> None:
        assert advice
        self.desktop.append(plain(sentence))


def plain(sentence: str) -> str:
    """Return a sentence with plain spaces."""
    return sentence.replace("\u2009", " ")


@pytest.fixture
def told(workspace, monkeypatch):
    return Told(workspace, monkeypatch)


def test_heat_is_told_after_a_while_once_and_again_only_after_it_was_clearly_left(
    qtbot, make_tab, driver, told, recording
):
    def goes_by(seconds):
        begun = tab.feed.now
        wait(qtbot, lambda: tab.feed.now > begun + seconds)

    def shown(degrees):
        wait(qtbot, lambda: tab.feed.latest.reading(A, "temperature_celsius").value == degrees)

    driver.say(card(0, A))
    tab = make_tab(rules=NOTHING.evolve(temperature_celsius=90))
    wait(qtbot, lambda: tab.feed.now)
    tab.feed.record_to(recording)
    driver.say(card(0, A, temperature__0=95))
    wait(qtbot, lambda: told.window)
    seen = tab.feed.history.series(A, "temperature_celsius")
    hot_since = next(at for at, degrees in zip(seen.times, seen.values, strict=True) if degrees == 95)
    assert tab.feed.history.marks[0].time - hot_since >= HOLD_SECONDS
    # Two degrees below, it is not over yet.
    for degrees in (89, 96):
        driver.say(card(0, A, temperature__0=degrees))
        shown(degrees)
        goes_by(2 * HOLD_SECONDS)
    assert told.window == ["GPU 0 Test 0 is at 95 °C"]
    for degrees in (80, 97):
        driver.say(card(0, A, temperature__0=degrees))
        shown(degrees)
    wait(qtbot, lambda: len(told.window) == 2)
    assert told.window == told.desktop == ["GPU 0 Test 0 is at 95 °C", "GPU 0 Test 0 is at 97 °C"]
    marks = [plain(mark.text) for mark in tab.feed.history.marks]
    tab.feed.stop_recording()
    assert marks == [plain(mark.text) for mark in open_recording(recording).marks] == told.window


@pytest.mark.parametrize(
    ("rules", "before", "after", "sentence"),
    [
        (
            {"memory_fraction": 0.9},
            (card(0, A),),
            (card(0, A, memory__used=23 * 2**30),),
            "GPU 0 Test 0 uses 96 % of its memory",
        ),
        (
            {"lost": True},
            (card(0, A), card(1, B)),
            (card(0, A), card(1, B) | {"1.error.*": 15}),
            "GPU 1 Test 1 is lost",
        ),
        ({"idle_minutes": HOLD_SECONDS / 60}, (card(0, A),), (card(0, A, utilization=0),), "GPU 0 Test 0 is idle"),
        (
            {"xid": True},
            (card(0, A),),
            (card(0, A), {"event": "0 8 48"}),
            "GPU 0 Test 0: the driver reported Xid 48",
        ),
        (
            {"silent": True},
            (card(0, A), card(1, B)),
            (card(0, A), card(1, B) | {"1.stall.nvmlDeviceGetPowerUsage": 1}),
            "GPU 1 Test 1: the driver does not respond for this GPU",
        ),
        (
            {"process_ended": True},
            (card(0, A) | {"0.process.compute": "4194305:4096"},),
            (card(0, A),),
            "GPU 0 Test 0: process 4194305 ended",
        ),
    ],
    ids=["memory", "lost", "idle", "xid", "silent", "process-ended"],
)
def test_what_is_asked_for_is_told_and_marked(qtbot, make_tab, driver, told, rules, before, after, sentence):
    driver.say(*before)
    tab = make_tab(rules=NOTHING.evolve(**rules), pace=FAST._replace(hang_seconds=1.0))
    wait(qtbot, lambda: tab.feed.now)
    begun = tab.feed.now
    wait(qtbot, lambda: tab.feed.now > begun + 2 * HOLD_SECONDS)
    assert told.window == []
    driver.say(*after)
    wait(qtbot, lambda: told.window)
    end = tab.feed.now
    wait(qtbot, lambda: tab.feed.now > end + 2 * HOLD_SECONDS)
    assert told.window == told.desktop == [sentence]
    assert [plain(mark.text) for mark in tab.feed.history.marks] == [sentence]
    assert len(told.icons) == 1
    tab.close()
    assert told.icons == []


def test_while_alerts_are_on_or_a_recording_is_made_a_hidden_tab_keeps_the_driver(qtbot, make_tab, driver, recording):
    driver.say(card(0, A))
    tab = make_tab()
    tab.controller.change_settings(release_after_minutes=0.002)
    wait(qtbot, lambda: tab.feed.now)
    tab.feed.record_to(recording)
    tab.hide()
    begun = tab.feed.now
    wait(qtbot, lambda: tab.feed.now > begun + 0.5)
    assert not tab.feed.is_released
    tab.feed.stop_recording()
    wait(qtbot, lambda: tab.feed.is_released)


def test_alerts_go_on_to_a_command_and_a_failure_is_told(qtbot, make_tab, driver, told, tmp_path):
    driver.say(card(0, A))
    tab = make_tab(rules=NOTHING.evolve(xid=True))
    received = tmp_path / "received"
    for command, sentence in ((f"tee {received}", "reported Xid 48"), ("/no/such/program", "was not delivered")):
        tab.controller.change_settings(alert_targets=AlertTargets(command=command))
        wait(qtbot, lambda: tab.feed.now)
        driver.say(card(0, A), {"event": f"0 8 {48 if command.startswith('tee') else 79}"})
        wait(qtbot, lambda sentence=sentence: any(sentence in text for text in told.window))
    wait(qtbot, lambda: received.exists() and received.read_text().endswith("}"))
    assert '"title": "GPU 0 Test 0: the driver reported Xid 48"' in received.read_text()
