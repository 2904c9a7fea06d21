"""Time of one pass over the network: a decoding step, or a chunk of a prompt."""

from math import hypot, log2
from typing import Final, NamedTuple

from planner.performance.inference.gpu_speed import GpuSpeed
from planner.performance.inference.work import ELEMENT_BYTES, PassWork
from planner.performance.kernels.delta_net import DeltaNetShape, delta_net_seconds
from planner.performance.links import Links

_UNPACKED_FROM: Final = 32
"""Number of rows from which kernels dequantise weights before a matrix product instead of within it."""
_CACHE_SPEED: Final = 2.6
"""Speed of the L2 cache relative to memory: 2.5 to 2.8 in the products of L40S (catalog/kernels, three engines)."""
_PEER_LINK: Final = "PCIe 5"
_PEER_BYTES_PER_S: Final = 43e9
"""Bandwidth of the engines' own all-reduce kernels over PCIe 5.0 between GPUs with peer access.

**Source**: NVIDIA/TensorRT-LLM@00f3768 perf-overview, Qwen3-30B-A3B on 4 RTX PRO 6000: 73,600 tokens a second pass 96
sums each.
"""
STAGE_WAKE_SECONDS: Final = 120e-6
"""Latency of waking the next pipeline stage, in seconds: XiongjieDai/GPU-Benchmarks-on-LLM-Inference@aa72e0e, 1 to 8
RTX 4090. In llama.cpp what one GPU hands to the next goes through the host, which is also the way from a GPU to the
CPU and back."""


_VISITED_OF_128: Final = 0.61
_VISITED_GROWTH: Final = 1 / 6
"""Share of the experts that a prompt's 128 tokens visit, and its growth: 0.61 of them, twice as many for 64 times as
many tokens. Tokens of one text choose alike, while independent choices would reach all.

**Source**: ggml-org/llama.cpp#15346, gpt-oss-20b: time with copies of the visited experts alone relative to that with
all, 0.61, 0.68, 0.73 and 0.86 with 128, 256, 512 and 1,024 tokens; in a network of 128 experts 72 to 95 were visited by
512 tokens.
"""


def visited_share(rows: float) -> float:
    """Return the share of a layer's experts that `rows` tokens of one prompt visit at most.

    **Formula**: 0.61 · (rows ÷ 128)^(1/6), up to 1.
    """
    return min(1.0, _VISITED_OF_128 * float((rows / 128) ** _VISITED_GROWTH))


class OffloadedWeights(NamedTuple):
    """Weights offloaded to host memory.

    `share` of all weights, and `expert_share` of the routed experts of the others, in `expert_layers` layers, are
    multiplied on the host for few rows, at `host_bytes_per_s` and `experts_bytes_per_s`, and copied to the GPU for
    many, at `link_bytes_per_s`; without `host_bytes_per_s` they are always copied.
    """

    share: float = 0.0
    link_bytes_per_s: float = 1.0
    host_bytes_per_s: float | None = None
    expert_share: float = 0.0
    expert_layers: int = 0
    experts_bytes_per_s: float = 1.0

    @property
    def uses_cpu(self) -> bool:
        """Return whether the CPU multiplies with some of the weights."""
        return self.host_bytes_per_s is not None and (self.share > 0 or self.expert_share > 0)

    def bytes(self, work: PassWork, rows: float) -> float:
        """Return the bytes in host memory that a pass over `rows` rows reads, of experts only those that it visits."""
        return self.share * work.read_bytes(rows) + self.expert_share * work.expert_bytes(rows)

    def seconds(self, work: PassWork, rows: float) -> float:
        """Return the seconds that a pass over `rows` rows spends on the offloaded weights.

        **Formula**: few rows W ÷ B + E ÷ B' + l · t, since the CPU's pass through the experts of a layer is handed over
        and back; many rows (W + E · v) ÷ L, v the share of the experts that a prompt visits.

        **Source**: llama.cpp ggml-cuda.cu `offload_op` (32 rows, GGML_OP_OFFLOAD_MIN_BATCH), and ggml-backend.cpp,
        which copies no experts but those that are visited (ggml-org/llama.cpp#15346).

        **Assumes** that the copies are from pinned memory, as with `--load-mode none`.
        """
        others, experts = self.share * work.read_bytes(rows), self.expert_share * work.expert_bytes(rows)
        if self.host_bytes_per_s is not None and rows < _UNPACKED_FROM:
            waits = self.expert_layers * STAGE_WAKE_SECONDS
            return others / self.host_bytes_per_s + experts / self.experts_bytes_per_s + waits
        held = self.expert_share * sum([kind.bytes for kind in work.experts])
        return (others + min(experts, visited_share(rows) * held)) / self.link_bytes_per_s


