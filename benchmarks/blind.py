"""Published figures that were predicted before anything was changed upon them, as the program predicts them now.

    python benchmarks/blind.py [--rows] [--table]

`tests/truth/blind.csv` has the command of each figure, what was measured, what the program said when the rows were
first written down, and what a source leaves unstated or does otherwise. Each command is asked again. Prints, by kind,
how many figures are in the stated interval and how far they are off, then and now: of the rows that are stated in full,
and of all. Nothing is fitted to the rows; a figure that was refused at first counts as outside. `--rows` lists each.
"""

import argparse
import csv
import io
import json
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from tables import add_table_option, write_table

from planner.cli.main import main as ask

ROWS = Path(__file__).resolve().parent.parent / "tests" / "truth" / "blind.csv"
SPEEDS = {
    "tokens/s": "tokens_per_second",
    "tokens/s, full cache": "tokens_per_second",
    "s/token": "output_token_seconds",
    "s to the first token": "first_token_seconds",
}
TERMS = {
    "weights": ("weights",),
    "weights and RAM": ("weights",),
    "weights and adapters": ("weights", "adapters"),
    "KV cache": ("kv_cache",),
    "compute buffer": ("activations", "logits"),
}


class Answer(NamedTuple):
    """A prediction; without an interval it is one of bytes that are counted, and None where it was refused."""

    low: float | None
    expected: float | None
    high: float | None


class Row(NamedTuple):
    """A published figure with the answer when it was first asked for, and the answer now."""

    record: Mapping[str, str]
    first: Answer
    now: Answer

    @property
    def measured(self) -> float:
        """Return the published figure in the row's unit."""
        return float(self.record["measured"])


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", action="store_true", help="list every row")
    add_table_option(parser)
    arguments = parser.parse_args()
    with ROWS.open(encoding="utf-8", newline="") as stream:
        rows = [Row(each, stated(each), asked(each)) for each in csv.DictReader(stream)]
    if arguments.rows:
        for row in rows:
            shown = " ".join(f"{'refused' if each is None else f'{each / row.measured:.3f}':>8}" for each in row.now)
            print(f"{row.record['id']:28} {row.record['figure']:22} {row.measured:12.6g} {shown}  {row.record['note']}")
    header = ["figures", "rows", "sources", "in the interval, first", "now", "median error, first", "now", "bias, now"]
    lines = [line for kind in dict.fromkeys(row.record["kind"] for row in rows) for line in summary(kind, rows)]
    for line in (header, *lines):
        print(" | ".join(line))
    if arguments.table:
        write_table("accuracy", "blind", header, lines)
    return 0


def summary(kind: str, rows: Sequence[Row]) -> list[list[str]]:
    """Return the lines of a kind: of the rows that are stated in full, and of all."""
    found = [row for row in rows if row.record["kind"] == kind]
    full = [row for row in found if row.record["complete"] == "yes"]
    return [line(f"{kind}, stated in full", full), line(f"{kind}, all", found)]


def line(title: str, rows: Sequence[Row]) -> list[str]:
    """Return the line of a table: how many are in their interval, and the median error, at first and now."""
    cells = []
    for answers in ([(row, row.first) for row in rows], [(row, row.now) for row in rows]):
        # What was refused has no interval, and counts as outside of one where a row of its kind has one now.
        with_interval = [(row, one) for row, one in answers if row.now.low is not None]
        inside = sum(
            one.low is not None and one.high is not None and one.low <= row.measured <= one.high
            for row, one in with_interval
        )
        errors = [one.expected / row.measured - 1 for row, one in answers if one.expected is not None]
        cells.append((f"{inside} of {len(with_interval)}", f"{median(map(abs, errors)):.1%}", f"{median(errors):+.1%}"))
    first, now = cells
    sources = str(len({row.record["source"].partition("@")[0] for row in rows}))
    return [title, str(len(rows)), sources, first[0], now[0], first[1], now[1], now[2]]


def stated(record: Mapping[str, str]) -> Answer:
    """Return the answer that was written down when the row was first asked for."""
    return Answer(*(float(record[name]) if record[name] else None for name in ("first_low", "first", "first_high")))


def asked(record: Mapping[str, str]) -> Answer:
    """Return the program's answer to the row's command."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["fit", *shlex.split(record["command"])]
        if record["config"]:
            config = Path(folder, "config.json")
            config.write_text(record["config"], encoding="utf-8")
            words[1] = str(config)
        if record["timing"]:
            plan = Path(folder, "plan.json")
            said([*words, "--save", str(plan)])
            document = json.loads(plan.read_text(encoding="utf-8"))
            document["timing"] |= json.loads(record["timing"])
            plan.write_text(json.dumps(document), encoding="utf-8")
            words = ["fit", str(plan)]
        found = said(words)
        if record["figure"].endswith("full cache"):
            found = said([*words, "--batch", str(int(found["memory"]["cache_pool"]["sequences"]))])
    return figure_of(record["figure"], found)


def said(words: Sequence[str]) -> dict[str, Any]:
    """Return the JSON that the command prints; an answer without figures where it is refused."""
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(io.StringIO()):
        code = ask([*words, "--json"])
    return json.loads(output.getvalue()) if code == 0 else {}


def figure_of(name: str, found: Mapping[str, Any]) -> Answer:
    """Return the figure `name` of a command's answer with its interval."""
    memory, time = found.get("memory") or {}, found.get("time") or {}
    if name in SPEEDS:
        key = SPEEDS[name]
        return Answer(*(time.get(f"{side}{key}") for side in ("low_", "", "high_")))
    if name in ("tokens/s of one request", "prompt tokens/s"):
        key, tokens = ("output_token_seconds", 1) if name.endswith("request") else ("first_token_seconds", None)
        each = [time.get(f"{side}{key}") for side in ("high_", "", "low_")]
        return Answer(*(one and (tokens or time["prompt_tokens"]) / one for one in each))
    if not memory:
        return Answer(None, None, None)
    if name == "process":
        return Answer(memory["low_bytes"], memory["total_bytes"], memory["high_bytes"])
    if name in ("allocated", "reserved"):
        overhead = next(each for each in memory["terms"] if each["name"] == "framework_overhead")
        low, high = (memory[f"{side}_bytes"] - overhead[f"{side}_bytes"] for side in ("low", "high"))
        return Answer(low, memory[f"{name}_bytes"], high)
    if name == "cache pool":
        return Answer(None, memory["cache_pool"]["bytes"], None)
    counted = sum(each["bytes"] for each in memory["terms"] if each["name"] in TERMS[name])
    return Answer(None, counted + (memory["host_bytes"] or 0 if name.endswith("RAM") else 0), None)


if __name__ == "__main__":
    sys.exit(main())
