"""Published measurements of AutoAWQ's fused layers: a peak over loading, prompt and generation.

**Source**: casper-hansen/AutoAWQ at v0.1.6, examples/benchmark.py `run_round`, which resets no counter after loading;
at d54bf0e for Mixtral, over two cards, of which it adds the peaks.
"""

from typing import Final

from memory_rows import Row

from planner.workload.workload import Inference

WARM_UP: Final = 2 * 4 * 4096**2
"""The benchmark's first product, of a matrix in fp32 with itself (`warmup`)."""


def awq_workload(row: Row) -> Inference:
    """Return one length of AutoAWQ's benchmark; the cache holds as many tokens as are generated."""
    tokens = int(row.length) // 2
    return Inference(
        profile="autoawq",
        weights="awq4-128",
        compute="fp16",
        kv_cache="fp16",
        batch=int(row.batch),
        prompt_length=tokens,
        context_length=tokens,
    )
