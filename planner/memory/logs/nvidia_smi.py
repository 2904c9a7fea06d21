"""Reader of nvidia-smi output: its default table, and the CSV lists of GPUs and processes.

The lists are those of `--query-gpu` and `--query-compute-apps`.

**Assumes** whole MiB to the nearest or below: nvidia-smi's manual does not say how it rounds.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from planner.memory.logs.reading import Counter, LoggedAmount, LogLine, LogText, PrintedAmount, logged_amount
from planner.units import MIB

MARKS: Final = ("MiB / ", "MiB |", "memory.used [MiB]", "used_gpu_memory [MiB]", "used_memory [MiB]")
_CARD: Final = re.compile(r"^\| {1,4}(\d{1,3}) {1,3}(\S[^|]{2,40}?) {2,}(?:On|Off|N/A|TCC|WDDM|MCDM)? {0,4}\|")
_USAGE: Final = re.compile(r"\| {0,12}(\d{1,8})MiB / {1,4}(\d{1,8})MiB \|")
_PROCESS: Final = re.compile(
    r"^\| {1,6}(\d{1,3}) {1,6}(?:\S{1,6} {1,6}\S{1,6} {1,12})?(\d{1,10}) {1,8}(?:C|G|C\+G|M\+C) {1,6}"
    r"(\S.{0,80}?) {1,60}(\d{1,8})MiB \|"
)
_CELL: Final = re.compile(r"(\d{1,9})(?: MiB)?")
_MOST_ROWS: Final = 1_024
_USED_COLUMNS: Final = ("used_gpu_memory [MiB]", "used_memory [MiB]")


def read_nvidia_smi(text: LogText) -> Iterator[LoggedAmount]:
    """Yield used and total memory of each card, and the memory of each process on it."""
    yield from _default_table_amounts(text)
    yield from _csv_amounts(text)


def _default_table_amounts(text: LogText) -> Iterator[LoggedAmount]:
    """Yield memory figures from nvidia-smi's default table: used and total per card, and used per process."""
    processes: list[tuple[str, str, int, LogLine]] = []
    for line in text.lines_with(*MARKS[:2]):
        usage, process = _USAGE.search(line.text), _PROCESS.search(line.text)
        card = _CARD.search(text.before(line)) if usage else None
        if usage and card:
            yield from _card_amounts(card[1], card[2].strip(), int(usage[1]), int(usage[2]), line)
        elif process:
            processes.append((process[1], f"{process[3]}, process {process[2]}", int(process[4]), line))
    yield from _process_amounts(processes)


def _card_amounts(
    device: str, name: str, used_mib: int | None, total_mib: int | None, line: LogLine
) -> Iterator[LoggedAmount]:
    if used_mib is not None:
        yield logged_amount(
            "used on the GPU",
            _mib_amount(used_mib),
            f"all processes on {name}",
            line,
            counter="card",
            sense="moment",
            device=device,
        )
    if total_mib is not None:
        yield logged_amount(
            "nvidia-smi's total", _mib_amount(total_mib), f"of {name}", line, counter="card-total", device=device
        )


def _process_amounts(rows: Iterable[tuple[str, str, int, LogLine]]) -> Iterator[LoggedAmount]:
    """Yield each card's largest process as the measured one, and its remaining processes as other processes."""
    seen: set[str] = set()
    for device, name, used, line in sorted(rows, key=lambda row: -row[2]):
        counter: Counter = "other-processes" if device in seen else "process"
        meaning = "another process" if device in seen else "the largest process on the GPU"
        seen.add(device)
        yield logged_amount(name, _mib_amount(used), meaning, line, counter=counter, sense="moment", device=device)


def _csv_amounts(text: LogText) -> Iterator[LoggedAmount]:
    """Yield memory figures from the CSV lists of cards (`--query-gpu`) and processes (`--query-compute-apps`)."""
    for head in text.lines_with(*MARKS[2:]):
        columns = [cell.strip() for cell in head.text.split(",")]
        rows = [(row, [cell.strip() for cell in row.text.split(",")]) for row in text.after(head, _MOST_ROWS)]
        whole = [(row, dict(zip(columns, cells, strict=True))) for row, cells in rows if len(cells) == len(columns)]
        if "memory.used [MiB]" in columns:
            for number, (line, row) in enumerate(whole):
                used, total = _mib_in_cell(row.get("memory.used [MiB]")), _mib_in_cell(row.get("memory.total [MiB]"))
                device, name = row.get("index") or row.get("uuid") or str(number), row.get("name", "the GPU")
                yield from _card_amounts(device, name, used, total, line)
        else:
            yield from _process_amounts(_csv_process_rows(whole))


def _csv_process_rows(rows: list[tuple[LogLine, dict[str, str]]]) -> Iterator[tuple[str, str, int, LogLine]]:
    """Yield device, name, used MiB and line of each process in the rows of `--query-compute-apps`."""
    for line, row in rows:
        used = next((_mib_in_cell(row[column]) for column in _USED_COLUMNS if column in row), None)
        if used is not None:
            device = row.get("gpu_uuid") or row.get("gpu_bus_id") or row.get("gpu_name") or "0"
            yield device, f"{row.get('process_name', 'process')}, process {row.get('pid', 'unknown')}", used, line


def _mib_in_cell(cell: str | None) -> int | None:
    match = _CELL.fullmatch(cell or "")
    return int(match[1]) if match else None


def _mib_amount(mib: int) -> PrintedAmount:
    return PrintedAmount(mib * MIB, max(mib - 1, 0) * MIB, (mib + 1) * MIB)
