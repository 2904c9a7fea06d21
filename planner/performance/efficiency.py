"""Efficiency of training by GPU family, number format and size, with the source of each value."""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from planner.hardware.gpu import Gpu

MatrixFormat = Literal["fp32", "tf32", "fp16", "bf16", "fp8", "fp4"]
InputBits = Literal["32", "19", "16", "8", "4"]
"""Input width of matrix units in bits: 32 for fp32, 19 for tf32, 16 for fp16 and bf16, 8 for fp8, 4 for fp4."""

INPUT_BITS: Final[Mapping[MatrixFormat, InputBits]] = {
    "fp32": "32",
    "tf32": "19",
    "fp16": "16",
    "bf16": "16",
    "fp8": "8",
    "fp4": "4",
}

Family = Literal[
    "A100",
    "Hopper SXM",
    "Hopper PCIe",
    "Blackwell data center",
    "Volta",
    "Turing",
    "Ampere GDDR",
    "Ada",
    "Blackwell GDDR",
    "Instinct",
    "Radeon",
    "Intel",
    "Apple",
    "TPU",
    "other",
]

MatrixFamily = Family | Literal["Turing half rate", "Ampere full rate", "Ada full rate", "Blackwell full rate"]
"""GPU families by the rate of their matrix units: with fp32 accumulation, GeForce GPUs run at half the rate of the
same chips in workstations and servers, and so reach a larger share of that rate."""
_OTHER_RATE_FAMILY: Final[Mapping[Family, MatrixFamily]] = {
    "Turing": "Turing half rate",
    "Ampere GDDR": "Ampere full rate",
    "Ada": "Ada full rate",
    "Blackwell GDDR": "Blackwell full rate",
}
_FULL_RATE_THRESHOLD: Final[Mapping[Family, float]] = {"Turing": 6, "Ampere GDDR": 3, "Ada": 3, "Blackwell GDDR": 3}
"""Threshold of the 16-bit matrix rate relative to the fp32 rate of the shader cores, above which a GPU runs at full
rate: full-rate GPUs have 8 on Turing and 4 on later chips, halved GPUs 4 and 2 (NVIDIA's Turing, GA102 and Ada
whitepapers)."""

_BY_ARCHITECTURE: dict[str, Family] = {
    "Volta": "Volta",
    "Turing": "Turing",
    "Ampere": "Ampere GDDR",
    "Ada Lovelace": "Ada",
    "Hopper": "Hopper SXM",
    "Blackwell": "Blackwell GDDR",
    "Blackwell Ultra": "Blackwell data center",
    "CDNA": "Instinct",
    "CDNA2": "Instinct",
    "CDNA3": "Instinct",
    "CDNA4": "Instinct",
    "CDNA5": "Instinct",
    "RDNA2": "Radeon",
    "RDNA3": "Radeon",
    "RDNA3.5": "Radeon",
    "RDNA4": "Radeon",
}
_BY_VENDOR: dict[str, Family] = {"Intel": "Intel", "Apple": "Apple", "Google": "TPU"}


def family_of(gpu: Gpu) -> Family:
    """Return the family whose measurements apply to `gpu`: an architecture with its kind of memory and power."""
    stacked = (gpu.memory_type or "").startswith("HBM")
    if gpu.architecture == "Ampere" and stacked:
        return "A100"
    if gpu.architecture == "Blackwell" and stacked:
        return "Blackwell data center"
    if gpu.architecture == "Hopper" and "PCIe" in (gpu.form_factor or ""):
        return "Hopper PCIe"
    return _BY_ARCHITECTURE.get(gpu.architecture) or _BY_VENDOR.get(gpu.vendor, "other")


def matrix_family(gpu: Gpu) -> MatrixFamily:
    """Return the family whose measurements apply to the matrix units of `gpu`, which run at full or half rate."""
    family, products, cores = family_of(gpu), gpu.rate("fp16"), gpu.rate("fp32")
    if family not in _OTHER_RATE_FAMILY or products is None or cores is None:
        return family
    is_full = products.ops_per_s > _FULL_RATE_THRESHOLD[family] * cores.ops_per_s
    return family if is_full == (family == "Turing") else _OTHER_RATE_FAMILY[family]


