"""Overhead of monitoring: `python benchmarks/monitor.py [--cards 8] [--interval 1] [--seconds 30] [--rivals FOLDER]`.

The cards are those of the tests' own library, which costs less than a real driver, each with a process. In the same
run: our sampler and the whole program, hidden and with 48 curves in sight (six plots of eight cards); an empty window
with as many curves of pyqtgraph's own; gpustat and nvitop, if `--rivals` names a virtual environment with them, which
is made and filled by pip where it is missing. Shares of a core are CPU time as counted by the kernel.

Then: after how long a line of `gpu-planner monitor --json` tells an Xid, a card that hangs, and a card that is lost.
"""

import argparse
import json
import os
import pty
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import psutil

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "fake_nvml"))
from fake_nvml_kit import FakeNvml, build, card

WINDOW = Path(__file__).parent / "monitor_window.py"
RIVALS = {
    "gpustat": ("gpustat==1.1.1", ("-i", "{interval}", "-a", "-c", "-p", "-u")),
    "nvitop": ("nvitop==1.7.2", ("-m", "full", "--interval", "{interval}")),
}
# By NVML's numbers: ECC, power-capped time, memory temperature, energy, replays, NVLink, remapped rows, thermal time.
FIELDS = {3: 0, 4: 0, 74: 0, 82: 70, 83: 10**9, 94: 0, 138: 1000, 139: 1000}
FIELDS |= {142: 0, 143: 0, 144: 0, 145: 0, 251: 0, 252: 0}
SETTLING_SECONDS = 5.0
ROWS, COLUMNS = 60, 180
# What programs ask a terminal, and what one answers: where its cursor is (ECMA-48, DSR and CPR).
CURSOR_ASKED, CURSOR_TOLD = b"\x1b[6n", b"\x1b[1;1R"
OF_GPUSTAT = 0.5
OF_PLAIN = 1.5
# What the library does with the first card, and what a line then says.
HAPPENINGS: dict[str, tuple[dict[str, object], tuple[str, ...], str]] = {
    "an Xid": ({}, ("0 8 79",), '"number":79'),
    "a card that hangs": ({"0.hang.nvmlDeviceGetPowerUsage": 1}, (), "card-not-answering"),
    "a card that is lost": ({"0.error.*": 15}, (), '"state":"lost"'),
}
MOST_SECONDS_UNTIL_TOLD = 2.0


class Cost(NamedTuple):
    """The share of one core and the memory of a process, or of several together."""

    core: float
    mebibytes: float
    threads: int

    def __add__(self, other: object) -> "Cost":
        assert isinstance(other, Cost)
        return Cost(self.core + other.core, self.mebibytes + other.mebibytes, self.threads + other.threads)


def main() -> None:
    """Print a row for each program, and the aims."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cards", type=int, default=8)
    parser.add_argument("--interval", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rivals", type=Path, help="a virtual environment with gpustat and nvitop")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, busy_processes(arguments.cards) as pids:
        fake = FakeNvml(Path(folder), build(Path(folder) / "library"))
        fake.say(*(busy_card(number, pid) for number, pid in enumerate(pids)))
        print(f"{arguments.cards} cards every {arguments.interval:g} s, over {arguments.seconds:g} s")
        print(f"{'program':<44}{'% of a core':>12}{'MiB':>8}{'threads':>9}")
        hidden, shown, points = measure_ours(fake, Path(folder), arguments)
        plain = measure_plain(points, arguments.seconds)
        rivals = measure_rivals(fake, arguments) if arguments.rivals else {}
        for name in HAPPENINGS:
            seconds = seconds_until_told(fake, name, pids, arguments.interval)
            is_met = "met" if seconds <= MOST_SECONDS_UNTIL_TOLD else "missed"
            print(f"{name} is told after {seconds:.2f} s (aim ≤ {MOST_SECONDS_UNTIL_TOLD:g} s: {is_met})", flush=True)
    print_aim("sampler and hidden window, of gpustat's", hidden, rivals.get("gpustat"), OF_GPUSTAT)
    for name, cost in plain.items():
        print_aim(f"the window with 48 curves, of {name}", shown, cost, OF_PLAIN)


@contextmanager
def busy_processes(count: int) -> Iterator[list[int]]:
    """Run one idle process per card, which the library reports as the process on a busy card."""
    program = [sys.executable, "-c", "import time; time.sleep(1e6)"]
    running = [subprocess.Popen(program) for _ in range(count)]
    try:
        yield [process.pid for process in running]
    finally:
        for process in running:
            process.kill()
            process.wait()


def busy_card(number: int, pid: int) -> dict[str, object]:
    """Return the readings of a healthy, busy card: all that the sampler queries."""
    fields = {f"{number}.field.{field}": value for field, value in FIELDS.items()}
    gpm = {f"{number}.gpm.{metric}": 50 for metric in (1, 2, 3, 5, 10)}
    processes = {f"{number}.process.compute": f"{pid}:{2**30}"}
    return card(number, uuid_of(number), gpm=1, margin=30, jpeg=0, ofa=0) | fields | gpm | processes


def uuid_of(number: int) -> str:
    """Return the UUID of a card."""
    return f"GPU-{number:08d}-0000-0000-0000-000000000000"


def quiet(fake: FakeNvml) -> dict[str, str]:
    """Return the environment that turns off the fake library's call log, which would cost more than its answers."""
    return {name: value for name, value in fake.environment.items() if name != "FAKE_NVML_LOG"}


