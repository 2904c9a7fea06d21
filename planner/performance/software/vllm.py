"""Inference speed of vLLM."""

from typing import Final

from planner.performance.software.engine import Engine

ENGINE: Final = Engine(
    name="vllm",
    layer_seconds=60e-6,
    source="QwenLM/Qwen3@7a2f61f (SGLang 0.4.6), 24 rows; pytorch/ao@36027d8 (vLLM 0.13), 3 rows at 128 sequences",
    sequence_seconds=25e-6,
    schedules_ahead=True,
    chunk=8_192,
    multiplies_stored=True,
    batches_continuously=True,
    overlaps_stages=True,
    sources=2,
    measured_decoding=("Hopper SXM", "A100"),
    measured_prompts=("Hopper SXM",),
)
VERSION_0: Final = Engine(
    name="vllm-v0",
    layer_seconds=136e-6,
    source="Qwen2.5 speed benchmark, vLLM 0.6.3 on A100: slope over layers",
    sequence_seconds=25e-6,
    chunk=8_192,
    multiplies_stored=True,
    batches_continuously=True,
    overlaps_stages=True,
)
"""vLLM with its engine V0, whose memory is not modeled."""
