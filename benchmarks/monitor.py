"""What watching costs: `python benchmarks/monitor.py [--cards 8] [--interval 1] [--seconds 20]`.

The cards are those of the tests' own library, which costs less than a real driver; what other monitors cost on the
same library, where they are installed, is measured in the same run.
"""

import argparse
import os
import pty
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import NamedTuple

import psutil

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "fake_nvml"))
from fake_nvml_kit import FakeNvml, build, card

from planner.monitor.gathering import note
from planner.monitor.latest import Latest
from planner.monitor.sample import Sample
from planner.monitor.settings import Settings
from planner.monitor.supervisor import Supervisor, Update

OTHERS = {
    "gpustat": ("gpustat", "-i", "{interval}", "-a", "-c", "-p", "-u"),
    "nvitop": ("nvitop", "-m", "full", "--interval", "{interval}"),
}
SETTLING_SECONDS = 4.0


class Cost(NamedTuple):
    """The share of one core and the memory of a process."""

    core: float
    mebibytes: float
    threads: int


def main() -> None:
    """Print a row for each program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cards", type=int, default=8)
    parser.add_argument("--interval", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        fake = FakeNvml(Path(folder), build(Path(folder) / "library"))
        fake.say(*(_busy_card(number) for number in range(arguments.cards)))
        print(f"{arguments.cards} cards every {arguments.interval:g} s, over {arguments.seconds:g} s")
        print(f"{'program':<24}{'% of a core':>12}{'MiB':>8}{'threads':>9}")
        _measure_ours(fake, arguments.interval, arguments.seconds)
        for name, words in OTHERS.items():
            _measure_other(fake, name, words, arguments)


def _busy_card(number: int) -> dict[str, object]:
    uuid = f"GPU-{number:08d}-0000-0000-0000-000000000000"
    counters = {
        f"{number}.field.{field}": 1000 for field in (3, 4, 74, 82, 83, 94, 138, 139, 142, 143, 144, 145, 269, 270)
    }
    gpm = {f"{number}.gpm.{metric}": 50 for metric in (1, 2, 3, 5, 10)}
    return card(number, uuid, gpm=1, margin=30, jpeg=0, ofa=0) | counters | gpm


def _quiet(fake: FakeNvml) -> dict[str, str]:
    """Return the environment in which the library takes no notes, which would cost more than its answers."""
    return {name: value for name, value in fake.environment.items() if name != "FAKE_NVML_LOG"}


def _measure_ours(fake: FakeNvml, interval: float, seconds: float) -> None:
    updates: Queue[Update] = Queue()
    with Supervisor(updates.put, Settings(fast_seconds=interval), environment=_quiet(fake)) as supervisor:
        time.sleep(SETTLING_SECONDS)
        sampler, parent = psutil.Process(supervisor.pid), psutil.Process()
        ours = _cost_of(sampler, seconds, also=parent)
        _print("the sampler", ours[0])
        _print("its supervisor", ours[1])
    latest, costs = Latest(), []
    while not updates.empty():
        note(latest, update := updates.get())
        if isinstance(update, Sample) and update.cost is not None:
            costs.append(update.cost)
    middle = sorted(cost.sweep_seconds for cost in costs)[len(costs) // 2]
    calls = sum(cost.calls for cost in costs) / len(costs)
    driver = sum(cost.driver_seconds for cost in costs) / len(costs)
    print(f"a look takes {middle * 1e3:.2f} ms (median), of which {driver * 1e3:.2f} ms in {calls:.0f} calls (mean)")


def _measure_other(fake: FakeNvml, name: str, words: tuple[str, ...], arguments: argparse.Namespace) -> None:
    if shutil.which(name) is None:
        print(f"{name:<24}not installed")
        return
    command = [word.format(interval=arguments.interval) for word in words]
    with _in_terminal(command, _quiet(fake)) as process:
        time.sleep(SETTLING_SECONDS)
        _print(name, _cost_of(process, arguments.seconds)[0])


@contextmanager
def _in_terminal(command: list[str], environment: dict[str, str]) -> Iterator[psutil.Process]:
    """Run a program that wants a terminal in one that nobody sees."""
    outside, inside = pty.openpty()
    process = subprocess.Popen(command, stdin=inside, stdout=inside, stderr=inside, env=environment)
    # What it draws must be read, or it waits.
    reader = Thread(target=_drain, args=(outside,), daemon=True)
    reader.start()
    try:
        yield psutil.Process(process.pid)
    finally:
        process.kill()
        process.wait()
        os.close(inside)
        reader.join()


def _drain(terminal: int) -> None:
    # Once nothing writes to it any more, reading fails.
    with suppress(OSError):
        while os.read(terminal, 1 << 16):
            pass
    os.close(terminal)


def _cost_of(process: psutil.Process, seconds: float, also: psutil.Process | None = None) -> list[Cost]:
    watched = [process] if also is None else [process, also]
    before, began = [_spent(one) for one in watched], time.monotonic()
    time.sleep(seconds)
    elapsed = time.monotonic() - began
    return [
        Cost((_spent(one) - first) / elapsed, one.memory_info().rss / 2**20, one.num_threads())
        for one, first in zip(watched, before, strict=True)
    ]


def _spent(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _print(name: str, cost: Cost) -> None:
    print(f"{name:<24}{cost.core * 100:>12.2f}{cost.mebibytes:>8.1f}{cost.threads:>9}")


if __name__ == "__main__":
    main()
