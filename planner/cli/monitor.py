"""`gpu-planner monitor`: what the cards do right now, as a table that is redrawn, as JSON, or as a check-up."""

import argparse
import sys
from collections.abc import Generator, Iterable, Mapping
from contextlib import closing
from datetime import datetime
from queue import Empty, Queue
from time import time
from typing import Any, Final

from pydantic_core import to_json

from planner.cli.monitor_screen import Screen
from planner.cli.parser import Parser
from planner.cli.table import Head, table, terminal_width
from planner.errors import MonitorUnavailableError
from planner.monitor.diagnosis.diagnose import diagnose_all
from planner.monitor.diagnosis.look import LONG_SECONDS
from planner.monitor.diagnosis.plain import verdict_object
from planner.monitor.diagnosis.tracker import Tracker
from planner.monitor.diagnosis.verdict import Verdict
from planner.monitor.doctor import binding_version, check_up, what_blocked, what_blocks
from planner.monitor.faults import Fault
from planner.monitor.gathering import look_once
from planner.monitor.history import History
from planner.monitor.latest import Latest
from planner.monitor.pci import find_cards
from planner.monitor.report import report
from planner.monitor.sample import Sample
from planner.monitor.settings import FASTEST_SECONDS, SLOWEST_SECONDS, Settings
from planner.monitor.supervisor import Supervisor, Update
from planner.monitor.surroundings import look_around
from planner.present.check_up import check_lines
from planner.present.columns import Column, Row
from planner.present.diagnosis import verdict_lines
from planner.present.monitor import (
    CARD_COLUMNS,
    PROCESS_COLUMNS,
    card_rows,
    driver_line,
    fault_line,
    host_line,
    process_rows,
)

_DESCRIPTION: Final = """\
Show what the NVIDIA cards of this machine do right now: use, memory, power, temperature, clocks, processes, and
what is wrong. Ctrl+C ends it."""
_EXAMPLES: Final = """\
examples:
  gpu-planner monitor
  gpu-planner monitor --interval 0.5
  gpu-planner monitor --once --json
  gpu-planner monitor --json > cards.jsonl
  gpu-planner monitor --doctor"""

_SIGNS: Final = {"error": "✗", "warning": "!", "note": "·"}
# How often waiting stops to hear Ctrl+C.
_PATIENCE_SECONDS: Final = 0.5


def run(argv: list[str]) -> int:
    """Print what was asked and return the exit code."""
    arguments = _parser().parse_args(argv)
    if arguments.doctor:
        return _doctor(as_json=arguments.json)
    if arguments.once:
        return _once(as_json=arguments.json)
    return _live(Settings(fast_seconds=arguments.interval), as_json=arguments.json)


def _parser() -> Parser:
    parser = Parser("gpu-planner monitor", _DESCRIPTION, _EXAMPLES)
    group = parser.add_argument_group("how")
    group.add_argument("--interval", metavar="SECONDS", type=_interval, default=1.0, help="0.1 to 10, by default 1")
    group.add_argument("--once", action="store_true", help="look once, for a second, and stop")
    group.add_argument("--doctor", action="store_true", help="say what works, what does not, why, and what to do")
    parser.add_general()
    return parser


def _interval(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not FASTEST_SECONDS <= seconds <= SLOWEST_SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0.1 to 10")
    return seconds


def _once(*, as_json: bool) -> int:
    history = History(LONG_SECONDS)
    latest = look_once(listener=history.note)
    # Of a second, only what shows at once can be judged.
    verdicts = diagnose_all(history)
    if as_json:
        print(to_json(_report(latest, verdicts), indent=2).decode())
    _refuse(what_blocked(latest))
    if not as_json:
        print(_page(latest, verdicts))
    return 0


def _report(latest: Latest, verdicts: Mapping[str, Verdict]) -> dict[str, Any]:
    told = report(latest)
    for device in told["devices"]:
        device["diagnosis"] = verdict_object(verdicts[device["uuid"]])
    return told


def _refuse(fault: Fault | None) -> None:
    if fault is not None:
        detail = f" ({fault.detail})" if fault.detail else ""
        hint = f"{fault.about.advice} See also: gpu-planner monitor --doctor"
        raise MonitorUnavailableError(f"{fault.about.title}{detail}", hint, fault.kind.value)


def _live(settings: Settings, *, as_json: bool) -> int:
    """Show every sample until Ctrl+C, which is no failure here."""
    try:
        with closing(_follow(settings)) as standings:
            if as_json:
                _print_lines(standings)
            else:
                _redraw(standings)
    except KeyboardInterrupt:
        return 0
    return 0


def _print_lines(standings: Iterable[tuple[History, bool]]) -> None:
    tracker = Tracker()
    for history, is_sample in standings:
        if is_sample:
            print(to_json(_report(history.latest, tracker.note(history))).decode(), flush=True)


def _redraw(standings: Iterable[tuple[History, bool]]) -> None:
    tracker = Tracker()
    with Screen(sys.stdout) as screen:
        for history, is_sample in standings:
            # While nothing can be read, what is wrong is shown alone.
            if is_sample or history.inventory.faults:
                screen.show(_page(history.latest, tracker.note(history)))


def _follow(settings: Settings) -> Generator[tuple[History, bool], None, None]:
    """Give what was read after each update, and whether that was a sample.

    Raises:
        MonitorUnavailableError: If there is no card to begin with; what goes wrong later may pass.
    """
    updates: Queue[Update] = Queue()
    history, has_begun = History(LONG_SECONDS), False
    with Supervisor(updates.put, settings):
        while True:
            try:
                history.note(update := updates.get(timeout=_PATIENCE_SECONDS))
            except Empty:
                continue
            has_begun = has_begun or isinstance(update, Sample)
            fault = None if has_begun else what_blocks(history.latest)
            _refuse(fault if fault is not None and fault.about.severity == "error" else None)
            yield history, isinstance(update, Sample)


def _page(latest: Latest, verdicts: Mapping[str, Verdict]) -> str:
    """Return everything that is shown at once."""
    when = time() if latest.wall_seconds is None else latest.wall_seconds
    heading = (f"{datetime.fromtimestamp(when).astimezone():%H:%M:%S}", driver_line(latest), host_line(latest))
    parts = [" · ".join(part for part in heading if part)]
    if latest.inventory.devices:
        parts.append(_table(CARD_COLUMNS, card_rows(latest), "name"))
    found = verdict_lines(verdicts, latest.inventory.devices)
    if found:
        parts.append("\n".join(found))
    processes = process_rows(latest)
    if processes:
        parts.append(_table(PROCESS_COLUMNS, processes, "command"))
    faults = latest.inventory.faults
    if faults:
        parts.append("\n".join(f"{_SIGNS[fault.about.severity]} {fault_line(fault, latest)}" for fault in faults))
    return "\n\n".join(parts)


def _table(columns: tuple[Column[Row], ...], rows: tuple[Row, ...], flexible: str) -> str:
    heads = [Head(column.title, column.align, column.key == flexible, column.unit) for column in columns]
    return table(heads, [[column.text(row) for column in columns] for row in rows], terminal_width())


def _doctor(*, as_json: bool) -> int:
    checks = check_up(look_once(), look_around(), find_cards(), binding_version())
    if as_json:
        print(to_json([check._asdict() for check in checks], indent=2).decode())
    else:
        print(check_lines(checks))
    return 0
