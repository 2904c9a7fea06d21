"""`gpu-planner monitor`: live readings of the cards as a redrawn table or as JSON, and the check-up."""

import argparse
import gc
import json
import signal
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from queue import Empty, Queue
from typing import Any, Final

from pydantic_core import to_json

from planner.cli.main import ENVIRONMENT
from planner.cli.monitor.files import (
    add_file_options,
    check_file_options,
    recorded_plan_fields,
    replayed_updates,
    run_file_action,
    tracked_run_text,
)
from planner.cli.monitor.page import CardDetailReader, page_lines
from planner.cli.monitor.services import Services, add_service_options, check_service_options, print_export
from planner.cli.monitor.terminal import Keyboard, Screen
from planner.cli.parser import Parser, number_type
from planner.cli.user_catalog import user_catalog
from planner.errors import RecordingError
from planner.monitor.diagnosis.diagnose import diagnose_all
from planner.monitor.diagnosis.tracker import VerdictTracker
from planner.monitor.diagnosis.verdict import Verdict, verdict_object
from planner.monitor.doctor import (
    binding_version,
    check_setup,
    current_blocking_fault,
    readings_blocking_fault,
    unavailable_error,
)
from planner.monitor.history import History
from planner.monitor.host.environment import detect_environment, find_cards
from planner.monitor.readings.faults import Fault
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.report import state_report
from planner.monitor.readings.sample import Sample
from planner.monitor.recording.log_import import open_recording
from planner.monitor.recording.recorder import Recorder
from planner.monitor.recording.records import RecordedPlan
from planner.monitor.settings import FASTEST_SECONDS, SLOWEST_SECONDS, SamplerSettings
from planner.monitor.supervisor.remote import RemoteAddress
from planner.monitor.supervisor.snapshot import take_snapshot
from planner.monitor.supervisor.supervisor import Supervisor, Update
from planner.numbers import AMOUNT
from planner.present.monitor.card_details import card_details
from planner.present.monitor.readings import setup_check_text
from planner.present.trackers.tracking import LiveTracking

_DESCRIPTION: Final = """\
Show live readings of the GPUs (NVIDIA, AMD, Intel, Apple) of this machine, or of another one over SSH: utilization,
memory, power, temperature, clocks, processes and faults. In a terminal, the arrow keys, Page Up and Page Down scroll; q
or Ctrl+C stops."""
_EXAMPLES: Final = """\
examples:
  gpu-planner monitor
  gpu-planner monitor --interval 0.5
  gpu-planner monitor --once --json
  gpu-planner monitor --once --details
  gpu-planner monitor --json > gpus.jsonl
  gpu-planner monitor --doctor
  gpu-planner monitor --record run.gpurec
  gpu-planner monitor --replay run.gpurec --speed 10 --from 1:30
  gpu-planner monitor --summary nvidia-smi.csv --tariff 0.32
  gpu-planner monitor ssh://me@gpu-box --record run.gpurec
  gpu-planner monitor --serve 9836
  gpu-planner monitor --replay run.gpurec --export run.csv
  gpu-planner monitor --replay run.gpurec --export runs --as tensorboard
  gpu-planner monitor --record run.gpurec --export runs --as tensorboard --plan plan.json
  gpu-planner monitor --import nvidia-smi.csv --record run.gpurec"""

# Signals that end an unattended run: `kill`, and closing the terminal.
_END_SIGNALS: Final = ("SIGTERM", "SIGHUP")
# Interval at which waiting is interrupted, so that Ctrl+C is handled.
_WAIT_SECONDS: Final = 0.5
_DIAGNOSIS_SECONDS: Final = 1.0
# Longer than the diagnosis needs: of frequent readings, a history keeps only the latest eighth unthinned.
_HISTORY_SECONDS: Final = 1_800.0


def run(argv: list[str]) -> int:
    """Run `gpu-planner monitor` and return the exit code."""
    arguments = make_parser().parse_args(argv)
    check_file_options(arguments)
    check_service_options(arguments)
    if arguments.wire:
        from planner.monitor.sampler.__main__ import run_for_other_machine  # only the sampler loads the driver

        run_for_other_machine()
    if arguments.export_kind is not None:
        return print_export(arguments.export_kind)
    if arguments.doctor:
        return _print_setup_check(as_json=arguments.json)
    details = _card_detail_reader() if arguments.details else None
    if arguments.once:
        return _print_snapshot(arguments.machine, details, as_json=arguments.json)
    code = run_file_action(arguments)
    return _show_updates(arguments, details) if code is None else code


def _requested_history_updates(
    arguments: argparse.Namespace, diagnosis: "_PacedDiagnosis"
) -> Generator[tuple[History, Update], None, None]:
    if arguments.replay is None:
        settings = SamplerSettings(fast_seconds=arguments.interval or 1.0)
        return _live_history_updates(settings, arguments, diagnosis)
    is_paced = not arguments.json
    return _history_updates(
        replayed_updates(
            open_recording(arguments.replay, arguments.columns),
            arguments.start or 0.0,
            arguments.speed or 1.0,
            is_paced=is_paced,
        )
    )


