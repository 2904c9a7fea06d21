"""Published measurements of AutoAWQ's fused layers: a peak over loading, prompt and generation.

**Source**: casper-hansen/AutoAWQ at v0.1.6, examples/benchmark.py `run_round`, which resets no counter after loading;
at d54bf0e for Mixtral, over two cards, of which it adds the peaks.
"""

from typing import Final

from memory_rows import Row

from planner.memory.weights import weight_bytes
from planner.models.architecture import Architecture
from planner.workload.workload import Inference

WARM_UP: Final = 2 * 4 * 4096**2
"""The benchmark's first product, of a matrix in fp32 with itself (`warmup`)."""


_WITHOUT_HEAD: Final = ("mosaicml/",)
"""Makers whose remote code has no head that could be stored: MPT multiplies with its embedding."""
_HALF: Final = 2


def loaded_bytes(row: Row, architecture: Architecture) -> int:
    """Return the weights while a checkpoint in AWQ is loaded, whose tied head is stored beside the embedding.

    Until the whole file is loaded and both are tied again, each is a tensor of its own.

    **Source**: casper-hansen/AutoAWQ awq/models/base.py `save_quantized` (`self.model.state_dict()`), `from_quantized`;
    accelerate utils/modeling.py `load_checkpoint_in_model` (`retie_parameters` at its end); a maintainer on the AWQ
    checkpoints of Qwen2.5 in QwenLM/Qwen3#1117 ("stores both the embedding and the lm head").
    """
    stored = architecture.tied_head and not row.model.startswith(_WITHOUT_HEAD)
    head = max(tensor.size for tensor in architecture.main.before) if stored else 0
    return weight_bytes(architecture, "awq4-128") + head * _HALF


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
