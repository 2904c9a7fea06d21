"""Traced against real peaks of the scripts in `scripts/`, each run unchanged on the CPU until its second step.

    python benchmarks/script_accuracy.py [NAME …] [--check PERCENT]

The real peak is the most bytes that were alive at once by the profiler's events, from the script's first line to the
end of its second optimizer step. `--check` ends with 1 if an error is larger than so many percent and outside the
bounds that the trace states.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from real_peaks import MIB, memory_changes, profiler_events

from planner.errors import PlannerError
from planner.trace.analysis.live_memory import live_memory, peak_moment
from planner.trace.request import Target, TraceRequest
from planner.trace.run import trace

SCRIPTS = Path(__file__).parent / "scripts"


class Case(NamedTuple):
    """A script with arguments.

    The workers of data loaders are left out: how many of their batches wait in memory is different in every run.
    """

    name: str
    script: str
    arguments: tuple[str, ...] = ()


CASES = (
    Case("MNIST", "mnist.py"),
    Case("ImageNet ResNet-18", "imagenet.py", ("--workers", "0", "--batch-size", "16")),
    Case("ImageNet, DataParallel", "imagenet.py", ("--workers", "0", "--batch-size", "16", "--data-parallel")),
    Case("word language model", "word_language_model.py"),
    Case("word language, Transformer", "word_language_model.py", ("--model", "Transformer")),
    Case("VAE", "vae.py"),
    Case("DCGAN", "dcgan.py", ("--workers", "0", "--batchSize", "32")),
    Case("GPT, AMP", "gpt.py", ("--dtype", "bfloat16")),
    Case("GPT, AMP, compiled", "gpt.py", ("--dtype", "bfloat16", "--compile")),
    Case("Trainer", "trainer.py", ("--workers", "0")),
    Case("Lightning", "lightning_autoencoder.py"),
    Case("accelerate, accumulation", "accelerate_accumulation.py"),
    Case("SFT with PEFT", "sft_peft.py"),
)


def request_of(case: Case) -> TraceRequest:
    """Return the request that traces a case as on the CPU."""
    target = Target(kind="script", place=str(SCRIPTS / case.script), command_arguments=case.arguments)
    return TraceRequest(target=target, task="training", device="cpu")


def real_peak_bytes(request: TraceRequest) -> int:
    """Run the script of `request` for real in a fresh process and folder, and return its peak memory in bytes.

    Raises:
        RuntimeError: If the run fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, __file__, "--child", request.model_dump_json()],
            env=os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"{request.target.title}: {done.stderr.strip()[-1500:]}")
    return int(json.loads(done.stdout.strip().splitlines()[-1]))


def _run_child(request: TraceRequest) -> None:
    """Run the script of `request` until its last step, and print its peak."""
    from planner.trace.worker.script.run import run_for_real

    events = profiler_events(lambda: run_for_real(request))
    print(f"\n{max(accumulate(size for _, size in memory_changes(events)))}")


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only scripts with these words in their name")
    parser.add_argument("--check", type=float, metavar="PERCENT", help="end with 1 if an error is larger")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        _run_child(TraceRequest.model_validate_json(arguments.child))
        return 0
    os.environ["OMP_NUM_THREADS"] = "1"
    print(f"{'script':28} {'real MiB':>9} {'traced MiB':>10} {'error %':>8} {'traced s':>8}  traced peak in")
    wrong = [case.name for case in CASES if _is_named(case, arguments.names) and not _compare(case, arguments.check)]
    if wrong:
        print(f"\nNot within the limit: {', '.join(wrong)}")
    return int(bool(wrong))


def _is_named(case: Case, names: list[str]) -> bool:
    return not names or any(name.casefold() in case.name.casefold() for name in names)


def _compare(case: Case, limit_percent: float | None) -> bool:
    """Print the row of a case, and return whether its error is within the limit or its bounds hold."""
    request = request_of(case)
    try:
        real = real_peak_bytes(request)
        started = time.perf_counter()
        recording = trace(request)
        seconds = time.perf_counter() - started
    except (PlannerError, RuntimeError) as error:
        print(f"{case.name:28} {error}", flush=True)
        return False
    peak = peak_moment(recording, live_memory(recording.allocations))
    error_percent = (peak.bytes / real - 1) * 100
    print(
        f"{case.name:28} {real / MIB:9.2f} {peak.bytes / MIB:10.2f} {error_percent:+8.3f} {seconds:8.1f}"
        f"  step {peak.step + 1} {peak.phase} {peak.operator} {peak.line.rpartition('/')[2]}",
        flush=True,
    )
    low = peak.bytes + sum(difference.low_bytes - difference.bytes for difference in recording.differences)
    high = peak.bytes + sum(difference.high_bytes - difference.bytes for difference in recording.differences)
    return limit_percent is None or abs(error_percent) <= limit_percent or low <= real <= high


if __name__ == "__main__":
    sys.exit(main())