def make_parser() -> Parser:
    """Return the parser of the command's options."""
    parser = Parser("gpu-planner monitor", _DESCRIPTION, _EXAMPLES)
    parser.add_argument_group("machine [this one]").add_argument(
        "machine",
        metavar="ssh://HOST",
        nargs="?",
        type=RemoteAddress.parse,
        help="another machine, ssh://[USER@]HOST[:PORT][/PATH/OF/gpu-planner], read by the gpu-planner there",
    )
    group = parser.add_argument_group("live readings")
    group.add_argument(
        "--interval",
        metavar="SECONDS",
        type=number_type(AMOUNT, FASTEST_SECONDS, SLOWEST_SECONDS),
        help="seconds between readings, 0.1 to 10 [1]",
    )
    group.add_argument("--once", action="store_true", help="show the readings of one second and exit")
    group.add_argument("--details", action="store_true", help="show each GPU's links, errors and missing readings too")
    group.add_argument("--doctor", action="store_true", help="check what can be monitored, and how to fix the rest")
    add_file_options(parser)
    add_service_options(parser)
    parser.add_general_options()
    return parser


def _card_detail_reader() -> CardDetailReader:
    return partial(card_details, hardware=user_catalog().hardware)


def _print_snapshot(machine: RemoteAddress | None, details: CardDetailReader | None, *, as_json: bool) -> int:
    history = History(_HISTORY_SECONDS)
    latest = take_snapshot(listener=history.note, address=machine)
    # A history of one second allows only the verdicts that need no longer time.
    verdicts = diagnose_all(history)
    if as_json:
        print(to_json(_readings_with_diagnoses_json(latest, verdicts), indent=2).decode())
    _raise_fault(readings_blocking_fault(latest))
    if not as_json:
        print("\n".join(line.text for line in page_lines(history, verdicts, details)))
    return 0


def _readings_with_diagnoses_json(latest: Latest, verdicts: Mapping[str, Verdict]) -> dict[str, Any]:
    report = state_report(latest)
    for device in report["devices"]:
        device["diagnosis"] = verdict_object(verdicts[device["uuid"]])
    return report


def _raise_fault(fault: Fault | None) -> None:
    if fault is not None:
        raise unavailable_error(fault)


def _show_updates(arguments: argparse.Namespace, details: CardDetailReader | None) -> int:
    """Show every sample of readings until the last sample, or until Ctrl+C, which ends the command without an error."""
    diagnosis = _PacedDiagnosis()
    history_updates = _requested_history_updates(arguments, diagnosis)
    # Commands run without garbage collection, which a run of several days needs. It is cheap, and so happens often, if
    # it need not scan the objects so far, which are permanent.
    gc.freeze()
    gc.enable()
    try:
        with _exit_on_signals(), closing(history_updates):
            if arguments.json:
                _print_json_lines(history_updates, diagnosis)
            elif Services.is_silent(arguments):
                for _history in history_updates:
                    pass
            else:
                _redraw_pages(history_updates, diagnosis, details)
    except KeyboardInterrupt:
        return 0
    return 0