def measure_ours(fake: FakeNvml, folder: Path, arguments: argparse.Namespace) -> tuple[Cost, Cost, int]:
    """Return the cost of the hidden program, the cost of the shown window, and the number of points per curve.

    Raises:
        SystemExit: If the window shows other plots than it should.
    """
    write_settings(folder / "home", arguments.interval)
    uuids = ",".join(map(uuid_of, range(arguments.cards)))
    with window("ours", uuids, str(folder / "home"), environment=quiet(fake)) as (process, tell):
        tell("show")
        time.sleep(SETTLING_SECONDS)
        tell("hide")
        time.sleep(SETTLING_SECONDS)
        (sampler,) = psutil.Process(process.pid).children()
        both = [sampler, psutil.Process(process.pid)]
        hidden = costs_of(both, arguments.seconds)
        tell("show")
        time.sleep(SETTLING_SECONDS)
        shown = costs_of(both, arguments.seconds)
        seen = tell("show")
    if seen["plots"] != 6 or seen["curves"] != 6 * arguments.cards:
        raise SystemExit(f"the window shows {seen}")
    print_cost("the sampler", hidden[0])
    print_cost("the window, hidden", hidden[1])
    print_cost("the sampler and the hidden window", hidden[0] + hidden[1])
    print_cost("the window, shown with 48 curves", shown[1])
    print(f"  {seen['curves']} curves of {seen['points']} points, plots on {seen['size'][0]} × {seen['size'][1]}")
    return hidden[0] + hidden[1], shown[1], seen["points"]


def write_settings(home: Path, interval: float) -> None:
    """Write the settings with the sampling interval in seconds."""
    home.mkdir()
    (home / "settings.json").write_text(json.dumps({"monitor": {"interval_seconds": interval}}))


def measure_plain(points: int, seconds: float) -> dict[str, Cost]:
    """Return the cost of empty windows that redraw the same number of curves once a second."""
    found = {}
    for name, words in {"pyqtgraph alone": (), "pyqtgraph alone, its time moving": ("moving",)}.items():
        with window("plain", str(points), *words, environment=dict(os.environ)) as (process, _tell):
            time.sleep(SETTLING_SECONDS)
            found[name] = costs_of([psutil.Process(process.pid)], seconds)[0]
        print_cost(f"{name}, 48 curves", found[name])
    return found


