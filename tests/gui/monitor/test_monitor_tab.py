"""The Monitor tab against a driver that does what the test wants."""

import os
from importlib import import_module
from time import monotonic

from fake_nvml_kit import FAST, HURRIED, A, B, card
from PySide6.QtGui import QGuiApplication
from tab_kit import Probe, faults_of, wait, wait_for_plots

from planner.monitor.readings.faults import FaultKind


def test_a_card_is_told_with_its_values_diagnosis_process_and_cost(qtbot, make_tab, driver):
    driver.say(card(0, A, memory__used=12 * 2**30) | {"0.process.compute": f"{os.getpid()}:{2**30}"})
    tab = make_tab()
    wait(qtbot, lambda: tab.cards.texts and "50" in tab.cards.texts[0] and tab.toolbar.cost.text())
    said = tab.cards.texts[0].replace("\u2009", " ")
    assert said.startswith("0  Test 0, busy, 50 %, 12.0 / 24.0 GiB, 200 / 450 W, 60 °C, 2,520 MHz")
    wait(qtbot, lambda: tab.headline.text.startswith("Too early to diagnose.\nA diagnosis needs 20 seconds"))
    assert "driver " in tab.machine.text()  # after the energy, once there are two readings
    assert "per reading, sampler" in tab.toolbar.cost.text()
    assert tab.cards.texts[0] in tab.copy_result()
    assert tab.empty_state.isHidden()
    assert tab.faults.isHidden()


def test_without_a_driver_the_tab_says_why_and_shows_the_machine(qtbot, make_tab):
    tab = make_tab(without_driver=True)
    wait(qtbot, lambda: tab.faults.texts and tab.machine.text().count("·"))
    assert "management library (NVML) is missing" in tab.faults.texts[0]
    assert "since" in tab.faults.texts[0]
    assert "--gpus all" in tab.faults.texts[0]
    assert tab.headline.text == "No GPU of NVIDIA, AMD, Intel or Apple was found on this machine."
    assert tab.empty_state.isVisible()
    assert "RAM" in tab.machine.text()
    tab.empty_state.doctor.click()
    wait(qtbot, lambda: "nvidia-ml-py" in tab.controller.dialog.text.toPlainText())
    tab.controller.dialog.copy.click()
    assert "Driver: cannot be reached" in QGuiApplication.clipboard().text()
    tab.controller.dialog.close()


def test_a_lost_card_is_named_and_the_other_goes_on_without_the_window_stopping(qtbot, make_tab, driver):
    driver.say(card(0, A), card(1, B))
    tab = make_tab()
    wait(qtbot, lambda: len(tab.cards.texts) == 2 and all("busy" in text for text in tab.cards.texts))
    wait_for_plots(qtbot, tab)
    with Probe() as probe:
        driver.say(card(0, A), card(1, B) | {"1.error.*": 15})
        wait(qtbot, lambda: FaultKind.LOST in faults_of(tab))
        wait(qtbot, lambda: "lost" in tab.cards.texts[1])
        end = tab.feed.now
        wait(qtbot, lambda: tab.feed.now > end + 0.3)
    assert "busy" in tab.cards.texts[0]
    assert any("GPU 1" in text for text in tab.faults.texts)
    assert not probe.stood_still


def test_a_driver_that_hangs_is_named_while_the_window_and_the_machine_go_on(qtbot, make_tab, driver):
    driver.say(card(0, A) | {"0.hang.nvmlDeviceGetPowerUsage": "5x0 1"})
    tab = make_tab(HURRIED)
    wait(qtbot, lambda: tab.cards.texts)
    wait_for_plots(qtbot, tab)
    with Probe() as probe:
        wait(qtbot, lambda: FaultKind.NOT_ANSWERING in faults_of(tab))
        assert any("does not respond" in text for text in tab.faults.texts)
        end = tab.feed.now or 0.0
        wait(qtbot, lambda: (tab.feed.now or 0.0) > end + 0.3)
    assert not probe.stood_still


def test_a_card_that_hangs_is_named_while_the_other_goes_on_without_the_window_stopping(qtbot, make_tab, driver):
    driver.say(card(0, A), card(1, B))
    tab = make_tab(pace=FAST._replace(hang_seconds=1.0))
    wait(qtbot, lambda: len(tab.cards.texts) == 2 and all("busy" in text for text in tab.cards.texts))
    wait_for_plots(qtbot, tab)
    with Probe() as probe:
        driver.say(card(0, A) | {"0.stall.nvmlDeviceGetPowerUsage": 1}, card(1, B))
        wait(qtbot, lambda: "no answer" in tab.cards.texts[0])
        (told,) = tab.faults.texts
        assert told.startswith("GPU 0: the driver does not respond for this GPU (nvmlDeviceGetPowerUsage), since ")
        assert "Other GPUs are still read" in told
        readings = len(tab.feed.history.series(B, "power_watts"))
        wait(qtbot, lambda: len(tab.feed.history.series(B, "power_watts")) > readings + 3)
        assert "busy" in tab.cards.texts[1]
        driver.say(card(0, A), card(1, B))
        wait(qtbot, lambda: "busy" in tab.cards.texts[0] and not tab.faults.texts)
    assert not probe.stood_still


# What the driver does, and what the window shows of it: in a card's line, in a fault, or in the band of events.
HAPPENED = {
    "xid": ({}, ("0 8 79",), "Xid 79"),
    "hang": ({"0.stall.nvmlDeviceGetPowerUsage": 1}, (), "no answer"),
    "loss": ({"0.error.*": 15}, (), "lost"),
}