@contextmanager
def _exit_on_signals() -> Iterator[None]:
    """Turn terminating signals into an ordinary exit, so that recordings are completed and the cursor is restored."""

    def exit_with_signal_code(number: int, _frame: object) -> None:
        # The exit code by which shells report a signal.
        raise SystemExit(128 + number)

    numbers = [getattr(signal, name) for name in _END_SIGNALS if hasattr(signal, name)]
    before = {number: signal.signal(number, exit_with_signal_code) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _PacedDiagnosis:
    """Diagnosis once a second and at each change of the cards: at ten readings a second, more would lag behind them."""

    def __init__(self) -> None:
        self._tracker = VerdictTracker()
        self._verdicts: Mapping[str, Verdict] = {}
        self._inventory: Inventory | None = None
        self._due = float("-inf")

    def verdicts(self, history: History) -> Mapping[str, Verdict]:
        """Return the current verdicts on all cards, by UUID."""
        now = history.end or 0.0
        if now >= self._due or history.inventory is not self._inventory:
            self._verdicts, self._inventory = self._tracker.note(history), history.inventory
            self._due = now + _DIAGNOSIS_SECONDS
            # CPython keeps thousands of freed tuples of each short length, which only a full collection gives back.
            gc.collect()
        return self._verdicts


def _print_json_lines(history_updates: Iterable[tuple[History, Update]], diagnosis: _PacedDiagnosis) -> None:
    """Print a line for each sample, and between samples for each change of the faults or of a card's state."""
    reported = Inventory()
    for history, update in history_updates:
        if isinstance(update, Sample) or (history.end is not None and _has_other_faults(history.inventory, reported)):
            reported = history.inventory
            report = _readings_with_diagnoses_json(history.latest, diagnosis.verdicts(history))
            print(json_line(report), flush=True)


def json_line(report: Mapping[str, Any]) -> str:
    """Return `report` as JSON in one line.

    Not by pydantic, which turns what a signal raises in it into an error of its own: `kill` would look like a bug.
    """
    return json.dumps(report, ensure_ascii=False, separators=(",", ":"))


def _has_other_faults(inventory: Inventory, before: Inventory) -> bool:
    states, earlier = ({device.uuid: device.state for device in one.devices} for one in (inventory, before))
    return (states, inventory.faults) != (earlier, before.faults)


def _redraw_pages(
    history_updates: Iterable[tuple[History, Update]], diagnosis: _PacedDiagnosis, details: CardDetailReader | None
) -> None:
    with Screen(sys.stdout) as screen, Keyboard(screen.scroll):
        for history, update in history_updates:
            # Without samples, only faults are shown.
            if isinstance(update, Sample) or history.inventory.faults:
                screen.show(page_lines(history, diagnosis.verdicts(history), details))


def _history_updates(updates: Iterable[Update]) -> Generator[tuple[History, Update], None, None]:
    """Yield the history after each update, and the update."""
    history = History(_HISTORY_SECONDS)
    for update in updates:
        history.note(update)
        yield history, update


def _live_history_updates(
    settings: SamplerSettings, arguments: argparse.Namespace, diagnosis: _PacedDiagnosis
) -> Generator[tuple[History, Update], None, None]:
    """Yield the history after each live update, and the update; record, track, serve and alert.

    Raises:
        MonitorUnavailableError: If there is no card at the start; later faults may be temporary.
        RecordingError: If the file or the tracker's run cannot be written.
    """
    has_begun = Services.goes_on_without_cards(arguments)
    plan = recorded_plan_fields(arguments.plan)
    with ExitStack() as stack:
        recorder = None if arguments.record is None else Recorder(arguments.record)
        if recorder is not None:
            # An empty file would block the next attempt. The stack closes the recorder before it removes the file.
            stack.callback(lambda: None if has_begun else recorder.path.unlink(missing_ok=True))
            stack.enter_context(recorder)
        tracking = None if arguments.tracker is None else _live_tracking(arguments)
        if tracking is not None:
            stack.callback(_close_tracking, tracking, as_json=arguments.json)
        if plan is not None:
            _note_plan(plan, recorder, tracking)
        services = stack.enter_context(Services(arguments))
        listeners = [each.note for each in (recorder, tracking, services.exposition) if each is not None]
        for history, update in _history_updates(_live_updates(settings, arguments.machine, listeners)):
            has_begun = has_begun or isinstance(update, Sample)
            fault = None if has_begun else current_blocking_fault(history.latest)
            _raise_fault(fault if fault is not None and fault.description.severity == "error" else None)
            if recorder is not None and recorder.failure is not None:
                raise RecordingError(
                    recorder.path, recorder.failure, "The part that was written before can be replayed."
                )
            if tracking is not None and tracking.failure is not None:
                raise RecordingError(tracking.folder, tracking.failure, "The recording holds all readings until now.")
            services.note(history, update, diagnosis.verdicts)
            yield history, update


def _live_tracking(arguments: argparse.Namespace) -> LiveTracking:
    return LiveTracking(arguments.export, arguments.tracker, arguments.record.stem, user_catalog())


def _close_tracking(tracking: LiveTracking, *, as_json: bool) -> None:
    """End the tracker's run, and say on stderr where it is; with JSON, standard output is for samples."""
    tracking.close()
    if tracking.result is not None and not as_json:
        print(tracked_run_text(tracking.result), file=sys.stderr)


def _note_plan(plan: Mapping[str, Any], recorder: Recorder | None, tracking: LiveTracking | None) -> None:
    if recorder is not None:
        recorder.note_plan(plan)
    if tracking is not None:
        tracking.note(RecordedPlan(plan))


def _live_updates(
    settings: SamplerSettings, machine: RemoteAddress | None, listeners: Iterable[Callable[[Update], None]]
) -> Iterator[Update]:
    updates: Queue[Update] = Queue()

    def enqueue(update: Update) -> None:
        for note in listeners:
            note(update)
        updates.put(update)

    with Supervisor(enqueue, settings, address=machine):
        while True:
            try:
                yield updates.get(timeout=_WAIT_SECONDS)
            except Empty:
                continue


def _print_setup_check(*, as_json: bool) -> int:
    latest = take_snapshot()
    checks = check_setup(latest, detect_environment(), find_cards(), binding_version())
    if as_json:
        print(to_json([check._asdict() for check in checks], indent=2).decode())
    else:
        print(setup_check_text(checks))
    is_working = any(device.state == "running" for device in latest.inventory.devices)
    return 0 if is_working else ENVIRONMENT
