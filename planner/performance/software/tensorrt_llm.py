"""Inference speed of TensorRT-LLM."""

from typing import Final

from planner.performance.attainable import MeasuredShare
from planner.performance.inference.work import PassWork
from planner.performance.software.engine import Engine
from planner.performance.software.sglang import EAGER_DELTA_SECONDS, EAGER_EXPERTS_SECONDS
from planner.performance.software.vllm import EAGER_LAYER_SECONDS


class _TensorRtLlm(Engine):
    def cache_cards(self, work: PassWork, cards: int) -> int:
        """Return `cards`: the GPUs in a tensor-parallel group cache different sequences, without copies.

        **Source**: TensorRT-LLM `enable_attention_dp`.
        """
        return cards

    def schedulers(self, work: PassWork, cards: int) -> int:
        """Return `cards` for networks with routed experts, each of whose GPUs schedules the sequences that it caches.

        **Source**: NVIDIA/TensorRT-LLM perf-overview: `enable_attention_dp` for Qwen3 MoE, Llama 4 Maverick and
        gpt-oss.
        """
        return cards if work.expert_layers else 1


ENGINE: Final = _TensorRtLlm(
    name="tensorrt-llm",
    layer_seconds=32e-6,
    source=(
        "ai-dynamo/aiconfigurator@095f58a silicon_sample.csv (InferenceX), 4 to 16 requests: 27 to 37 µs "
        "a layer beside reading and sums, Llama 3.1 70B on 2 to 8 B200; 54 to 62 µs, Qwen3-235B-A22B on 4 and 8 H100"
    ),
    expert_layer_seconds=26e-6,
    float4_experts={"GDDR": MeasuredShare(0.66, "ai-dynamo/aiconfigurator@095f58a, NVFP4 experts on RTX PRO 6000")},
    sequence_seconds=25e-6,
    schedules_ahead=True,
    eager_layer_seconds=EAGER_LAYER_SECONDS,
    eager_expert_layer_seconds=EAGER_EXPERTS_SECONDS,
    eager_delta_layer_seconds=EAGER_DELTA_SECONDS,
    graph_rows=0,
    chunk_tokens=8_192,
    chunk_setting="max_num_tokens",
    compute_share=1.0,
    pointwise_share=0.6,
    multiplies_as_stored=True,
    batches_continuously=True,
    overlaps_stages=True,
    kernel_tables="tensorrt-llm",
    sources=3,
    measured_decoding=("Blackwell data center", "Hopper SXM"),
    measured_prompts=("Blackwell data center", "Hopper SXM"),
)
"""Python launches prompts as SGLang does without CUDA graphs: the compiler is off (`torch_compile_config`)."""
