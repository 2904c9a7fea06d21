"""Settings of published runs that their tables leave to the recipes or scripts with which they were run.

MLPerf Training: names and contents of the submitters' `benchmarks/*/implementations/**/config_*.sh` in
mlcommons/training_results_v4.0, v4.1, v5.0 and v5.1. A name states nodes × cards × sequences of a replica, and the
degrees, as in `config_DGXH100_8x8x1xtp4pp1cp2.sh`; `fp4` and `cg` are in the name or in the files that it includes.

Megatron-Bridge: NVIDIA-NeMo/Megatron-Bridge 067f987 src/megatron/bridge/perf_recipes, and before July 2026
scripts/performance/configs, in the version of each container: `cuda_graph_impl` and `cuda_graph_scope`, and
`overlap_moe_expert_parallel_comm` (`moe_a2a_overlap`).
"""

import re
from typing import Final, Literal, NamedTuple

from throughput_rows import Row

from planner.performance.setting import Graphs, TimeSetting

_BLACKWELL: Final = ("B200", "B300", "GB200", "GB300")
_SPLITS_BY_TENSOR: Final = ("HPE", "Krai", "Lenovo")
"""Submitters whose files for LoRA on H200 have tp2 and tp4, where all others have cp2."""
_WITHOUT_FP4: Final = ("University-of-Florida",)
"""Submitters of round 5.1 without a file with fp4 for eight cards, which all others have for Llama 3.1 8B."""
_EXPERTS: Final = ("DeepSeekV3", "GPT OSS 120B", "Kimi_K2", "Qwen3_30B_a3B", "Qwen3_235B_a22B")


_L40S_CARDS: Final = 4
_L40S_NETWORK_BYTES_PER_S: Final = 2 * 50e9 / _L40S_CARDS
"""Cards of a node and bandwidth of each to others in NVIDIA's submissions on L40S: two ports of 400 Gbit/s
(mlcommons/training_results_v4.0 NVIDIA/systems/l40s_n16_*.json)."""


class Recipe(NamedTuple):
    """What the recipe of a run says beside its table: formats, CUDA graphs, and the exchange of tokens."""

    matrix_format: Literal["fp8", "fp4"] | None = None
    attention_format: Literal["fp8"] | None = None
    graphs: Graphs | None = None
    overlaps_experts: bool = False


def mlperf_degrees(row: Row, shards: int) -> tuple[int, int, int]:
    """Return the tensor, pipeline and context degrees of an MLPerf run whose replicas have `shards` cards."""
    blackwell = row.gpu.startswith(_BLACKWELL)
    if "405B" in row.model:
        tensor = 4 if blackwell or row.gpu.startswith("H200") else 8
        return tensor, 8, max(shards // (8 * tensor), 1)
    if row.parameters and row.parameters > 1e11:
        tensor = _divisor(shards, 4 if row.parameters < 2e11 else 8)
        return tensor, shards // tensor, 1
    if "8B" in row.model and (blackwell or row.gpu.startswith("H200")):
        context = _divisor(shards, 4)
        return shards // context, 1, context
    if blackwell or (row.gpu.startswith("H200") and shards == 2 and not _splits_by_tensor(row)):
        return 1, 1, shards
    tensor = _divisor(shards, 4)
    return tensor, 1, shards // tensor


def _divisor(shards: int, most: int) -> int:
    return next(size for size in range(min(shards, most), 0, -1) if shards % size == 0)


def _splits_by_tensor(row: Row) -> bool:
    return _round(row) == 4.0 or _submitter(row) in _SPLITS_BY_TENSOR


def _round(row: Row) -> float:
    found = re.search(r"MLPerf v([\d.]+)", row.notes)
    return float(found[1]) if found else 0.0


def _submitter(row: Row) -> str:
    found = re.search(r"MLPerf v[\d.]+ \w+ ([^;]+);", row.notes)
    return found[1] if found else ""


def machine_of(row: Row) -> TimeSetting:
    """Return the nodes and network of a run if they differ from vendors' reference machines."""
    if row.source == "mlt" and row.gpu.startswith("L40S") and _submitter(row) == "NVIDIA":
        return TimeSetting(cards_per_node=_L40S_CARDS, network_bytes_per_s=_L40S_NETWORK_BYTES_PER_S)
    nodes = re.search(r"node\(s\) of (\d+) GPUs|nodes x (\d+) GPUs", row.notes)
    return TimeSetting(cards_per_node=int(nodes[1] or nodes[2]) if nodes else None)


def recipe_of(row: Row, context: int, accumulation: int) -> Recipe:
    """Return what the recipe of `row` says; `context` is its context degree, `accumulation` its micro-batches."""
    if row.source == "mlt":
        return _mlperf_recipe(row, context, accumulation)
    return _bridge_recipe(row) if row.source == "mbr" else Recipe()


def _mlperf_recipe(row: Row, context: int, accumulation: int) -> Recipe:
    blackwell, newest = row.gpu.startswith(_BLACKWELL), _round(row) >= 5.1
    if "LoRA" in row.model:
        fp4 = newest and blackwell and (_submitter(row) == "Nebius" or accumulation == context == 2)
        graphed = fp4 or (context > 1 and _round(row) >= 4.1 and not row.gpu.startswith("H200"))
        attention: Literal["fp8"] | None = "fp8" if context == 1 and not row.gpu.startswith("L40S") else None
        return Recipe("fp4" if fp4 else "fp8", attention, "all" if graphed else None)
    large = "405B" in row.model
    fp4 = newest and blackwell and (_has_large_fp4(row) if large else _has_small_fp4(row))
    return Recipe("fp4" if fp4 else "fp8", None, "all" if blackwell else None)


def _has_large_fp4(row: Row) -> bool:
    return _submitter(row) == "NVIDIA" and row.gpu.startswith("GB")


def _has_small_fp4(row: Row) -> bool:
    return _submitter(row) == "Nebius" or (row.cards == 8 and _submitter(row) not in _WITHOUT_FP4)


def _bridge_recipe(row: Row) -> Recipe:
    found = re.match(r"(\d\d\.\d\d)(\.\d\d)? NeMo", row.notes)
    if found is None or row.model not in _EXPERTS:
        return Recipe()
    version, again, racks = float(found[1]), bool(found[2]), row.gpu.startswith("GB")
    if row.model == "Kimi_K2":
        return Recipe()
    if racks and version >= 26.06:
        return Recipe(graphs="all", overlaps_experts=True)
    if row.model == "GPT OSS 120B":
        partly = row.gpu.startswith("GB300") and version >= 25.11
        return Recipe(graphs="dense" if partly else None, overlaps_experts=racks and not partly and version >= 26.04)
    if row.model == "DeepSeekV3" and not racks:
        newer = version >= 26.04 and again
        return Recipe(graphs="dense" if newer else None, overlaps_experts=newer)
    partly = version >= 25.11 if racks else row.model == "Qwen3_30B_a3B" and (version > 26.02 or again)
    return Recipe(graphs="dense" if partly else None)
