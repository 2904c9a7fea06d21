"""Traced against real peaks of models that others wrote: of timm, torchvision, transformers, diffusers, MONAI and more.

    pip install --group wild -e . && python benchmarks/trace_wild.py [WORD …] [--peaks FILE] [--table] [--check]

Each run of `wild/` is done for real on one thread of the CPU, and traced. The libraries are imported once, and each run
is a fork of that process. `--peaks` keeps the real peaks in a file, from which the next call takes them. `--check` ends
with 1 if the aim is missed: at most 5 % cannot be traced, 95 % of the others are within 0.5 %, and no other one is
outside the bounds that its trace states.
"""

import argparse
import importlib
import json
import multiprocessing
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from nets.catalogue import Case
from real_peaks import MIB, measure_peak
from tables import add_table_option, write_table
from wild.catalogue import CASES, LIBRARIES

from planner.trace.analysis.live_memory import live_memory, peak_moment
from planner.trace.request import TraceRequest

_WITHIN: Final = 0.005
_LEAST_WITHIN, _MOST_REFUSED = 0.95, 0.05
_SECONDS: Final = 600
_MODULES: Final = (
    "torchvision_import",
    "timm",
    "transformers",
    "diffusers",
    "monai.networks.nets",
    "segmentation_models_pytorch",
    "x_transformers",
    "torch_geometric.nn",
    "planner.trace.worker.job",
)


class Outcome(NamedTuple):
    """What became of a run: its real and its traced peak with bounds, or why there is none."""

    name: str
    real_bytes: int = 0
    traced_bytes: int = 0
    low_bytes: int = 0
    high_bytes: int = 0
    where: str = ""
    not_run: str = ""
    refusal: str = ""

    @property
    def library(self) -> str:
        """Return the library of the model."""
        return self.name.partition(":")[0]

    @property
    def is_compared(self) -> bool:
        """Return whether there are both peaks."""
        return not self.not_run and not self.refusal

    @property
    def error(self) -> float:
        """Return the signed error of the traced peak, as a fraction."""
        return self.traced_bytes / self.real_bytes - 1

    @property
    def is_within(self) -> bool:
        """Return whether the traced peak is as near as is aimed at."""
        return self.is_compared and abs(self.error) <= _WITHIN

    @property
    def is_bounded(self) -> bool:
        """Return whether a traced peak further off states bounds that hold."""
        return self.is_compared and not self.is_within and self.low_bytes <= self.real_bytes <= self.high_bytes

    @property
    def is_outside(self) -> bool:
        """Return whether the traced peak is wrong."""
        return self.is_compared and not self.is_within and not self.is_bounded

    @property
    def text(self) -> str:
        """Return the row that is printed."""
        if not self.is_compared:
            why = f"refused: {self.refusal}" if self.refusal else f"does not run: {self.not_run}"
            return f"{self.name:48} {why}"
        mark = "" if self.is_within else "  inside its bounds" if self.is_bounded else "  OUTSIDE"
        peaks = f"{self.real_bytes / MIB:9.2f} {self.traced_bytes / MIB:9.2f} {self.error:+9.3%}"
        return f"{self.name:48} {peaks}  {self.where}{mark}"


class RealPeaks:
    """The real peaks, in bytes, by request; kept in a file if there is one."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._bytes: dict[str, int] = json.loads(file.read_text()) if file is not None and file.exists() else {}

    def bytes_of(self, request: TraceRequest) -> int:
        """Return the real peak of `request`, measured unless it is known.

        Raises:
            RuntimeError: If it cannot be run.
        """
        key = request.model_dump_json(exclude_defaults=True)
        if key not in self._bytes:
            self._bytes[key] = in_fork(_real_bytes, request)
            if self._file is not None:
                self._file.write_text(json.dumps(self._bytes, indent=1))
        return self._bytes[key]


def in_fork(work: Callable[[TraceRequest], Any], request: TraceRequest) -> Any:
    """Return what `work` returns for `request` in a fork of this process.

    Raises:
        RuntimeError: If it fails, or takes too long.
    """
    context = multiprocessing.get_context("fork")
    results, answers = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(work, request, answers))
    process.start()
    answers.close()
    try:
        result = results.recv() if results.poll(_SECONDS) else RuntimeError(f"it takes more than {_SECONDS} s")
    except EOFError:
        result = RuntimeError("the process ended")
    process.kill()
    process.join()
    if isinstance(result, RuntimeError):
        raise result
    return result


def _answer(work: Callable[[TraceRequest], Any], request: TraceRequest, answers: Any) -> None:
    """Send what `work` returns, or its error."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    try:
        answer = work(request)
    except Exception as error:  # noqa: BLE001  # whatever a library raises is told
        last = traceback.extract_tb(error.__traceback__)[-1]
        answer = RuntimeError(f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})")
    answers.send(answer)


