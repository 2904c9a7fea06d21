"""Memory that vLLM took at its start in addition to the KV cache, from logs that state the rest.

vLLM gives the cache all that is left of its share of the card, so that a log with share and cache has the sum of
everything else: weights, the profiled peak, and what is not PyTorch's.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from planner.memory.estimate import fullest_timeline
from planner.memory.software.vllm.setup import CardClass
from planner.plan.catalog import Catalog
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference

_LEFT = re.compile(r"available KV ([\d.]+) GiB at utilisation ([\d.]+)")
_TOTAL = re.compile(r"\(([\d.]+) GiB\)")
_FORMATS = {"bf16": "bf16", "mxfp4": "mxfp4"}
_LENGTH = 16_000
"""The context of the source's runs; what is profiled does not depend on it from 8,192 tokens on."""
GIB = 2**30


class VllmTotal(NamedTuple):
    """One start of vLLM: measured and estimated memory without the KV cache."""

    id: str
    model: str
    measured_gib: float
    predicted_gib: float


def vllm_totals(records: Iterable[dict[str, str]], catalog: Catalog) -> Iterator[VllmTotal]:
    """Yield the starts on one H100 whose logs say what is left; a vision tower's profile is not estimated."""
    seen = set()
    for record in records:
        left, total = _LEFT.search(record["notes"]), _TOTAL.search(record["gpu"])
        if not left or not total or record["n_gpus"] != "1" or record["model"] in seen:
            continue
        seen.add(record["model"])
        architecture = catalog.models.model(record["model"])
        if architecture.kind == "vision-language":
            continue
        workload = Inference(
            profile="vllm",
            weights=_FORMATS[record["precision"]],
            context_length=_LENGTH,
            engine={"version": "0.11", "memory_utilization": float(left[2])},
        )
        pool = fullest_timeline(architecture, with_defaults(workload, architecture, 1), CardClass.LARGE).pool
        taken = float(left[2]) * float(total[1]) - float(left[1])
        if pool is not None:
            yield VllmTotal(record["id"], record["model"], taken, pool.other_bytes / GIB)


def print_vllm_totals(found: Iterable[VllmTotal]) -> None:
    """Print each start."""
    print("vLLM 0.11, everything beside the cache (share of the card less what its log has left for the cache):")
    for item in found:
        error = item.predicted_gib / item.measured_gib - 1
        print(f"  {item.id:12} {item.model:28} {item.measured_gib:8.2f} GiB {item.predicted_gib:8.2f} {error:+8.2%}")
    print()
