"""What the software that serves a model costs beside the arithmetic: classes with their measurements."""

from typing import Final, Literal, NamedTuple

EngineName = Literal["llama.cpp", "vllm", "hf", "tensorrt-llm", "compiled", "bnb-eager", "vllm-v0"]


class Engine(NamedTuple):
    """How an engine runs a pass.

    `layer_seconds` pass for each layer of each pass: the launch of its kernels and the gaps between them. Where they
    are launched one by one from Python (`eager`), that runs ahead of the card, and only the longer of both counts;
    `eager_quantised_layer_seconds` is the same with kernels that unpack weights. `sequence_seconds` pass for each
    sequence of each pass (scheduling, sampling). `chunk` is the most tokens of one pass of a prompt, without a limit
    where it is none. `compute_share` is what its products reach of the card's large ones. `unpacks` says that quantised
    weights are written out in 16 bits before a product with many rows. `copies_cache` counts how often the cached keys
    and values are moved in each step, beside being read.
    """

    layer_seconds: float
    source: str
    eager: bool = False
    eager_quantised_layer_seconds: float = 0.0
    sequence_seconds: float = 0.0
    chunk: int | None = None
    compute_share: float = 0.8
    unpacks: bool = False
    copies_cache: float = 0.0
    overlaps_stages: bool = False


_ROWS: Final = "shared survey of published speeds; benchmarks/throughput_inference.py prints what is left"

ENGINES: Final[dict[EngineName, Engine]] = {
    "llama.cpp": Engine(
        70e-6,
        "XiongjieDai/GPU-Benchmarks-on-LLM-Inference@aa72e0e, time left beside the reading of weights on 6 GDDR cards",
        chunk=512,
        compute_share=1.0,
        unpacks=True,
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
        sequence_seconds=5e-6,
        chunk=8_192,
        overlaps_stages=True,
    ),
    "compiled": Engine(
        45e-6,
        "meta-pytorch/gpt-fast@6ecad9b, Llama 2 7B at three formats on A100",
    ),
    "hf": Engine(
        720e-6,
        "QwenLM/Qwen3@7a2f61f (0.61 ms on Hopper hosts) and Qwen2.5 (0.84 ms on Ampere hosts), Transformers, their mean",
        eager=True,
        eager_quantised_layer_seconds=1_000e-6,
        unpacks=True,
        copies_cache=2.0,
    ),
    "bnb-eager": Engine(
        1_000e-6,
        "Lightning-AI/litgpt@2685705 tutorials/resource-tables.md: 4 models of 16 to 40 layers on A100",
        eager=True,
        eager_quantised_layer_seconds=1_600e-6,
        unpacks=True,
    ),
}