@contextmanager
def window(*words: str, environment: dict[str, str]) -> Iterator[tuple[subprocess.Popen[str], Any]]:
    """Run a window in a separate process, and yield the process and a function that sends commands to it."""
    process = subprocess.Popen(
        [sys.executable, str(WINDOW), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    commands, told = process.stdin, process.stdout

    def tell(word: str) -> Any:
        commands.write(f"{word}\n")
        commands.flush()
        return json.loads(told.readline())

    try:
        if told.readline() != "ready\n":
            raise SystemExit(f"{WINDOW} {' '.join(words)} did not start")
        yield process, tell
    finally:
        # It ends in good order, so that its sampler does too.
        commands.close()
        process.wait()
        told.close()


def measure_rivals(fake: FakeNvml, arguments: argparse.Namespace) -> dict[str, Cost]:
    """Return the cost of other monitors with the same library."""
    folder = arguments.rivals
    if not folder.exists():
        venv.create(folder, with_pip=True)
        packages = [package for package, _ in RIVALS.values()]
        subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "-q", *packages], check=True)
    found = {}
    for name, (_, words) in RIVALS.items():
        command = [str(folder / "bin" / name), *(word.format(interval=arguments.interval) for word in words)]
        with in_terminal(command, quiet(fake)) as process:
            time.sleep(SETTLING_SECONDS)
            found[name] = costs_of([process], arguments.seconds)[0]
            if process.status() == psutil.STATUS_ZOMBIE:
                raise SystemExit(f"{name} has ended by itself")
        print_cost(name, found[name])
    return found


@contextmanager
def in_terminal(command: list[str], environment: dict[str, str]) -> Iterator[psutil.Process]:
    """Run a program that needs a terminal in a pseudo-terminal."""
    from termios import tcsetwinsize

    outside, inside = pty.openpty()
    tcsetwinsize(inside, (ROWS, COLUMNS))
    environment = {**environment, "TERM": "xterm-256color"}
    process = subprocess.Popen(command, stdin=inside, stdout=inside, stderr=inside, env=environment)
    # What it draws must be read, or it waits.
    reader = Thread(target=drain, args=(outside,), daemon=True)
    reader.start()
    try:
        yield psutil.Process(process.pid)
    finally:
        process.kill()
        process.wait()
        os.close(inside)
        reader.join()


def drain(terminal: int) -> None:
    """Read the terminal's output, and answer its queries."""
    # Once nothing writes to it any more, reading fails.
    with suppress(OSError):
        while True:
            asked = os.read(terminal, 1 << 16).count(CURSOR_ASKED)
            os.write(terminal, CURSOR_TOLD * asked)
    os.close(terminal)


def costs_of(processes: list[psutil.Process], seconds: float) -> list[Cost]:
    """Measure processes for `seconds`, and return the cost of each process."""
    before, began = [spent(one) for one in processes], time.monotonic()
    time.sleep(seconds)
    elapsed = time.monotonic() - began
    return [
        Cost((spent(one) - first) / elapsed, one.memory_info().rss / 2**20, one.num_threads())
        for one, first in zip(processes, before, strict=True)
    ]


def spent(process: psutil.Process) -> float:
    """Return the CPU time of a process in seconds."""
    times = process.cpu_times()
    return float(times.user + times.system)


def seconds_until_told(fake: FakeNvml, name: str, pids: list[int], interval: float) -> float:
    """Return the seconds from when something happens to a card until a line of the command tells it."""
    changes, events, told = HAPPENINGS[name]
    first, *others = (busy_card(number, pid) for number, pid in enumerate(pids))
    fake.say(first, *others)
    command = [sys.executable, "-m", "planner", "monitor", "--json", "--interval", str(interval)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=quiet(fake), text=True) as process:
        assert process.stdout is not None
        for _ in range(3):
            process.stdout.readline()
        began = time.monotonic()
        fake.say({**first, **changes}, *others, events=events)
        next(line for line in process.stdout if told in line)
        seconds = time.monotonic() - began
        process.terminate()
        process.stdout.read()
    return seconds


def print_cost(name: str, cost: Cost) -> None:
    """Print a row."""
    print(f"{name:<44}{cost.core * 100:>12.2f}{cost.mebibytes:>8.1f}{cost.threads:>9}", flush=True)


def print_aim(name: str, cost: Cost, of: Cost | None, most: float) -> None:
    """Print a ratio with its target."""
    if of is not None:
        ratio = cost.core / of.core
        print(f"{name}: {ratio:.2f} (aim ≤ {most:g}: {'met' if ratio <= most else 'missed'})")


if __name__ == "__main__":
    main()
