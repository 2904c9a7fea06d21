"""Overhead of monitoring, with aims: `python benchmarks/monitor.py [--rivals FOLDER] [--interval 0.1] [--plain]`.

The cards are those of the tests' own library, which costs less than a real driver. Measured are our sampler and the
whole program, hidden with a process on each card and with none, and shown at 1280 × 800 with every curve in sight that
fits there. With `--rivals`, a virtual environment with gpustat and nvitop, which is made and filled by pip where it is
missing, both run at the same time as the hidden program. With `--plain`, an empty window draws as many curves by
pyqtgraph alone. Shares of a core are CPU time as counted by the kernel.

`--told` measures something else: after how long a line of `gpu-planner monitor --json` tells an Xid, a card that hangs,
and a card that is lost.
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
from contextlib import ExitStack, contextmanager, suppress
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
SETTLING_SECONDS = 4.0
ROWS, COLUMNS = 60, 180
# What programs ask a terminal, and what one answers: where its cursor is (ECMA-48, DSR and CPR).
CURSOR_ASKED, CURSOR_TOLD = b"\x1b[6n", b"\x1b[1;1R"
OF_GPUSTAT = 0.5
OF_PLAIN = 1.5
# Shares of a core that the window may take with eight cards at 1280 × 800, by the interval in seconds.
SHOWN = {1.0: 0.02, 0.1: 0.12}
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
    parser.add_argument("--seconds", type=float, default=10.0, help="length of each measurement")
    parser.add_argument("--size", default="1280x800", help="size of the window in pixels")
    parser.add_argument("--rivals", type=Path, help="a virtual environment with gpustat and nvitop")
    parser.add_argument("--plain", action="store_true", help="compare with as many curves of pyqtgraph alone")
    parser.add_argument("--told", action="store_true", help="only after how long what happens to a card is told")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, busy_processes(arguments.cards) as pids:
        fake = FakeNvml(Path(folder), build(Path(folder) / "library"))
        fake.say(*(busy_card(number, pid) for number, pid in enumerate(pids)))
        if arguments.told:
            print_told(fake, pids, arguments.interval)
        else:
            print_costs(fake, Path(folder), arguments)


def print_told(fake: FakeNvml, pids: list[int], interval: float) -> None:
    """Print after how long each happening is told."""
    for name in HAPPENINGS:
        seconds = seconds_until_told(fake, name, pids, interval)
        is_met = "met" if seconds <= MOST_SECONDS_UNTIL_TOLD else "missed"
        print(f"{name} is told after {seconds:.2f} s (aim ≤ {MOST_SECONDS_UNTIL_TOLD:g} s: {is_met})", flush=True)


def print_costs(fake: FakeNvml, folder: Path, arguments: argparse.Namespace) -> None:
    """Print what every program takes, and the aims."""
    print(f"{arguments.cards} cards every {arguments.interval:g} s, over {arguments.seconds:g} s")
    print(f"{'program':<50}{'% of a core':>12}{'MiB':>8}{'threads':>9}")
    write_settings(folder / "home", arguments.interval)
    uuids = ",".join(map(uuid_of, range(arguments.cards)))
    aims: list[tuple[str, Cost, Cost | None, float]] = []
    with window("ours", uuids, str(folder / "home"), arguments.size, environment=quiet(fake)) as (process, tell):
        tell("show")
        time.sleep(SETTLING_SECONDS)
        tell("hide")
        (sampler,) = psutil.Process(process.pid).children()
        both = [sampler, psutil.Process(process.pid)]
        with rivals(fake, arguments) as running:
            for title in ("with a process on each card", "without processes"):
                time.sleep(SETTLING_SECONDS)
                sampled, hidden, *others = costs_of([*both, *running.values()], arguments.seconds)
                print_cost(f"sampler, {title}", sampled)
                print_cost(f"hidden window, {title}", hidden)
                for name, cost in zip(running, others, strict=True):
                    print_cost(f"{name}, {title}", cost)
                    if name == "gpustat":
                        aims.append(
                            (f"sampler and hidden window of gpustat's, {title}", sampled + hidden, cost, OF_GPUSTAT)
                        )
                fake.say(*(busy_card(number, None) for number in range(arguments.cards)))
        tell("show")
        time.sleep(SETTLING_SECONDS)
        sampled, shown = costs_of(both, arguments.seconds)
        seen = tell("show")
    print_cost(f"window, shown with {seen['curves']} curves", shown)
    print(f"  {seen['plots']} plots of {seen['points']} points a curve on {seen['size'][0]} × {seen['size'][1]}")
    if not seen["plots"] or seen["curves"] != seen["plots"] * arguments.cards:
        raise SystemExit(f"the window shows {seen}")
    if arguments.interval in SHOWN:
        aims.append((f"shown at {arguments.size}, of a core", shown, None, SHOWN[arguments.interval]))
    if arguments.plain:
        for name, cost in measure_plain(seen, arguments.seconds).items():
            aims.append((f"shown, of {name}", shown, cost, OF_PLAIN))
    for aim in aims:
        print_aim(*aim)


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


def busy_card(number: int, pid: int | None) -> dict[str, object]:
    """Return the readings of a healthy, busy card: all that the sampler queries; `pid` is the process on it."""
    fields = {f"{number}.field.{field}": value for field, value in FIELDS.items()}
    gpm = {f"{number}.gpm.{metric}": 50 for metric in (1, 2, 3, 5, 10)}
    processes = {} if pid is None else {f"{number}.process.compute": f"{pid}:{2**30}"}
    return card(number, uuid_of(number), gpm=1, margin=30, jpeg=0, ofa=0) | fields | gpm | processes


def uuid_of(number: int) -> str:
    """Return the UUID of a card."""
    return f"GPU-{number:08d}-0000-0000-0000-000000000000"


def quiet(fake: FakeNvml) -> dict[str, str]:
    """Return the environment that turns off the fake library's call log, which would cost more than its answers."""
    return {name: value for name, value in fake.environment.items() if name != "FAKE_NVML_LOG"}


