"""How long the window is deaf: the longest block of its event loop for each of many actions of a person.

    python benchmarks/responsiveness.py [--runs N] [--only WORD] [--table]

Each run is a fresh window with a fresh home, drawn offscreen. An action begins once the window is idle. Its longest
block is the most processor time that the window's thread spends in one turn of the event loop; in the meantime, nothing
is drawn and no key is read. The median over the runs is printed beside a reference of the same runs, a loop of a
million additions, with the aim of 50 ms.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from tables import add_table_option, machine_note, write_table

if TYPE_CHECKING:
    from planner.gui.window import MainWindow

Actions = Iterator[tuple[str, Callable[[], object]]]
AIM_MS = 50
ADDITIONS = 1_000_000
SIZE = (1280, 800)
QUIET_SECONDS = 0.3
"""The window is idle once no turn has taken more than a little for so long and nothing runs in the background."""
LITTLE_SECONDS = 0.002
MOVING_SECONDS = 2
"""A replay that plays is never idle; it is watched for so long."""
LONGEST_SECONDS = 20
REFERENCE = "reference"
DIALOGS = {
    "trace a module": "plan.trace",
    "compare with a log": "plan.compare-log",
    "prices": "plan.prices",
    "choose hardware for me": "plan.recommend",
    "recipes": "plan.preset",
    "manual": "help.manual",
    "GPU basics": "help.basics",
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="fresh windows (default 5)")
    parser.add_argument("--only", default="", help="print only the actions with this word in their name")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    add_table_option(parser)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(blocks_of_one_run()))
        return
    runs = []
    for number in range(arguments.runs):
        print(f"run {number + 1} of {arguments.runs}", file=sys.stderr, flush=True)
        runs.append(one_run())
    reference = median(run[REFERENCE] for run in runs) * 1e3
    header = ("action", "longest block, ms", "of all runs, ms", "loop, ms", "ratio", "aim, ms")
    rows = []
    for name in runs[0]:
        if name == REFERENCE or arguments.only not in name:
            continue
        found = sorted(run[name] * 1e3 for run in runs)
        middle, ends = median(found), f"{found[0]:.0f} – {found[-1]:.0f}"
        rows.append((name, f"{middle:.1f}", ends, f"{reference:.1f}", f"{middle / reference:.2f}", f"≤ {AIM_MS}"))
        late = "" if middle <= AIM_MS else "  late"
        print("{:38} {:>8} {:>12} {:>8} {:>7}".format(*rows[-1]) + late, flush=True)
    if arguments.table:
        write_table("speed", "responsiveness", header, rows, note=machine_note())


def one_run() -> dict[str, float]:
    """Return the longest block of each action in a fresh process, in seconds."""
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"GPU_PLANNER_HOME": home, "QT_QPA_PLATFORM": "offscreen"}
        script = [sys.executable, str(Path(__file__).resolve()), "--child"]
        done = subprocess.run(script, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    blocks: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return blocks


def blocks_of_one_run() -> dict[str, float]:
    """Do every action in a new window, and return the longest block of each."""
    from PySide6.QtCore import QAbstractEventDispatcher, QTimer

    from planner.gui.app import create

    app, window = create(["gpu-planner"])
    window.resize(*SIZE)
    window.grab()
    loop = Blocks(QAbstractEventDispatcher.instance())
    found: dict[str, float] = {}
    for name, action in actions(window):
        loop.restart()
        wait_until_idle(window, loop)  # the way to the action may have left something to do
        loop.restart()
        begun = time.monotonic()
        QTimer.singleShot(0, window, lambda do=action: do())
        wait_until_idle(window, loop)
        found[name] = loop.longest
        seconds = time.monotonic() - begun
        print(f"  {name}: {found[name] * 1e3:.1f} ms, done in {seconds:.1f} s", file=sys.stderr, flush=True)
    found[REFERENCE] = loop_seconds()
    window.workspace.undo_stack.setClean()
    window.close()
    app.aboutToQuit.emit()
    return found


class Blocks:
    """The processor time of the window's thread in the turns of the event loop, and when it was last busy."""

    def __init__(self, dispatcher: Any) -> None:
        self.restart()
        dispatcher.awake.connect(self.note)
        dispatcher.aboutToBlock.connect(self.note)

    def restart(self) -> None:
        """Forget the turns so far."""
        self.longest, self.last, self.busy_at = 0.0, time.thread_time(), time.monotonic()

    def note(self) -> None:
        """End a turn and begin the next."""
        now = time.thread_time()
        spent, self.last = now - self.last, now
        self.longest = max(self.longest, spent)
        if spent > LITTLE_SECONDS:
            self.busy_at = time.monotonic()


