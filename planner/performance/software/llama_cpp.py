"""Inference speed of llama.cpp."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Final

from planner.hardware.gpu import Gpu
from planner.models.architecture import Architecture
from planner.models.layers import Attention, Layer, Mlp, Moe
from planner.performance.attainable import (
    MeasuredShare,
    MemoryClass,
    Width,
    dense_ops_per_s,
    halves_16_bit_rate,
    kernel_width,
    limited_share,
    memory_class,
    share_within_power_limit,
)
from planner.performance.efficiency import Family, family_of
from planner.performance.inference.work import PassWork
from planner.performance.software.engine import Engine

_DAI_BENCHMARKS: Final = "XiongjieDai/GPU-Benchmarks-on-LLM-Inference@aa72e0e"
_READ_SHARES: Final[dict[tuple[MemoryClass, Width], MeasuredShare]] = {
    ("GDDR", "16"): MeasuredShare(0.92, f"{_DAI_BENCHMARKS}, 4 Ada GPUs"),
    ("GDDR", "8"): MeasuredShare(0.90, f"{_DAI_BENCHMARKS}, between 16 and 4 bits"),
    ("GDDR", "4"): MeasuredShare(0.88, f"{_DAI_BENCHMARKS}, 7 Ampere and Ada GPUs"),
    ("GDDR", "float4"): MeasuredShare(0.88, f"{_DAI_BENCHMARKS}, as 4 bits"),
    ("HBM", "16"): MeasuredShare(0.80, "as other programs, with the vector loads of ggml-org/llama.cpp#9816"),
    ("HBM", "8"): MeasuredShare(0.52, f"{_DAI_BENCHMARKS}, between 16 and 4 bits"),
    ("HBM", "4"): MeasuredShare(0.57, f"{_DAI_BENCHMARKS}, A100"),
    ("HBM", "float4"): MeasuredShare(0.57, f"{_DAI_BENCHMARKS}, as 4 bits"),
    ("unified", "16"): MeasuredShare(0.80, f"{_DAI_BENCHMARKS}, M1 Max and M3 Max"),
    ("unified", "8"): MeasuredShare(0.70, f"{_DAI_BENCHMARKS}, between 16 and 4 bits"),
    ("unified", "4"): MeasuredShare(0.60, f"{_DAI_BENCHMARKS}, M1, M1 Max and M3 Max"),
    ("unified", "float4"): MeasuredShare(0.60, f"{_DAI_BENCHMARKS}, as 4 bits"),
}
_CEILING: Final[dict[Family, float]] = {"Apple": 0.66, "Radeon": 0.30, "Instinct": 0.30}
_USUAL_CEILING: Final = 0.45
_CEILING_SOURCE: Final = f"{_DAI_BENCHMARKS}, prompts of 512 tokens, unpacking of weights apart"
_NARROW_SUMS_SHARE: Final = 0.85
"""Share of the rate with 16-bit accumulation, twice that with 32 bits, that large products reach on a GeForce GPU.

With `compute_share` it is what prompts reach in the benchmarks that `_CEILING_SOURCE` names.
"""
_DOT_PRODUCT_SHARE: Final = MeasuredShare(
    0.28, "ggml-org/llama.cpp#4682, P40: prompts of 512 tokens, Llama 2 7B in Q8_0"
)
"""Share of the rate of 4-way dot products: 894 tokens/s of 2 × 6.48 billion operations, less the 61 ms that attention
and activations take of 573, of 4 × 11.76 TFLOPS. It is of one run; three others on a P40, in Q4_0, Q4_K and Q5_0, are
met within 5 % (`benchmarks/blind.py --rows`)."""
_UNFUSED_CACHE: Final[dict[MemoryClass, MeasuredShare]] = {
    "GDDR": MeasuredShare(0.37, f"{_DAI_BENCHMARKS}, without flash attention"),
    "HBM": MeasuredShare(0.37, f"{_DAI_BENCHMARKS}, without flash attention"),
    "unified": MeasuredShare(0.12, f"{_DAI_BENCHMARKS}, M1 Max and M3 Max without flash attention"),
}
_FAMILIES: Final[tuple[Family, ...]] = ("Ada", "Ampere GDDR", "A100", "Apple")


_COPIES: Final = 4
"""Copies of a chunk's inputs on each GPU: a chunk waits until the fourth before it is through with its copy.

**Source**: llama.cpp ggml-backend, GGML_SCHED_MAX_COPIES.
"""
_QUEUED_LAUNCHES: Final = 1_024
"""Kernels that CUDA queues for a GPU; the thread that launches another one waits, and cannot feed the next GPU."""
_LAUNCHES_PER_LAYER: Final = 47
_LAUNCHES_TO_UNPACK: Final = 7
"""Kernels of a layer over a chunk: 14 element-wise ones and copies, 8 of the two products of attention, and 25 of seven
products with the casts of their input and output, four of them in parts; 7 more to unpack quantised weights.