def test_an_xid_a_hang_and_a_loss_are_shown_with_the_first_sweep_that_meets_them(qtbot, make_tab, driver):
    """Sweeps are counted, not seconds: between two of them there is at most a second."""
    driver.say(card(0, A), card(1, B))
    tab = make_tab(pace=FAST._replace(fast_seconds=1.0, hang_seconds=0.5))
    wait(qtbot, lambda: len(tab.cards.texts) == 2 and all("busy" in text for text in tab.cards.texts))
    wait_for_plots(qtbot, tab)
    tab.plots.refresh()
    for name, (changes, events, shown) in HAPPENED.items():
        driver.say(card(0, A) | changes, card(1, B), events=events)
        happened = monotonic()
        wait(qtbot, lambda at=happened: (tab.feed.now or 0.0) > at)
        # What a second pass adds, which follows within hundredths of a second.
        tab._update_processes_and_plots()
        assert shown in "\n".join((*tab.cards.texts, *tab.faults.texts, tab.plots.band.text())), name
        driver.say(card(0, A), card(1, B))
        wait(qtbot, lambda: "busy" in tab.cards.texts[0])


def test_a_crash_of_the_library_is_named_and_survived_without_the_window_stopping(qtbot, make_tab, driver):
    driver.say(card(0, A))
    tab = make_tab()
    wait(qtbot, lambda: tab.cards.texts and "busy" in tab.cards.texts[0])
    wait_for_plots(qtbot, tab)
    with Probe() as probe:
        driver.say(card(0, A) | {"0.crash.nvmlDeviceGetClockInfo": "1"})
        wait(qtbot, lambda: FaultKind.SAMPLER_CRASHED in faults_of(tab))
        assert any("crashed" in text for text in tab.faults.texts)
        driver.say(card(0, A))
        wait(qtbot, lambda: FaultKind.SAMPLER_CRASHED not in faults_of(tab))
    assert not probe.stood_still


def test_the_driver_is_released_and_taken_up_again(qtbot, make_tab, driver):
    driver.say(card(0, A))
    tab = make_tab()
    wait(qtbot, lambda: tab.cards.texts)
    tab.controller.toggle_driver_connection()
    wait(qtbot, lambda: FaultKind.RELEASED in faults_of(tab))
    assert tab.reconnect.isVisible()
    assert tab.controller.driver_connection_text() == "Reconnect to the dri&ver"
    tab.reconnect.click()
    wait(qtbot, lambda: FaultKind.RELEASED not in faults_of(tab) and "busy" in tab.cards.texts[0])
    assert not tab.reconnect.isVisible()


def test_the_driver_is_released_when_the_tab_was_hidden_long_and_taken_up_when_it_is_shown(qtbot, make_tab, driver):
    driver.say(card(0, A))
    tab = make_tab()
    tab.controller.change_settings(release_after_minutes=0.0002)
    wait(qtbot, lambda: tab.cards.texts)
    tab.hide()
    wait(qtbot, lambda: FaultKind.RELEASED in faults_of(tab))
    tab.show()
    wait(qtbot, lambda: FaultKind.RELEASED not in faults_of(tab))


def test_a_hidden_tab_reads_half_as_often_unless_it_records(qtbot, make_tab, driver, recording):
    driver.say(card(0, A))
    tab = make_tab()
    wait(qtbot, lambda: tab.cards.texts)

    def interval():
        return tab.feed._live.supervisor._settings.fast_seconds

    tab.hide()
    wait(qtbot, lambda: interval() == 0.2)
    tab.feed.record_to(recording)
    wait(qtbot, lambda: interval() == 0.1)
    tab.feed.stop_recording()
    wait(qtbot, lambda: interval() == 0.2)
    tab.show()
    wait(qtbot, lambda: interval() == 0.1)


def test_pause_holds_the_view_while_readings_are_kept(qtbot, make_tab, driver):
    driver.say(card(0, A))
    tab = make_tab()
    wait(qtbot, lambda: tab.cards.texts and "50" in tab.cards.texts[0])
    tab.toolbar.pause.click()
    driver.say(card(0, A, utilization=77))
    wait(qtbot, lambda: tab.feed.latest.reading(A, "utilization_fraction").value == 0.77)
    assert "50" in tab.cards.texts[0]
    tab.toolbar.pause.click()
    assert "77" in tab.cards.texts[0]


def test_the_interval_and_the_span_are_remembered(qtbot, make_tab, driver, workspace):
    driver.say(card(0, A))
    tab = make_tab()
    tab.toolbar.interval.setCurrentIndex(tab.toolbar.interval.findData(0.2))
    tab.toolbar.interval.activated.emit(tab.toolbar.interval.currentIndex())
    tab.toolbar.span.setCurrentIndex(tab.toolbar.span.findData(60.0))
    tab.toolbar.span.activated.emit(tab.toolbar.span.currentIndex())
    remembered = workspace.settings.current.monitor
    assert (remembered.interval_seconds, remembered.span_seconds) == (0.2, 60.0)
    assert tab.plots.view.span == 60.0


def test_the_window_does_not_stand_still_while_the_tab_begins(qtbot, make_tab, driver):
    driver.say(*(card(number, f"GPU-{number:08d}-0000-0000-0000-000000000000") for number in range(8)))
    # The window imports it beside itself at its start.
    import_module("planner.gui.monitor.plots.metric_plot")
    tab = make_tab()
    with Probe() as probe:
        wait(qtbot, lambda: len(tab.cards.texts) == 8)
        wait_for_plots(qtbot, tab)
    assert not probe.stood_still