class ModelSplit(NamedTuple):
    """Split of a model over GPUs: tensor-parallel GPUs, pipeline stages, and weights in host memory."""

    links: Links
    tensor: int = 1
    stages: int = 1
    offloaded: OffloadedWeights = OffloadedWeights()

    def all_reduce_seconds(self, size_bytes: float) -> float:
        """Return the seconds of an all-reduce of `size_bytes` over the tensor-parallel GPUs.

        **Formula**: 2 (g − 1) / g · bytes ÷ bus bandwidth + hop · (1 + log₂ g): within a node engines have their own
        kernels for small messages, which do not use a ring.

        **Source**: meta-pytorch/gpt-fast@6ecad9b: 7 to 9 µs on 2 to 8 A100 with NVLink.
        """
        cards = self.tensor
        wire = 2 * (cards - 1) / cards * size_bytes
        if self.links.name == _PEER_LINK:
            return wire / max(_PEER_BYTES_PER_S, self.links.bus_bytes_per_s(cards)) + self._hop_seconds()
        if cards > self.links.cards_per_node:
            return self.links.ring_seconds(cards, wire)
        return wire / self.links.bus_bytes_per_s(cards) + self._hop_seconds()

    def _hop_seconds(self) -> float:
        return self.links.ring_latency_seconds(2) * (1 + log2(self.tensor))


class PassTime(NamedTuple):
    """Seconds of one pass by kind of work; the total is the sum, because no kinds overlap."""

    weights_read: float = 0.0
    compute: float = 0.0
    attention: float = 0.0
    cache_read: float = 0.0
    elementwise: float = 0.0
    dequantisation: float = 0.0
    host: float = 0.0
    tensor_exchange: float = 0.0
    pipeline_transfers: float = 0.0
    offload: float = 0.0
    drafting: float = 0.0

    @property
    def seconds(self) -> float:
        """Return the total time of the pass in seconds."""
        return sum(self)  # a tuple of floats

    def repeated(self, number: float) -> "PassTime":
        """Return the time of `number` equal passes by kind of work."""
        return PassTime(*[part * number for part in self])

    def followed_by(self, other: "PassTime") -> "PassTime":
        """Return the time of this pass followed by the pass `other`."""
        return PassTime(*[own + more for own, more in zip(self, other, strict=True)])


class PassBatch(NamedTuple):
    """Content of one pass: its new tokens, sequences and logits, the cache that it reads, and its attention work.

    `rows` new tokens of `sequences` sequences, of which `outputs` get logits; `cached_bytes` of keys, values and states
    are read, `attention_flops` and `scores` are the attention work between new tokens and their context. `tokens` are
    those of each prompt, or those that a sequence holds while it decodes.
    """

    rows: float
    sequences: float
    outputs: float
    cached_bytes: float
    attention_flops: float
    scores: float
    tokens: float


