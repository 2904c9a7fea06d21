"""A Monitor tab over the stand-in for NVIDIA's library, and recordings to replay."""

from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from fake_nvml_kit import CALM, FAST, FakeNvml
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from planner.gui.monitor.feed import Feed
from planner.gui.monitor.tab import MonitorTab
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.workspace import Workspace
from planner.monitor.settings import AlertRules, SamplerSettings, Timeouts

MakeTab = Callable[..., MonitorTab]


@pytest.fixture
def driver(tmp_path: Path, nvml_library: Path) -> Iterator[FakeNvml]:
    """A driver that says what the test wants; no sampler may outlive the test."""
    yield FakeNvml(tmp_path, nvml_library)
    assert not psutil.Process().children(recursive=True)


@pytest.fixture
def make_tab(
    qtbot: QtBot, workspace: Workspace, theme: Theme, tasks: TaskRunner, driver: FakeNvml
) -> Iterator[MakeTab]:
    """Make a tab that watches the stand-in, shown as a window of its own, and put it away."""
    made: list[MonitorTab] = []

    def make(
        timeouts: Timeouts = CALM,
        rules: AlertRules | None = None,
        without_driver: bool = False,
        pace: SamplerSettings = FAST,
    ) -> MonitorTab:
        environment = driver.environment
        if without_driver:
            del environment["LD_LIBRARY_PATH"]
        feed = Feed(pace.fast_seconds, rules or AlertRules(), timeouts, environment, pace)
        tab = MonitorTab(workspace, theme, tasks, feed)
        tab.resize(1150, 700)
        made.append(tab)
        theme.apply_style_sheet(tab)
        tab.show()
        return tab

    yield make
    for tab in made:
        tab.close()
        tab.deleteLater()
    QApplication.processEvents()


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Return the place of a file that does not exist yet."""
    return tmp_path / "run.gpurec"
