"""Memory that vLLM took at its start in addition to the KV cache, from logs that state the rest.

vLLM gives the rest of its share of the card to the cache, so that a log with share and cache states the sum of all
other memory: weights, the profiled peak, and what is not PyTorch's.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from planner.memory.estimate import fullest_timeline
from planner.memory.software.vllm.setup import CardClass, CardSetup, ExpertKernels
from planner.plan.catalog import Catalog
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference

_LEFT = re.compile(r"available KV ([\d.]+) GiB at utilisation ([\d.]+)")
_TOTAL = re.compile(r"\(([\d.]+) GiB\)")
_FORMATS = {"bf16": "bf16", "mxfp4": "mxfp4"}
_H100 = CardSetup(CardClass.LARGE, ExpertKernels.TRITON)
_LENGTH = 16_000
"""Context length of the source's runs; from 8,192 tokens on, the profiled peak does not depend on it."""
_SHARES = {"llmd-004": 0.95}
"""Shares of the card other than a row's note has them: what is printed of gpt-oss-120b adds up to 0.95 of it.

**Source**: llm-d/llm-d-benchmark@2593348 config_explorer/empirical-vllm-memory-results.md: 64.38 + 7.38 + 0.13 + 3.33
GiB are 0.95 of 79.18; the other networks on one card add up to the 0.9 that they are said to be of.
"""
GIB = 2**30


class VllmTotal(NamedTuple):
    """One start of vLLM: measured and estimated memory without the KV cache."""

    id: str
    model: str
    measured_gib: float
    predicted_gib: float


def vllm_totals(records: Iterable[dict[str, str]], catalog: Catalog) -> Iterator[VllmTotal]:
    """Yield the starts on one H100 with the remaining memory in the log; vision towers' profiles are not estimated."""
    seen = set()
    for record in records:
        left, total = _LEFT.search(record["notes"]), _TOTAL.search(record["gpu"])
        if not left or not total or record["n_gpus"] != "1" or record["model"] in seen:
            continue
        seen.add(record["model"])
        architecture = catalog.models.model(record["model"])
        if architecture.kind == "vision-language":
            continue
        share = _SHARES.get(record["id"], float(left[2]))
        workload = Inference(
            profile="vllm",
            weights=_FORMATS[record["precision"]],
            context_length=_LENGTH,
            engine={"version": "0.11", "memory_utilization": share},
        )
        pool = fullest_timeline(architecture, with_defaults(workload, architecture, 1), _H100).pool
        taken = share * float(total[1]) - float(left[1])
        if pool is not None:
            yield VllmTotal(record["id"], record["model"], taken, pool.other_bytes / GIB)


def print_vllm_totals(totals: Iterable[VllmTotal]) -> None:
    """Print measured and estimated memory of each start."""
    print("vLLM 0.11, memory other than the cache (share of the card minus the cache size in the log):")
    for item in totals:
        error = item.predicted_gib / item.measured_gib - 1
        print(f"  {item.id:12} {item.model:28} {item.measured_gib:8.2f} GiB {item.predicted_gib:8.2f} {error:+8.2%}")
    print()