def pass_time(
    work: PassWork,
    speed: GpuSpeed,
    split: ModelSplit,
    batch: PassBatch,
    kernels: PassTime | None = None,
    experts_seconds: float | None = None,
) -> PassTime:
    """Return the time of one pass over `batch`, with the network's work `work`.

    `kernels` is the time of all kernels with their launches where they were measured; it replaces the classes.
    `experts_seconds` is that of the routed experts where only these were measured.

    **Formula**: √(t_read² + t_products²) + t_experts + t_delta + t_attention + t_pointwise + t_unpack + L · o + 2 · L ·
    t_all-reduce, each t = bytes or operations ÷ (reached rate · GPUs that share them). Reading weights and multiplying
    overlap as in the square root: the products of aiconfigurator's tables with 64 to 1,024 rows on A100 and H100 are
    within 15 % of it. Those of routed experts do not overlap, t_experts = t_read + t_products: with 128 to 512 rows for
    each expert they reach 0.26 to 0.31 of the 16-bit rate on H100 and H200 and 0.22 of that of NVFP4 on B200, and 0.37
    and 0.21 by the sum (medians of vLLM 0.24, ai-dynamo/aiconfigurator@095f58a). Launches from Python (`eager`) count
    only if they take longer than the GPU's work with the gaps between its kernels.

    **Source**: see `planner.performance.software` and `planner.performance.inference.gpu_speed`.
    """
    cards, transfers = split.tensor, _stage_transfer_seconds(work, split, batch)
    if kernels is not None:
        device = kernels._replace(pipeline_transfers=transfers)
        return device._replace(host=_host_seconds(work, speed, batch, cards, device.seconds, 0.0))
    engine = speed.engine
    bandwidth = speed.bytes_per_s * cards
    weights = work.read_bytes(batch.rows)
    offloaded = split.offloaded
    elsewhere = offloaded.bytes(work, batch.rows) if offloaded.host_bytes_per_s else 0.0
    reached = speed.ops_per_s * speed.products.fraction * cards
    dense = (1.0 - offloaded.share if offloaded.host_bytes_per_s else 1.0) * work.fixed_bytes
    read_densely = dense / (bandwidth * speed.read.fraction)
    read = read_densely + (weights - elsewhere - dense) / (bandwidth * speed.expert_read.fraction)
    experts = 2 * work.active_expert_parameters * batch.rows / reached
    products = 2 * (work.parameters * batch.rows + work.head_parameters * batch.outputs) / reached - experts
    if experts_seconds is not None:
        read, experts = read_densely, experts_seconds
    prompt = batch.scores > 0
    deltas = _delta_nets_seconds(work, speed, batch, cards) if prompt else 0.0
    moved = batch.cached_bytes * engine.cache_moves(work)
    elementwise = min(speed.bytes_per_s * speed.pointwise, speed.scalar_bytes_per_s)
    device = PassTime(
        weights_read=read,
        compute=hypot(read_densely, products) - read_densely + experts + deltas,
        attention=_attention_seconds(speed, batch, cards) if prompt else 0.0,
        cache_read=moved / (speed.bytes_per_s * engine.cache_cards(work, cards) * speed.cache.fraction),
        elementwise=elementwise_seconds(work, speed, batch.rows, cards),
        dequantisation=_unpacked_bytes_moved(work, speed, batch, weights) / (elementwise * cards),
        tensor_exchange=_tensor_exchange_seconds(work, split, batch),
        pipeline_transfers=transfers,
        offload=offloaded.seconds(work, batch.rows),
    )
    launches = launch_time(work, speed)
    gaps = work.layers * speed.kernel_gaps_seconds
    return device._replace(host=gaps + _host_seconds(work, speed, batch, cards, device.seconds + gaps, launches))


def elementwise_seconds(work: PassWork, speed: GpuSpeed, rows: float, cards: int) -> float:
    """Return the seconds in which norms, activations and sums over `rows` tokens move their bytes on `cards` GPUs."""
    moved = rows * work.pointwise_bytes / cards
    faster = _cache_gain(speed, moved / work.layers)
    return moved / min(faster * speed.bytes_per_s * speed.pointwise, speed.scalar_bytes_per_s)


def _cache_gain(speed: GpuSpeed, layer_bytes: float) -> float:
    """Return how much faster than memory the element-wise kernels of a layer, which move `layer_bytes`, find inputs.

    **Formula**: 1 / (m + (1 − m) / 2.6), m = 1 / (1 + (cache ÷ bytes of a kernel)⁴), as for weights in
    `planner.performance.kernels.products`.
    """
    kernels = speed.engine.elementwise_kernels
    if kernels is None:
        return 1.0
    missed = 1 / (1 + (speed.cache_bytes * kernels / layer_bytes) ** 4)
    return 1 / (missed + (1 - missed) / _CACHE_SPEED)


def _attention_seconds(speed: GpuSpeed, batch: PassBatch, cards: int) -> float:
    """Return the seconds of attention over a prompt, split over `cards` tensor-parallel GPUs."""
    if speed.unfused:
        return batch.scores * speed.score_bytes / (cards * min(speed.bytes_per_s, speed.scalar_bytes_per_s))
    return batch.attention_flops / (speed.attention_ops_per_s * cards)


