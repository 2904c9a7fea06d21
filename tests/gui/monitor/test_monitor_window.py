"""The Monitor tab in its place in the window: menu, keys, and everything put away when the window closes."""

import psutil
import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent, QKeySequence
from PySide6.QtWidgets import QFileDialog, QLabel

from planner.gui.monitor.controller import DEMO
from planner.gui.monitor.tab import MonitorTab
from planner.gui.tab import TABS
from planner.gui.window import MainWindow


def _choose_as_a_plan(window: MainWindow, _path) -> None:
    window.commands["file.open"].trigger()


def make_window(qtbot, workspace, theme, tasks) -> MainWindow:
    window = MainWindow(workspace, theme, tasks, TABS)
    qtbot.addWidget(window, before_close_func=lambda _window: workspace.undo_stack.setClean())
    window.show()
    return window


def test_the_tab_has_the_fourth_key_a_menu_and_nothing_runs_before_it_is_shown(qtbot, workspace, theme, tasks):
    window = make_window(qtbot, workspace, theme, tasks)
    assert not psutil.Process().children()
    assert window.commands["view.monitor"].shortcut() == QKeySequence("Ctrl+4")
    window.commands["view.monitor"].trigger()
    assert isinstance(window.tab, MonitorTab)
    window.close()
    assert not psutil.Process().children()


def test_a_recording_or_a_log_is_dropped_into_the_window(qtbot, workspace, theme, tasks, tmp_path):
    window = make_window(qtbot, workspace, theme, tasks)
    recording = tmp_path / "run.gpurec"
    recording.write_bytes(DEMO.read_bytes())
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(recording))])
    none, left = Qt.KeyboardModifier.NoModifier, Qt.MouseButton.LeftButton
    window.dropEvent(QDropEvent(QPointF(1, 1), Qt.DropAction.CopyAction, data, left, none))
    assert isinstance(window.tab, MonitorTab)
    qtbot.waitUntil(lambda: not window.tab.feed.is_live)
    assert window.tab.toolbar.source.text() == "Replay of run.gpurec"
    window.commands["monitor.why"].trigger()
    assert window.tab.controller.dialog.windowTitle().startswith("Diagnosis of 0 ")
    window.tab.controller.dialog.close()
    window.commands["monitor.live"].trigger()
    window.commands["monitor.export"].trigger()
    assert window.banner.text == "Open a recording first."


@pytest.mark.parametrize("open_file", [lambda window, path: window.documents.open(path), _choose_as_a_plan])
def test_a_recording_is_opened_like_any_other_file(qtbot, workspace, theme, tasks, tmp_path, monkeypatch, open_file):
    window = make_window(qtbot, workspace, theme, tasks)
    recording = tmp_path / "run.gpurec"
    recording.write_bytes(DEMO.read_bytes())
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_, **__: (str(recording), ""))
    open_file(window, recording)
    assert isinstance(window.tab, MonitorTab)
    qtbot.waitUntil(lambda: not window.tab.feed.is_live)


def test_the_error_of_a_recording_goes_once_the_demo_plays(qtbot, workspace, theme, tasks, tmp_path):
    window = make_window(qtbot, workspace, theme, tasks)
    window.documents.open(tmp_path / "gone.gpurec")
    qtbot.waitUntil(window.banner.isVisible)
    assert "cannot be read" in window.banner.text
    window.commands["monitor.demo"].trigger()
    qtbot.waitUntil(window.banner.isHidden)
    assert not window.tab.feed.is_live


def test_actions_of_the_menu_lead_to_the_tab(qtbot, workspace, theme, tasks):
    window = make_window(qtbot, workspace, theme, tasks)
    window.commands["monitor.demo"].trigger()
    tab = window.tab
    assert isinstance(tab, MonitorTab)
    qtbot.waitUntil(lambda: not tab.feed.is_live)
    window.show_tab("memory")
    window.commands["monitor.live"].trigger()
    assert window.tab is tab
    assert tab.feed.is_live
    assert any(label.text() == "Live" for label in tab.findChildren(QLabel))
