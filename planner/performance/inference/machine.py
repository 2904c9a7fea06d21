"""What a card gives an engine: bytes and operations a second, by kind of memory, family and number format."""

from functools import lru_cache
from typing import Final, Literal, NamedTuple

from planner.dtypes import AS_STORED, SCHEMES
from planner.hardware.gpu import Gpu
from planner.performance.efficiency import Family, family_of
from planner.performance.inference.engines import ENGINES, Engine, EngineName
from planner.performance.power import within_power

MemoryClass = Literal["GDDR", "HBM", "unified"]
Width = Literal["16", "8", "4", "float4"]


class Share(NamedTuple):
    """A measured share, with its source."""

    fraction: float
    source: str


_XD: Final = "XiongjieDai/GPU-Benchmarks-on-LLM-Inference@aa72e0e"
_GEMV: Final = "ai-dynamo/aiconfigurator@095f58a, products of one row"
_FAST: Final = "meta-pytorch/gpt-fast@6ecad9b, A100"
_AWQ: Final = "casper-hansen/AutoAWQ@88e4c76, RTX 4090"
_QWEN: Final = "QwenLM/Qwen3@7a2f61f, H20"

_LLAMA_CPP_READS: Final[dict[tuple[MemoryClass, Width], Share]] = {
    ("GDDR", "16"): Share(0.92, f"{_XD}, 4 Ada cards"),
    ("GDDR", "8"): Share(0.90, f"{_XD}, between 16 and 4 bits"),
    ("GDDR", "4"): Share(0.88, f"{_XD}, 7 Ampere and Ada cards"),
    ("GDDR", "float4"): Share(0.88, f"{_XD}, as 4 bits"),
    ("HBM", "16"): Share(0.48, f"{_XD}, A100"),
    ("HBM", "8"): Share(0.52, f"{_XD}, between 16 and 4 bits"),
    ("HBM", "4"): Share(0.57, f"{_XD}, A100"),
    ("HBM", "float4"): Share(0.57, f"{_XD}, as 4 bits"),
    ("unified", "16"): Share(0.80, f"{_XD}, M1 Max and M3 Max"),
    ("unified", "8"): Share(0.70, f"{_XD}, between 16 and 4 bits"),
    ("unified", "4"): Share(0.60, f"{_XD}, M1, M1 Max and M3 Max"),
    ("unified", "float4"): Share(0.60, f"{_XD}, as 4 bits"),
}
_READS: Final[dict[tuple[MemoryClass, Width], Share]] = {
    ("GDDR", "16"): Share(0.88, f"{_GEMV}: L40S 0.84, RTX PRO 6000 0.82 to 0.88"),
    ("GDDR", "8"): Share(0.85, f"{_GEMV}, as 16 bits"),
    ("GDDR", "4"): Share(0.86, _AWQ),
    ("GDDR", "float4"): Share(0.50, f"{_GEMV}: RTX PRO 6000 0.43 to 0.52"),
    ("HBM", "16"): Share(0.80, f"{_FAST}; {_GEMV}: A100 0.71 to 0.76, H100 0.81 to 0.86"),
    ("HBM", "8"): Share(0.75, f"{_FAST}; {_QWEN}; {_GEMV}: H100 0.57 to 0.76"),
    ("HBM", "4"): Share(0.58, f"{_FAST}; {_QWEN}; {_GEMV}: A100 0.56"),
    ("HBM", "float4"): Share(0.45, f"{_GEMV}: B200 0.25 to 0.43, several rows read faster"),
    ("unified", "16"): Share(0.75, f"{_XD}, Apple, less what llama.cpp's kernels gain"),
    ("unified", "8"): Share(0.70, f"{_XD}, as 16 bits"),
    ("unified", "4"): Share(0.60, f"{_XD}, as 4 bits"),
    ("unified", "float4"): Share(0.60, f"{_XD}, as 4 bits"),
}
OLDER_HOSTS: Final = ("Pascal", "Volta", "Turing", "Ampere", "CDNA", "CDNA2")
"""Cards that stand in hosts of their time, whose processors launch fewer kernels a second."""
_GRACE: Final = 1.6
"""How much longer Grace processors take to schedule a sequence than the hosts of B200.

**Source**: NVIDIA/TensorRT-LLM@00f3768 perf-overview: Qwen3-30B-A3B, which waits for its host, is 1.3 times as quick on
B200 as on GB200, and Llama 3.3 70B, which does not, 0.9 times.
"""
_FEWER_MULTIPROCESSORS: Final = {"h20-96gb": 78 / 132, "h20-141gb": 78 / 132}
"""Cards that kept the memory of a larger one but not its multiprocessors, which can have so many reads under way each.

**Source**: the H20 has 78 of the 132 of an H100, and reads no faster than that share of an H100 (QwenLM/Qwen3@7a2f61f).
"""
_WHOLE_CARD_BANDWIDTH: Final = 3.35e12
"""Bytes a second of the H100 that these cards are cut from."""

