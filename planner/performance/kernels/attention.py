"""Time of fused and of latent attention (MLA): over the tokens of a prompt (prefill), and of a new token (decode)."""

from math import ceil
from typing import Final, NamedTuple

from planner.performance.kernels.gpu_figures import GpuFigures, combined_seconds

_BLOCK: Final = 128.0
"""Queries that one multiprocessor handles together (FlashAttention-2, arXiv 2307.08691 §3.3)."""
_KEYS: Final = 64.0
"""Keys that it handles in one step."""
_WIDEST_GROUP: Final = 32
"""Most query heads that share the keys of one kernel; larger groups read them once for each query.

**Source**: NVIDIA/TensorRT-LLM cpp/kernels/xqa (`HEAD_GRP_SIZE`); groups of 48 and more are 2 to 8 times as slow in
ai-dynamo/aiconfigurator@095f58a.
"""


class AttentionShape(NamedTuple):
    """Sizes of attention: sequences, tokens of each, heads, key/value heads, head size, window, bytes in the cache.

    `tokens` are the new tokens of a prompt, or the keys that a new token reads; `window` is 0 without one.
    """

    sequences: float
    tokens: float
    heads: float
    key_heads: float
    head_size: float
    window: float
    cache_bytes: float


class PrefillCurve(NamedTuple):
    """Fitted parameters of attention over new tokens.

    `launch` thousand clock cycles; `matrix` share of the dense rate with heads of 128, `fill` steps of keys that start
    a block, `memory` share of the bandwidth, `overlap` of both; `longest` how much of the longest block is not hidden,
    `windowed` blocks of keys that a window adds, `block` thousand cycles that each block of queries costs. The last
    four are the rate with heads up to 64, 192, 256 and more, relative to 128.
    """

    launch: float
    matrix: float
    fill: float
    memory: float
    overlap: float
    longest: float
    windowed: float
    block: float
    heads_64: float
    heads_192: float
    heads_256: float
    heads_512: float


class DecodeCurve(NamedTuple):
    """Fitted parameters of the attention of one new token.

    `launch` thousand clock cycles; `memory` share of the bandwidth, `unit` of that between one multiprocessor and the
    cache, `start` thousand cycles that each group of keys costs; `matrix` share of the dense rate, `overlap` of all;
    `cache` share of the bandwidth of the L2 cache; `queries` passes over queries and results; `split` the keys (in 64)
    below which a sequence is not split; `wide` and `windowed` how much of the keys is read again for each query in wide
    groups, and with a window. The last four are as in `PrefillCurve`.
    """

    launch: float
    memory: float
    unit: float
    start: float
    matrix: float
    overlap: float
    cache: float
    queries: float
    split: float
    wide: float
    windowed: float
    heads_64: float
    heads_192: float
    heads_256: float
    heads_512: float


def attention_prefill_seconds(curve: PrefillCurve, shape: AttentionShape, gpu: GpuFigures) -> float:
    """Return the seconds of causal attention over `shape.tokens` new tokens of each sequence.

    **Formula**: launch + (t_products^q + t_bytes^q)^(1/q); t_products = (blocks · mean keys ÷ multiprocessors +
    longest · keys of the last block) · 4 · 128 · head size ÷ rate of a multiprocessor + block · waves.

    **Source**: Dao 2023, arXiv 2307.08691 §3 (one block of queries on one multiprocessor); parameters fitted to
    ai-dynamo/aiconfigurator@095f58a.

    **Assumes** that long blocks start first, and that the keys of a window are skipped in whole steps.
    """
    tokens = shape.tokens
    reach = min(tokens, shape.window + tokens * (shape.window == 0))
    mean = (reach * (reach + 1) / 2 + (tokens - reach) * reach) / tokens
    size = _head_factor(shape, curve)
    key = 4 * shape.head_size * _BLOCK * gpu.multiprocessors / (gpu.ops_per_s * curve.matrix * size)
    added = curve.fill * _KEYS + (reach < tokens) * curve.windowed * _BLOCK
    blocks = shape.sequences * shape.heads * ceil(tokens / _BLOCK)
    waves = blocks / gpu.multiprocessors
    products = key * (waves * (mean + added) + curve.longest * (reach + added))
    products = products + max(waves, 1.0) * gpu.cycles_seconds(curve.block)
    each = 4 * shape.heads + 2 * (2 + shape.cache_bytes) * shape.key_heads
    read = shape.sequences * tokens * shape.head_size * each / (gpu.bytes_per_s * curve.memory)
    return gpu.cycles_seconds(curve.launch) + combined_seconds(curve.overlap, products, read)


