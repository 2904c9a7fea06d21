"""Measured against predicted speeds of llama.cpp with routed experts in RAM (`-ncmoe`, `-cmoe`, `-ot`).

    python benchmarks/experts_in_ram.py [--left-out]

Prints each published speed that states how many layers' experts were in RAM, in three groups: the RAM stated by the
source, the RAM that the named processor takes at most (JEDEC speeds of its maker), and prompts alone, which the bus
bounds and for which the RAM does not matter. Then the median and the worst error of each group, and the same with each
source left out in turn: no constant is fitted to these rows, so that this shows how much one source decides.
`--left-out` lists what was found and is not compared, with the reason.

At last the splits that `llama-fit-params` of llama.cpp 0.5.0 chose for cards of several sizes, beside the fewest layers
with which the estimate leaves its margin of 1,024 MiB, and the bytes that it projects beside the estimate's.
"""

import argparse
import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

from planner.memory.estimate import estimate_memory
from planner.models.architecture import Architecture
from planner.models.load import load_model
from planner.performance.inference.estimate import inference_time
from planner.plan.catalog import Catalog, load_catalog
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference

ROWS = Path(__file__).resolve().parent.parent / "tests" / "truth" / "experts-in-ram.csv"
FIT_ROWS = ROWS.with_name("llama-fit-params.csv")
MIB = 2**20
MARGIN_MIB = 1_024
GROUPS = ("ram stated", "ram by platform", "bus only")


class Compared(NamedTuple):
    """A published speed and the estimate for the same configuration, in tokens per second."""

    row: dict[str, str]
    figure: str
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        """Return the relative error of the estimate."""
        return self.predicted / self.measured - 1


def rows(path: Path = ROWS) -> list[dict[str, str]]:
    """Return the rows of a file of published figures."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def card_mib(row: dict[str, str], architecture: Architecture, experts: int) -> dict[str, float]:
    """Return the estimate of what llama.cpp reserves on the card with the experts of `experts` layers in RAM."""
    ubatch = int(row["n_ubatch"])
    settings = {"slots": 1, "n_cpu_moe": experts, "n_ubatch": ubatch, "n_outputs_max": ubatch}
    workload = Inference(
        profile="llama.cpp", weights=row["weights"], context_length=int(row["context"]), engine=settings
    )
    memory = estimate_memory(architecture, workload)
    return {
        name: (memory.term(name).bytes if memory.term(name) else 0) / MIB
        for name in ("weights", "kv_cache", "activations")
    }


def fewest_in_ram(row: dict[str, str], architecture: Architecture) -> int | None:
    """Return the fewest layers whose experts must be in RAM for `llama-fit-params`'s margin; None if all do not do."""
    target = int(row["free_mib"]) - MARGIN_MIB
    for experts in range(architecture.depth + 1):
        if sum(card_mib(row, architecture, experts).values()) <= target:
            return experts
    return None


def print_splits(catalog: Catalog) -> None:
    """Print the splits of `llama-fit-params` beside those of the estimate, and its bytes."""
    table = rows(FIT_ROWS)
    models = {row["model"]: load_model(row["model"], catalog.models).architecture for row in table}
    within, compared = 0, 0
    print("\nsplit      model                  format     context  free MiB  llama-fit-params  estimate")
    for row in table:
        architecture = models[row["model"]]
        if row["kind"] != "split" or int(row["gpu_layers"]) < architecture.depth + 1:
            continue
        theirs, own = int(row["experts_in_ram"]), fewest_in_ram(row, architecture)
        partly = ", the last in part" if row["partly"] == "1" else ""
        compared += 1
        within += own is not None and abs(own - theirs) <= 1
        print(
            f"           {row['model'].rpartition('/')[2]:22} {row['weights']:10} {row['context']:>7} "
            f"{row['free_mib']:>9} {theirs:>5}{partly:19} {own!s:>6}"
        )
    print(f"{within} of {compared} splits within one layer; whole layers in RAM as well: not compared")
    print(
        "\nmemory     model                  format     context  experts  llama.cpp: weights, cache, buffer  estimate"
    )
    for row in table:
        if row["kind"] == "memory":
            own = card_mib(row, models[row["model"]], int(row["experts_in_ram"]))
            print(
                f"           {row['model'].rpartition('/')[2]:22} {row['weights']:10} {row['context']:>7} "
                f"{row['experts_in_ram']:>8} {row['card_model_mib']:>8} {row['card_context_mib']:>6} "
                f"{row['card_compute_mib']:>6}   {own['weights']:9.1f} {own['kv_cache']:7.1f} {own['activations']:7.1f}"
            )