_CEILINGS: Final[dict[tuple[Family, str], float]] = {
    ("Volta", "16"): 0.70,
    ("Turing", "16"): 0.60,
    ("A100", "16"): 0.85,
    ("Ampere GDDR", "16"): 0.75,
    ("Ada", "16"): 0.66,
    ("Ada", "8"): 0.46,
    ("Hopper SXM", "16"): 0.79,
    ("Hopper SXM", "8"): 0.65,
    ("Hopper PCIe", "16"): 0.65,
    ("Hopper PCIe", "8"): 0.55,
    ("Blackwell data centre", "16"): 0.76,
    ("Blackwell data centre", "8"): 0.45,
    ("Blackwell data centre", "4"): 0.50,
    ("Blackwell GDDR", "16"): 0.83,
    ("Blackwell GDDR", "8"): 0.76,
    ("Blackwell GDDR", "4"): 0.80,
    ("Instinct", "16"): 0.55,
    ("Instinct", "8"): 0.65,
    ("Intel", "16"): 0.46,
    ("Apple", "16"): 0.75,
}
_HALVED: Final = 3.0
"""8-bit integers are twice as quick as 16 bits, and four times where those are halved."""
_HALVED_CEILING: Final = 0.85
"""Halved units are kept busy more easily: pytorch/torchtune@bd2a0fc reaches 0.84 to 0.90 of that rate on RTX 4090."""
_USUAL_CEILING: Final = 0.55
_CEILING_SOURCE: Final = "large products: ai-dynamo/aiconfigurator@095f58a and stas00/ml-engineering@744d01e (MAMF)"
"""4 bits on Blackwell, and 8 bits on Instinct, are what whole prompts reach on the newer stacks of
NVIDIA/TensorRT-LLM@00f3768 and of MLPerf Inference 5.1; the tables of single products have 0.40 to 0.68 there."""
_LLAMA_CPP_CEILING: Final[dict[Family, float]] = {"Apple": 0.66, "A100": 0.38, "Radeon": 0.30, "Instinct": 0.30}
_LLAMA_CPP_USUAL: Final = 0.45
_OPS_PER_JOULE: Final[dict[Family, float]] = {"Ada": 0.36e12}
"""Operations in 16 bits for each joule, which slow the clock of boards with much arithmetic and little power.

**Source**: XiongjieDai/GPU-Benchmarks-on-LLM-Inference@aa72e0e: 102 TFLOP/s in 300 W, 94 in 250 W and 48 in 130 W.
"""
_LLAMA_CPP_SOURCE: Final = f"{_XD}, prompts of 512 tokens, unpacking of weights apart"
_ATTENTION: Final[dict[Family, float]] = {"Hopper SXM": 0.60, "Hopper PCIe": 0.55, "A100": 0.60}
_USUAL_ATTENTION: Final = 0.45
"""Shares of the 16-bit rate: FlashAttention-3 (arXiv 2407.08608) up to 0.75 on H100, version 2 up to 0.73 on A100."""
_CACHE: Final = 0.75
_POINTWISE: Final = 0.80
_UNFUSED_CACHE: Final[dict[MemoryClass, Share]] = {
    "GDDR": Share(0.37, f"{_XD}, without flash attention"),
    "HBM": Share(0.37, f"{_XD}, without flash attention"),
    "unified": Share(0.12, f"{_XD}, M1 Max and M3 Max without flash attention"),
}
_SCORE_BYTES: Final[dict[MemoryClass, float]] = {"GDDR": 30.0, "HBM": 30.0, "unified": 75.0}
"""Bytes moved for each score where attention is not fused: products, softmax and casts, in fp32 and 16 bits.

**Source**: XiongjieDai/GPU-Benchmarks-on-LLM-Inference@aa72e0e, prompts of 512 to 8,192 tokens: 27 to 38 on six cards
with memory of their own, 65 and 93 on M3 Max and M1 Max.
"""


