"""Time of latent attention (MLA): over new tokens, and of one new token over cached latents."""

from math import ceil
from typing import Final, NamedTuple

from planner.performance.kernels.card import KernelCard, combined_seconds

_QUERY, _VALUE, _LATENT, _ROTARY = 192.0, 128.0, 512.0, 64.0
"""Sizes of queries, values, latents and rotary parts.

**Source**: DeepSeek-V2, arXiv 2405.04434 §3.1.2; the same in DeepSeek-V3 and Kimi K2."""
_BLOCK: Final = 128.0
_KEYS: Final = 64.0
_GROUP: Final = 64.0
"""Heads that read the latents together."""


class LatentShape(NamedTuple):
    """Sizes of latent attention: sequences, new tokens or cached tokens of each, heads, bytes of a cached element."""

    sequences: float
    tokens: float
    heads: float
    cache_bytes: float


class LatentReadCurve(NamedTuple):
    """Fitted parameters of latent attention over new tokens; as in `attention.ReadCurve`, but for the `launch` in µs.

    Triton's kernels, of which it consists in vLLM and SGLang, are started by the host.

    `unfold` is the inverse of the share of the rate at which latents are turned into keys and values.
    """

    launch: float
    matrix: float
    fill: float
    memory: float
    overlap: float
    longest: float
    block: float
    unfold: float


class LatentWriteCurve(NamedTuple):
    """Fitted parameters of the latent attention of one new token; as in `attention.WriteCurve`, the `launch` in µs."""

    launch: float
    memory: float
    unit: float
    start: float
    matrix: float
    overlap: float
    queries: float
    split: float
    cache: float


def latent_read_seconds(curve: LatentReadCurve, shape: LatentShape, card: KernelCard) -> float:
    """Return the seconds of causal latent attention over `shape.tokens` new tokens, with keys and values unfolded.

    **Formula**: as `attention_read_seconds` with 2 · (192 + 128) operations for each pair, plus the products that
    unfold 512 latents into keys and values of each head.

    **Source**: DeepSeek-V2, arXiv 2405.04434 §2.1; parameters fitted to ai-dynamo/aiconfigurator@095f58a.

    **Assumes** the sizes of DeepSeek's models.
    """
    tokens = shape.tokens
    key = 2 * (_QUERY + _VALUE) * _BLOCK * card.multiprocessors / (card.ops_per_s * curve.matrix)
    waves = shape.sequences * shape.heads * ceil(tokens / _BLOCK) / card.multiprocessors
    added = curve.fill * _KEYS
    products = key * (waves * ((tokens + 1) / 2 + added) + curve.longest * (tokens + added))
    products = products + max(waves, 1.0) * card.cycles_seconds(curve.block)
    each = 4 * shape.heads * (_QUERY + _VALUE) + 2 * (_LATENT + _ROTARY)
    read = shape.sequences * tokens * each / (card.bytes_per_s * curve.memory)
    unfolded = 2 * shape.sequences * tokens * _LATENT * shape.heads * 2 * _VALUE / card.ops_per_s * curve.unfold
    return curve.launch * 1e-6 + combined_seconds(curve.overlap, products, read) + unfolded


def latent_write_seconds(curve: LatentWriteCurve, shape: LatentShape, card: KernelCard) -> float:
    """Return the seconds in which one new token of each sequence attends to `shape.tokens` cached latents.

    **Formula**: as `attention_write_seconds`: all heads read the same latents of 576 elements.

    **Source**: DeepSeek-V2, arXiv 2405.04434 §2.1 (absorbed projections); parameters fitted to
    ai-dynamo/aiconfigurator@095f58a.

    **Assumes** the sizes of DeepSeek's models.
    """
    key = (_LATENT + _ROTARY) * shape.cache_bytes
    sequences = shape.sequences * ceil(shape.heads / _GROUP)
    parts = min(max(card.multiprocessors / sequences, 1.0), max(shape.tokens / (_KEYS * curve.split), 1.0))
    waves = max(1.0, sequences * parts / card.multiprocessors)
    alone = shape.tokens / parts * key / (card.port_bytes_per_s * curve.unit)
    serial = waves * (card.cycles_seconds(curve.start) + alone)
    moved = shape.sequences * shape.tokens * key
    missed = 1 / (1 + (card.cache_bytes / moved) ** 4)
    cached = card.port_bytes_per_s * card.multiprocessors * curve.cache
    read = moved * (missed / (card.bytes_per_s * curve.memory) + (1 - missed) / cached)
    multiplied = shape.sequences * max(shape.heads, 16.0) * shape.tokens * 2 * (2 * _LATENT + _ROTARY)
    products = multiplied / (card.ops_per_s * curve.matrix)
    passes = curve.queries * 2 * shape.sequences * shape.heads * (2 * _LATENT + _ROTARY) / card.bytes_per_s
    return curve.launch * 1e-6 + combined_seconds(curve.overlap, read, products, serial) + passes