def compare(row: dict[str, str], catalog: Catalog) -> Iterator[Compared]:
    """Yield the comparison of the speed of generation, and of that of the prompt, as far as `row` has them."""
    architecture = load_model(row["model"].replace("unsloth/", "Qwen/"), catalog.models).architecture
    gpu = catalog.hardware.gpu(row["gpu"])
    stated = Inference(
        profile="llama.cpp",
        weights=row["weights"],
        prompt_length=int(row["prompt"]),
        context_length=min(int(row["context"]), int(row["prompt"]) + 1024),
        engine={
            "n_cpu_moe": int(row["experts_in_ram"]),
            "n_ubatch": int(row["ubatch"]),
            "n_batch": max(2048, int(row["ubatch"])),
            **({"ram": row["ram"]} if row["ram"] else {}),
        },
    )
    time = inference_time(architecture, with_defaults(stated, architecture, 1), ((gpu, 1),))
    if row["decode_tokens_per_s"] and row["group"] != "bus only":
        yield Compared(row, "generation", float(row["decode_tokens_per_s"]), time.tokens_per_second or 0.0)
    if row["prefill_tokens_per_s"]:
        prompt = int(row["prompt"]) / (time.first_token_seconds or 1.0)
        yield Compared(row, "prompt", float(row["prefill_tokens_per_s"]), prompt)


def _summary(found: list[Compared]) -> str:
    errors = [abs(one.error) for one in found]
    return f"median {median(errors):6.1%}  worst {max(errors):6.1%}  bias {median(one.error for one in found):+6.1%}"


def main() -> int:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--left-out", action="store_true", help="list what is not compared, with the reason")
    arguments = parser.parse_args()
    catalog, table = load_catalog(), rows()
    compared = [one for row in table if not row["excluded"] for one in compare(row, catalog)]
    lines = []
    for one in compared:
        row = one.row
        lines.append(
            f"{row['group']:16} {one.figure:10} {row['model'].rpartition('/')[2]:28} {row['gpu']:16} "
            f"{row['experts_in_ram']:>3} {row['ram'] or '-':12} "
            f"{one.measured:8.1f} {one.predicted:8.1f} {one.error:+7.1%}"
        )
    print(
        "group            figure     model                        card             RAM of          measured  predicted"
    )
    print("\n".join(lines))
    print()
    for group in GROUPS:
        for figure in ("generation", "prompt"):
            own = [one for one in compared if one.row["group"] == group and one.figure == figure]
            if own:
                print(f"{group:16} {figure:10} {len(own):3} rows  {_summary(own)}")
    generation = [one for one in compared if one.figure == "generation"]
    print(f"{'all':16} {'generation':10} {len(generation):3} rows  {_summary(generation)}")
    print(
        f"{'all':16} {'prompt':10} {len(compared) - len(generation):3} rows  "
        f"{_summary([one for one in compared if one.figure == 'prompt'])}"
    )
    print(f"{'all':16} {'both':10} {len(compared):3} rows  {_summary(compared)}")
    for source in dict.fromkeys(one.row["source"] for one in compared):
        rest = [one for one in compared if one.row["source"] != source]
        print(f"without {source[:60]:60} {_summary(rest)}")
    excluded = [row for row in table if row["excluded"]]
    print(f"\n{len(table)} rows were found, {len(excluded)} of them are left out (--left-out)")
    if arguments.left_out:
        for row in excluded:
            print(f"- {row['source']}: {row['excluded']}")
    print_splits(catalog)
    return 0


if __name__ == "__main__":
    sys.exit(main())
