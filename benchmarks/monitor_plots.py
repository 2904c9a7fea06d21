"""Drawing time of the monitor's plots: `python benchmarks/monitor_plots.py [--hours 24]`.

Two things are printed: a redraw of 48 curves of 36,000 points each beside pyqtgraph's own (aim: at most 17 ms), and
the memory of a history that is fed ten times a second for a day (aim: flat). What the window costs while it is shown
is in `benchmarks/monitor.py`.
"""

import argparse
import gc
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psutil

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pyqtgraph as pg
from PySide6.QtGui import QPen
from PySide6.QtWidgets import QApplication, QGridLayout, QWidget

from planner.gui.monitor.plots.grid import PlotGrid
from planner.gui.settings import SettingsStore
from planner.gui.theme import Theme
from planner.monitor.history import History
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.reading import Reading
from planner.monitor.readings.sample import Sample

POINTS = 36_000
CARDS = 8
SHOWN = ("utilization_fraction", "memory_used_bytes", "power_watts", "temperature_celsius", "sm_clock_mhz")
SHOWN += ("memory_controller_fraction",)
CURVES = CARDS * len(SHOWN)
REDRAWS = 25
AIM_MS = 17.0
SIZE = (1920, 900)
RATE = 10
UUIDS = [f"GPU-{number:08d}-0000-0000-0000-000000000000" for number in range(CARDS)]


def main() -> None:
    """Print the redraw times and the memory of the history."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=24.0, help="how long the history is fed")
    arguments = parser.parse_args()
    app = QApplication([])
    theme = Theme(app, "light")
    theme.apply_style_sheet(app)
    with tempfile.TemporaryDirectory() as folder:
        settings = SettingsStore(Path(folder) / "settings.json")
        grid, ours = our_redraw(theme, settings)
        empty, plain = plain_redraw(POINTS)
        sparse, few = plain_redraw(SIZE[0] // 3)
        print_redraws({"ours": ours, "pyqtgraph, all points": plain, "pyqtgraph, a point a pixel": few})
        for window in (grid, empty, sparse):
            window.close()
    print_memory(arguments.hours)


def readings(number: int, second: float) -> dict[str, Reading]:
    """Return the readings of a card with periodic load."""
    wave = 0.5 + 0.5 * math.sin(second / 300 + number)
    noise = ((number * 7919 + int(second * 10) * 104_729) % 1000) / 1000
    values = (
        min(1.0, wave + 0.1 * noise),
        (20 + 40 * wave) * 2.0**30,
        100 + 500 * wave + 40 * noise,
        35.0 + round(40 * wave),
        1980 - 200 * wave - 15 * round(noise * 4),
        0.5 * wave + 0.05 * noise,
    )
    return {name: Reading(value) for name, value in zip(SHOWN, values, strict=True)}


def samples(first: int, count: int, step: float) -> Iterator[Sample]:
    """Yield samples of all cards at regular intervals."""
    for number in range(first, first + count):
        second = number * step
        cards = {uuid: readings(place, second) for place, uuid in enumerate(UUIDS)}
        yield Sample(second, 1.7e9 + second, cards)


def filled(count: int, step: float) -> History:
    """Return a history of `count` samples."""
    history = History()
    history.note(Inventory(devices=tuple(Device(uuid, "Card", number) for number, uuid in enumerate(UUIDS))))
    for sample in samples(0, count, step):
        history.note(sample)
    return history


def our_redraw(theme: Theme, settings: SettingsStore) -> tuple[PlotGrid, Callable[[], None]]:
    """Return our plots with all data in view, and a function that adds a sample and redraws the plots."""
    history = filled(POINTS, 1.0)
    grid = PlotGrid(theme, history, settings)
    show(grid, lambda: len(drawn(grid)) == len(SHOWN), grid.refresh)
    grid.view.set_span(None)
    more = samples(POINTS, 10**9, 1.0)

    def redraw() -> None:
        history.note(next(more))
        grid.refresh()
        QApplication.processEvents()

    return grid, redraw


def plain_redraw(points: int) -> tuple[QWidget, Callable[[], None]]:
    """Return a bare window with the same number of pyqtgraph curves, and a function that redraws the curves."""
    window = QWidget()
    layout = QGridLayout(window)
    random = np.random.default_rng(0)
    times = np.arange(float(points))
    curves: list[Any] = []
    for number in range(len(SHOWN)):
        plot = pg.PlotWidget()
        plot.getPlotItem().setXRange(0, points, padding=0)
        plot.getPlotItem().setYRange(0, 2)
        layout.addWidget(plot, number // 2, number % 2)
        for _ in range(CARDS):
            curves.append(pg.PlotCurveItem(pen=QPen(pg.mkColor("k"), 0)))
            plot.addItem(curves[-1])
    values = [
        np.sin(times / 300 * 600 / points + place) * 0.5 + random.random(points) * 0.1 + 1 for place in range(CURVES)
    ]
    show(window, lambda: True, lambda: None)

    def redraw() -> None:
        for curve, value in zip(curves, values, strict=True):
            curve.setData(times, value)
        QApplication.processEvents()

    return window, redraw


def show(window: QWidget, is_ready: Callable[[], bool], again: Callable[[], None]) -> None:
    """Show a window and wait until its layout is final."""
    window.resize(*SIZE)
    window.show()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        again()
        for _ in range(20):
            QApplication.processEvents()
        if is_ready():
            return
    raise SystemExit("the window never showed what it should")


def drawn(grid: PlotGrid) -> list[QWidget]:
    """Return the visible plots."""
    return [panel for panel in grid.panels if panel.is_drawn and panel.is_in_sight]


def print_redraws(redraws: dict[str, Callable[[], None]]) -> None:
    """Print the median time of each redraw."""
    print(f"a redraw of {CURVES} curves of {POINTS:,} points, {SIZE[0]} × {SIZE[1]}, median CPU time")
    for name, redraw in redraws.items():
        redraw()
        taken = []
        for _ in range(REDRAWS):
            began = time.process_time()
            redraw()
            taken.append(time.process_time() - began)
        verdict = (
            "" if name != "ours" else f"  (aim ≤ {AIM_MS:g} ms: {'met' if median(taken) <= AIM_MS / 1e3 else 'missed'})"
        )
        print(f"  {name:<30}{median(taken) * 1e3:>8.1f} ms{verdict}")


def print_memory(hours: float) -> None:
    """Print the memory of a history while samples are added."""
    total = round(hours * 3600 * RATE)
    print(f"a history of {CURVES} series fed {RATE} times a second")
    history, process = filled(0, 1.0), psutil.Process()
    longest, part = 0.0, max(1, total // 8)
    for first in range(0, total, part):
        for sample in samples(first, min(part, total - first), 1 / RATE):
            began = time.thread_time()
            history.note(sample)
            longest = max(longest, time.thread_time() - began)
        gc.collect()
        held, kept = process.memory_info().rss / 2**20, len(history.series(UUIDS[0], SHOWN[0]))
        print(
            f"  {(first + part) / RATE / 3600:5.1f} h  readings {history.nbytes / 2**20:6.1f} MiB, {kept:,} a series, "
            f"process {held:6.1f} MiB, longest note {longest * 1e3:5.1f} ms"
        )


if __name__ == "__main__":
    main()