def _delta_nets_seconds(work: PassWork, speed: GpuSpeed, batch: PassBatch, cards: int) -> float:
    """Return the seconds in which the delta nets go through a prompt, their heads split over `cards` GPUs."""
    bandwidth, rate, fused = speed.bytes_per_s, speed.attention_ops_per_s, speed.fuses_delta_nets
    seconds, tokens = 0.0, min(batch.tokens, batch.rows)
    for nets in work.delta_nets:
        shape = DeltaNetShape(batch.rows / tokens, tokens, max(1.0, nets.heads / cards), nets.width)
        seconds += nets.layers * delta_net_seconds(shape, bandwidth, rate, fused=fused)
    return seconds


def _unpacked_bytes_moved(work: PassWork, speed: GpuSpeed, batch: PassBatch, weights: float) -> float:
    """Return the bytes that a pass reads and writes to unpack weights; 0 if kernels unpack within the products.

    **Source**: llama.cpp ggml-cuda/mmq.cu `ggml_cuda_should_use_mmq`: experts are multiplied as they are stored, and
    all weights by a card that multiplies bytes only.
    """
    if not speed.engine.unpacks_weights or batch.rows < _UNPACKED_FROM or not work.dequantised_bytes:
        return 0.0
    if speed.dtype == "int8":
        return 0.0
    whole = work.fixed_bytes + sum([kind.bytes for kind in work.experts])
    unpacked = min(weights, work.fixed_bytes) if speed.engine.keeps_experts_packed else weights
    return (1 + work.dequantised_bytes / whole) * unpacked


def _tensor_exchange_seconds(work: PassWork, split: ModelSplit, batch: PassBatch) -> float:
    """Return the seconds of all-reduces between tensor-parallel GPUs in one pass."""
    if split.tensor == 1:
        return 0.0
    return 2 * work.layers * split.all_reduce_seconds(batch.rows * work.hidden * ELEMENT_BYTES)


def _stage_transfer_seconds(work: PassWork, split: ModelSplit, batch: PassBatch) -> float:
    """Return the seconds of transfers between pipeline stages in one pass."""
    if split.stages == 1:
        return 0.0
    size = batch.rows * work.hidden * ELEMENT_BYTES
    return (split.stages - 1) * (STAGE_WAKE_SECONDS + size / split.links.point_to_point_bytes_per_s(split.tensor))


def _host_seconds(
    work: PassWork, speed: GpuSpeed, batch: PassBatch, cards: int, device_seconds: float, launches: float
) -> float:
    """Return the seconds of `launches` and scheduling on the host beyond those that overlap with the GPU's work."""
    host = host_share(work, speed, cards, launches, batch.sequences)
    eager = speed.engine.eager_seconds(work, batch.rows) if batch.scores else 0.0
    return max(host.added_seconds, host.least_seconds + eager - device_seconds)


class HostShare(NamedTuple):
    """Work of the host in a pass: `added_seconds` beside the GPU's work, and a pass takes `least_seconds` at least."""

    added_seconds: float
    least_seconds: float


def host_share(work: PassWork, speed: GpuSpeed, cards: int, launches: float, sequences: float) -> HostShare:
    """Return the host's share of a pass over `sequences` sequences whose kernels take `launches` seconds to start.

    **Formula**: launches L · o + L' · o', hidden behind the GPU if it lags behind the host; scheduling s + b · q,
    hidden behind the pass before if engines schedule ahead.

    **Source**: SGLang's overlap scheduler, TensorRT-LLM's `disable_overlap_scheduler` and vLLM's `async_scheduling`, by
    default since 0.4, 1.0 and 0.14.
    """
    engine = speed.engine
    scheduling = engine.pass_seconds + sequences * speed.sequence_seconds / engine.schedulers(work, cards)
    if speed.hides_launches:
        return HostShare(0.0, launches + scheduling)
    if engine.schedules_ahead:
        return HostShare(launches, scheduling)
    return HostShare(launches + scheduling, 0.0)


def launch_time(work: PassWork, speed: GpuSpeed) -> float:
    """Return the seconds in which the kernels of a pass are started, where the kernels' own times do not have them."""
    return work.layers * speed.layer_seconds + work.expert_layers * speed.expert_layer_seconds
