"""Time of a gated delta net over new tokens, whose state goes from chunk to chunk."""

from math import ceil
from typing import Final, NamedTuple

_CHUNK: Final = 64
_ELEMENT_BYTES: Final = 2
_LAUNCH_SECONDS: Final = 38e-6
_STEP_SECONDS: Final = 1.3e-6
_FUSED_LAUNCH_SECONDS: Final = 18e-6
_FUSED_STEP_SECONDS: Final = 2.6e-6
_MULTIPROCESSORS: Final = 132
"""Heads that the fused kernel computes at once, on H100; B200 has 148 multiprocessors."""
_MEMORY_SHARE: Final = 0.8
_ATTENTION_SHARE: Final = 0.5
"""Rate of the products of 64 × 64 and 64 × 128 relative to that of attention."""


class DeltaNetShape(NamedTuple):
    """Sizes of a delta net: sequences, new tokens of each, heads on one GPU, and the width of keys and values."""

    sequences: float
    tokens: float
    heads: float
    width: int


def delta_net_seconds(shape: DeltaNetShape, bytes_per_s: float, attention_ops_per_s: float, *, fused: bool) -> float:
    """Return the seconds of a gated delta net over `shape.tokens` new tokens of each sequence.

    Separate kernels decay, multiply keys with keys, invert the triangle, make w and u, carry the state through the
    chunks, and multiply it with the queries, with their results in memory. One fused kernel keeps them on chip: each
    multiprocessor takes a head through all chunks.

    **Formula**: C = ⌈tokens ÷ 64⌉ chunks. Separate: launches + C · step + C · sequences · heads · (bytes ÷ bandwidth +
    operations ÷ rate), of 13 matrices of 64 × width in 16 bits, a square of 64 in 32 bits and its inverse in 16, and a
    state of width² in 16 bits, all three written and read; operations 2 · 64 · width · (5 · 64 + 3 · width). Fused:
    launch + C · step · ⌈sequences · heads ÷ 132⌉.

    **Source**: fla-org/flash-linear-attention ops/gated_delta_rule/chunk.py, as in SGLang, vLLM and TensorRT-LLM; fused
    flashinfer-ai/flashinfer `chunk_gated_delta_rule`. Launches and steps: ai-dynamo/aiconfigurator@095f58a
    `gdn_perf.parquet`, prompts of 64 tokens and more. By benchmarks/delta_net_accuracy.py the median errors are 14 to
    25 % for SGLang 0.5.14 on H100, H200, B200 and B300, 50 % on L40S, whose cache holds what goes through memory
    elsewhere, and 6 to 21 % for the fused kernel of vLLM 0.24.

    **Assumes** that keys are as wide as values.
    """
    chunks = ceil(shape.tokens / _CHUNK)
    if fused:
        return _FUSED_LAUNCH_SECONDS + chunks * _FUSED_STEP_SECONDS * ceil(
            shape.sequences * shape.heads / _MULTIPROCESSORS
        )
    width = shape.width
    moved = _ELEMENT_BYTES * (13 * _CHUNK * width + 2 * (2 + 1) * _CHUNK * _CHUNK + 2 * width * width)
    operations = 2 * _CHUNK * width * (5 * _CHUNK + 3 * width)
    each = moved / (bytes_per_s * _MEMORY_SHARE) + operations / (attention_ops_per_s * _ATTENTION_SHARE)
    return _LAUNCH_SECONDS + chunks * (_STEP_SECONDS + shape.sequences * shape.heads * each)
