"""Traced against real peaks: every network of `nets/` is run for real on the CPU, and traced.

    python benchmarks/trace_accuracy.py [--quick] [--only NAME …] [--json FILE] [--check PERCENT] [--threads N]

Prints both peaks, the error, where the traced peak is, and how long each took. The real peak is the most bytes that
were alive at once by the profiler's events, from building the modules to the end of the second step. `--check` ends
with 1 if an error is larger than so many percent and the trace does not name what it may leave out.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from nets.catalogue import CASES, Case
from real_peaks import MIB, real_peak
from tables import add_table_option, write_table

from planner.errors import PlannerError
from planner.trace.analysis.live_memory import live_memory, peak_moment
from planner.trace.recording import TraceRecording
from planner.trace.run import trace

_WITHIN_PERCENT = 0.5


class Compared(NamedTuple):
    """A run with its real peak, its traced peak and the trace's remarks."""

    name: str
    real_bytes: int
    traced_bytes: int
    low_bytes: int
    high_bytes: int
    real_seconds: float
    traced_seconds: float
    where: str
    named: tuple[str, ...]

    @property
    def error_percent(self) -> float:
        """Return the signed error of the traced peak."""
        return (self.traced_bytes / self.real_bytes - 1) * 100

    @property
    def is_bounded(self) -> bool:
        """Return whether the real peak lies between the bounds that the trace states."""
        return self.low_bytes <= self.real_bytes <= self.high_bytes


def compare(case: Case, threads: int = 1) -> Compared:
    """Run and trace `case`.

    Raises:
        PlannerError: If it cannot be traced.
        RuntimeError: If it cannot be run.
    """
    real = real_peak(case.request, threads)
    started = time.perf_counter()
    recording = trace(case.request)
    seconds = time.perf_counter() - started
    peak = peak_moment(recording, live_memory(recording.allocations))
    low, high = _bounds(recording)
    return Compared(
        name=case.name,
        real_bytes=real.peak_bytes,
        traced_bytes=peak.bytes,
        low_bytes=peak.bytes + low,
        high_bytes=peak.bytes + high,
        real_seconds=real.seconds,
        traced_seconds=seconds,
        where=f"{peak.phase} {peak.operator}",
        named=tuple(difference.name for difference in recording.differences),
    )


def _bounds(recording: TraceRecording) -> tuple[int, int]:
    low = sum(difference.low_bytes - difference.bytes for difference in recording.differences)
    high = sum(difference.high_bytes - difference.bytes for difference in recording.differences)
    return low, high


def main() -> int:
    """Print the table and the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only the runs that are compared at every change")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures too")
    parser.add_argument("--check", type=float, metavar="PERCENT", help="end with 1 if an error is larger")
    add_table_option(parser)
    parser.add_argument("--threads", type=int, default=1, help="of the real run and of the traced kernels")
    arguments = parser.parse_args()
    # Some kernels hold a buffer for each thread; the child that traces counts the threads that it would have.
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    cases = [case for case in CASES if case.name in arguments.only] if arguments.only else list(CASES)
    compared, failed = _compare_all((case for case in cases if case.quick or not arguments.quick), arguments.threads)
    _print_summary(compared, failed)
    if arguments.table:
        write_table("accuracy", "trace", *manual_table(compared))
    if arguments.json:
        figures = [one._asdict() | {"error_percent": one.error_percent} for one in compared]
        arguments.json.write_text(json.dumps(figures, indent=1))
    if arguments.check is None:
        return 0
    return int(bool(failed) or any(abs(one.error_percent) > arguments.check and not one.is_bounded for one in compared))


def manual_table(compared: list[Compared]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the manual's table: the number of networks by size of the error."""
    sizes = sorted(abs(one.error_percent) for one in compared)
    rows = [[f"within {limit:g} %", str(sum(size <= limit for size in sizes))] for limit in (0.001, 0.01, 0.1, 0.25)]
    return ["error of the traced peak", "networks"], [*rows, ["all", str(len(sizes))], ["worst", f"{sizes[-1]:.3f} %"]]


def _compare_all(cases: Iterable[Case], threads: int) -> tuple[list[Compared], list[str]]:
    compared, failed = [], []
    print(
        f"{'run':26} {'real MiB':>10} {'traced MiB':>10} {'error %':>8} {'real s':>7} {'traced s':>8}  traced peak in"
    )
    for case in cases:
        try:
            one = compare(case, threads)
        except (PlannerError, RuntimeError) as error:
            failed.append(case.name)
            print(f"{case.name:26} {error}", flush=True)
            continue
        compared.append(one)
        print(
            f"{one.name:26} {one.real_bytes / MIB:10.2f} {one.traced_bytes / MIB:10.2f} {one.error_percent:+8.3f}"
            f" {one.real_seconds:7.1f} {one.traced_seconds:8.1f}  {one.where}"
            f"{'; named: ' + ', '.join(one.named) if one.named else ''}",
            flush=True,
        )
    return compared, failed


def _print_summary(compared: list[Compared], failed: list[str]) -> None:
    if compared:
        worst = max(compared, key=lambda one: abs(one.error_percent))
        within = sum(abs(one.error_percent) <= _WITHIN_PERCENT for one in compared)
        print(
            f"\n{within} of {len(compared)} within {_WITHIN_PERCENT} %; "
            f"worst {worst.name}: {worst.error_percent:+.3f} %"
        )
        named = [one.name for one in compared if abs(one.error_percent) > _WITHIN_PERCENT and one.is_bounded]
        if named:
            print(f"Further off, and named with bounds that hold: {', '.join(named)}")
    if failed:
        print(f"Not compared: {', '.join(failed)}")


if __name__ == "__main__":
    sys.exit(main())