def attention_decode_seconds(curve: DecodeCurve, shape: AttentionShape, gpu: GpuFigures) -> float:
    """Return the seconds in which one new token of each sequence attends to `shape.tokens` keys.

    **Formula**: launch + (t_bytes^q + t_products^q + t_serial^q)^(1/q) + passes over queries and results; t_serial =
    waves · (start + keys of a part ÷ bandwidth of a multiprocessor), where sequences are split into parts while
    multiprocessors are idle.

    **Source**: Dao et al. 2023, Flash-Decoding (splits); parameters fitted to ai-dynamo/aiconfigurator@095f58a.

    **Assumes** that the keys of a group of heads are read once, except as `wide` and `windowed` say.
    """
    group, size = shape.heads / shape.key_heads, _head_factor(shape, curve)
    again = 1 + (curve.wide * (group > _WIDEST_GROUP) + curve.windowed * (shape.window > 0)) * (group - 1)
    key = 2 * shape.head_size * shape.cache_bytes
    sequences = shape.sequences * shape.key_heads * again
    moved = sequences * shape.tokens * key
    parts = min(max(gpu.multiprocessors / sequences, 1.0), max(shape.tokens / (_KEYS * curve.split), 1.0))
    waves = max(1.0, sequences * parts / gpu.multiprocessors)
    alone = shape.tokens / parts * key / (gpu.port_bytes_per_s * curve.unit * size)
    serial = waves * (gpu.cycles_seconds(curve.start) + alone)
    missed = 1 / (1 + (gpu.cache_bytes / moved) ** 4)
    cached = gpu.port_bytes_per_s * gpu.multiprocessors * curve.cache
    read = moved / size * (missed / (gpu.bytes_per_s * curve.memory) + (1 - missed) / cached)
    multiplied = shape.sequences * shape.key_heads * max(group, 16.0) * shape.tokens * 4 * shape.head_size
    products = multiplied / (gpu.ops_per_s * curve.matrix)
    passes = curve.queries * 4 * shape.sequences * shape.heads * shape.head_size / gpu.bytes_per_s
    return gpu.cycles_seconds(curve.launch) + combined_seconds(curve.overlap, read, products, serial) + passes


def _head_factor(shape: AttentionShape, curve: PrefillCurve | DecodeCurve) -> float:
    """Return the rate of a kernel with heads of this size, relative to heads of 128."""
    size = shape.head_size
    middle = curve.heads_192 ** ((size > 128) * (size <= 192)) * curve.heads_256 ** ((size > 192) * (size <= 256))
    return float(curve.heads_64 ** (size <= 64) * middle * curve.heads_512 ** (size > 256))


_QUERY, _VALUE, _LATENT, _ROTARY = 192.0, 128.0, 512.0, 64.0
"""Sizes of queries, values, latents and rotary parts.

**Source**: DeepSeek-V2, arXiv 2405.04434 §3.1.2; the same in DeepSeek-V3 and Kimi K2."""
_GROUP: Final = 64.0
"""Heads that read the latents together."""


class LatentShape(NamedTuple):
    """Sizes of latent attention: sequences, new tokens or cached tokens of each, heads, bytes of a cached element."""

    sequences: float
    tokens: float
    heads: float
    cache_bytes: float


