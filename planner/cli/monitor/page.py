"""The page of `gpu-planner monitor`: heading, cards with bars, totals, verdicts, processes and faults."""

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from time import time
from typing import Final

from planner.cli.monitor.terminal import Line, lines_of, wrap_line
from planner.cli.table import column_table
from planner.monitor.diagnosis.verdict import Verdict
from planner.monitor.energy import energy_used
from planner.monitor.history import History
from planner.monitor.readings.faults import Fault, Severity
from planner.monitor.readings.latest import Latest, SeenXid
from planner.present.monitor.card_details import CardDetail
from planner.present.monitor.diagnosis import Tone, verdict_lines
from planner.present.monitor.events import clock_time
from planner.present.monitor.headline import card_tone, numbered_card_name
from planner.present.monitor.processes import PROCESS_COLUMNS, process_rows
from planner.present.monitor.readings import (
    BARRED_CARD_COLUMNS,
    CARD_COLUMNS,
    CardReadings,
    card_label,
    card_rows,
    driver_line,
    fault_line,
    host_line,
)
from planner.present.monitor.totals import card_totals

# Columns to leave out on a narrow terminal, in this order.
_DISPENSABLE_OF_CARDS: Final = ("fan", "controller", "clock", "memory_bar", "temperature", "use_bar")
_DISPENSABLE_OF_PROCESSES: Final = ("kind", "cpu", "user")
_MOST_XID_LINES: Final = 5
_SIGNS: Final[dict[Severity, tuple[str, Tone]]] = {
    "error": ("✗", "bad"),
    "warning": ("!", "warn"),
    "note": ("·", "muted"),
}


CardDetailReader = Callable[[CardReadings], Sequence[CardDetail]]
"""Returns what a card reports beside its line in the table."""


def page_lines(
    history: History, verdicts: Mapping[str, Verdict], details: CardDetailReader | None = None
) -> list[Line]:
    """Return one page of the display, with `details` of each card if asked for; bars are drawn in a terminal only."""
    latest = history.latest
    wall_seconds = time() if latest.wall_seconds is None else latest.wall_seconds
    heading = (
        f"{datetime.fromtimestamp(wall_seconds).astimezone():%H:%M:%S}",
        latest.inventory.machine,
        driver_line(latest.inventory),
        host_line(latest),
    )
    blocks = [
        lines_of(wrap_line(" · ".join(part for part in heading if part))),
        _card_lines(history),
        [
            Line(part, line.tone)
            for line in verdict_lines(verdicts, latest.inventory.devices)
            for part in wrap_line(line.text).splitlines()
        ],
    ]
    if details is not None:
        blocks += [_detail_lines(row, details(row)) for row in card_rows(latest)]
    if processes := process_rows(latest):
        table = column_table(PROCESS_COLUMNS, processes, dispensable=_DISPENSABLE_OF_PROCESSES, cut="command")
        blocks.append(_table_lines(table, [""] * len(processes)))
    blocks.append([line for xid in latest.xids[-_MOST_XID_LINES:] for line in _xid_lines(xid, latest)])
    blocks.append([line for fault in latest.inventory.faults for line in _fault_lines(fault, latest)])
    first, *others = filter(None, blocks)
    return [*first, *(line for block in others for line in (Line(""), *block))]


def _detail_lines(row: CardReadings, details: Sequence[CardDetail]) -> list[Line]:
    lines = [part for detail in details for part in wrap_line(f"  {detail.title}: {detail.text}").splitlines()]
    return [Line(numbered_card_name(row), "heading"), *map(Line, lines)] if lines else []


def _xid_lines(xid: SeenXid, latest: Latest) -> list[Line]:
    cards = [device for device in latest.inventory.devices if device.uuid == xid.uuid]
    card = f"GPU {card_label(cards[0])}" if cards else "A GPU"
    text = f"✗ {card}: the driver reported Xid {xid.number} at {clock_time(xid.wall_seconds)}"
    return lines_of(wrap_line(text), "bad")


def _fault_lines(fault: Fault, latest: Latest) -> list[Line]:
    sign, tone = _SIGNS[fault.description.severity]
    return lines_of(wrap_line(f"{sign} {fault_line(fault, latest)}"), tone)


def _card_lines(history: History) -> list[Line]:
    """Return the table of cards, with the totals of several cards in the last line."""
    rows = card_rows(history.latest)
    if not rows:
        return []
    columns = BARRED_CARD_COLUMNS if sys.stdout.isatty() else CARD_COLUMNS
    lines = _table_lines(
        column_table(columns, rows, dispensable=_DISPENSABLE_OF_CARDS, cut="name"), list(map(card_tone, rows))
    )
    if len(rows) > 1:
        start, end = history.start or 0.0, history.end or 0.0
        energy = energy_used(history, history.inventory.devices, start, end)
        lines += lines_of(wrap_line(card_totals(rows, energy, end - start).as_text), "heading")
    return lines


def _table_lines(table: str, tones: list[Tone]) -> list[Line]:
    """Return the lines of a table whose rows have these tones; the lines above the rows are headings."""
    texts = table.splitlines()
    heads = len(texts) - len(tones)
    return [*lines_of("\n".join(texts[:heads]), "heading"), *map(Line, texts[heads:], tones)]
