"""Compare the time of gated delta nets over prompts with measured kernels.

    python benchmarks/delta_net_accuracy.py

Reads tests/truth/kernels/delta-nets.csv.gz, a tenth of the prompts of 64 tokens and more in the tables of
ai-dynamo/aiconfigurator@095f58a (`gdn_perf.parquet`, Apache-2.0), chosen by a hash. Prints the median error, without
and with its sign, for each system and engine.
"""

import csv
import gzip
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Final

from kernel_rows import CARDS

from planner.performance.inference.gpu_speed import gpu_speed
from planner.performance.kernels.delta_net import DeltaNetShape, delta_net_seconds
from planner.performance.software import sglang
from planner.plan.catalog import load_catalog

ROWS: Final = Path(__file__).parent.parent / "tests" / "truth" / "kernels" / "delta-nets.csv.gz"
_WIDTH: Final = 128
"""Width of keys and values in all rows."""


def errors() -> dict[tuple[str, str], list[float]]:
    """Return the relative errors by system and engine with its version; vLLM's kernel is fused."""
    hardware = load_catalog().hardware
    speeds = {name: gpu_speed(hardware.gpu(card), sglang.ENGINE, "bf16") for name, card in CARDS.items()}
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    with gzip.open(ROWS, "rt", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            card = speeds[row["system"]]
            shape = DeltaNetShape(float(row["sequences"]), float(row["tokens"]), float(row["heads"]), _WIDTH)
            fused = row["engine"] == "vllm"
            seconds = delta_net_seconds(shape, card.bytes_per_s, card.attention_ops_per_s, fused=fused)
            measured = float(row["milliseconds"]) / 1e3
            found[row["system"], f"{row['engine']} {row['version']}"].append(seconds / measured - 1)
    return found


def main() -> None:
    """Print a line for each system and engine."""
    for (system, engine), each in sorted(errors().items()):
        size = median(map(abs, each))
        print(f"{system:10} {engine:14} {len(each):4} rows  median error {size:5.1%}  bias {median(each):+6.1%}")


if __name__ == "__main__":
    main()