**Source**: llama.cpp build_llama and ggml_cuda_op_mul_mat_cublas (May 2024). How many products have parts is cuBLAS's
choice. On four GPUs of XiongjieDai/GPU-Benchmarks-on-LLM-Inference@aa72e0e (H100, RTX 4090, 4000 and 5000 Ada),
70 billion parameters in 4 bits gain a third, on RTX 4090 as on two: even the 19 layers of the last stage fill the
queue. With 16 bits the 21 of the first do not. Only 47 and 48 kernels fit with both.
"""
_MOST_CHUNKS: Final = 256
"""Chunks whose way through the stages is followed; of a longer prompt, each stands for several."""
_FUSED_LAYER_SECONDS: Final = 28e-6
"""Seconds of a layer on Blackwell GPUs, which only builds of 2025 and later know: a token is one CUDA graph, and
norms, sums, rotary embeddings and gates are part of other kernels.

**Source**: ggml-org/llama.cpp#6766, #15631 and issue #28196: Qwen3.5 27B in Q4_K_M, of 64 layers, reaches 75 % of the
bandwidth of an RTX PRO 6000, where reading alone reaches 88 %: 16.2 GB × (1 ÷ 0.75 − 1 ÷ 0.88) ÷ 1,792 GB/s ÷ 64. It is
of one run; two models on an RTX 5090 in the same issue are met within 4 % (`benchmarks/blind.py --rows`).
"""
_ELEMENTWISE_KERNELS: Final = 28
"""Those of a layer that no product of attention needs: 14 element-wise ones and copies, and 14 casts."""
_NUMBER_BYTES: Final = 4
_HALF_BYTES: Final = 2
_SCALAR_BYTES_PER_CLOCK: Final = 8.0
"""Bytes that kernels which load one number at a time move per clock of a multiprocessor.

