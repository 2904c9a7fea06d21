"""File options of `gpu-planner monitor`: replay, summary, export and import of recordings and logs."""

import argparse
import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final

from pydantic_core import to_json

from planner.cli.monitor.terminal import fitting_table, wrap_line
from planner.cli.parser import Parser
from planner.errors import PlannerError, RecordingError
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.sample import Sample
from planner.monitor.recording.export import export
from planner.monitor.recording.logs.importing import import_log, is_recording, open_recording
from planner.monitor.recording.player import MAX_SPEED, Player
from planner.monitor.recording.recording import MonitorRecording
from planner.monitor.recording.summary import CardSummary, RecordingSummary, summarize_recording
from planner.monitor.recording.writer import file_exists_error, write_new
from planner.present.monitor.recording import (
    SUMMARY_COLUMNS,
    energy_summary_text,
    gap_sentence,
    recording_line,
    recording_notes,
)

# Polling interval of a paced replay, and the step of one that need not wait.
_LOOK_SECONDS: Final = 0.05
_STRIDE_SECONDS: Final = 60.0
# Columns of a summary to leave out on a narrow terminal, in this order.
_DISPENSABLE: Final = ("temperature", "time", "utilization", "memory")
_TIME: Final = re.compile(r"(?:(?:(\d{1,4}):)?(\d{1,4}):)?(\d{1,7}(?:\.\d{1,6})?)")
_ALONE: Final = "Try: gpu-planner monitor --help"


def add_file_options(parser: Parser) -> None:
    """Add the options of `monitor` that read or write files."""
    group = parser.add_argument_group(
        "recordings", "FILE is a recording, or a log of nvidia-smi, dmon, DCGM, nvtop or amd-smi."
    )
    group.add_argument("--record", metavar="FILE", type=Path, help="record the readings to the new file FILE")
    group.add_argument("--replay", metavar="FILE", type=Path, help="replay FILE in real time; with --json at once")
    group.add_argument("--speed", metavar="N", type=_speed, help="replay N times as fast, up to 1000")
    group.add_argument("--from", dest="start", metavar="T", type=_time, help="start at T: seconds, or [H:]MM:SS")
    group.add_argument("--summary", metavar="FILE", type=Path, help="show energy, cost, averages and peaks of FILE")
    group.add_argument("--tariff", metavar="USD", type=_tariff, help="price per kWh, for the cost of the energy")
    group.add_argument("--export", metavar="OUT", type=Path, help="export the --replay file to OUT.csv or OUT.parquet")
    group.add_argument("--import", dest="log", metavar="LOG", type=Path, help="convert a log to the --record file")


def check_file_options(arguments: argparse.Namespace) -> None:
    """Check that the options for files can be combined.

    Raises:
        PlannerError: If they cannot.
    """
    asked = [name for name in ("once", "doctor", "replay", "summary", "log") if getattr(arguments, name)]
    names = {"log": "import"}
    if len(asked) > 1:
        first, second = (f"--{names.get(name, name)}" for name in asked[:2])
        raise PlannerError(f"{first} and {second} cannot be combined", _ALONE)
    wanted = {
        "--speed": (arguments.speed, arguments.replay),
        "--from": (arguments.start, arguments.replay),
        "--export": (arguments.export, arguments.replay),
        "--tariff": (arguments.tariff, arguments.summary),
        "--import": (arguments.log, arguments.record),
    }
    needed = {"--tariff": "--summary", "--import": "--record"}
    for option, (value, companion) in wanted.items():
        if value is not None and companion is None:
            raise PlannerError(f"{option} needs {needed.get(option, '--replay')} FILE", _ALONE)
    if arguments.record is not None and asked and asked != ["log"]:
        raise PlannerError(f"--record and --{asked[0]} cannot be combined", _ALONE)
    if arguments.interval is not None and asked:
        raise PlannerError(f"--interval and --{names.get(asked[0], asked[0])} cannot be combined", _ALONE)
    if arguments.export is not None and (arguments.speed, arguments.start) != (None, None):
        raise PlannerError("--export writes the whole recording; --speed and --from apply to replays only", _ALONE)