class TrainingEfficiency(NamedTuple):
    """Efficiencies and fixed costs of training, by GPU family and number format.

    `matrix_shares` is the share of the dense rate that large matrix products reach while a network trains,
    `attention_shares` that of fused attention kernels, of the 16-bit rate; `experts_fraction` the fraction of
    `matrix_shares` for routed experts. `size_dependence_engine` is the engine whose measured products say how the rate
    depends on their size; None for no dependence. `memory_passes` and `fused_memory_passes` are how often each byte
    that a layer saves is moved through memory in a forward pass, `extra_backward_passes` how much more often in a
    backward one; `memory_shares` is the reached share of the bandwidth, if it differs from the default.
    `recomputed_fraction` is the fraction of a forward pass that a recomputation takes. `layer_launch_seconds`,
    `fused_layer_launch_seconds` and `expert_launch_seconds` are the seconds a host needs to launch a layer's forward
    pass operator by operator, that of a compiled network or a CUDA graph, and the extra of routing; `exposed_fraction`
    is the share of communication that is never hidden.

    **Source**: not fitted are `recomputed_fraction` (× 1.15 to × 1.27 in torchtitan b5bcd76 and torchtune bd2a0fc),
    `fused_layer_launch_seconds` (0.07 to 0.10 ms a layer of engines with CUDA graphs, SemiAnalysisAI/InferenceX
    843c625) and `extra_backward_passes` (a derivative for each input).
    """

    matrix_shares: Mapping[tuple[MatrixFamily, InputBits], float]
    attention_shares: Mapping[Family, float]
    experts_fraction: float
    size_dependence_engine: str | None
    memory_passes: float
    fused_memory_passes: float
    extra_backward_passes: float
    memory_shares: Mapping[Family, float]
    recomputed_fraction: float
    layer_launch_seconds: float
    fused_layer_launch_seconds: float
    expert_launch_seconds: float
    exposed_fraction: float


EFFICIENCY_SOURCE: Final = "fitted by benchmarks/throughput_classes.py to published speeds (tests/truth/throughput.csv)"
_LAMBDA: Final = "lambdal/deeplearning-benchmark aa5addb (BERT)"
_MLPERF: Final = "MLPerf Training 3.1 to 5.1 (Llama 2 and 3.1, GPT-3)"
_BRIDGE: Final = "NVIDIA-NeMo/Megatron-Bridge 067f987"
_DEEP_LEARNING_EXAMPLES: Final = "NVIDIA/DeepLearningExamples 729963d (BERT)"
_A100: Final = (
    "mosaicml/llm-foundry 8c8dd48 (MPT, 125 million to 70 billion parameters)",
    "pytorch/torchtune bd2a0fc",
    "Lightning-AI/litgpt 2685705",
    _DEEP_LEARNING_EXAMPLES,
    _LAMBDA,
)
TRAINING_SOURCES: Final[Mapping[tuple[MatrixFamily, InputBits], tuple[str, ...]]] = {
    ("A100", "16"): _A100,
    ("A100", "19"): (_DEEP_LEARNING_EXAMPLES, _LAMBDA),
    ("Hopper SXM", "16"): (
        "KempnerInstitute/KempnerForge 5666d0d",
        "pytorch/ao 36027d8",
        "Llama 3 report (405B)",
    ),
    ("Hopper SXM", "8"): ("NVIDIA/NeMo 8cfedd7", "pytorch/torchtitan b5bcd76", "pytorch/ao 36027d8", _MLPERF),
    ("Hopper PCIe", "16"): (_LAMBDA,),
    ("Hopper PCIe", "19"): (_LAMBDA,),
    ("Blackwell data center", "16"): (f"{_BRIDGE} (routed experts)", _LAMBDA),
    ("Blackwell data center", "19"): (_LAMBDA,),
    ("Blackwell data center", "8"): (_BRIDGE, _MLPERF),
    ("Blackwell data center", "4"): (_BRIDGE,),
    ("Volta", "16"): (_DEEP_LEARNING_EXAMPLES,),
    ("Volta", "32"): (_DEEP_LEARNING_EXAMPLES,),
    ("Turing", "16"): (_LAMBDA,),
    ("Turing", "32"): (_LAMBDA,),
    ("Ampere GDDR", "16"): (_LAMBDA,),
    ("Ampere full rate", "16"): ("AnswerDotAI/fsdp_qlora (March 2024)",),
    ("Ampere GDDR", "19"): (_LAMBDA,),
    ("Ada", "16"): ("pytorch/torchtune bd2a0fc", _LAMBDA),
    ("Ada", "19"): (_LAMBDA,),
    ("Instinct", "8"): (_MLPERF,),
}
"""Sources of the measurements to which each efficiency is fitted; the deviations are in `training.spread`."""
MEASURED_CARDS: Final = frozenset(
    (
        "a100-pcie-40gb",
        "a100-sxm4-40gb",
        "a100-sxm4-80gb",
        "b200-sxm-180gb",
        "gb200-186gb",
        "gb300-288gb",
        "h100-pcie-80gb",
        "h100-sxm5-80gb",
        "h200-nvl-141gb",
        "h200-sxm-141gb",
        "instinct-mi325x",
        "instinct-mi350x",
        "quadro-rtx-8000",
        "rtx-3090",
        "rtx-4090",
        "rtx-a5000",
        "tesla-v100-sxm2-32gb",
    )
)
"""Catalog ids of the GPUs with measured training speeds, to which the efficiencies are fitted."""
MEASURED_EFFICIENCY: Final = TrainingEfficiency(
    matrix_shares={
        ("A100", "16"): 0.71,
        ("A100", "19"): 0.51,
        ("Hopper SXM", "16"): 0.58,
        ("Hopper SXM", "8"): 0.66,
        ("Hopper PCIe", "16"): 0.53,
        ("Hopper PCIe", "19"): 0.35,
        ("Blackwell data center", "16"): 0.47,
        ("Blackwell data center", "19"): 0.40,
        ("Blackwell data center", "8"): 0.65,
        ("Blackwell data center", "4"): 0.53,
        ("Volta", "16"): 0.58,
        ("Volta", "32"): 0.75,
        ("Turing", "16"): 0.52,
        ("Turing", "32"): 0.71,
        ("Ampere GDDR", "16"): 0.89,
        ("Ampere full rate", "16"): 0.60,
        ("Ampere GDDR", "19"): 0.68,
        ("Ada", "16"): 0.90,
        ("Ada", "19"): 0.55,
        ("Instinct", "8"): 0.39,
    },
    attention_shares={"A100": 0.34, "Hopper SXM": 0.21, "Blackwell data center": 0.57},
    experts_fraction=0.97,
    size_dependence_engine="tensorrt-llm",
    memory_passes=1.99,
    fused_memory_passes=1.43,
    extra_backward_passes=2.0,
    memory_shares={"Blackwell data center": 0.44},
    recomputed_fraction=0.67,
    layer_launch_seconds=0.000793,
    fused_layer_launch_seconds=0.1e-3,
    expert_launch_seconds=0.00176,
    exposed_fraction=0.2,
)


