"""A recording survives the end of the window that writes it, and the next start offers it."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import recording_child
from fake_nvml_kit import A, card
from tab_kit import wait

from planner.gui.monitor.notices import UnfinishedBanner
from planner.gui.monitor.settings import MonitorSettings, UnfinishedRecording, unfinished_message
from planner.monitor.recording.log_import import open_recording

CHILD = Path(recording_child.__file__)


def record_until_killed(driver, recording: Path, settings: Path) -> int:
    """Run a window that records, kill it while it does, and return which process it was."""
    command = [sys.executable, str(CHILD), str(recording), str(settings)]
    with subprocess.Popen(command, env=driver.environment, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline().strip() == str(recording)
        samplers = psutil.Process(child.pid).children(recursive=True)
        child.kill()
    psutil.wait_procs(samplers, timeout=10)
    return child.pid


def test_a_killed_window_leaves_a_recording_that_the_next_one_offers(
    qtbot, make_tab, driver, workspace, recording, tmp_path
):
    driver.say(card(0, A, utilization=33))
    stored = tmp_path / "of-the-child.json"
    pid = record_until_killed(driver, recording, stored)
    assert recording.name in stored.read_text(encoding="utf-8")
    found = open_recording(recording)
    assert found.loss.is_cut
    assert [mark.text for mark in found.marks] == [recording_child.MARK]

    told = UnfinishedRecording(path=str(recording), pid=pid, process_started_seconds=1.0)
    workspace.settings.update(monitor=workspace.settings.current.monitor.evolve(unfinished=(told,)))
    tab = make_tab()
    assert tab.unfinished_banner.isVisible()
    tab.unfinished_banner.open.click()
    wait(qtbot, lambda: not tab.feed.is_live)
    wait(qtbot, lambda: tab.cards.texts and "33" in tab.cards.texts[0])
    assert not tab.unfinished_banner.isVisible()
    assert workspace.settings.current.monitor.unfinished == ()


def test_what_is_being_written_is_remembered_until_it_is_ended(qtbot, make_tab, driver, workspace, recording):
    driver.say(card(0, A))
    tab = make_tab()
    wait(qtbot, lambda: tab.feed.now)
    tab.controller.record_to(recording)
    (remembered,) = workspace.settings.current.monitor.unfinished
    assert remembered == UnfinishedRecording.by_this_process(recording)
    assert not remembered.is_interrupted
    wait(qtbot, lambda: tab.toolbar.cost.text().startswith(f"recording {recording.name} for "))
    tab.feed.stop_recording()
    assert workspace.settings.current.monitor.unfinished == ()


def test_a_file_that_is_gone_is_not_offered(tmp_path):
    gone = UnfinishedRecording(path=str(tmp_path / "gone.gpurec"), pid=os.getpid(), process_started_seconds=1.0)
    assert not gone.is_interrupted


def test_files_of_several_windows_are_offered_in_turn_and_stay_if_not_wanted(qtbot, theme, recording):
    recording.write_bytes(b"x" * 2048)
    strip = UnfinishedBanner(theme)
    qtbot.addWidget(strip)
    second = recording.with_name("second.gpurec")
    second.write_bytes(b"x")
    files = (recording, second)
    ended = [UnfinishedRecording(path=str(file), pid=2**22 + 1, process_started_seconds=None) for file in files]
    strip.show_offers(MonitorSettings(unfinished=tuple(ended)).interrupted_recordings)
    for file in files:
        assert not strip.isHidden()
        with qtbot.waitSignal(strip.offer_ended) as told:
            strip.dismiss.click()
        assert told.args == [file]
    assert strip.isHidden()
    assert recording.exists()
    assert "2.00\u2009KiB" in " ".join(unfinished_message(recording))
