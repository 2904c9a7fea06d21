"""The time of one pass over the network: a step of decoding, or a chunk of a prompt."""

from math import hypot, log2
from typing import Final, NamedTuple

from planner.performance.inference.machine import Machine
from planner.performance.inference.work import Work
from planner.performance.links import Links

_UNPACKED_FROM: Final = 32
"""Rows from which kernels write quantised weights out first instead of multiplying as they read."""
_STREAM_BYTES: Final = 2
_PEERS: Final = "PCIe 5"
_PEER_BYTES_PER_S: Final = 43e9
"""What engines' own sums reach over PCIe 5.0 between cards that read each other's memory.

**Source**: NVIDIA/TensorRT-LLM@00f3768 perf-overview, Qwen3-30B-A3B on 4 RTX PRO 6000: 73,600 tokens a second pass 96
sums each.
"""
_HANDING_ON: Final = 120e-6
"""Seconds to wake the next stage: XiongjieDai/GPU-Benchmarks-on-LLM-Inference@aa72e0e, 1 to 8 RTX 4090."""


class Away(NamedTuple):
    """Weights that wait in the host's memory.

    `share` of them are multiplied where they are by few rows, at `host_bytes_per_s`, and brought to the card for many,
    at `link_bytes_per_s`; without the former they are always brought.
    """

    share: float = 0.0
    link_bytes_per_s: float = 1.0
    host_bytes_per_s: float | None = None

    def seconds(self, weights: float, rows: float) -> float:
        """Return how long a pass over `rows` rows spends on its share of `weights` bytes."""
        if self.host_bytes_per_s is not None and rows < _UNPACKED_FROM:
            return self.share * weights / self.host_bytes_per_s
        return self.share * weights / self.link_bytes_per_s


class Sharing(NamedTuple):
    """Cards that share each matrix, stages of consecutive layers, and what waits in the host's memory."""

    links: Links
    tensor: int = 1
    stages: int = 1
    away: Away = Away()

    def sum_seconds(self, count_bytes: float) -> float:
        """Return how long the cards that share matrices take to sum `count_bytes` that each of them holds.

        **Formula**: 2 (g − 1) / g · bytes ÷ bus bandwidth + hop · (1 + log₂ g): within a node engines have kernels of
        their own for small messages, which do not go around a ring.

        **Source**: meta-pytorch/gpt-fast@6ecad9b: 7 to 9 µs on 2 to 8 A100 with NVLink.
        """
        cards = self.tensor
        wire = 2 * (cards - 1) / cards * count_bytes
        if self.links.name == _PEERS:
            return wire / max(_PEER_BYTES_PER_S, self.links.bus_bytes_per_s(cards)) + self._hops()
        if cards > self.links.node:
            return self.links.ring_seconds(cards, wire)
        return wire / self.links.bus_bytes_per_s(cards) + self._hops()

    def _hops(self) -> float:
        return self.links.latency_seconds(2) * (1 + log2(self.tensor))


class Pass(NamedTuple):
    """Seconds by what they are spent on; they add up, as nothing of them overlaps."""

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

    @property
    def seconds(self) -> float:
        """Return all of them together."""
        return sum(self)  # a tuple of floats

    def times(self, number: float) -> "Pass":
        """Return `number` such passes."""
        return Pass(*[part * number for part in self])

    def plus(self, other: "Pass") -> "Pass":
        """Return both, one after the other."""
        return Pass(*[own + more for own, more in zip(self, other, strict=True)])


class Load(NamedTuple):
    """What one pass works on.

    `rows` new tokens of `sequences` sequences, of which `outputs` get logits; `cached_bytes` of keys, values and states
    are read, `attention_flops` and `scores` are those between the new tokens and what they see.
    """

    rows: float
    sequences: float
    outputs: float
    cached_bytes: float
    attention_flops: float
    scores: float


def pass_time(work: Work, machine: Machine, sharing: Sharing, load: Load) -> Pass:
    """Return the time of one pass.

    **Formula**: √(t_read² + t_products²) + t_attention + t_pointwise + t_unpack + L · o + 2 · L · t_all-reduce, each
    t = bytes or operations ÷ (what the card reaches · cards that share them). Reading weights and multiplying overlap
    as the square root says: the products of aiconfigurator's tables with 64 to 1,024 rows on A100 and H100 lie within
    15 % of it. What Python launches (`eager`) counts only where it takes longer than the card does.

    **Source**: see `planner.performance.software` and `planner.performance.inference.machine`.
    """
    engine, cards = machine.engine, sharing.tensor
    bandwidth = machine.bytes_per_s * cards
    weights = work.read_bytes(load.rows)
    here = 1.0 - sharing.away.share if sharing.away.host_bytes_per_s else 1.0
    read = here * weights / (bandwidth * machine.read.fraction)
    operations = 2 * (work.parameters * load.rows + work.head_parameters * load.outputs)
    products = operations / (machine.ops_per_s * machine.products.fraction * cards)
    prompt = load.scores > 0
    moved = load.cached_bytes * engine.cache_moves(work)
    device = Pass(
        weights_read=read,
        compute=hypot(read, products) - read,
        attention=_attention(machine, load, cards) if prompt else 0.0,
        cache_read=moved / (machine.bytes_per_s * engine.cache_cards(work, cards) * machine.cache.fraction),
        elementwise=load.rows * work.pointwise_bytes / (bandwidth * machine.pointwise),
        dequantisation=_unpacking(work, machine, load, weights) / bandwidth,
        tensor_exchange=_exchange(work, sharing, load),
        pipeline_transfers=_handing_on(work, sharing, load),
        offload=sharing.away.seconds(weights, load.rows),
    )
    return device._replace(host=_host(work, machine, load, device.seconds))


def _attention(machine: Machine, load: Load, cards: int) -> float:
    if machine.unfused:
        return load.scores * machine.score_bytes / (machine.bytes_per_s * cards)
    return load.attention_flops / (machine.attention_ops_per_s * cards)


def _unpacking(work: Work, machine: Machine, load: Load, weights: float) -> float:
    if not machine.engine.unpacks or load.rows < _UNPACKED_FROM or not work.dequantised_bytes:
        return 0.0
    whole = work.fixed_bytes + sum([kind.bytes for kind in work.experts])
    return work.dequantised_bytes * weights / whole


def _exchange(work: Work, sharing: Sharing, load: Load) -> float:
    if sharing.tensor == 1:
        return 0.0
    return 2 * work.layers * sharing.sum_seconds(load.rows * work.hidden * _STREAM_BYTES)


def _handing_on(work: Work, sharing: Sharing, load: Load) -> float:
    if sharing.stages == 1:
        return 0.0
    size = load.rows * work.hidden * _STREAM_BYTES
    return (sharing.stages - 1) * (_HANDING_ON + size / sharing.links.point_bytes_per_s(sharing.tensor))


def _host(work: Work, machine: Machine, load: Load, device: float) -> float:
    launches = work.layers * machine.layer_seconds + load.sequences * machine.sequence_seconds
    return max(0.0, launches - device) if machine.hides_launches else launches
