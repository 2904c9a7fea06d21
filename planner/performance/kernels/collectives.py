"""Time of a collective operation between the cards of one machine."""

from math import log2
from typing import Final, Literal, NamedTuple

from planner.performance.kernels.card import KernelCard, combined_seconds

Collective = Literal["all-reduce", "all-gather", "reduce-scatter", "all-to-all"]
_PASSES: Final[dict[Collective, float]] = {
    "all-reduce": 2.0,
    "all-gather": 1.0,
    "reduce-scatter": 1.0,
    "all-to-all": 1.0,
}


class CollectiveShape(NamedTuple):
    """Sizes of a collective: the number of cards, and the bytes that each sends."""

    cards: float
    sent_bytes: float


class CollectiveCurve(NamedTuple):
    """Fitted parameters of a collective.

    `launch` µs on 2 cards and `hops` how much longer it is on twice as many; `link` share of a card's link bandwidth on
    2 cards and `crowd` how much of it is left on twice as many; `overlap` of the terms; `protocol` µs for √(1 MB), as
    it stands for messages that are too small for the full bandwidth and too large for the latency.
    """

    launch: float
    hops: float
    link: float
    crowd: float
    overlap: float
    protocol: float


def collective_shape(operation: Collective, cards: int, size_bytes: float) -> CollectiveShape:
    """Return the shape of `operation` on `size_bytes` over `cards`.

    **Formula**: each card sends (g − 1) / g of the bytes, an all-reduce twice as much.

    **Source**: NVIDIA/nccl-tests doc/PERFORMANCE.md.
    """
    return CollectiveShape(cards, _PASSES[operation] * (cards - 1) / cards * size_bytes)


def collective_seconds(curve: CollectiveCurve, shape: CollectiveShape, card: KernelCard) -> float:
    """Return the seconds of a collective within one machine.

    **Formula**: (t_latency^q + (bytes ÷ bandwidth)^q + (protocol · √bytes)^q)^(1/q), latency and bandwidth each with a
    factor for every doubling of the cards.

    **Source**: parameters fitted to ai-dynamo/aiconfigurator@095f58a (NCCL, oneCCL and the engines' own kernels).

    **Assumes** that no other traffic shares the links.
    """
    doublings = log2(shape.cards) - 1
    latency = curve.launch * 1e-6 * curve.hops**doublings
    sent = shape.sent_bytes / (card.link_bytes_per_s * curve.link * curve.crowd**doublings)
    protocol = curve.protocol * 1e-6 * (shape.sent_bytes / 1e6) ** 0.5
    return combined_seconds(curve.overlap, latency, sent, protocol)