class Machine(NamedTuple):
    """One card as an engine uses it with weights of one format.

    `bytes_per_s` is what it can reach, of which `read`, `cache` and `pointwise` are the shares; `ops_per_s` is the
    dense rate of the products, of which `products` is the share, `attention_ops_per_s` that of attention.
    `hides_launches` says that launches count only where they take longer than the card does.
    """

    engine: Engine
    bytes_per_s: float
    read: Share
    cache: Share
    pointwise: float
    ops_per_s: float
    products: Share
    attention_ops_per_s: float
    unfused: bool
    score_bytes: float
    dtype: str
    layer_seconds: float
    sequence_seconds: float
    hides_launches: bool


@lru_cache(maxsize=512)
def machine_of(
    gpu: Gpu, engine: EngineName, weights: str, compute: str = "bf16", unfused: bool = False
) -> Machine | None:
    """Return how `gpu` runs weights of a format in an engine, or none where its bandwidth or rate is not known.

    `unfused` attention writes its scores to memory.
    """
    bandwidth, dtype = reachable_bandwidth(gpu), _dtype(gpu, engine, weights, compute)
    rate = full_rate(gpu, dtype, engine)
    if bandwidth is None or rate is None:
        return None
    plain = full_rate(gpu, "fp32" if compute == "fp32" else "fp16", engine) or rate
    return Machine(
        engine=ENGINES[engine],
        bytes_per_s=bandwidth,
        read=_read_share(gpu, engine, weights),
        cache=_UNFUSED_CACHE[memory_class(gpu)] if unfused and engine == "llama.cpp" else Share(_CACHE, _GEMV),
        pointwise=_POINTWISE / ENGINES[engine].pointwise_share,
        ops_per_s=rate,
        products=_product_share(gpu, engine, dtype),
        attention_ops_per_s=plain * _ATTENTION.get(family_of(gpu), _USUAL_ATTENTION),
        unfused=unfused,
        score_bytes=_SCORE_BYTES[memory_class(gpu)],
        dtype=dtype,
        layer_seconds=_layer_seconds(gpu, ENGINES[engine], weights),
        sequence_seconds=ENGINES[engine].sequence_seconds * (_GRACE if "Grace" in (gpu.interconnect or "") else 1.0),
        hides_launches=ENGINES[engine].eager and not weights.startswith(ENGINES[engine].waits_with),
    )


def _layer_seconds(gpu: Gpu, engine: Engine, weights: str) -> float:
    for begins, seconds in engine.quantised_layer_seconds.items():
        if weights.startswith(begins):
            return seconds
    if engine.stacked_layer_seconds is not None and memory_class(gpu) == "HBM":
        return engine.stacked_layer_seconds
    older = engine.older_host_layer_seconds
    return older if older is not None and gpu.architecture in OLDER_HOSTS else engine.layer_seconds


def reachable_bandwidth(gpu: Gpu) -> float | None:
    """Return the bytes a second that the card's multiprocessors can ask for: its own, less on cards that lack some."""
    if gpu.bandwidth_bytes_per_s is None:
        return None
    whole = gpu.bandwidth_bytes_per_s / gpu.device_count
    share = _FEWER_MULTIPROCESSORS.get(gpu.id)
    return whole if share is None else min(whole, share * _WHOLE_CARD_BANDWIDTH)