ISOLATED_MATRIX_SHARES: Final[Mapping[tuple[MatrixFamily, InputBits], float]] = {
    ("A100", "16"): 0.87,
    ("Hopper SXM", "16"): 0.80,
    ("Hopper SXM", "8"): 0.71,
    ("Hopper PCIe", "16"): 0.80,
    ("Blackwell data center", "16"): 0.78,
    ("Blackwell data center", "8"): 0.76,
    ("Blackwell data center", "4"): 0.45,
    ("Ada full rate", "16"): 0.67,
    ("Ada full rate", "8"): 0.47,
    ("Blackwell full rate", "16"): 0.83,
    ("Blackwell full rate", "8"): 0.76,
    ("Blackwell full rate", "4"): 0.65,
    ("Instinct", "16"): 0.60,
    ("Intel", "16"): 0.74,
}
"""Share of the dense rate that large matrix products reach in isolation: stas00/ml-engineering 744d01e (maximum
achievable matmul FLOPS; the median of several GPUs) and ai-dynamo/aiconfigurator 095f58a (L40S, RTX PRO 6000,
NVFP4)."""
_ISOLATED_BY_CARD: Final[Mapping[str, float]] = {
    "instinct-mi300x": 0.514,
    "instinct-mi325x": 0.604,
    "instinct-mi350x": 0.68,
    "instinct-mi355x": 0.68,
}
"""Share of the dense 16-bit rate that large matrix products reach in isolation on GPUs of a family that differ: power
limits lower their clocks (stas00/ml-engineering 744d01e)."""
_MEASURED_INSTINCT: Final = 0.64
"""The same share, averaged over the Instinct GPUs on which training was measured: MI325X, MI350X and MI355X."""
TRAINING_FRACTION: Final = 0.75
"""Rate of matrix products in training relative to their rate in isolation: the ratio is 0.60 to 0.95 on GPUs on which
both rates were measured in 16 and 8 bits."""
_SIMILAR_FAMILY: Final[Mapping[MatrixFamily, MatrixFamily]] = {
    "Turing half rate": "Ampere GDDR",
    "Ampere GDDR": "Ada",
    "Ada": "Ampere GDDR",
    "Blackwell GDDR": "Ada",
}
"""Substitute for a family without measurements: another family whose matrix units also run at half rate."""