def wait_until_idle(window: "MainWindow", loop: Blocks) -> None:
    """Run the event loop until nothing happens any more, or for a while where a replay plays."""
    from PySide6.QtTest import QTest

    end = time.monotonic() + LONGEST_SECONDS
    while time.monotonic() < min(loop.busy_at + QUIET_SECONDS, end):
        QTest.qWait(20)
        loop.note()  # the last turn may have ended without the loop's own notice
        if window.tasks.busy or importing():
            loop.busy_at = time.monotonic()
        elif is_replaying(window):
            end = min(end, time.monotonic() + MOVING_SECONDS)


def is_replaying(window: "MainWindow") -> bool:
    """Return whether the Monitor is shown and plays a recording."""
    feed = getattr(window.tab, "feed", None)
    return feed is not None and feed.replay is not None and feed.replay.is_playing


def importing() -> bool:
    """Return whether modules are imported in the background."""
    return any(thread.name == "imports" for thread in threading.enumerate())


def loop_seconds() -> float:
    """Return the processor time of the reference."""
    begin, total = time.thread_time(), 0
    for number in range(ADDITIONS):
        total += number
    return time.thread_time() - begin


def command(window: "MainWindow", key: str) -> Callable[[], object]:
    """Return what chooses a menu entry."""
    return window.commands[key].trigger


def close(window: "MainWindow") -> None:
    """Close the popup and the dialogs that are open."""
    from PySide6.QtWidgets import QApplication, QDialog

    popup = QApplication.activePopupWidget()
    if popup is not None:
        popup.close()
    for dialog in window.findChildren(QDialog):
        dialog.close()


def choose(window: "MainWindow", text: str) -> Callable[[], object]:
    """Return what clicks the visible option called `text`."""
    from PySide6.QtWidgets import QRadioButton

    buttons = (button for button in window.tab.findChildren(QRadioButton) if button.isVisible())
    return next(button for button in buttons if button.text().replace("&", "") == text).click


def work_hours_a_day(window: "MainWindow", hours: float) -> None:
    """Change the plan's job to one of so many hours a day."""
    from planner.cost.terms import CostTerms, DailyHours

    window.workspace.apply("job", cost=CostTerms(job=DailyHours(hours_per_day=hours)))


def explain_term(window: "MainWindow", name: str) -> None:
    """Open the card of a term of the glossary."""
    from planner.glossary import find_term

    window.explainer.show_card(find_term(name), window.tab)


def type_keys(text: str) -> Callable[[], object]:
    """Return what types `text` where the keyboard is."""
    from PySide6.QtTest import QTest
    from PySide6.QtWidgets import QApplication

    return lambda: QTest.keyClicks(QApplication.focusWidget(), text)


