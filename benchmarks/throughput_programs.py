"""Programs of the published speeds, in the versions of their sources, and the most similar other program of each."""

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Final

from planner.hardware.gpu import Gpu
from planner.performance.attainable import MeasuredShare, MemoryClass, Width, kernel_width
from planner.performance.inference.gpu_speed import scalar_bytes_per_s
from planner.performance.kernels.gpu_figures import gpu_figures
from planner.performance.software import litgpt, llama_cpp, sglang, tensorrt_llm, transformers, vllm
from planner.performance.software.engine import Engine


class _ScalarReads(llama_cpp.LlamaCppEngine):
    """Llama.cpp whose products of one row load weights of 16 bits number by number."""

    def read_share(self, gpu: Gpu, weights: str) -> MeasuredShare:
        found, figures = super().read_share(gpu, weights), gpu_figures(gpu)
        if figures is None or kernel_width(weights) != "16":
            return found
        most = scalar_bytes_per_s(gpu, self, figures) / figures.bytes_per_s
        return MeasuredShare(min(found.fraction, most), found.source)


_LLAMA_CPP_MAY_2024: Final = _ScalarReads(
    **{each.name: getattr(llama_cpp.ENGINE, each.name) for each in fields(llama_cpp.ENGINE)}
)
"""llama.cpp before its products of one row in 16 bits had vector loads (ggml-org/llama.cpp#9816, October 2024)."""
_VLLM_BEFORE_ASYNC: Final = replace(vllm.ENGINE, schedules_ahead=False)
"""vLLM with its engine V1 up to 0.13, which schedules a pass when the one before has ended (`async_scheduling`)."""
_AWQ_IN_CUDA: Final = replace(
    transformers.ENGINE,
    quantised_layer_seconds={
        name: seconds for name, seconds in transformers.ENGINE.quantised_layer_seconds.items() if name != "awq"
    },
)
"""Transformers with the CUDA kernels of AutoAWQ (QwenLM/Qwen3 speed_benchmark.md: AutoAWQ_kernels 0.0.9)."""
_LAUNCHES_OF_AUTOGPTQ: Final = 4 * transformers.PRODUCTS + 3
"""Kernels that AutoGPTQ adds to a layer with 8 bits: 4 for each product, which it makes in fp32 (zeros, input, scales,
result), and the sums with three biases (AutoGPTQ qlinear_cuda_old.py)."""


def _with_autogptq(engine: Engine) -> dict[str, float]:
    """Return the seconds per layer of `engine` by format, with the launches of AutoGPTQ for 8 bits."""
    more = 1 + _LAUNCHES_OF_AUTOGPTQ / transformers.EAGER_KERNELS
    return {**engine.quantised_layer_seconds, "gptq8": more * engine.layer_seconds}