def _real_bytes(request: TraceRequest) -> int:
    return int(measure_peak(request)["peak_bytes"])


def _traced(request: TraceRequest) -> dict[str, Any]:
    """Return the traced peak with its bounds, or the refusal."""
    from planner.trace.worker.job import record_trace
    from planner.trace.worker.refusals import explain_failure

    try:
        recording = record_trace(request, lambda *_: None)
    except Exception as error:  # noqa: BLE001  # explained as in the tracing process
        failure = explain_failure(error, "run", ())
        return {"refusal": failure.reason}
    peak = peak_moment(recording, live_memory(recording.allocations))
    return {
        "traced_bytes": peak.bytes,
        "low_bytes": peak.bytes + sum(one.low_bytes - one.bytes for one in recording.differences),
        "high_bytes": peak.bytes + sum(one.high_bytes - one.bytes for one in recording.differences),
        "where": f"step {peak.step + 1} {peak.phase} {peak.operator}",
    }


def outcome_of(case: Case, peaks: RealPeaks) -> Outcome:
    """Return what becomes of a run."""
    try:
        real = peaks.bytes_of(case.request)
    except RuntimeError as error:
        return Outcome(case.name, not_run=" ".join(str(error).split()))
    try:
        return Outcome(case.name, real, **in_fork(_traced, case.request))
    except RuntimeError as error:
        return Outcome(case.name, real, refusal=" ".join(str(error).split()))


def manual_table(outcomes: list[Outcome]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the manual's table, by library."""
    header = ["library", "models", "refused", "within 0.5 %", "further off, inside the stated bounds", "outside"]
    rows = [_row(name, [one for one in outcomes if one.library == name]) for name in LIBRARIES]
    return header, [*rows, _row("all", outcomes)]


def _row(title: str, outcomes: list[Outcome]) -> list[str]:
    flags = ((bool(one.refusal), one.is_within, one.is_bounded, one.is_outside) for one in outcomes)
    return [title, str(len(outcomes)), *(str(sum(column)) for column in zip(*flags, strict=True))]


def main() -> int:
    """Print the runs, and return 1 if the aim is to be checked and missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="WORD", help="only runs with one of these words in their name")
    parser.add_argument("--peaks", type=Path, metavar="FILE", help="keep the real peaks in this file")
    add_table_option(parser)
    parser.add_argument("--check", action="store_true", help="end with 1 if the aim is missed")
    arguments = parser.parse_args()
    cases = [case for case in CASES if not arguments.words or any(word in case.name for word in arguments.words)]
    _import_libraries()
    peaks, outcomes = RealPeaks(arguments.peaks), list[Outcome]()
    for number, case in enumerate(cases, 1):
        outcomes.append(outcome_of(case, peaks))
        print(f"{number:4}/{len(cases)} {outcomes[-1].text}", flush=True)
    header, rows = manual_table(outcomes)
    print(", ".join(f"{name}: {count}" for name, count in zip(header[1:], rows[-1][1:], strict=True)))
    if arguments.table:
        refused = [one.name for one in outcomes if one.refusal]
        write_table("accuracy", "wild", header, rows, note=f"Refused: {', '.join(refused)}." if refused else "")
    return int(arguments.check and _misses_aim(outcomes))


def _misses_aim(outcomes: list[Outcome]) -> bool:
    compared = [one for one in outcomes if one.is_compared]
    return (
        any(one.is_outside or one.not_run for one in outcomes)
        or sum(one.is_within for one in compared) < _LEAST_WITHIN * len(compared)
        or sum(bool(one.refusal) for one in outcomes) > _MOST_REFUSED * len(outcomes)
    )


def _import_libraries() -> None:
    """Import what the runs need, without starting a thread, so that forks are safe."""
    warnings.simplefilter("ignore")
    sys.path.insert(0, str(Path(__file__).parent / "wild"))
    for name in _MODULES:
        importlib.import_module(name)


if __name__ == "__main__":
    os.environ.update(OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1")
    sys.exit(main())