def actions(window: "MainWindow") -> Actions:
    """Yield what a person does, by name, in order; each is done before the next is asked for."""
    from planner.gui.app import finish_start

    yield "first seconds after the start", lambda: finish_start(window)
    yield from start_actions(window)
    yield from catalog_actions(window)
    yield "first Cost", command(window, "view.cost")
    yield "change the hours of work", lambda: work_hours_a_day(window, 12.0)
    command(window, "edit.undo")()
    yield "first Monitor", command(window, "view.monitor")
    yield "Memory again", command(window, "view.memory")
    yield "change the theme", command(window, "view.theme-dark")
    yield "change it back", command(window, "view.theme-light")
    yield from plan_actions(window)
    yield from dialog_actions(window)
    yield from size_actions(window)


def start_actions(window: "MainWindow") -> Actions:
    """Yield what a person does on the Start page."""
    from planner.gui.start_page import StartPage

    start = window.tab
    assert isinstance(start, StartPage)
    yield "choose a model on the Start page", start.model.open
    start.model.choose("Qwen/Qwen3-8B")
    close(window)
    yield "Show me", start.show_me.click
    yield "Start again", lambda: window.show_tab("start")
    yield "choose the door to fine-tuning", lambda: start.doors.choose("fine-tune")
    yield "Show me, fine-tuning", start.show_me.click
    window.workspace.show_sample()


def catalog_actions(window: "MainWindow") -> Actions:
    """Yield what a person does in the catalog."""
    from PySide6.QtWidgets import QCheckBox

    yield "first Catalog", command(window, "view.catalog")
    catalog = window.catalog()
    yield "sort a column", lambda: catalog.page.table.sort_as_clicked("bandwidth")
    yield "filter", catalog.page.facets.findChildren(QCheckBox)[0].click
    yield "clear the filter", lambda: catalog.page.facets.clear()
    yield "search for a GPU", lambda: (catalog.focus_search(), type_keys("h")())
    catalog.page.search("")
    yield "select a GPU", lambda: catalog.page.table.choose("h100-sxm5-80gb")
    yield "scatter plot", lambda: catalog.show_view("scatter")
    yield "table again", lambda: catalog.show_view("table")
    yield "systems", lambda: catalog.bar.pages.button(1).click()
    catalog.bar.pages.button(0).click()


def plan_actions(window: "MainWindow") -> Actions:
    """Yield changes of the plan."""
    yield "fine-tune", choose(window, "Fine-tune")
    yield "train", choose(window, "Train")
    yield "undo", command(window, "edit.undo")
    yield "run again", choose(window, "Run")
    yield "choose a model", command(window, "plan.model")
    yield "type a model", type_keys("q")
    close(window)
    yield "choose a GPU", command(window, "plan.card")
    close(window)
    yield "change the workload", command(window, "plan.workload")
    yield "type a batch size", type_keys("2")
    close(window)
    yield "explain a term", lambda: explain_term(window, "KV cache")
    close(window)
    yield "explain another", lambda: explain_term(window, "LoRA")
    close(window)
    yield "command palette", command(window, "view.palette")
    yield "type a command", type_keys("p")
    close(window)
    yield "pin the plan", command(window, "plan.pin")
    command(window, "plan.unpin")()


def dialog_actions(window: "MainWindow") -> Actions:
    """Yield the dialogs."""
    for action, name in DIALOGS.items():
        yield action, command(window, name)
        close(window)


def size_actions(window: "MainWindow") -> Actions:
    """Yield what happens in the monitor, and to a window that gets another size."""
    yield "monitor demo", window.monitor().controller.show_demo
    monitor = window.monitor()
    yield "span of an hour", lambda: monitor.toolbar.span.setCurrentIndex(monitor.toolbar.span.count() - 1)
    monitor.feed.go_live()
    for tab, size in (("catalog", (1100, 700)), ("memory", (1920, 1080)), ("monitor", (1024, 700)), ("cost", SIZE)):
        yield f"back to {tab.title()}", command(window, f"view.{tab}")
        yield f"resize on {tab.title()}", lambda size=size: window.resize(*size)
    window.resize(1920, 1080)
    window.show_tab("monitor")
    yield "recording in a large window", monitor.controller.show_demo


if __name__ == "__main__":
    main()
