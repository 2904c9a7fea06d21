"""A made history of two cards, and the plots over it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from plots_kit import NOON, SECONDS, SILENCE, A, B, sample_at
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from planner.gui.monitor.plots.grid import PlotGrid
from planner.gui.settings import SettingsStore
from planner.gui.theme import Theme
from planner.gui.widgets.layout import in_column
from planner.monitor.history import History
from planner.monitor.readings.events import Event, EventKind, Timestamp
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.reading import Reading
from planner.monitor.readings.sample import Sample
from planner.units import GIB


@pytest.fixture
def two_cards() -> History:
    """Ten minutes of two cards, with a minute of silence, an Xid, a power limit, heat and a diagnosis."""
    history = History()
    facts = {"memory_total_bytes": Reading(24.0 * GIB), "slowdown_celsius": Reading(92.0)}
    history.note(Inventory(devices=tuple(Device(uuid, "GPU", place, facts=facts) for place, uuid in enumerate((A, B)))))
    for second in range(SECONDS):
        if second not in SILENCE:
            history.note(sample_at(second))
    began = Timestamp(100.0, NOON + 100)
    history.add_event(Event(EventKind.DIAGNOSIS, began, Timestamp(160.0, NOON + 160), A, "input-bound"))
    history.add_mark(400.0, "larger batch")
    return history


@pytest.fixture
def make_sample() -> Callable[[int], Sample]:
    """Return what makes a sample of a second."""
    return sample_at


@pytest.fixture
def settings(tmp_path: Path) -> SettingsStore:
    """Settings of their own."""
    return SettingsStore(tmp_path / "settings.json")


@pytest.fixture
def make_grid(qtbot: QtBot, theme: Theme, settings: SettingsStore) -> Callable[[History], PlotGrid]:
    """Make the plots of a history, shown, with all that is in sight drawn."""

    # Without a reference the window would be deleted at the end of `make`.
    holders: list[QWidget] = []

    def make(history: History) -> PlotGrid:
        grid = PlotGrid(theme, history, settings)
        holder = QWidget()
        holders.append(holder)
        in_column((grid, 1), grid.band_row, owner=holder)
        qtbot.addWidget(holder, before_close_func=lambda _holder: settings.flush())
        holder.resize(900, 1700)
        holder.show()
        grid.refresh()
        qtbot.waitUntil(lambda: bool(grid.panels) and all(panel.is_drawn for panel in grid.panels))
        return grid

    return make


@pytest.fixture
def grid(make_grid: Callable[[History], PlotGrid], two_cards: History) -> PlotGrid:
    """The plots of the two cards."""
    return make_grid(two_cards)
