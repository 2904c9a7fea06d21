"""Published against estimated memory of DPO, PPO and GRPO.

    python benchmarks/alignment_accuracy.py [--left-out]

Prints each published figure of `tests/truth/alignment.csv` that the estimate covers, in three groups: parts that follow
from stated shapes alone, whole runs, and whole runs whose lengths or formats the source does not state, for which the
largest are assumed. Then the median and the worst error of each group and of all, and the median with each source left
out in turn: no constant is fitted to these rows. `--left-out` lists what was found and is not compared, and why.

At last how many whole runs lie in the interval that is stated for them, and in one that is found without their source:
between the smallest and the largest share of the estimate that the other sources measured. `ALIGNED_SPREAD` is the
interval of all sources.
"""

import argparse
import csv
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import NamedTuple

from planner.memory.estimate import estimate_memory, resolve_workload
from planner.memory.inference.kv_cache import deferred_kv_cache_term
from planner.memory.logits import output_width
from planner.memory.result import MemoryResult
from planner.memory.training.alignment_models import rollout_workload
from planner.memory.training.losses import scored_tokens
from planner.memory.weights import weight_bytes
from planner.models.architecture import Architecture
from planner.plan.catalog import Catalog, load_catalog
from planner.workload.training import Training

ROWS = Path(__file__).resolve().parent.parent / "tests" / "truth" / "alignment.csv"
UNITS = {"GiB": 2**30, "GB": 10**9}
FP32 = 4


class Compared(NamedTuple):
    """A published figure and the estimate of the same configuration, in the unit of the source."""

    row: dict[str, str]
    measured: float
    predicted: float
    low: float = 0.0
    high: float = 0.0

    @property
    def error(self) -> float:
        """Return the relative error of the estimate."""
        return self.predicted / self.measured - 1

    @property
    def digits(self) -> str:
        """Return the estimate with as many decimals as the source prints."""
        return f"{self.predicted:.{len(self.row['measured'].partition('.')[2])}f}"


def main() -> int:
    """Compare the rows, and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--left-out", action="store_true", help="list what is not compared, with the reason")
    arguments = parser.parse_args()
    with ROWS.open(newline="") as file:
        table = list(csv.DictReader(file))
    catalog = load_catalog()
    compared = [compare(row, catalog) for row in table if not row["excluded"]]
    for group in dict.fromkeys(one.row["group"] for one in compared):
        chosen = [one for one in compared if one.row["group"] == group]
        print(f"\n{group}: {summary(chosen)}")
        for one in chosen:
            row = one.row
            print(
                f"  {row['objective']:5}{row['model'].rpartition('/')[2]:26}{row['figure']:26}{row['measured']:>7} "
                f"{row['unit']:4}{one.digits:>8} {one.error:+7.1%}  {row['source']}"
            )
    print(f"\nall: {summary(compared)}")
    for source in dict.fromkeys(one.row["source"] for one in compared):
        print(f"  without {source}: {summary([one for one in compared if one.row['source'] != source])}")
    print_intervals([one for one in compared if one.row["group"] != "part"])
    excluded = [row for row in table if row["excluded"]]
    print(f"\n{len(compared)} compared, {len(excluded)} found and not compared")
    for row in excluded if arguments.left_out else ():
        print(f"  {row['objective']:5}{row['model']:32}{row['measured']:>7} {row['unit']:4} {row['source']}")
        print(f"       {row['excluded']}")
    return 0


def print_intervals(runs: list[Compared]) -> None:
    """Print how many whole runs lie in their stated interval, and in that of the other sources."""
    within = sum(one.low <= one.measured <= one.high for one in runs)
    print(f"\nwhole runs: {summary(runs)}")
    print(f"{within} in the stated interval of nine in ten")
    sources = sorted({one.row["source"] for one in runs})
    found = 0
    for source in sources:
        shares = [one.measured / one.predicted for one in runs if one.row["source"] != source]
        own = [one.measured / one.predicted for one in runs if one.row["source"] == source]
        found += sum(min(shares) <= share <= max(shares) for share in own)
    every = [one.measured / one.predicted for one in runs]
    print(f"{found} in that of the other sources; of all {min(every):.2f} to {max(every):.2f} of the estimate")


def compare(row: dict[str, str], catalog: Catalog) -> Compared:
    """Return the comparison of one row."""
    gpu = catalog.hardware.gpu(row["gpu"]) if row["gpu"] else None
    usable = catalog.hardware.usable_memory(gpu) if gpu else None
    architecture = catalog.models.model(row["model"])
    workload, count = Training.model_validate(json.loads(row["settings"])), int(row["count"] or 1)
    measured, unit = float(row["measured"]), UNITS[row["unit"]]
    if row["group"] == "part":
        return Compared(row, measured, part_bytes(row["figure"], architecture, workload) / unit)
    memory = estimate_memory(architecture, workload, gpu, usable, count)
    size = figure_bytes(row["figure"], memory) - less_kept_bytes(row, memory)
    ends = (size + end - memory.total_bytes for end in (memory.low_bytes, memory.high_bytes))
    return Compared(row, measured, size / unit, *(end / unit for end in ends))


def less_kept_bytes(row: dict[str, str], memory: MemoryResult) -> int:
    """Return the bytes that a run kept less of what is not quantized, if its source says in how many bytes each."""
    weights = memory.term("weights")
    kept = weights.parts[-1].bytes if weights and row["rest_bytes"] else 0
    return kept * (FP32 - int(row["rest_bytes"] or FP32)) // FP32


def figure_bytes(figure: str, memory: MemoryResult) -> int:
    """Return the bytes of a whole run that a tool reads: of the process, or of PyTorch's allocator."""
    return {"total": memory.total_bytes, "reserved": memory.reserved_bytes, "allocated": memory.allocated_bytes}[figure]


def part_bytes(figure: str, architecture: Architecture, asked: Training) -> int:
    """Return the bytes of a part of a run that follows from its shapes."""
    workload = resolve_workload(architecture, asked, 1).workload
    assert isinstance(workload, Training)
    if figure == "weights":
        return weight_bytes(architecture, "bf16")
    if figure == "kv cache of a sequence":
        rollout = rollout_workload(architecture, workload, 1)
        length = rollout.context_length or 0
        cache = deferred_kv_cache_term(architecture, 1, length, length, rollout.kv_cache)
        assert cache is not None
        return cache.bytes
    sequences = {"fp32 logits of a sequence": 1, "fp32 logits of a pair": 2}.get(figure, workload.micro_batch)
    return scored_tokens(workload, sequences) * output_width(architecture) * FP32


def summary(compared: Iterable[Compared]) -> str:
    """Return the median, worst and signed median error."""
    errors = [one.error for one in compared]
    worst = max(errors, key=abs)
    return f"{len(errors)} rows, median {median(map(abs, errors)):.1%}, worst {worst:+.1%}, bias {median(errors):+.1%}"


if __name__ == "__main__":
    sys.exit(main())
