"""Kills writers of recordings at random times, and reports the data lost in each file.

    python benchmarks/recording_kills.py [--kills N] [--at-once N] [--seed N]

Each writer is a process that records eight cards twenty times a second. It is killed (SIGKILL; on Windows it is ended)
after a tenth of a second to two seconds. Every file must open, and must hold everything up to a second before the
kill; otherwise the exit code is 1. It also prints the size of an hour with one sample per second.
"""

import argparse
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from io import BytesIO
from multiprocessing import Pipe, Process
from pathlib import Path
from statistics import median
from time import monotonic, sleep, time
from typing import TYPE_CHECKING, NamedTuple

from planner.monitor.readings.events import Timestamp
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.metrics import DEVICE_METRICS, Metric
from planner.monitor.readings.reading import Reading
from planner.monitor.readings.sample import Sample
from planner.monitor.recording.files import RecordingWriter
from planner.monitor.recording.recorder import Recorder
from planner.monitor.recording.recording import read_recording
from planner.units import MIB

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_CARDS = tuple(f"GPU-{number}" for number in range(8))
_INVENTORY = Inventory("580", devices=tuple(Device(uuid, uuid, int(uuid[4:])) for uuid in _CARDS))
# The smallest step in which drivers tell a quantity.
_SCALES = {"fraction": 0.01, "W": 0.001, "J": 0.001, "bytes": MIB, "MHz": 15}
# An hour is told from ten minutes.
_PARTS = 6
_INTERVAL = 0.05
_LOST_AT_MOST = 1.0
_LIVES = (0.1, 2.0)


class Kill(NamedTuple):
    """Loss by one kill: seconds from the last readable sample to the kill, and the samples and bytes that remain."""

    lost_seconds: float
    samples: int
    size: int


def main() -> int:
    """Kill the requested number of writers, and print the losses."""
    arguments = _arguments()
    lives = [random.Random(arguments.seed + turn).uniform(*_LIVES) for turn in range(arguments.kills)]
    with tempfile.TemporaryDirectory() as folder:
        kills = list(kill_writers(Path(folder), lives, arguments.at_once))
    lost = sorted(kill.lost_seconds for kill in kills)
    print(f"{len(kills)} kills, every file opened")
    print(f"lost: median {median(lost):.3f} s, worst {lost[-1]:.3f} s (at most {_LOST_AT_MOST:g} s)")
    moving, still = _hour_bytes()
    print(f"an hour of {len(_CARDS)} cards at 1 Hz: {moving / 1e6:.1f} MB, of readings that stay {still / 1e6:.1f} MB")
    return int(lost[-1] > _LOST_AT_MOST)


def _hour_bytes() -> tuple[int, int]:
    """Return the size in bytes of an hour with changing readings, and of an hour with constant readings."""
    return _written_bytes(lambda chance: chance.gauss(0.5, 0.02)), _written_bytes(lambda _: 0.5)


def _written_bytes(draw: Callable[[random.Random], float]) -> int:
    stream, chance = BytesIO(), random.Random(0)
    writer = RecordingWriter(stream)
    writer.put(_INVENTORY, Timestamp(0.0, 0.0))
    for second in range(3600 // _PARTS):
        readings = {uuid: {m.name: Reading(_told(m, draw(chance))) for m in DEVICE_METRICS} for uuid in _CARDS}
        writer.put(Sample(second, second, readings), Timestamp(second, second))
        writer.flush()
    return stream.tell() * _PARTS


def _told(metric: Metric, share: float) -> float:
    """Return a reading in the resolution of drivers: percent, megabytes, milliwatts, whole degrees."""
    steps = {"fraction": 100, "W": 1_000_000, "J": 1_000_000_000, "bytes": 80_000, "°C": 100, "MHz": 130}
    return round(share * steps.get(metric.unit, 1)) * _SCALES.get(metric.unit, 1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--at-once", type=int, default=4, help="how many writers run at the same time")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def kill_writers(folder: Path, lives: list[float], at_once: int) -> Iterator[Kill]:
    """Kill a writer after each of the `lives` in seconds, so many at a time, and return what each lost."""
    for first in range(0, len(lives), at_once):
        group = lives[first : first + at_once]
        files = [folder / f"{first + number}.gpurec" for number in range(len(group))]
        writers = [_start(file) for file in files]
        began = monotonic()
        for life, writer, file in sorted(zip(group, writers, files, strict=True), key=lambda one: one[0]):
            sleep(max(0.0, began + life - monotonic()))
            yield _kill(*writer, file)


def _start(file: Path) -> tuple[Process, float]:
    """Return a writer process after its first sample, and the time of that sample."""
    receiver, sender = Pipe(duplex=False)
    writer = Process(target=_write, args=(file, sender))
    writer.start()
    return writer, receiver.recv()


def _kill(writer: Process, first: float, file: Path) -> Kill:
    at = monotonic()
    writer.kill()
    writer.join()
    recording = read_recording(file)
    # What is read must be readable to its end, not only its first and last line.
    samples = sum(isinstance(update, Sample) for update in recording)
    last = first if recording.last is None else recording.last.monotonic_seconds
    return Kill(at - last, samples, file.stat().st_size)


def _write(file: Path, sender: "Connection[float, None]") -> None:
    """Write samples to `file` until the process is killed, and send the time of the first."""
    draw, has_begun = random.Random(0).random, False
    with Recorder(file) as recorder:
        recorder.note(_INVENTORY)
        while True:
            readings = {uuid: {metric.name: Reading(round(draw(), 3)) for metric in DEVICE_METRICS} for uuid in _CARDS}
            recorder.note(Sample(now := monotonic(), time(), readings))
            if not has_begun:
                sender.send(now)
            has_begun = True
            sleep(_INTERVAL)


if __name__ == "__main__":
    sys.exit(main())