_AUTOGPTQ: Final = replace(
    transformers.ENGINE, name="hf-autogptq", quantised_layer_seconds=_with_autogptq(transformers.ENGINE)
)
"""Transformers with AutoGPTQ (QwenLM/Qwen3@a912d23 speed_benchmark.rst), today replaced by GPTQModel."""
_ENGINES: Final[tuple[tuple[str, Engine], ...]] = (
    ("llama.cpp", _LLAMA_CPP_MAY_2024),
    ("ollama", llama_cpp.ENGINE),
    ("vllm (nov 2023)", vllm.VERSION_0),
    ("vllm 0.5", vllm.VERSION_0),
    ("vllm 0.6.1", vllm.VERSION_0),
    ("vllm 0.6.2", vllm.VERSION_0),
    ("vllm 0.6.3", vllm.VERSION_0),
    ("vllm 0.10", _VLLM_BEFORE_ASYNC),
    ("vllm 0.13", _VLLM_BEFORE_ASYNC),
    ("trt", tensorrt_llm.ENGINE),
    ("tensorrt", tensorrt_llm.ENGINE),
    ("vllm", vllm.ENGINE),
    ("sglang", sglang.ENGINE),
    ("lmdeploy", vllm.ENGINE),
    ("mango", vllm.ENGINE),
    ("gpt-fast", transformers.COMPILED),
    ("autoawq", transformers.COMPILED),
    ("mlc", transformers.COMPILED),
    ("exllama", transformers.COMPILED),
    ("transformers", transformers.ENGINE),
    ("litgpt", litgpt.ENGINE),
)
"""Programs by a part of the source's name for them; the first match applies."""
_SUBSTITUTES: Final = {
    llama_cpp.ENGINE.name: vllm.ENGINE,
    transformers.COMPILED.name: vllm.ENGINE,
    vllm.ENGINE.name: transformers.COMPILED,
    sglang.ENGINE.name: transformers.COMPILED,
    vllm.VERSION_0.name: vllm.ENGINE,
    transformers.ENGINE.name: litgpt.ENGINE,
    _AUTOGPTQ.name: replace(transformers.ENGINE, older_host_slowdown=1.0),
    "eager": transformers.ENGINE,
    litgpt.ENGINE.name: transformers.ENGINE,
}
"""The most similar other program of each: what its constants would be taken from if it had never been measured."""
_CONSTANTS: Final = (
    "layer_seconds",
    "layer_clock_hz",
    "quantised_layer_seconds",
    "older_host_slowdown",
    "expert_layer_seconds",
    "sequence_seconds",
    "compute_share",
    "pointwise_share",
    "stacked_layer_seconds",
)
"""What is measured of a program; the rest, such as its chunks and what it unpacks, is read in its source code."""
RESERVE_ANSWERS: Final = (tensorrt_llm.ENGINE.name,)
"""Programs in which a request starts only when the cache of its whole answer is free; in others sequences share what is
free, and hold half of their answers on average.

**Source**: TensorRT-LLM documentation, Useful Runtime Options: the default policy is GUARANTEED_NO_EVICT.
"""
_MEASURED_ELSEWHERE: Final = (tensorrt_llm.ENGINE.name,)
"""Programs whose constants do not stand on one source of the table: TensorRT-LLM's launches and scheduling are of
InferenceX (ai-dynamo/aiconfigurator@095f58a silicon_sample.csv), whose rows are not covered, and its element-wise bytes
of its fused kernels: 13 of 20 bytes for each element of two sums with norms, whose results it quantises."""
_TRITON_LAUNCHES: Final = {"fp8": 2 * transformers.PRODUCTS, "awq": transformers.PRODUCTS}
"""Kernels of Triton that formats add to a layer in transformers: the inputs of products are quantised and multiplied in
blocks (integrations/finegrained_fp8.py), or only multiplied (AutoAWQ modules/triton/gemm.py)."""
_EAGER_EXPERTS: Final = replace(
    vllm.ENGINE,
    name="eager",
    layer_seconds=transformers.ENGINE.layer_seconds,
    layer_kernels=transformers.EAGER_KERNELS,
    layer_clock_hz=None,
    eager=True,
)
"""SGLang with experts in GPTQ: launched one by one from Python. A token takes 0.67 ms a layer with 48 layers on one H20
and 0.72 with 94 on four, as in transformers on the same hosts (0.61), whatever the size; its authors say that the
kernels need improvement (QwenLM/Qwen3@7a2f61f speed_benchmark.md, Notes)."""


def program_of(framework: str, weights: str, *, has_experts: bool) -> Engine | None:
    """Return the program that a source names `framework`, with the kernels for `weights`, or None if it is unknown."""
    named = framework.lower()
    if "sglang" in named and weights.startswith("gptq4") and has_experts:
        return _EAGER_EXPERTS
    if "transformers 4.51" in named and weights.startswith("awq"):
        return _AWQ_IN_CUDA
    if "transformers 4.46" in named and weights.startswith("gptq8"):
        return _AUTOGPTQ
    return next((engine for name, engine in _ENGINES if name in named), None)


@cache
def with_most_similar_constants(engine: Engine) -> Engine:
    """Return `engine` with what was measured of it replaced by that of the most similar other program."""
    if engine.name in _MEASURED_ELSEWHERE:
        return engine
    other = _SUBSTITUTES[engine.name]
    constants = {name: getattr(other, name) for name in _CONSTANTS}
    in_triton = {
        name: other.layer_seconds + number * transformers.TRITON_LAUNCH_SECONDS
        for name, number in _TRITON_LAUNCHES.items()
        if name in engine.quantised_layer_seconds
    }
    constants["quantised_layer_seconds"] = {**other.quantised_layer_seconds, **in_triton}
    if engine.name == _AUTOGPTQ.name:
        constants["quantised_layer_seconds"] = _with_autogptq(other)

    class Substituted(type(engine)):  # type: ignore[misc]  # mypy knows no class of a value
        def read_shares(self) -> Mapping[tuple[MemoryClass, Width], MeasuredShare]:
            return other.read_shares()

        def cache_share(self, gpu: Gpu, *, unfused: bool) -> MeasuredShare:
            return other.cache_share(gpu, unfused=unfused)

        def product_share(self, gpu: Gpu, dtype: str) -> MeasuredShare:
            return other.product_share(gpu, dtype)

    own = {each.name: getattr(engine, each.name) for each in fields(engine)}
    return Substituted(**own | constants)
