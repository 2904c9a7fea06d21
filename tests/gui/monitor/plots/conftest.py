"""A made history of two cards, and the plots over it."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from planner.gui.monitor.plots.grid import PlotGrid
from planner.gui.settings import SettingsStore
from planner.gui.theme import Theme
from planner.monitor.clock_reasons import CLOCK_REASONS
from planner.monitor.device import Device
from planner.monitor.events import Event, EventKind, Moment
from planner.monitor.history import History
from planner.monitor.inventory import Inventory
from planner.monitor.reading import Reading
from planner.monitor.sample import Sample, Xid
from planner.units import GIB

A, B = "GPU-a", "GPU-b"
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC).timestamp()
POWER_CAP = float(next(reason.bit for reason in CLOCK_REASONS if reason.name == "power-cap"))
HOT = float(next(reason.bit for reason in CLOCK_REASONS if reason.name == "hardware-thermal"))
SECONDS = 600
SILENCE = range(200, 260)


@pytest.fixture
def two_cards() -> History:
    """Ten minutes of two cards, with a minute of silence, an Xid, a power limit, heat and a diagnosis."""
    history = History()
    facts = {"memory_total_bytes": Reading(24.0 * GIB), "slowdown_celsius": Reading(92.0)}
    history.note(
        Inventory(devices=tuple(Device(uuid, "Card", place, facts=facts) for place, uuid in enumerate((A, B))))
    )
    for second in range(SECONDS):
        if second not in SILENCE:
            history.note(_sample(second))
    began = Moment(100.0, NOON + 100)
    history.add_event(Event(EventKind.DIAGNOSIS, began, Moment(160.0, NOON + 160), A, "input-bound"))
    history.add_mark(400.0, "larger batch")
    return history


def _sample(second: int) -> Sample:
    reasons = {A: POWER_CAP if 300 <= second < 330 else 0.0, B: HOT if second >= 590 else 0.0}
    cards = {
        uuid: {
            "utilization_fraction": Reading(0.5 + 0.4 * (second % 2)),
            "memory_used_bytes": Reading((4.0 + place) * GIB),
            "power_watts": Reading(300.0 + place),
            "power_limit_watts": Reading(450.0),
            "temperature_celsius": Reading(60.0),
            "clock_reasons": Reading(reasons[uuid]),
        }
        for place, uuid in enumerate((A, B))
    }
    host = {"cpu_fraction": Reading(0.25), "io_wait_fraction": Reading(0.01), "disk_read_bytes_per_s": Reading(5e6)}
    return Sample(float(second), NOON + second, cards, host, xids=(Xid(B, 31),) if second == 350 else ())


@pytest.fixture
def settings(tmp_path: Path) -> SettingsStore:
    """Settings of their own."""
    return SettingsStore(tmp_path / "settings.json")


@pytest.fixture
def make_grid(qtbot: QtBot, theme: Theme, settings: SettingsStore) -> Callable[[History], PlotGrid]:
    """Make the plots of a history, shown, with all that is in sight drawn."""

    def make(history: History) -> PlotGrid:
        grid = PlotGrid(theme, history, settings)
        qtbot.addWidget(grid, before_close_func=lambda _grid: settings.flush())
        grid.resize(900, 1700)
        grid.show()
        grid.refresh()
        qtbot.waitUntil(lambda: bool(grid.panels) and all(panel.is_drawn for panel in grid.panels))
        return grid

    return make


@pytest.fixture
def grid(make_grid: Callable[[History], PlotGrid], two_cards: History) -> PlotGrid:
    """The plots of the two cards."""
    return make_grid(two_cards)