**Source**: ggml-org/llama.cpp#9816 and #9817 (October 2024): 16-bit products of one row were 1.33 times as fast on
H100 SXM with vector loads, which reach 0.83 of its bandwidth (ai-dynamo/aiconfigurator@095f58a); 0.62 of it is 8.0
bytes for each of 132 multiprocessors at 1.98 GHz. GPUs with GDDR, with half as much bandwidth for each, gained 1 %.
"""


def _elementwise_bytes(layer: Layer, hidden: int) -> float:
    """Return the bytes per token that the kernels of a layer move outside of products.

    **Formula**: 4 bytes for each number that a kernel reads or writes: 14 of the hidden size (two norms, two products
    with their weights, two sums), 4 of the queries and 2 of the keys (rotary embedding, copy of the result), 5 of the
    width (activation, product with the gate); 6 for each number that is cast to 16 bits or back: inputs and results of
    products, keys and values.

    **Source**: llama.cpp build_llama and ggml_cuda_op_mul_mat_cublas.
    """
    cast = _NUMBER_BYTES + _HALF_BYTES
    moved = float(cast * sum([each.copies * sum(each.shape) for each in layer.tensors if each.role == "linear"]))
    moved += _NUMBER_BYTES * 14 * hidden
    if isinstance(layer.mixer, Attention):
        moved += _NUMBER_BYTES * (4 * layer.mixer.q_dim + 2 * layer.mixer.kv_dim) + 2 * cast * layer.mixer.kv_dim
    match layer.feed_forward:
        case Mlp(gated=gated, intermediate=width):
            moved += _NUMBER_BYTES * (5 if gated else 2) * width
        case Moe(top_k=chosen, intermediate=width, shared_intermediate=shared):
            moved += _NUMBER_BYTES * (5 * (chosen * width + shared) + 4 * chosen * hidden)
            moved += cast * 3 * chosen * (hidden + width)
    return moved


def _has_only_dot_products(gpu: Gpu) -> bool:
    """Return whether llama.cpp multiplies quantised weights as they are stored, by dot products of bytes.

    **Source**: llama.cpp ggml-cuda/mmq.cu `ggml_cuda_should_use_mmq` (`GGML_CUDA_CC_DP4A`, without matrix units).
    """
    return gpu.compute_capability == "6.1"


class LlamaCppEngine(Engine):
    """Engine of llama.cpp: activations of 32 bits in separate kernels, and products by cuBLAS or kernels of its own."""

    def work(self, architecture: Architecture, weights: str) -> PassWork:
        """Return the work of a pass whose activations have 32 bits, cast for each product, in separate kernels."""
        stack = architecture.main
        moved = sum([group.count * _elementwise_bytes(group.layer, stack.hidden) for group in stack.groups])
        return super().work(architecture, weights)._replace(pointwise_bytes=moved)

    def seconds_per_layer(self, gpu: Gpu, weights: str) -> float:
        """Return the seconds of launches and gaps in one layer of one pass: fewer on GPUs that older builds lack."""
        return (
            _FUSED_LAYER_SECONDS
            if (gpu.architecture or "").startswith("Blackwell")
            else super().seconds_per_layer(gpu, weights)
        )

    def passes_in_stages(self, work: PassWork, costs: Sequence[float], stages: int) -> float:
        """Return the time of a prompt in `stages` on as many GPUs whose chunks take `costs` on one GPU.

        **Formula**: a stage of a chunk starts after that of the chunk before, after the stage before, and when it is
        launched: after all launches before it, and once the fourth chunk before is through with the stage. The thread
        that launches goes on when no more than 1,024 kernels are queued. Of L layers and the output after them, number
        i is in stage ⌊i · p ÷ (L + 1)⌋.

        **Source**: llama.cpp llm_load_tensors (`layer_gpu`) and ggml_backend_sched_compute_splits, where inputs are
        copied once the event of their copy has come.
        """
        each = ceil(len(costs) / _MOST_CHUNKS)
        layers = [0] * stages
        for index in range(work.layers):
            layers[index * stages // (work.layers + 1)] += 1
        per_layer = _LAUNCHES_PER_LAYER + (_LAUNCHES_TO_UNPACK if work.dequantised_bytes else 0)
        ended, launched = 0.0, 0.0
        spans: list[list[tuple[float, float]]] = [[] for _ in layers]
        for chunk, cost in enumerate(costs[each // 2 :: each]):
            ended = 0.0
            for own, held in zip(spans, layers, strict=True):
                launched = max(launched, own[-_COPIES][1] if chunk >= _COPIES else 0.0)
                start = max(ended, launched, own[-1][1] if own else 0.0)
                ended = start + cost * held / work.layers
                own.append((start, ended))
                kernels = held * per_layer
                if (waited := len(own) * kernels - _QUEUED_LAUNCHES) > 0:
                    begin, end = own[waited // kernels]
                    launched = max(launched, begin + (end - begin) * (waited % kernels) / kernels)
        return ended * len(costs) / len(spans[0])

    def read_shares(self) -> Mapping[tuple[MemoryClass, Width], MeasuredShare]:
        """Return the bandwidth shares of llama.cpp's kernels, which multiply while they unpack weights."""
        return _READ_SHARES

    def cache_share(self, gpu: Gpu, *, unfused: bool) -> MeasuredShare:
        """Return the bandwidth share of reading the KV cache, with or without llama.cpp's flash attention."""
        return _UNFUSED_CACHE[memory_class(gpu)] if unfused else super().cache_share(gpu, unfused=unfused)

    def product_format(self, gpu: Gpu, weights: str, compute: str) -> str:
        """Return the format of the matrix products: 8 bits where quantised weights are multiplied by dot products."""
        if _has_only_dot_products(gpu) and kernel_width(weights) != "16":
            return "int8"
        return super().product_format(gpu, weights, compute)

    def rate(self, gpu: Gpu, dtype: str) -> float | None:
        """Return the dense rate with 16-bit accumulation, which GeForce GPUs do not halve: half the int8 rate.

        **Source**: CUDA C++ Programming Guide, throughput of arithmetic instructions: a 4-way dot product of bytes
        takes as long as a multiplication in fp32 on compute capability 6.1.
        """
        if dtype == "int8" and _has_only_dot_products(gpu):
            cores = dense_ops_per_s(gpu, "fp32")
            return cores and 4 * cores
        plain, narrow = dense_ops_per_s(gpu, dtype), gpu.rate("int8")
        if plain is None or narrow is None or dtype != "fp16" or gpu.vendor != "NVIDIA":
            return plain
        return max(plain, narrow.ops_per_s / 2 / gpu.device_count)

    def product_share(self, gpu: Gpu, dtype: str) -> MeasuredShare:
        """Return the share of the dense rate that products reach: on NVIDIA's GPUs those of cuBLAS."""
        if dtype == "int8" and _has_only_dot_products(gpu):
            return _DOT_PRODUCT_SHARE
        if gpu.vendor == "NVIDIA":
            found = super().product_share(gpu, dtype)
            if halves_16_bit_rate(gpu):
                found = MeasuredShare(limited_share(gpu, _NARROW_SUMS_SHARE * self.compute_share), _CEILING_SOURCE)
            return found._replace(fraction=share_within_power_limit(gpu, found.fraction))
        return MeasuredShare(_CEILING.get(family_of(gpu), _USUAL_CEILING), _CEILING_SOURCE)


ENGINE: Final = LlamaCppEngine(
    name="llama.cpp",
    layer_seconds=70e-6,
    source=f"{_DAI_BENCHMARKS}, time left beside the reading of weights on 6 GDDR GPUs",
    chunk_tokens=512,
    chunk_setting="n_ubatch",
    unpacks_weights=True,
    keeps_experts_packed=True,
    elementwise_kernels=_ELEMENTWISE_KERNELS,
    scalar_bytes_per_clock=_SCALAR_BYTES_PER_CLOCK,
    stacked_layer_seconds=100e-6,
    measured_decoding=_FAMILIES,
    measured_prompts=_FAMILIES,
)
