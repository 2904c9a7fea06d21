"""Actual peak memory of a run on the CPU, measured by PyTorch's profiler.

    python benchmarks/real_peaks.py CASE [--operators] [--threads N]

Prints the most bytes that were allocated at once while the modules were built and the steps were run. `--operators`
lists the operators whose kernels hold memory that no dispatcher sees: how many bytes beside inputs and outputs, and
how many the formulas of the tracer expect.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from planner.trace.request import TraceRequest

MIB = 2**20


class RealPeak(NamedTuple):
    """Measurements of a real run: peak bytes, and seconds for building the module and for the steps."""

    peak_bytes: int
    seconds: float


class Hidden(NamedTuple):
    """Workspace bytes of one operator call, in addition to its inputs and outputs, measured and expected."""

    operator: str
    bytes: int
    expected: int


def real_peak(request: TraceRequest, threads: int = 1, seconds: float = 600) -> RealPeak:
    """Run `request` for real in a fresh process on `threads` threads, and return its peak memory and time.

    Raises:
        RuntimeError: If the run fails.
    """
    return RealPeak(**_in_child(request, threads, seconds, "peak"))


def hidden_operators(request: TraceRequest, threads: int = 1, seconds: float = 600) -> list[Hidden]:
    """Run `request` for real in a fresh process, and return the workspace bytes of each operator call.

    Raises:
        RuntimeError: If the run fails.
    """
    return [Hidden(**call) for call in _in_child(request, threads, seconds, "operators")]


def _in_child(request: TraceRequest, threads: int, seconds: float, measurement: str) -> Any:
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run(
        [sys.executable, __file__, "--child", measurement],
        input=request.model_dump_json(),
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{request.target.title}: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def run_for_real(request: TraceRequest) -> None:
    """Build and run `request` as the tracer does, with real tensors."""
    import torch

    from planner.trace.worker.build import build_run
    from planner.trace.worker.observer import RunObserver
    from planner.trace.worker.running import run

    torch.manual_seed(0)
    watcher = RunObserver()
    run(build_run(request, watcher), request, watcher)


def profiler_events(work: Callable[[], None]) -> list[Any]:
    """Return the profiler's events of `work`, which include all allocations and frees of the CPU allocator."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as profiler:
        work()
    return list(profiler.profiler.kineto_results.events())


def memory_changes(events: Iterable[Any]) -> list[tuple[int, int]]:
    """Return time and bytes of each allocation (positive) and free (negative), in order of time."""
    found = [(event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]"]
    return sorted(found, key=lambda change: change[0])


def measure_peak(request: TraceRequest) -> dict[str, Any]:
    """Run `request` for real in this process, and return its peak memory and time."""
    started = time.perf_counter()
    events = profiler_events(lambda: run_for_real(request))
    seconds = time.perf_counter() - started
    return {"peak_bytes": max(accumulate(size for _, size in memory_changes(events))), "seconds": seconds}


def _measure_operators(request: TraceRequest) -> list[dict[str, Any]]:
    import torch
    from torch.profiler import record_function
    from torch.utils._python_dispatch import TorchDispatchMode

    from planner.trace.worker.cpu.kernels import hidden_bytes

    calls: list[tuple[str, int]] = []

    class Marks(TorchDispatchMode):
        """Dispatch mode that marks the span of each operator, and records the workspace that the tracer expects."""

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            number = len(calls)
            calls.append((f"{func}({', '.join(_shown_argument(value) for value in args)})", 0))
            with record_function(f"call {number}"):
                result = func(*args, **(kwargs or {}))
            calls[number] = (calls[number][0], hidden_bytes(func, args, kwargs or {}, result))
            return result

    def marked() -> None:
        with Marks():
            run_for_real(request)

    def _shown_argument(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            return f"{'x'.join(map(str, value.shape))}:{str(value.dtype)[6:]}"
        return "…" if isinstance(value, list | tuple) and len(value) > 4 else str(value)

    events = profiler_events(marked)
    changes = memory_changes(events)
    times = [moment for moment, _ in changes]
    spans = {e.name(): (e.start_ns(), e.end_ns()) for e in events if e.name().startswith("call ")}
    found = []
    for number, (operator, expected) in enumerate(calls):
        start, end = spans[f"call {number}"]
        inside = changes[bisect_left(times, start) : bisect_right(times, end)]
        levels = list(accumulate((size for _, size in inside), initial=0))
        found.append({"operator": operator, "bytes": max(levels) - max(levels[-1], 0), "expected": expected})
    return found


def main() -> None:
    """Print the peak of a case, or its operators with workspace."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="?", help="a name from nets/catalogue.py")
    parser.add_argument("--operators", action="store_true", help="list operators that hold memory within")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--child", choices=("peak", "operators"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        request = TraceRequest.model_validate_json(sys.stdin.read())
        measure = measure_peak if arguments.child == "peak" else _measure_operators
        print(f"\n{json.dumps(measure(request))}")
        return
    from nets.catalogue import CASES

    (request,) = (case.request for case in CASES if case.name == arguments.case)
    if not arguments.operators:
        peak = real_peak(request, arguments.threads)
        print(f"{peak.peak_bytes / MIB:.2f} MiB in {peak.seconds:.1f} s")
        return
    _print_operators(hidden_operators(request, arguments.threads))


def _print_operators(calls: list[Hidden], least: int = 4096) -> None:
    alike: dict[Hidden, int] = {}
    for call in calls:
        if max(call.bytes, call.expected) >= least:
            alike[call] = alike.get(call, 0) + 1
    print(f"{'held':>12} {'expected':>12} {'times':>6}  operator")
    for call, times in sorted(alike.items(), key=lambda item: -item[0].bytes):
        print(f"{call.bytes:>12,} {call.expected:>12,} {times:>6}  {call.operator[:200]}")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    main()
