"""What the software that serves a model costs beside the arithmetic: classes with their measurements."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

EngineName = Literal["llama.cpp", "vllm", "hf", "tensorrt-llm", "compiled", "bnb-eager", "vllm-v0"]


class Engine(NamedTuple):
    """How an engine runs a pass.

    `layer_seconds` pass for each layer of each pass: the launch of its kernels and the gaps between them. Where they
    are launched one by one from Python (`eager`), that runs ahead of the card, and only the longer of both counts.
    `quantised_layer_seconds` is what it takes with the kernels of formats whose names begin so. `sequence_seconds` pass
    for each sequence of each pass (scheduling, sampling). `chunk` is the most tokens of one pass of a prompt, without a
    limit where it is none. `compute_share` is what its products reach of the card's large ones. `pointwise_share` is
    what fused kernels leave of the passes over memory between products. `unpacks` says that quantised weights are
    written out in 16 bits before a product with many rows. `copies_cache` says that each step makes the cached keys and
    values anew, and repeats them for the queries that share them. `shares_sequences` says that the cards of a
    tensor-parallel group hold the caches of different sequences, not copies where they are more than the heads.
    `overlaps_stages` says that the stages of a pipeline decode different sequences at once; `chunks_in_flight` how many
    chunks of a prompt go through them before all are waited for. `older_host_layer_seconds` is the time of a layer in
    hosts of earlier cards, and `stacked_layer_seconds` beside stacked memory, where hosts have slower processors. With
    formats that begin as `waits_with` says, eager launches do not run ahead of the card.
    """

    layer_seconds: float
    source: str
    eager: bool = False
    quantised_layer_seconds: Mapping[str, float] = MappingProxyType({})
    older_host_layer_seconds: float | None = None
    sequence_seconds: float = 0.0
    chunk: int | None = None
    compute_share: float = 0.8
    pointwise_share: float = 1.0
    waits_with: tuple[str, ...] = ()
    unpacks: bool = False
    copies_cache: bool = False
    overlaps_stages: bool = False
    shares_sequences: bool = False
    chunks_in_flight: int | None = None
    stacked_layer_seconds: float | None = None


_EAGER_QUANTISED: Final = MappingProxyType(
    {"fp8": 1_550e-6, "awq": 550e-6, "gptq": 1_300e-6, "nf4": 1_600e-6, "int8": 1_600e-6, "mxfp4": 1_550e-6}
)
"""Launches with kernels that unpack: Triton's for fp8 (1.45 to 1.8 ms), AWQ's (0.55) and GPTQ's (1.3), bitsandbytes'.

**Source**: QwenLM/Qwen3@7a2f61f, Transformers 4.51 on H20, where fp8 adds as much to long contexts, in which the card
is busy, as to short ones; Lightning-AI/litgpt@2685705 on A100.
"""

ENGINES: Final[dict[EngineName, Engine]] = {
    "llama.cpp": Engine(
        70e-6,
        "XiongjieDai/GPU-Benchmarks-on-LLM-Inference@aa72e0e, time left beside the reading of weights on 6 GDDR cards",
        chunk=512,
        compute_share=1.0,
        unpacks=True,
        chunks_in_flight=4,
        stacked_layer_seconds=100e-6,
    ),
    "vllm": Engine(
        60e-6,
        "QwenLM/Qwen3@7a2f61f (SGLang 0.4.6), 24 rows; pytorch/ao@36027d8 (vLLM 0.13), 3 rows at 128 sequences",
        sequence_seconds=25e-6,
        chunk=8_192,
        overlaps_stages=True,
    ),
    "vllm-v0": Engine(
        136e-6,
        "Qwen2.5 speed benchmark, vLLM 0.6.3 on A100: slope over layers",
        sequence_seconds=25e-6,
        chunk=8_192,
        overlaps_stages=True,
    ),
    "tensorrt-llm": Engine(
        80e-6,
        "InferenceX and NVIDIA/TensorRT-LLM@00f3768 perf-overview: 0.07 to 0.10 ms a layer",
        sequence_seconds=10e-6,
        chunk=8_192,
        compute_share=1.0,
        pointwise_share=0.6,
        shares_sequences=True,
        overlaps_stages=True,
    ),
    "compiled": Engine(
        45e-6,
        "meta-pytorch/gpt-fast@6ecad9b, Llama 2 7B at three formats on A100",
    ),
    "hf": Engine(
        610e-6,
        "Transformers on QwenLM/Qwen3@7a2f61f's H20 hosts, and 0.84 ms on the A100 hosts of the Qwen2.5 benchmark",
        eager=True,
        quantised_layer_seconds=_EAGER_QUANTISED,
        older_host_layer_seconds=840e-6,
        unpacks=True,
        copies_cache=True,
        waits_with=("fp8",),
    ),
    "bnb-eager": Engine(
        1_000e-6,
        "Lightning-AI/litgpt@2685705 tutorials/resource-tables.md: 4 models of 16 to 40 layers on A100",
        eager=True,
        quantised_layer_seconds=MappingProxyType({"nf4": 1_600e-6}),
        unpacks=True,
    ),
}
