"""Kills windows at random times while they edit and save, and looks for what the next start does not bring back.

    python benchmarks/window_kills.py [--kills N] [--at-once N] [--seed N]

Each round has a home of its own, with the session of a window that crashed before. One or two windows start in it, the
real ones, without a screen; they edit their plans, save them in one file that both have open, and change their
settings, until they are killed (SIGKILL): one in eight while it starts, the others up to three seconds after that. Then
a window starts as after a crash. What a window had shown for a second, ten beats of its own clock, must be in the plan
that it shows, in those that it offers or in their file; what a window had saved must be in the file; nothing
may be damaged, and nothing left but plans. Otherwise the exit code is 1.

Processes are forked from one that has imported the window, which is why this runs on Linux and macOS only.
"""

import argparse
import json
import os
import random
import select
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import sleep
from typing import Any, Final, NamedTuple

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QTimer

from planner import Inference, Plan
from planner.gui import app as gui_app
from planner.gui import start_page as _start_page  # noqa: F401  # every window shows it
from planner.gui.autosave import SavedSession
from planner.gui.workspace import SAMPLE_PLAN
from planner.paths import own_hardware_file, prices_dir
from planner.plan.catalog import load_catalog_or_bundled
from planner.plan.evaluate import evaluate
from planner.plan.files import load_plan, save_plan

_BEAT_MS: Final = 100
_BEATS: Final = 10
"""Beats of a window that are a second, or longer on a machine that is too busy to run it."""
_LONGEST_LIFE_SECONDS: Final = 3.0
_KILLED_STARTING: Final = 1 / 8
_SLOWEST_START_SECONDS: Final = 300.0
_EDIT_MS: Final = (1, 60)
_EDITS_PER_SAVE: Final = 7
_CRASHED: Final = 1_000
"""Number of the plan that an earlier window left, above those that windows count up to."""
_FIELDS: Final = ("batch", "count")
"""The field that each of two windows edits."""
_MEASURES: Final = ("plans lost", "saved plans lost", "settings lost", "damaged", "leftovers")


class Life(NamedTuple):
    """What a killed window had reported, in order: what it did, and the number of the plan."""

    reports: tuple[tuple[str, int], ...]

    def latest(self, kind: str, beats: int = 0) -> int:
        """Return the last number that was reported so many beats before the end, 0 without one."""
        following = 0
        for said, number in reversed(self.reports):
            following += said == "beat"
            if said == kind and following >= beats:
                return number
        return 0


