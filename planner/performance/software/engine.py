"""Time behavior of programs: launch times, and the shares of a GPU's bandwidth and rates that kernels reach."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final

from planner.dtypes import SCHEMES
from planner.hardware.gpu import Gpu
from planner.memory.training.saved import SavedPerToken
from planner.models.architecture import Architecture
from planner.models.layers import Attention
from planner.performance.attainable import (
    OLDER_HOSTS,
    MeasuredShare,
    MemoryClass,
    Width,
    cut_down_share,
    dense_ops_per_s,
    kernel_width,
    memory_class,
    product_ceiling,
)
from planner.performance.efficiency import Family
from planner.performance.inference.work import PassWork, work_of
from planner.performance.setting import TimeSetting
from planner.workload.formats import product_format
from planner.workload.training import Training

_DAI_BENCHMARKS: Final = "XiongjieDai/GPU-Benchmarks-on-LLM-Inference@aa72e0e"
_ONE_ROW_PRODUCTS: Final = "ai-dynamo/aiconfigurator@095f58a, products of one row"
_FAST: Final = "meta-pytorch/gpt-fast@6ecad9b, A100"
_AWQ: Final = "casper-hansen/AutoAWQ@88e4c76, RTX 4090"
_QWEN: Final = "QwenLM/Qwen3@7a2f61f, H20"

_READ_SHARES: Final[dict[tuple[MemoryClass, Width], MeasuredShare]] = {
    ("GDDR", "16"): MeasuredShare(0.88, f"{_ONE_ROW_PRODUCTS}: L40S 0.84, RTX PRO 6000 0.82 to 0.88"),
    ("GDDR", "8"): MeasuredShare(0.85, f"{_ONE_ROW_PRODUCTS}, as 16 bits"),
    ("GDDR", "4"): MeasuredShare(0.86, _AWQ),
    ("GDDR", "float4"): MeasuredShare(0.50, f"{_ONE_ROW_PRODUCTS}: RTX PRO 6000 0.43 to 0.52"),
    ("HBM", "16"): MeasuredShare(0.80, f"{_FAST}; {_ONE_ROW_PRODUCTS}: A100 0.71 to 0.76, H100 0.81 to 0.86"),
    ("HBM", "8"): MeasuredShare(0.75, f"{_FAST}; {_QWEN}; {_ONE_ROW_PRODUCTS}: H100 0.57 to 0.76"),
    ("HBM", "4"): MeasuredShare(0.58, f"{_FAST}; {_QWEN}; {_ONE_ROW_PRODUCTS}: A100 0.56"),
    ("HBM", "float4"): MeasuredShare(0.45, f"{_ONE_ROW_PRODUCTS}: B200 0.25 to 0.43, several rows read faster"),
    ("unified", "16"): MeasuredShare(0.75, f"{_DAI_BENCHMARKS}, Apple, less what llama.cpp's kernels gain"),
    ("unified", "8"): MeasuredShare(0.70, f"{_DAI_BENCHMARKS}, as 16 bits"),
    ("unified", "4"): MeasuredShare(0.60, f"{_DAI_BENCHMARKS}, as 4 bits"),
    ("unified", "float4"): MeasuredShare(0.60, f"{_DAI_BENCHMARKS}, as 4 bits"),
}
_CACHE_SHARE: Final = 0.75 / 0.80
"""Share of the bandwidth that reading the KV cache reaches relative to that of reading weights of 16 bits: 0.75 and
0.80 with stacked memory."""
_CEILING_SOURCE: Final = "large products: ai-dynamo/aiconfigurator@095f58a and stas00/ml-engineering@744d01e (MAMF)"
"""4 bits on Blackwell, and 8 bits on Instinct, are what whole prompts reach on the newer stacks of
NVIDIA/TensorRT-LLM@00f3768 and of MLPerf Inference 5.1; the tables of single products have 0.40 to 0.68 there."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Engine:
    """Time behavior of a serving program; by default kernels are launched together, as with CUDA graphs.

    `layer_seconds` are spent for each layer of each pass: the launch of its kernels and the gaps between them. If they
    are launched one by one from Python (`eager`), the host runs ahead of the GPU, and only the longer of both counts,
    on the GPU with the gaps between the `eager_kernels` of a layer. `quantised_layer_seconds` is the same for formats
    whose names begin with its keys. `expert_layer_seconds` are added for layers with routed experts, whose routing
    takes more kernels; where they were not measured, as much as for `expert_kernels` of the `layer_kernels` of a layer.
    `float4_experts` are the shares of the bandwidth that reading experts in 4-bit floats reaches. `sequence_seconds`
    are spent for each sequence of each pass (scheduling, sampling), and `pass_seconds` for the pass itself, on the
    host; with `schedules_ahead`, while the GPU works on the pass before. `chunk_tokens` is the most tokens of one pass
    of a prompt, None for no limit, unless the workload sets it by the setting `chunk_setting`. `compute_share` is the
    fraction that its products reach of the GPU's large ones. `pointwise_share` is the fraction of passes over memory
    that fused kernels still make. `unpacks_weights` means that quantised weights are dequantised to 16 bits before a
    product with many rows, with `keeps_experts_packed` but those of experts. `elementwise_kernels` are those of a layer
    if the results of one can wait in the cache for the next, and `scalar_bytes_per_clock` the most bytes that they move
    on one multiprocessor if they load one number at a time. `multiplies_as_stored` means that its products read fp8 and
    NVFP4 as stored, and `reads_float4` that it has kernels that read 4-bit floats. `batches_continuously` means that a
    new request replaces each that ends. `overlaps_stages` means that the stages of a pipeline decode different
    sequences at once. `older_host_slowdown` is how much longer launches take in hosts of older GPUs, and
    `stacked_layer_seconds` the time of a layer with stacked memory, whose hosts have slower processors.
    `layer_clock_hz` is the clock of the GPU on which `layer_seconds` of a CUDA graph was measured: the GPU itself
    starts its kernels, and takes longer with a lower clock. With formats that begin with one of `blocking_formats`,
    eager launches do not run ahead of the GPU. A pass over prompts with more than `graph_rows` tokens is no CUDA graph:
    Python launches a layer in `eager_layer_seconds`, one with routed experts in `eager_expert_layer_seconds` more, one
    with a delta net in `eager_delta_layer_seconds`, beside the GPU's work. `fuses_delta_nets` means that one kernel
    takes a delta net through a prompt where the GPU has it. `kernel_tables` is the name of its tables of measured
    kernels, if their sum is the time of a pass, and `kernel_formats` are the tables' formats of products of which that
    is so, `kernel_memory` the kinds of memory on which it is. `measured_decoding` and `measured_prompts` are the
    families of GPUs on which it was measured, by `sources` sources.
    """

    name: str
    layer_seconds: float
    source: str
    eager: bool = False
    eager_kernels: int = 0
    quantised_layer_seconds: Mapping[str, float] = field(default_factory=dict)
    older_host_slowdown: float = 1.0
    expert_layer_seconds: float = 0.0
    layer_kernels: int = 1
    expert_kernels: int = 0
    float4_experts: Mapping[MemoryClass, MeasuredShare] = field(default_factory=dict)
    sequence_seconds: float = 0.0
    pass_seconds: float = 0.0
    schedules_ahead: bool = False
    chunk_tokens: int | None = None
    chunk_setting: str = ""
    compute_share: float = 0.8
    pointwise_share: float = 1.0
    blocking_formats: tuple[str, ...] = ()
    unpacks_weights: bool = False
    keeps_experts_packed: bool = False
    elementwise_kernels: int | None = None
    scalar_bytes_per_clock: float | None = None
    multiplies_as_stored: bool = False
    reads_float4: bool = True
    batches_continuously: bool = False
    overlaps_stages: bool = False
    stacked_layer_seconds: float | None = None
    layer_clock_hz: float | None = None
    eager_layer_seconds: float = 0.0
    eager_expert_layer_seconds: float = 0.0
    eager_delta_layer_seconds: float = 0.0
    fuses_delta_nets: bool = False
    graph_rows: float = inf
    kernel_tables: str | None = None
    kernel_formats: tuple[str, ...] = ("bf16", "fp8", "nvfp4")
    kernel_memory: tuple[MemoryClass, ...] = ("HBM", "GDDR")
    sources: int = 1
    measured_decoding: tuple[Family, ...] = ()
    measured_prompts: tuple[Family, ...] = ()

    def in_setting(self, _setting: TimeSetting) -> "Engine":
        """Return the engine variant for `setting`: by default the engine itself."""
        return self

    def work(self, architecture: Architecture, weights: str) -> PassWork:
        """Return the operations and bytes of a pass over `architecture` with weights in the format `weights`."""
        return work_of(architecture, weights)

    def seconds_per_layer(self, gpu: Gpu, weights: str) -> float:
        """Return the seconds of kernel launches and gaps in one layer of one pass."""
        if self.stacked_layer_seconds is not None and memory_class(gpu) == "HBM":
            return self.stacked_layer_seconds
        slower = self.older_host_slowdown if gpu.architecture in OLDER_HOSTS else 1.0
        if self.layer_clock_hz is not None and gpu.boost_clock_hz is not None:
            slower = self.layer_clock_hz / gpu.boost_clock_hz
        for begins, seconds in self.quantised_layer_seconds.items():
            if weights.startswith(begins):
                return slower * seconds
        return slower * self.layer_seconds

    def eager_seconds(self, work: PassWork, rows: float) -> float:
        """Return the seconds in which Python launches a pass over `rows` tokens of prompts; 0 in a CUDA graph."""
        if rows <= self.graph_rows:
            return 0.0
        plain = work.layers * self.eager_layer_seconds + work.expert_layers * self.eager_expert_layer_seconds
        return plain + work.delta_net_layers * self.eager_delta_layer_seconds

    def passes_in_stages(self, _work: PassWork, costs: Sequence[float], stages: int) -> float:
        """Return the time of a prompt whose chunks take `costs` on one GPU, one after the other, in `stages`.

        **Formula**: (Σ costs + (p − 1) · their mean) ÷ p: all stages work, but for those that wait for the first chunk.
        """
        return sum(costs) * (1 + (stages - 1) / len(costs)) / stages

    def read_share(self, gpu: Gpu, weights: str) -> MeasuredShare:
        """Return the share of the memory bandwidth that reading weights in the format `weights` reaches."""
        width = kernel_width(weights)
        if width == "float4" and not self.multiplies_float4(gpu, weights):
            width = "4"
        return self.read_shares()[memory_class(gpu), width]

    def expert_read_share(self, gpu: Gpu, weights: str) -> MeasuredShare:
        """Return the share of the memory bandwidth that reading routed experts reaches."""
        found = self.float4_experts.get(memory_class(gpu)) if self.multiplies_float4(gpu, weights) else None
        return found or self.read_share(gpu, weights)

    def multiplies_float4(self, gpu: Gpu, weights: str) -> bool:
        """Return whether `gpu` multiplies with weights in 4-bit floats as they are stored."""
        return self.reads_float4 and kernel_width(weights) == "float4" and gpu.rate("fp4") is not None

    def expert_seconds(self, gpu: Gpu, weights: str) -> float:
        """Return the seconds of kernel launches and gaps that routed experts add to a layer of one pass."""
        each = self.seconds_per_layer(gpu, weights) / self.layer_kernels
        return self.expert_layer_seconds + self.expert_kernels * each

    def read_shares(self) -> Mapping[tuple[MemoryClass, Width], MeasuredShare]:
        """Return the shares of the memory bandwidth that reading weights reaches, by kind of memory and width class."""
        return _READ_SHARES

    def cache_share(self, gpu: Gpu, *, unfused: bool) -> MeasuredShare:
        """Return the share of the memory bandwidth that reading the KV cache reaches, in fused or unfused attention."""
        return MeasuredShare(_CACHE_SHARE * _READ_SHARES[memory_class(gpu), "16"].fraction, _ONE_ROW_PRODUCTS)

    def cache_moves(self, _work: PassWork) -> float:
        """Return how many times a decoding step moves the whole KV cache through memory."""
        return 1.0

    def cache_cards(self, work: PassWork, cards: int) -> int:
        """Return the number of GPUs over which the KV cache is split; further GPUs hold copies.

        **Source**: vLLM 0.33 `QKVParallelLinear` (`num_kv_head_replicas`).
        """
        return min(cards, work.key_heads)

    def elementwise_launches(self, _attention: Attention) -> int:
        """Return the element-wise kernels of a layer: by default both norms with their sums, and the activation.

        **Source**: NVIDIA/TensorRT-LLM `attentionOp.cpp` (rotary positions and the cache are written with attention).
        """
        return 3

    def schedulers(self, _work: PassWork, _cards: int) -> int:
        """Return how many processes on the host share the scheduling of the sequences of tensor-parallel GPUs."""
        return 1

    def product_format(self, gpu: Gpu, weights: str, compute: str) -> str:
        """Return the format of the matrix products: the weight format if program and GPU support it."""
        scheme = SCHEMES.get(weights)
        family = scheme.family if scheme else "plain"
        if self.multiplies_as_stored and family == "float8" and gpu.rate("fp8"):
            return "fp8"
        if self.multiplies_as_stored and family == "float4" and weights == "nvfp4" and gpu.rate("fp4"):
            return "fp4"
        return "fp32" if compute == "fp32" or weights in ("fp32", "F32") else "fp16"

    def rate(self, gpu: Gpu, dtype: str) -> float | None:
        """Return one device's dense rate in `dtype`, in operations per second, or None if unknown."""
        return dense_ops_per_s(gpu, dtype)

    def product_share(self, gpu: Gpu, dtype: str) -> MeasuredShare:
        """Return the share of the dense rate in `dtype` that matrix products reach."""
        usual = MeasuredShare(product_ceiling(gpu, dtype) * self.compute_share, _CEILING_SOURCE)
        return cut_down_share(gpu, dtype) or usual


class TrainingPace:
    """Time behavior of a training program; the defaults are those of transformers' layers."""

    def exchanged_format(self, workload: Training, trained: str) -> str:
        """Return the format in which parameters and gradients are sent between GPUs; `trained` is the stored format.

        It has 16 bits if states are sharded.
        """
        return product_format(workload.compute) if workload.parallel.zero else trained

    def hides_tensor_exchange(self) -> bool:
        """Return whether the all-reduces of tensor parallelism overlap with products."""
        return False

    def moved_activations(self, ledger: SavedPerToken) -> SavedPerToken:
        """Return the saved activations in a layer's `ledger` that separate operations move through memory."""
        return ledger