def gpu_matrix_share(efficiency: TrainingEfficiency, gpu: Gpu, bits: InputBits) -> float:
    """Return the share of the dense rate that large matrix products with `bits`-bit inputs reach on `gpu`.

    **Formula**: the share of the family, times what the GPU's own products reach in isolation relative to those of the
    GPUs on which that share was measured.
    """
    family, own = matrix_family(gpu), _ISOLATED_BY_CARD.get(gpu.id)
    share = matrix_share(efficiency, family, bits)
    if own is None:
        return share
    measured = (family, bits) in efficiency.matrix_shares
    return share * own / (_MEASURED_INSTINCT if measured else ISOLATED_MATRIX_SHARES[family, "16"])


def matrix_share(efficiency: TrainingEfficiency, family: MatrixFamily, bits: InputBits) -> float:
    """Return the share of the dense rate that large matrix products with `bits`-bit inputs reach on GPUs of `family`.

    Without measurements of training, it is the share of a similar family, follows from isolated products, or is the
    median of the other families; input widths that were never measured reach half.
    """
    found = efficiency.matrix_shares.get((family, bits)) or efficiency.matrix_shares.get(
        (_SIMILAR_FAMILY.get(family, family), bits)
    )
    if found is not None:
        return found
    alone = ISOLATED_MATRIX_SHARES.get((family, bits))
    if alone is not None:
        return alone * TRAINING_FRACTION
    return _median_share([share for (_, other), share in efficiency.matrix_shares.items() if other == bits])


def attention_share(efficiency: TrainingEfficiency, gpu: Gpu) -> float:
    """Return the share of the 16-bit rate that fused attention reaches on `gpu`.

    Without measurements of its family, it is the same part of what large products reach in isolation as on the family
    in the middle, so that a GPU whose clock falls under load has less.
    """
    family = family_of(gpu)
    found = efficiency.attention_shares.get(family)
    if found is not None:
        return found
    alone = _ISOLATED_BY_CARD.get(gpu.id) or ISOLATED_MATRIX_SHARES.get((family, "16"))
    if alone is None:
        return _median_share(list(efficiency.attention_shares.values()))
    return alone * _median_share(
        [share / ISOLATED_MATRIX_SHARES[one, "16"] for one, share in efficiency.attention_shares.items()]
    )


def memory_share(efficiency: TrainingEfficiency, family: Family) -> float:
    """Return the share of the memory bandwidth that element-wise operations reach on GPUs of `family`.

    **Source**: 0.80 is the factor of ai-dynamo/aiconfigurator 095f58a; other families are fitted.
    """
    return efficiency.memory_shares.get(family, 0.8)


def _median_share(shares: list[float]) -> float:
    return sorted(shares)[(len(shares) - 1) // 2] if shares else 0.5


def class_source(family: MatrixFamily, bits: InputBits) -> str:
    """Return the source of the measured rate of matrix products with `bits`-bit inputs on GPUs of `family`."""
    for own in (family, _SIMILAR_FAMILY.get(family, family)):
        if (own, bits) in TRAINING_SOURCES:
            return ", ".join(TRAINING_SOURCES[own, bits])
    if (family, bits) in ISOLATED_MATRIX_SHARES:
        return (
            f"isolated products (ml-engineering 744d01e, aiconfigurator 095f58a), × {TRAINING_FRACTION:g} in training"
        )
    return "no measurement of this GPU family: the median of the other families"


def training_sources(family: MatrixFamily, bits: InputBits) -> int:
    """Return the number of sources that measured training with `bits`-bit matrix inputs on GPUs of `family`."""
    return len(TRAINING_SOURCES.get((family, bits), ()))


def is_family_measured(gpu: Gpu) -> bool:
    """Return whether training in any number format was measured on GPUs of the family of `gpu`."""
    families = {family for family, _bits in MEASURED_EFFICIENCY.matrix_shares}
    return not families.isdisjoint((family_of(gpu), matrix_family(gpu)))