def write_settings(home: Path, interval: float) -> None:
    """Write the settings with the sampling interval in seconds."""
    home.mkdir()
    (home / "settings.json").write_text(json.dumps({"monitor": {"interval_seconds": interval}}))


def measure_plain(seen: dict[str, Any], seconds: float) -> dict[str, Cost]:
    """Return the cost of empty windows that redraw as many curves, on as large plots, once a second."""
    found, like = {}, [str(seen[name]) for name in ("plots", "curves", "points")]
    size = "x".join(map(str, seen["size"]))
    for name, words in {"pyqtgraph alone": (), "pyqtgraph alone, its time moving": ("moving",)}.items():
        with window("plain", *like, size, *words, environment=dict(os.environ)) as (process, _tell):
            time.sleep(SETTLING_SECONDS)
            found[name] = costs_of([psutil.Process(process.pid)], seconds)[0]
        print_cost(f"{name}, {seen['curves']} curves", found[name])
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


@contextmanager
def rivals(fake: FakeNvml, arguments: argparse.Namespace) -> Iterator[dict[str, psutil.Process]]:
    """Run other monitors with the same library, by name; none without their environment.

    Raises:
        SystemExit: If one of them has ended by itself.
    """
    with ExitStack() as stack:
        running = {}
        for name, (_, words) in RIVALS.items() if arguments.rivals else ():
            install(arguments.rivals)
            command = [
                str(arguments.rivals / "bin" / name),
                *(word.format(interval=arguments.interval) for word in words),
            ]
            running[name] = stack.enter_context(in_terminal(command, quiet(fake)))
        yield running
        for name, process in running.items():
            if process.status() == psutil.STATUS_ZOMBIE:
                raise SystemExit(f"{name} has ended by itself")


def install(folder: Path) -> None:
    """Make a virtual environment with the other monitors, unless there is one."""
    if not folder.exists():
        venv.create(folder, with_pip=True)
        packages = [package for package, _ in RIVALS.values()]
        subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "-q", *packages], check=True)


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
    """Return the CPU time of a process in seconds, by its own clock, since the kernel's counts are of hundredths."""
    # clock_getcpuclockid of Linux: CPUCLOCK_SCHED of the process.
    return time.clock_gettime(~process.pid << 3 | 2)


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
    print(f"{name:<50}{cost.core * 100:>12.2f}{cost.mebibytes:>8.1f}{cost.threads:>9}", flush=True)


def print_aim(name: str, cost: Cost, of: Cost | None, most: float) -> None:
    """Print a share with its aim: of another program's cost, or of a core."""
    share = cost.core if of is None else cost.core / of.core
    shown, aim = (f"{share:.2%}", f"{most:.0%}") if of is None else (f"{share:.2f}", f"{most:g}")
    print(f"{name}: {shown} (aim ≤ {aim}: {'met' if share <= most else 'missed'})")


if __name__ == "__main__":
    main()