def main() -> int:
    """Kill so many windows, and print what was lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--at-once", type=int, default=2, help="how many rounds run at the same time")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    done, found = Counter[str](), Counter[str]()
    for _ in kill_windows(arguments.kills, arguments.at_once, arguments.seed, done, found):
        print(_summary(done, found), flush=True)
    return int(any(found[name] for name in _MEASURES))


def _summary(done: Counter[str], found: Counter[str]) -> str:
    killed = f"{done['windows']} windows killed in {done['rounds']} rounds, {done['pairs']} with two windows"
    said = f"{done['edits']} edits, {done['saves']} saves, {done['starting']} windows still started"
    return f"{killed}; {said}: {', '.join(f'{found[name]} {name}' for name in _MEASURES)}"


def kill_windows(kills: int, at_once: int, seed: int, done: Counter[str], found: Counter[str]) -> Iterator[None]:
    """Kill at least so many windows; count what was done and what went wrong, and pause after each fiftieth of them."""
    warm_up()
    chance, due = random.Random(seed), 0.0
    while done["windows"] < kills:
        with tempfile.TemporaryDirectory() as folder:
            rounds = [Round(Path(folder) / str(number), chance) for number in range(at_once)]
            for each in rounds:
                each.kill_windows()
            for each in rounds:
                found.update(each.check(done))
        if done["windows"] >= due or done["windows"] >= kills:
            due += kills / 50
            yield


def warm_up() -> None:
    """Read the catalog and evaluate a plan, for all the processes that are forked from this one."""
    catalog = load_catalog_or_bundled(prices_dir(), own_hardware_file())
    evaluate(SAMPLE_PLAN, catalog[0])
    vars(gui_app)["load_catalog_or_bundled"] = lambda *_paths: catalog


class Round:
    """One or two windows in a home of their own, from their start to their end."""

    def __init__(self, home: Path, chance: random.Random) -> None:
        self._home, self._file = home, home.with_suffix(".plan.json")
        _prepare(home, self._file)
        self._windows = [_fork(home, partial(_edit, number, self._file)) for number in range(chance.choice((1, 2)))]
        self._pauses = [(chance.random() < _KILLED_STARTING, chance.uniform(0.0, _LONGEST_LIFE_SECONDS)) for _ in "12"]
        self._lives: list[Life] = []

    def kill_windows(self) -> None:
        """Kill each window when its time is over."""
        for (child, pipe), (is_starting, pause) in zip(self._windows, self._pauses, strict=False):
            # A report wakes up the wait for the start of its window, and stays in the pipe.
            select.select([pipe], [], [], pause if is_starting else _SLOWEST_START_SECONDS)
            sleep(0.0 if is_starting else pause)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            lines = _read_all(pipe).decode().splitlines()
            self._lives.append(Life(tuple((said, int(number)) for said, number in map(str.split, lines))))

    def check(self, done: Counter[str]) -> Counter[str]:
        """Start as after a crash, and count what is missing, damaged or left over."""
        lives = self._lives
        done.update(windows=len(lives), rounds=1, pairs=int(len(lives) == 2))
        done.update(edits=sum(said == "shown" for life in lives for said, _ in life.reports))
        done.update(saves=sum(said == "saved" for life in lives for said, _ in life.reports))
        done.update(starting=sum(not life.reports for life in lives))
        child, pipe = _fork(self._home, partial(_report_start, self._home, self._file))
        answer = _read_all(pipe)
        os.waitpid(child, 0)
        if not answer:
            return Counter(damaged=1)
        start = json.loads(answer)
        for what in ("errors", "leftovers"):
            if start[what]:
                print(f"{what}: {', '.join(start[what])}", flush=True)
        return _problems(self._lives, start)


def _prepare(home: Path, file: Path) -> None:
    """Write the plan's file, and the session of a window that crashed."""
    (home / "autosave").mkdir(parents=True)
    save_plan(file, SAMPLE_PLAN)
    crashed = SavedSession(plan=_with_number(SAMPLE_PLAN, "batch", _CRASHED), modified=True)
    (home / "autosave" / "crashed.json").write_text(crashed.model_dump_json())


def _problems(lives: list[Life], start: dict[str, Any]) -> Counter[str]:
    problems = Counter({"damaged": len(start["errors"]), "leftovers": len(start["leftovers"])})
    for number, (field, life) in enumerate(zip(_FIELDS, lives, strict=False)):
        shown = [plan[field] for plan in start["plans"] if plan[field] < _CRASHED]
        problems["plans lost"] += life.latest("shown", _BEATS) > max(shown)
        problems["saved plans lost"] += life.latest("saved") > start["file"][field]
        problems["settings lost"] += life.latest("shown", _BEATS) > start["settings"].get(str(number), 0)
    # Plan of the earlier crash: shown, offered, or saved by the window that went on with it.
    problems["plans lost"] += all(plan["batch"] != _CRASHED for plan in start["plans"])
    return +problems