def memory_class(gpu: Gpu) -> MemoryClass:
    """Return the kind of memory that decides how much of its bandwidth is reached."""
    if gpu.unified_memory:
        return "unified"
    return "HBM" if (gpu.memory_type or "").startswith("HBM") else "GDDR"


def width_of(weights: str) -> Width:
    """Return the class of kernels that read weights of a format."""
    if weights == AS_STORED or weights not in SCHEMES:
        return "4"
    scheme = SCHEMES[weights]
    if scheme.family == "float4":
        return "float4"
    bits = scheme.bits_per_weight
    return "16" if bits > 10 else "8" if bits > 7 else "4"


def _read_share(gpu: Gpu, engine: EngineName, weights: str) -> Share:
    width = width_of(weights)
    if width == "float4" and (gpu.rate("fp4") is None or engine in ("hf", "bnb-eager", "compiled")):
        width = "4"
    table = _LLAMA_CPP_READS if engine == "llama.cpp" else _READS
    return table[memory_class(gpu), width]


def _dtype(gpu: Gpu, engine: EngineName, weights: str, compute: str) -> str:
    """Return the format of the products: that of the weights where the engine and the card multiply it."""
    scheme = SCHEMES.get(weights)
    family = scheme.family if scheme else "plain"
    serves = engine in ("vllm", "vllm-v0", "tensorrt-llm", "compiled")
    if serves and family == "float8" and gpu.rate("fp8"):
        return "fp8"
    if serves and family == "float4" and weights == "nvfp4" and gpu.rate("fp4"):
        return "fp4"
    return "fp32" if compute == "fp32" or weights in ("fp32", "F32") else "fp16"


def full_rate(gpu: Gpu, dtype: str, engine: EngineName) -> float | None:
    """Return the dense operations a second of one device for a format, with the fallbacks of cards that lack it.

    llama.cpp sums in 16 bits, for which GeForce cards are not halved: half of the rate for 8-bit integers.
    """
    if dtype == "fp16" and engine == "llama.cpp" and gpu.vendor == "NVIDIA" and (whole := gpu.rate("int8")):
        return whole.ops_per_s / 2 / gpu.device_count
    order = {"fp16": ("fp16", "bf16", "fp32"), "fp32": ("fp32",)}.get(dtype, (dtype, "fp16"))
    found = next((rate for rate in map(gpu.rate, order) if rate is not None), None)
    return found.ops_per_s / gpu.device_count if found else None


def ceiling(gpu: Gpu, dtype: str) -> float:
    """Return the share of its dense rate that a card reaches with large products in `dtype`."""
    width = {"fp8": "8", "fp4": "4"}.get(dtype, "16")
    if width == "16" and _is_halved(gpu):
        return _HALVED_CEILING
    return within_power(gpu, _CEILINGS.get((family_of(gpu), width), _USUAL_CEILING))


def _llama_cpp_share(gpu: Gpu, dtype: str) -> float:
    """Return the share of the rate that llama.cpp's products reach, or what the board's power lets them."""
    family = family_of(gpu)
    share = within_power(gpu, _LLAMA_CPP_CEILING.get(family, _LLAMA_CPP_USUAL))
    rate, each_watt = full_rate(gpu, dtype, "llama.cpp"), _OPS_PER_JOULE.get(family)
    if rate is None or each_watt is None or gpu.drawn_watts is None:
        return share
    return min(share, each_watt * gpu.drawn_watts / (rate * gpu.device_count))


def _is_halved(gpu: Gpu) -> bool:
    """Return whether a card multiplies 16 bits at half of its units' rate when it sums in 32: GeForce cards."""
    wide, narrow = gpu.rate("fp16"), gpu.rate("int8")
    return wide is not None and narrow is not None and narrow.ops_per_s > _HALVED * wide.ops_per_s


def _product_share(gpu: Gpu, engine: EngineName, dtype: str) -> Share:
    if engine == "llama.cpp":
        return Share(_llama_cpp_share(gpu, dtype), _LLAMA_CPP_SOURCE)
    return Share(ceiling(gpu, dtype) * ENGINES[engine].compute_share, _CEILING_SOURCE)