def work_on_files(arguments: argparse.Namespace) -> int | None:
    """Write a summary, a conversion or an export, and return the exit code; None without any of these."""
    if arguments.summary is not None:
        _summarise(open_recording(arguments.summary), arguments.tariff, as_json=arguments.json)
    elif arguments.log is not None:
        _convert(arguments.log, arguments.record, as_json=arguments.json)
    elif arguments.export is not None:
        _export(arguments.replay, arguments.export, as_json=arguments.json)
    else:
        return None
    return 0


def replayed(path: Path, start: float, speed: float, *, is_paced: bool) -> Iterator[Inventory | Sample]:
    """Yield the updates of a recording from `start` on, paced at `speed` or at once, and print its notes on stderr.

    Raises:
        RecordingError: If it cannot be read.
    """
    recording = open_recording(path)
    for note in recording_notes(recording):
        print(note, file=sys.stderr)
    player = Player(recording, speed)
    yield from player.seek(start)
    for seconds in _paces(player) if is_paced else _strides(player):
        yield from player.advance(seconds)


def _paces(player: Player) -> Iterator[float]:
    before = monotonic()
    while not player.is_over:
        sleep(_LOOK_SECONDS)
        now = monotonic()
        yield now - before
        before = now


def _strides(player: Player) -> Iterator[float]:
    while not player.is_over:
        yield _STRIDE_SECONDS / player.speed


def _summarise(recording: MonitorRecording, tariff: float | None, *, as_json: bool) -> None:
    found = summarize_recording(recording, tariff)
    if as_json:
        print(to_json(_summary_object(recording, found), indent=2).decode())
        return
    gaps = gap_sentence(found, recording.seconds)
    texts = (recording_line(recording), energy_summary_text(found), gaps, *recording_notes(recording))
    print("\n".join(map(wrap_line, filter(None, texts))))
    if found.cards:
        columns = [column for column in SUMMARY_COLUMNS if column.key != "cost" or tariff is not None]
        print(f"\n{fitting_table(columns, found.cards, 'slowed', _DISPENSABLE)}")


def _summary_object(recording: MonitorRecording, found: RecordingSummary) -> dict[str, Any]:
    return {
        "file": str(recording.path),
        "seconds": recording.seconds,
        "samples": recording.samples,
        "is_cut": recording.loss.is_cut,
        "notes": recording_notes(recording),
        "marks": [mark._asdict() for mark in recording.marks],
        "energy_joules": found.energy_joules,
        "is_energy_estimated": found.is_estimated,
        "usd_per_kwh": found.usd_per_kwh,
        "usd": found.usd,
        "devices": [_card_object(card) for card in found.cards],
    }


def _card_object(card: CardSummary) -> dict[str, Any]:
    return {
        "uuid": card.device.uuid,
        "name": card.device.name,
        "index": card.device.index,
        "seconds": card.seconds,
        "energy_joules": card.energy_joules,
        "is_energy_estimated": card.is_estimated,
        "usd": card.usd,
        "metrics": {name: found._asdict() for name, found in card.statistics.items()},
        "slowed_seconds": card.slowed_seconds,
    }


def _export(path: Path, out: Path, *, as_json: bool) -> None:
    if out.exists():
        raise file_exists_error(out)
    count = export(open_recording(path), out)
    print(to_json({"file": str(out), "rows": count}).decode() if as_json else f"{out}: {count:,} rows")


def _convert(log: Path, path: Path, *, as_json: bool) -> None:
    if is_recording(log):
        raise RecordingError(log, "is a recording already", f"Try: gpu-planner monitor --replay {log}")
    recording = import_log(log)
    write_new(path, recording.content())
    if as_json:
        told = {"file": str(path), "samples": recording.samples, "notes": recording_notes(recording)}
        print(to_json(told).decode())
        return
    print(recording_line(recording).replace(log.name, str(path), 1))
    for note in recording_notes(recording):
        print(note)


def _speed(text: str) -> float:
    return _number(text, 0.01, MAX_SPEED, "a speed from 0.01 to 1000")


def _tariff(text: str) -> float:
    return _number(text, 0.0, 1000.0, "a price of a kWh in USD")


def _number(text: str, least: float, most: float, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return value


def _time(text: str) -> float:
    match = _TIME.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 90, 1:30 or 2:01:30")
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds
