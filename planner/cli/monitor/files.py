"""File options of `gpu-planner monitor`: replay, summary, export and import of recordings and logs."""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final

from pydantic_core import to_json

from planner.cli.monitor.terminal import wrap_line
from planner.cli.parser import Parser, number_type
from planner.cli.table import column_table
from planner.cli.user_catalog import user_catalog
from planner.errors import PlannerError, RecordingError
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.sample import Sample
from planner.monitor.recording.export import export
from planner.monitor.recording.files import file_exists_error, write_new
from planner.monitor.recording.log_import import import_log, is_recording, open_recording
from planner.monitor.recording.player import MAX_SPEED, Player
from planner.monitor.recording.recording import MonitorRecording
from planner.monitor.recording.summary import CardSummary, RecordingSummary, summarize_recording
from planner.numbers import AMOUNT, MONEY
from planner.present.monitor.recording import (
    SUMMARY_COLUMNS,
    recording_line,
    recording_notes,
    summary_lines,
)
from planner.present.trackers.tracking import TRACKERS, TrackedRun, export_to_tracker

# Polling interval of a paced replay, and the step of one that need not wait.
_STEP_SECONDS: Final = 0.05
_IMMEDIATE_STEP_SECONDS: Final = 60.0
# Columns of a summary to leave out on a narrow terminal, in this order.
_DISPENSABLE: Final = ("temperature", "time", "utilization", "memory")
_TIME: Final = re.compile(r"(?:(?:(\d{1,4}):)?(\d{1,4}):)?(\d{1,7}(?:\.\d{1,6})?)")
_HELP_HINT: Final = "Try: gpu-planner monitor --help"


def add_file_options(parser: Parser) -> None:
    """Add the options of `monitor` that read or write files."""
    group = parser.add_details(
        "recordings", "FILE is a recording, or a log of nvidia-smi, dmon, DCGM, nvtop or amd-smi."
    )
    group.add_argument("--record", metavar="FILE", type=Path, help="record the readings to the new file FILE")
    group.add_argument("--replay", metavar="FILE", type=Path, help="replay FILE in real time; with --json at once")
    group.add_argument(
        "--speed", metavar="N", type=number_type(AMOUNT, 0.01, MAX_SPEED), help="replay N times as fast, up to 1000"
    )
    group.add_argument(
        "--from", dest="start", metavar="T", type=_start_seconds, help="start at T: seconds, or [H:]MM:SS"
    )
    group.add_argument("--summary", metavar="FILE", type=Path, help="show energy, cost, averages and peaks of FILE")
    group.add_argument(
        "--tariff", metavar="USD", type=number_type(MONEY, 0, 1000), help="price per kWh, for the cost of the energy"
    )
    group.add_argument(
        "--export",
        metavar="OUT",
        type=Path,
        help="export the --replay file to OUT.csv or OUT.parquet, or with --as to a run in the folder OUT; with "
        "--record, while it is recorded",
    )
    group.add_argument(
        "--as",
        dest="tracker",
        metavar="TRACKER",
        choices=TRACKERS,
        help=f"experiment tracker to export to: {', '.join(TRACKERS)}",
    )
    group.add_argument(
        "--plan",
        metavar="PLAN.json",
        type=Path,
        help="add what this plan predicts to the recording, the export or the served metrics",
    )
    group.add_argument("--import", dest="log", metavar="LOG", type=Path, help="convert a log to the --record file")
    group.add_argument(
        "--columns",
        metavar="NAMES",
        help="columns of a log without a header line, named as in nvidia-smi --query-gpu: timestamp,power.draw,…",
    )


def check_file_options(arguments: argparse.Namespace) -> None:
    """Check that the file options on the command line can be combined.

    Raises:
        PlannerError: If two options cannot be combined, or an option lacks another.
    """
    modes = [name for name in ("once", "doctor", "replay", "summary", "log") if getattr(arguments, name)]
    names = {"log": "import"}
    if len(modes) > 1:
        first, second = (f"--{names.get(name, name)}" for name in modes[:2])
        raise PlannerError(f"{first} and {second} cannot be combined", _HELP_HINT)
    dependent_options = {
        "--speed": (arguments.speed, arguments.replay),
        "--from": (arguments.start, arguments.replay),
        "--export": (arguments.export, arguments.replay or (arguments.tracker and arguments.record)),
        "--as": (arguments.tracker, arguments.export),
        "--plan": (arguments.plan, arguments.record or arguments.tracker or arguments.serve or arguments.textfile),
        "--tariff": (arguments.tariff, arguments.summary),
        "--import": (arguments.log, arguments.record),
        "--columns": (arguments.columns, arguments.log or arguments.summary or arguments.replay),
    }
    companion_names = {
        "--tariff": "--summary FILE",
        "--import": "--record FILE",
        "--columns": "--import FILE",
        "--as": "--export FOLDER",
        "--plan": "--record FILE, --serve, --textfile, or --export FOLDER --as TRACKER",
    }
    for option, (value, companion) in dependent_options.items():
        if value is not None and companion is None:
            raise PlannerError(f"{option} needs {companion_names.get(option, '--replay FILE')}", _HELP_HINT)
    if arguments.log is not None and (arguments.export is not None or arguments.plan is not None):
        option = "--export" if arguments.export is not None else "--plan"
        raise PlannerError(f"{option} and --import cannot be combined", _HELP_HINT)
    if arguments.machine is not None and modes and modes != ["once"]:
        raise PlannerError(f"{arguments.machine} and --{names.get(modes[0], modes[0])} cannot be combined", _HELP_HINT)
    if arguments.record is not None and modes and modes != ["log"]:
        raise PlannerError(f"--record and --{modes[0]} cannot be combined", _HELP_HINT)
    if arguments.interval is not None and modes:
        raise PlannerError(f"--interval and --{names.get(modes[0], modes[0])} cannot be combined", _HELP_HINT)
    is_paced = (arguments.speed, arguments.start) != (None, None)
    if is_paced and arguments.export is not None:
        raise PlannerError("--export writes the whole recording; --speed and --from apply to replays only", _HELP_HINT)


