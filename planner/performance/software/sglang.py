"""Inference speed of SGLang, which launches the same kernels as vLLM in CUDA graphs."""

from dataclasses import replace
from math import inf
from typing import Final

from planner.performance.software import vllm

EAGER_EXPERTS_SECONDS: Final = 1.65e-3 - vllm.EAGER_LAYER_SECONDS
"""**Source**: the geometric mean of two networks without CUDA graphs: sgl-project/sglang#12160, DeepSeek-V3, 82.6 ms
for a prompt of one token, 61 layers; #13081, Qwen3-Next on 2 H200, 99 and 102 ms for 1,024 and 2,048 tokens, 48 layers.
"""

ENGINE: Final = replace(
    vllm.ENGINE,
    name="sglang",
    source="QwenLM/Qwen3@7a2f61f (SGLang 0.4.6 on H20), 24 rows, with the clock of that card",
    sources=1,
    measured_decoding=("Hopper SXM", "Blackwell data center"),
    measured_prompts=("Hopper SXM",),
    eager_expert_layer_seconds=EAGER_EXPERTS_SECONDS,
    graph_rows=inf,
)
"""The time of a layer that vLLM shares was measured with SGLang. Since 0.5.10 prompts run in CUDA graphs, up to a whole
chunk; with latent attention up to 2,048 tokens, above which the card takes longer than the host (srt/server_args.py,
`piecewise_cuda_graph_max_tokens`)."""
