"""Another machine in the window: chosen, shown, cut off, connected again, and never taken for this one."""

import pytest
from fake_nvml_kit import FAST, A, B, C, FakeNvml, card
from PySide6.QtCore import Qt
from tab_kit import faults_of, wait

from planner.gui.monitor.connect_dialogs import MachineDialog
from planner.gui.monitor.notices import EmptyState
from planner.gui.monitor.settings import MonitorSettings
from planner.gui.monitor.settings_dialog import SettingsDialog
from planner.monitor.readings.faults import FaultKind
from planner.monitor.readings.sample import Sample
from planner.monitor.settings import AlertTargets
from planner.monitor.supervisor.remote import RemoteAddress


@pytest.fixture
def remote(ssh_server, tmp_path, nvml_library, monkeypatch):
    """Return the driver of another machine, its address, and how to use both from here."""
    folder = tmp_path / "remote"
    folder.mkdir()
    driver = FakeNvml(folder, nvml_library)
    driver.say(card(0, B, name="NVIDIA Remote"))
    monkeypatch.setenv("PATH", ssh_server.client()["PATH"])
    return driver, ssh_server.address(ssh_server.program("windowed", driver.environment))


def test_another_machine_is_watched_cut_off_and_connected_again_and_left(
    qtbot, make_tab, driver, remote, ssh_server, workspace, recording
):
    far, address = remote
    driver.say(card(0, A))
    tab = make_tab()
    wait(qtbot, lambda: tab.feed.latest.reading(A, "utilization_fraction").value == 0.5)
    known = workspace.settings.current
    tab.controller.watch_machine(address)
    assert tab.toolbar.source.text() == f"Live · {address.host}"
    assert tab.headline.text == f"Connecting to {address.host}…"
    wait(qtbot, lambda: tab.feed.latest.reading(B, "utilization_fraction").value == 0.5)
    wait(qtbot, lambda: any("Remote" in text for text in tab.cards.texts))
    assert tab.controller.settings.machines == (str(address),)
    assert not tab.processes._is_live
    assert tab.feed.latest.inventory.machine in tab.machine.text()
    tab.controller.show_doctor()
    assert tab.controller.dialog is None
    assert workspace.settings.current.monitor.evolve(machines=()) == known.monitor
    far.say(card(0, B, name="NVIDIA Remote"), events=("0 8 31",))
    wait(qtbot, lambda: tab.feed.latest.xids)
    for connection in ssh_server.connections():
        connection.kill()
    wait(qtbot, lambda: FaultKind.UNREACHABLE in faults_of(tab))
    assert tab.reconnect.isVisible()
    assert any("The other machine cannot be reached" in text for text in tab.faults.texts)
    tab.reconnect.click()
    wait(qtbot, lambda: tab.feed.latest.reading(B, "utilization_fraction").value == 0.5)
    wait(qtbot, lambda: not tab.reconnect.isVisible())
    tab.feed.record_to(recording)
    tab.controller.watch_this_machine()
    assert tab.feed.machine == address
    tab.feed.stop_recording()
    tab.controller.watch_this_machine()
    wait(qtbot, lambda: tab.feed.latest.reading(A, "utilization_fraction").value == 0.5)
    assert tab.toolbar.source.text() == "Live"
    assert tab.feed.latest.inventory.machine == ""


def test_an_xid_a_hang_and_a_loss_there_show_in_the_window_within_two_readings(qtbot, make_tab, driver, remote):
    far, address = remote
    far.say(card(0, A), card(1, B), card(2, C))
    driver.say(card(0, A))
    tab = make_tab(pace=FAST._replace(fast_seconds=0.5, hang_seconds=0.3))
    tab.controller.watch_machine(address)
    wait(qtbot, lambda: tab.feed.latest.reading(C, "utilization_fraction").value == 0.5)
    samples = []
    tab.feed._live.arrived.connect(lambda updates: samples.extend(one for one in updates if isinstance(one, Sample)))
    stalled = card(1, B) | {"1.stall.nvmlDeviceGetPowerUsage": 1}
    lost = card(2, C) | {"2.error.nvmlDeviceGetPowerUsage": 15}
    far.say(card(0, A), stalled, lost, events=("0 8 31",))

    def shows_all():
        cards = tab.cards.texts
        return tab.feed.latest.xids and "no answer" in cards[1] and "lost" in cards[2]

    wait(qtbot, shows_all)
    # The reading that is being taken when the cards fail is not one of the two.
    assert len(samples) <= 3
    wait(qtbot, lambda: any("the driver does not respond for this GPU" in text for text in tab.faults.texts))


def test_the_dialog_takes_a_host_or_an_address_and_says_what_is_wrong_with_others(qtbot, theme):
    dialog = MachineDialog(("ssh://gpu-box", "ssh://me@other-box:2222"), theme, None)
    qtbot.addWidget(dialog)
    chosen = []
    dialog.chosen.connect(chosen.append)
    dialog.show()
    assert dialog.address.text() == "ssh://gpu-box"
    dialog.address.clear()
    qtbot.keyClicks(dialog.address, "two words")
    dialog.watch.click()
    assert (chosen, dialog.problem.isVisible()) == ([], True)
    qtbot.keyClicks(dialog.address, "x")
    assert not dialog.problem.isVisible()
    dialog.recent.setCurrentIndex(1)
    dialog.recent.textActivated.emit(dialog.recent.currentText())
    qtbot.keyClick(dialog.address, Qt.Key.Key_Return)
    assert chosen == [RemoteAddress("other-box", "me", 2222)]


def test_where_alerts_go_is_set_in_the_dialog_and_checked(qtbot, theme):
    dialog = SettingsDialog(MonitorSettings(), theme, None)
    qtbot.addWidget(dialog)
    chosen = []
    dialog.chosen.connect(chosen.append)
    dialog.show()
    dialog.is_on.setChecked(True)
    dialog.webhook.setText("http://example.com")
    dialog.accept()
    assert chosen == []
    assert dialog.problem.text().startswith("A webhook is an address that starts with https://")
    dialog.webhook.setText("https://example.com/alerts")
    dialog.command.setText("notify-send alert")
    dialog.accept()
    assert chosen[0].alert_targets == AlertTargets(command="notify-send alert", webhook="https://example.com/alerts")


def test_readings_of_this_machine_are_never_shown_as_those_of_another(qtbot, make_tab, driver):
    driver.say(card(0, A))
    tab = make_tab()
    wait(qtbot, lambda: any(panel.isVisible() for panel in tab.plots.panels))
    tab.controller.watch_machine(RemoteAddress("nohost.invalid"))
    wait(qtbot, lambda: not any(panel.isVisible() for panel in tab.plots.panels))
    assert not tab.plots.band.isVisible()
    wait(qtbot, lambda: bool(faults_of(tab)))
    buttons = tab.empty_state
    wait(qtbot, buttons.again.isVisible)
    assert not any(button.isVisible() for button in (buttons.doctor, buttons.demo, tab.reconnect))
    buttons.another.click()
    assert isinstance(tab.controller.dialog, MachineDialog)
    tab.controller.dialog.reject()
    buttons.here.click()
    wait(qtbot, lambda: not buttons.isVisible() and tab.feed.machine is None)


def test_only_a_connection_that_failed_is_tried_again(qtbot, theme):
    buttons = EmptyState(theme)
    qtbot.addWidget(buttons)
    for is_cut_off in (False, True):
        buttons.show_buttons(is_remote=True, is_cut_off=is_cut_off)
        assert (buttons.here.isHidden(), buttons.again.isHidden()) == (False, not is_cut_off)
