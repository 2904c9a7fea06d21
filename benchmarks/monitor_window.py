"""A window that `benchmarks/monitor.py` measures, drawn offscreen; it reads commands from its input, one per line.

python benchmarks/monitor_window.py ours UUIDS FOLDER 1280x800
    the whole program, its settings and plan in FOLDER
python benchmarks/monitor_window.py plain PLOTS CURVES POINTS 1280x800 [moving]
    an empty window with as many curves of pyqtgraph's own

`show` shows the Monitor tab, `hide` another one; after each command it prints a line that describes the visible plots.
"""

import json
import math
import os
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ["QT_QPA_PLATFORM"] = "offscreen"

import numpy as np
from PySide6.QtCore import QSocketNotifier, QTimer
from PySide6.QtWidgets import QApplication, QGridLayout, QWidget

from planner.monitor.readings.reading import Reading
from planner.monitor.readings.sample import Sample

PLOTS = ("utilization", "memory_used", "power", "temperature", "sm_clock", "memory_controller")
BEFORE_SECONDS = 600


def main() -> None:
    """Open the window that the command line selects, and execute commands from standard input."""
    kind, *arguments = sys.argv[1:]
    app, obey = ours(*arguments) if kind == "ours" else plain(*arguments)

    def read() -> None:
        word = sys.stdin.readline().strip()
        print(json.dumps(obey(word)) if word in ("show", "hide") else "", flush=True)
        if word not in ("show", "hide"):
            app.quit()

    notifier = QSocketNotifier(sys.stdin.fileno(), QSocketNotifier.Type.Read)
    notifier.activated.connect(read)
    print("ready", flush=True)
    app.exec()


def ours(uuids: str, folder: str, size: str) -> tuple[QApplication, Callable[[str], object]]:
    """Return the program with ten minutes of history of the monitored cards, and its command handler."""
    os.environ["GPU_PLANNER_HOME"] = folder
    from planner.gui.app import create
    from planner.gui.monitor.plots.plot_list import PLOTS as ALL

    app, window = create(["gpu-planner"])
    monitor = window.workspace.settings.current.monitor
    hidden = tuple(spec.key for spec in ALL if spec.key not in PLOTS)
    plots = monitor.plots.evolve(hidden=hidden)
    window.workspace.settings.update(monitor=monitor.evolve(plots=plots))
    window.resize(*map(int, size.split("x")))
    tab = window.monitor()
    now = time.monotonic()
    for second in range(-BEFORE_SECONDS, 0):
        tab.feed.history.note(sample(uuids.split(","), now + second))
    window.show_tab("catalog")

    def obey(word: str) -> object:
        window.show_tab("monitor" if word == "show" else "catalog")
        return drawn(tab.plots)

    return app, obey


def sample(uuids: list[str], at: float) -> Sample:
    """Return the sample of cards with periodic load at the time `at`."""
    cards = {uuid: readings(at / 30 + number) for number, uuid in enumerate(uuids)}
    return Sample(at, time.time() - time.monotonic() + at, cards)


def readings(phase: float) -> dict[str, Reading]:
    """Return the readings of a card at a point of its load cycle."""
    wave = 0.5 + 0.5 * math.sin(phase)
    values = {
        "utilization_fraction": wave,
        "memory_used_bytes": (8 + 8 * wave) * 2.0**30,
        "power_watts": 100 + 300 * wave,
        "temperature_celsius": 40.0 + round(30 * wave),
        "sm_clock_mhz": 2500 - 15.0 * round(20 * wave),
        "memory_controller_fraction": 0.5 * wave,
    }
    return {name: Reading(value) for name, value in values.items()}


def drawn(grid: Any) -> dict[str, object]:
    """Return the number of visible curves, their points and the size of the plots."""
    panels = [panel for panel in grid.panels if panel.is_in_sight]
    curves = [curve for panel in panels for curve in panel.curves]
    points = max((len(curve.x) for curve in curves), default=0)
    return {"plots": len(panels), "curves": len(curves), "points": points, "size": [grid.width(), grid.height()]}


def plain(shown: str, drawn: str, points: str, size: str, *moving: str) -> tuple[QApplication, Callable[[str], object]]:
    """Return an empty window with plots of pyqtgraph that are redrawn once a second, with a moving time if asked."""
    import pyqtgraph as pg

    app = QApplication([])
    window, count = QWidget(), int(points)
    layout = QGridLayout(window)
    plots = [pg.PlotWidget() for _ in range(int(shown))]
    curves = []
    for number, plot in enumerate(plots):
        layout.addWidget(plot, number // 2, number % 2)
        plot.setXRange(0, count, padding=0)
        plot.setYRange(0, 2)
        curves += [plot.plot(pen=color) for color in range(int(drawn) // len(plots))]
    times, random = np.arange(float(count)), np.random.default_rng(0)
    values = [np.sin(times / 30 + place) * 0.5 + random.random(count) * 0.1 + 1 for place in range(len(curves))]
    window.resize(*map(int, size.split("x")))
    window.show()
    ticks = iter(range(1, 10**9))

    def redraw() -> None:
        tick = next(ticks)
        for curve, value in zip(curves, values, strict=True):
            curve.setData(times + tick if moving else times, np.roll(value, -tick))
        for plot in plots if moving else ():
            plot.setXRange(tick, tick + count, padding=0)

    timer = QTimer(window, interval=1000)
    timer.timeout.connect(redraw)
    timer.start()

    def obey(_word: str) -> object:
        size = [window.width(), window.height()]
        return {"plots": len(plots), "curves": len(curves), "points": count, "size": size}

    return app, obey


if __name__ == "__main__":
    main()