def run_file_action(arguments: argparse.Namespace) -> int | None:
    """Run --summary, --import or --export and return the exit code; None if none of these options is given."""
    if arguments.summary is not None:
        _print_summary(open_recording(arguments.summary, arguments.columns), arguments.tariff, as_json=arguments.json)
    elif arguments.log is not None:
        _convert_log(arguments.log, arguments.record, arguments.columns, as_json=arguments.json)
    elif arguments.replay is not None and arguments.export is not None:
        recording = open_recording(arguments.replay, arguments.columns)
        if arguments.tracker is None:
            _export_recording(recording, arguments.export, as_json=arguments.json)
        else:
            _export_to_tracker(recording, arguments)
    else:
        return None
    return 0


def replayed_updates(
    recording: MonitorRecording, start: float, speed: float, *, is_paced: bool
) -> Iterator[Inventory | Sample]:
    """Yield the updates of a recording from `start` on, paced at `speed` or at once; notes are printed on stderr."""
    for note in recording_notes(recording):
        print(note, file=sys.stderr)
    player = Player(recording, speed)
    yield from player.seek(start)
    for seconds in _seconds_between_real_time_steps(player) if is_paced else _seconds_between_immediate_steps(player):
        yield from player.advance(seconds)


def _seconds_between_real_time_steps(player: Player) -> Iterator[float]:
    before = monotonic()
    while not player.is_over:
        sleep(_STEP_SECONDS)
        now = monotonic()
        yield now - before
        before = now


def _seconds_between_immediate_steps(player: Player) -> Iterator[float]:
    while not player.is_over:
        yield _IMMEDIATE_STEP_SECONDS / player.speed


def _print_summary(recording: MonitorRecording, tariff: float | None, *, as_json: bool) -> None:
    summary = summarize_recording(recording, tariff)
    if as_json:
        print(to_json(_summary_json_object(recording, summary), indent=2).decode())
        return
    print("\n".join(map(wrap_line, (recording_line(recording), *summary_lines(recording, summary)))))
    if summary.cards:
        columns = [column for column in SUMMARY_COLUMNS if column.key != "cost" or tariff is not None]
        print(f"\n{column_table(columns, summary.cards, dispensable=_DISPENSABLE, cut='slowed')}")


def _summary_json_object(recording: MonitorRecording, summary: RecordingSummary) -> dict[str, Any]:
    return {
        "file": str(recording.path),
        "seconds": recording.seconds,
        "samples": recording.samples,
        "is_cut": recording.loss.is_cut,
        "notes": recording_notes(recording),
        "marks": [mark._asdict() for mark in recording.marks],
        "energy_joules": summary.energy_joules,
        "is_energy_estimated": summary.is_estimated,
        "usd_per_kwh": summary.usd_per_kwh,
        "usd": summary.usd,
        "diagnoses": [found._asdict() for found in summary.diagnoses],
        "devices": [_card_json_object(card) for card in summary.cards],
    }


def _card_json_object(card: CardSummary) -> dict[str, Any]:
    return {
        "uuid": card.device.uuid,
        "name": card.device.name,
        "index": card.device.index,
        "seconds": card.seconds,
        "energy_joules": card.energy_joules,
        "is_energy_estimated": card.is_estimated,
        "usd": card.usd,
        "metrics": {name: statistic._asdict() for name, statistic in card.statistics.items()},
        "slowed_seconds": card.slowed_seconds,
    }


def _export_recording(recording: MonitorRecording, out: Path, *, as_json: bool) -> None:
    if out.exists():
        raise file_exists_error(out)
    count = export(recording, out)
    print(to_json({"file": str(out), "rows": count}).decode() if as_json else f"{out}: {count:,} rows")


def _export_to_tracker(recording: MonitorRecording, arguments: argparse.Namespace) -> None:
    plan = recorded_plan_fields(arguments.plan)
    catalog = user_catalog()
    run = export_to_tracker(recording, arguments.export, arguments.tracker, catalog, plan=plan)
    print(to_json(run._asdict()).decode() if arguments.json else tracked_run_text(run))


def recorded_plan_fields(path: Path | None) -> dict[str, Any] | None:
    """Return the plan in a file as a recording keeps it, None without a file.

    Raises:
        PlannerError: If it is not the file of a plan.
    """
    if path is None:
        return None
    from planner.plan.files import load_plan  # most recordings are made without a plan

    return load_plan(path).model_dump(mode="json")


def tracked_run_text(run: TrackedRun) -> str:
    """Return where a tracker's run is, and the command that shows it."""
    return f"{run.place}: {run.values:,} values\nTo see it: {run.view_command}"


def _convert_log(log: Path, path: Path, columns: str | None, *, as_json: bool) -> None:
    if is_recording(log):
        raise RecordingError(log, "is a recording already", f"Try: gpu-planner monitor --replay {log}")
    recording = import_log(log, columns)
    write_new(path, recording.content())
    if as_json:
        report = {"file": str(path), "samples": recording.samples, "notes": recording_notes(recording)}
        print(to_json(report).decode())
        return
    print(recording_line(recording).replace(log.name, str(path), 1))
    for note in recording_notes(recording):
        print(note)


def _start_seconds(text: str) -> float:
    match = _TIME.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 90, 1:30 or 2:01:30")
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds
