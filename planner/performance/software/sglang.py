"""Inference speed of SGLang, which launches the same kernels as vLLM in CUDA graphs."""

from dataclasses import replace
from typing import Final

from planner.performance.software import vllm

ENGINE: Final = replace(
    vllm.ENGINE,
    name="sglang",
    source="QwenLM/Qwen3@7a2f61f (SGLang 0.4.6 on H20), 24 rows, with the clock of that card",
    sources=1,
    measured_decoding=("Hopper SXM",),
    measured_prompts=("Hopper SXM",),
)
"""The time of a layer that vLLM shares was measured with SGLang."""