def _fork(home: Path, run: Callable[[int], None]) -> tuple[int, int]:
    """Run a function in a process with this home; return its id and the pipe that it writes to."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    os.close(reading)
    os.environ["GPU_PLANNER_HOME"] = str(home)
    try:
        run(writing)
    finally:
        if sys.exc_info()[0] is not None:
            traceback.print_exc()
        os._exit(0)


def _read_all(pipe: int) -> bytes:
    """Return what was written until the other end was closed."""
    parts: list[bytes] = []
    while select.select([pipe], [], [], _SLOWEST_START_SECONDS)[0] and (part := os.read(pipe, 1 << 20)):
        parts.append(part)
    os.close(pipe)
    return b"".join(parts)


def _edit(number: int, file: Path, pipe: int) -> None:
    """Start a window that edits and saves its plan, and report each number before the next."""
    app, window = gui_app.create(["gpu-planner"])
    workspace, chance = window.workspace, random.Random(f"{file} {number}")
    if _numbers(workspace.plan)["batch"] == _CRASHED:
        workspace.save_plan(_recovered_file(file))
    workspace.replace(load_plan(file), file)
    values = iter(range(2, _CRASHED))

    def report(said: str, value: int) -> None:
        os.write(pipe, f"{said} {value}\n".encode())

    def step() -> None:
        value = next(values)
        plan = _with_number(workspace.plan, _FIELDS[number], value)
        workspace.apply(f"step {value}", workload=plan.workload, count=plan.count)
        settings = workspace.settings.current
        workspace.settings.update(splitters={**settings.splitters, str(number): (value,)})
        report("shown", value)
        if value % _EDITS_PER_SAVE == 0 and window.documents.save():
            report("saved", value)
        timer.start(chance.randint(*_EDIT_MS))

    beat = QTimer(interval=_BEAT_MS)
    beat.timeout.connect(lambda: report("beat", 0))
    beat.start()
    timer = QTimer(singleShot=True)
    timer.timeout.connect(step)
    timer.start(0)
    app.exec()


def _report_start(home: Path, file: Path, pipe: int) -> None:
    """Start a window as after a crash, close it, and report what it shows and offers and what is left."""
    app, window = gui_app.create(["gpu-planner"])
    while window.tasks.busy:
        app.processEvents()
    autosave, settings = window.documents.autosave, window.workspace.settings
    assert autosave is not None
    errors = [error.message for error in (settings.unread, *autosave.unrestored) if error is not None]
    left = autosave.unsaved_plans()
    files = [load_plan(path) for path in (file, _recovered_file(file)) if path.exists()]
    plans = [window.workspace.plan, *(one.session.plan for one in left), *files]
    window.workspace.undo_stack.setClean()  # closing asks no question
    window.close()
    app.aboutToQuit.emit()
    # Beside the plan's file are those of other rounds.
    places = ((home, ""), (home / "autosave", ""), (file.parent, file.name), (file.parent, _recovered_file(file).name))
    unfinished = [path.name for folder, name in places for path in folder.glob(f".{name}*.unfinished")]
    locks = [path.name for folder, name in places for path in folder.glob(f"{name}*.lock")]
    shown = {one.file.name for one in left} | {vars(autosave)["_file"].name}
    sessions = [path.name for path in (home / "autosave").glob("*.json") if path.name not in shown]
    answer = {
        "plans": [_numbers(plan) for plan in plans],
        "file": _numbers(files[0]),
        "settings": {key: value for key, (value, *_) in settings.current.splitters.items() if key in ("0", "1")},
        "errors": errors,
        "leftovers": [*unfinished, *locks, *sessions],
    }
    os.write(pipe, json.dumps(answer).encode())


def _recovered_file(file: Path) -> Path:
    return file.with_suffix(".recovered.json")


def _with_number(plan: Plan, field: str, number: int) -> Plan:
    if field == "count":
        return plan.evolve(count=number)
    return plan.evolve(workload=plan.workload.evolve(**{field: number}))


def _numbers(plan: Plan) -> dict[str, int]:
    assert isinstance(plan.workload, Inference)
    return {"batch": plan.workload.batch, "count": plan.count}


if __name__ == "__main__":
    sys.exit(main())
