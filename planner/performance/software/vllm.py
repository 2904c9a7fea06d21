"""Inference speed of vLLM."""

from typing import Final

from planner.hardware.gpu import Gpu
from planner.models.layers import Attention
from planner.performance.attainable import MeasuredShare, MemoryClass
from planner.performance.software.engine import Engine

_LAYER_SECONDS: Final = 60e-6
_LAYER_CLOCK_HZ: Final = 1.98e9
"""Clock of the H20, on which the time of a layer was measured: that of the H100, of which it is a cut-down version."""

_LAYER_KERNELS: Final = 5 + 4 + 1
_EXPERT_KERNELS: Final = 5
"""Kernels of a dense layer, element-wise ones, products and attention, and those that routed experts add to it: router,
choice, two that sort the tokens by expert, and the sum of the results.

**Source**: vllm-project/vllm `fused_moe.py` (`fused_topk`, `moe_align_block_size` with `count_and_sort_expert_tokens`,
`moe_sum`), and SGLang. By the count they take 30 µs on H100; with TensorRT-LLM it is 26 µs there (`tensorrt_llm.py`).
"""
_FLOAT4_EXPERTS: Final[dict[MemoryClass, MeasuredShare]] = {
    "GDDR": MeasuredShare(0.70, "ai-dynamo/aiconfigurator@095f58a, NVFP4 experts of vLLM on RTX PRO 6000"),
    "HBM": MeasuredShare(0.75, "ai-dynamo/aiconfigurator@095f58a, NVFP4 experts of vLLM and SGLang on B200 and B300"),
}
"""What the bytes take by which the experts of gpt-oss-120b are more than those of Qwen3-30B-A3B, with 64 tokens."""
EAGER_LAYER_SECONDS: Final = 0.26e-3
EAGER_EXPERTS_SECONDS: Final = 0.72e-3 - EAGER_LAYER_SECONDS
"""Time in which Python launches the kernels of a layer, and how much longer with routed experts.

**Source**: sgl-project/sglang#1401, Llama 3 8B without CUDA graphs: 8.2 ms a step, 32 layers; vllm-project/vllm#45709,
Qwen3-30B-A3B on 4 RTX 4090D and L20: 33.9 to 35.2 ms a step without graphs, 10 to 12 with them, 48 layers.
"""
_GRAPH_ROWS: Final = 512
"""**Source**: vLLM config/vllm.py, `max_cudagraph_capture_size`."""


class _Vllm(Engine):
    def expert_seconds(self, gpu: Gpu, weights: str) -> float:
        """Return the time of the kernels that route tokens; those for 4-bit floats do so themselves.

        **Source**: vLLM and SGLang hand the router's logits to FlashInfer's `trtllm_fp4_block_scale_moe`.
        """
        return 0.0 if self.multiplies_float4(gpu, weights) else super().expert_seconds(gpu, weights)

    def elementwise_launches(self, attention: Attention) -> int:
        """Return 5 kernels of a layer, and 2 more if queries and keys are normalized.

        **Source**: vllm-project/vllm `models/llama.py` and `models/qwen3.py` (`rotary_emb`, `q_norm`, `k_norm`) and
        `reshape_and_cache_flash` of its attention: none of them is part of the attention kernel.
        """
        return 5 + 2 * (attention.qk_norm != "none")


ENGINE: Final = _Vllm(
    name="vllm",
    layer_seconds=_LAYER_SECONDS,
    layer_clock_hz=_LAYER_CLOCK_HZ,
    layer_kernels=_LAYER_KERNELS,
    expert_kernels=_EXPERT_KERNELS,
    float4_experts=_FLOAT4_EXPERTS,
    source="QwenLM/Qwen3@7a2f61f (SGLang 0.4.6), 24 rows; pytorch/ao@36027d8 (vLLM 0.13), 3 rows at 128 sequences",
    sequence_seconds=25e-6,
    schedules_ahead=True,
    eager_layer_seconds=EAGER_LAYER_SECONDS,
    eager_expert_layer_seconds=EAGER_EXPERTS_SECONDS,
    graph_rows=_GRAPH_ROWS,
    fuses_delta_nets=True,
    chunk_tokens=8_192,
    chunk_setting="max_num_batched_tokens",
    multiplies_as_stored=True,
    batches_continuously=True,
    overlaps_stages=True,
    kernel_tables="vllm",
    kernel_formats=("bf16",),
    kernel_memory=("HBM",),
    sources=2,
    measured_decoding=("Hopper SXM", "A100", "Blackwell data center"),
    measured_prompts=("Hopper SXM",),
)
"""Of kernels in 16 bits the sum is taken; the tables of narrower formats hold the host's launches of quantization (4 to
75 µs a product instead of 2.5), so that they do not tell the time on the GPU. On GDDR, a whole run is a fifth
slower than the sum, and met by classes (`benchmarks/serving_accuracy.py`, Llama 3.1 8B on RTX PRO 6000)."""
VERSION_0: Final = Engine(
    name="vllm-v0",
    layer_seconds=_LAYER_SECONDS,
    layer_clock_hz=_LAYER_CLOCK_HZ,
    source=(
        "microsoft/vidur@0633efa data/profiling/a100/cpu_overheads.csv, Llama 2 7B on one GPU, medians of schedule, "
        "inputs, sampler, messages and outputs: 2.1 ms with 8 sequences, 8.0 ms with 64; a layer as in later versions"
    ),
    pass_seconds=1.3e-3,
    sequence_seconds=0.106e-3,
    chunk_tokens=8_192,
    multiplies_as_stored=True,
    batches_continuously=True,
    overlaps_stages=True,
)
"""vLLM with its engine V0, whose memory is not modeled."""
