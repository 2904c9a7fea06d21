"""Inference speed of SGLang, which launches the same kernels as vLLM in CUDA graphs."""

from dataclasses import replace
from math import inf
from typing import Final

from planner.performance.software import vllm

EAGER_EXPERTS_SECONDS: Final = 1.15e-3
EAGER_DELTA_SECONDS: Final = 0.9e-3
"""Time in which Python launches the kernels of routed experts, and of a delta net's convolution, gates and scan.

**Source**: networks without CUDA graphs. Experts sgl-project/sglang#12160, DeepSeek-V3: 82.6 ms for a prompt of one
token, of which 61 layers at 0.26 ms are 15.9, and 58 have experts; delta nets #13081, Qwen3-Next on 2 H200: 99 and 102
ms for 1,024 and 2,048 tokens, of which 48 layers with experts are 67.7, and 36 have a delta net.
"""

ENGINE: Final = replace(
    vllm.ENGINE,
    name="sglang",
    chunk_setting="chunked_prefill_size",
    source="QwenLM/Qwen3@7a2f61f (SGLang 0.4.6 on H20), 24 rows, with the clock of that GPU",
    sources=1,
    measured_decoding=("Hopper SXM", "Blackwell data center"),
    measured_prompts=("Hopper SXM",),
    eager_expert_layer_seconds=EAGER_EXPERTS_SECONDS,
    eager_delta_layer_seconds=EAGER_DELTA_SECONDS,
    fuses_delta_nets=False,
    graph_rows=inf,
)
"""The time of a layer that vLLM shares was measured with SGLang. Since 0.5.10 prompts run in CUDA graphs, up to a whole
chunk; with latent attention up to 2,048 tokens, above which the GPU takes longer than the host (srt/server_args.py,
`piecewise_cuda_graph_max_tokens`)."""