class LatentPrefillCurve(NamedTuple):
    """Fitted parameters of latent attention over new tokens; as in `PrefillCurve`, the `launch` in µs.

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


class LatentDecodeCurve(NamedTuple):
    """Fitted parameters of the latent attention of one new token; as in `DecodeCurve`, the `launch` in µs."""

    launch: float
    memory: float
    unit: float
    start: float
    matrix: float
    overlap: float
    queries: float
    split: float
    cache: float


def latent_prefill_seconds(curve: LatentPrefillCurve, shape: LatentShape, gpu: GpuFigures) -> float:
    """Return the seconds of causal latent attention over `shape.tokens` new tokens, with keys and values unfolded.

    **Formula**: as `attention_prefill_seconds` with 2 · (192 + 128) operations for each pair, plus the products that
    unfold 512 latents into keys and values of each head.

    **Source**: DeepSeek-V2, arXiv 2405.04434 §2.1; parameters fitted to ai-dynamo/aiconfigurator@095f58a.

    **Assumes** the sizes of DeepSeek's models.
    """
    tokens = shape.tokens
    key = 2 * (_QUERY + _VALUE) * _BLOCK * gpu.multiprocessors / (gpu.ops_per_s * curve.matrix)
    waves = shape.sequences * shape.heads * ceil(tokens / _BLOCK) / gpu.multiprocessors
    added = curve.fill * _KEYS
    products = key * (waves * ((tokens + 1) / 2 + added) + curve.longest * (tokens + added))
    products = products + max(waves, 1.0) * gpu.cycles_seconds(curve.block)
    each = 4 * shape.heads * (_QUERY + _VALUE) + 2 * (_LATENT + _ROTARY)
    read = shape.sequences * tokens * each / (gpu.bytes_per_s * curve.memory)
    unfolded = 2 * shape.sequences * tokens * _LATENT * shape.heads * 2 * _VALUE / gpu.ops_per_s * curve.unfold
    return curve.launch * 1e-6 + combined_seconds(curve.overlap, products, read) + unfolded


def latent_decode_seconds(curve: LatentDecodeCurve, shape: LatentShape, gpu: GpuFigures) -> float:
    """Return the seconds in which one new token of each sequence attends to `shape.tokens` cached latents.

    **Formula**: as `attention_decode_seconds`: all heads read the same latents of 576 elements.

    **Source**: DeepSeek-V2, arXiv 2405.04434 §2.1 (absorbed projections); parameters fitted to
    ai-dynamo/aiconfigurator@095f58a.

    **Assumes** the sizes of DeepSeek's models.
    """
    key = (_LATENT + _ROTARY) * shape.cache_bytes
    sequences = shape.sequences * ceil(shape.heads / _GROUP)
    parts = min(max(gpu.multiprocessors / sequences, 1.0), max(shape.tokens / (_KEYS * curve.split), 1.0))
    waves = max(1.0, sequences * parts / gpu.multiprocessors)
    alone = shape.tokens / parts * key / (gpu.port_bytes_per_s * curve.unit)
    serial = waves * (gpu.cycles_seconds(curve.start) + alone)
    moved = shape.sequences * shape.tokens * key
    missed = 1 / (1 + (gpu.cache_bytes / moved) ** 4)
    cached = gpu.port_bytes_per_s * gpu.multiprocessors * curve.cache
    read = moved * (missed / (gpu.bytes_per_s * curve.memory) + (1 - missed) / cached)
    multiplied = shape.sequences * max(shape.heads, 16.0) * shape.tokens * 2 * (2 * _LATENT + _ROTARY)
    products = multiplied / (gpu.ops_per_s * curve.matrix)
    passes = curve.queries * 2 * shape.sequences * shape.heads * (2 * _LATENT + _ROTARY) / gpu.bytes_per_s
    return curve.launch * 1e-6 + combined_seconds(curve.overlap, read, products, serial) + passes
