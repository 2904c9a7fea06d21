"""Memory of the KV cache, and of the fixed-size state of recurrent layers, which have none."""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from typing import NamedTuple

from planner.dtypes import KV_FORMATS
from planner.memory.phases import DeferredTerm
from planner.memory.result import Symbol, Term, TermPart
from planner.memory.terms import format_symbol, model_symbol, term, workload_symbol
from planner.models.architecture import Architecture, Attention, LatentAttention, Layer, StateMixer
from planner.units import ceil_div

_SOURCE = "transformers 5.23 cache_utils: DynamicLayer and DynamicSlidingWindowLayer"
_STATE_BYTES = 4
_SUBSCRIPT = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


class _EqualCacheLayers(NamedTuple):
    """Layers whose caches are equally large: number of layers, name, cached tokens, elements per token."""

    layers: int
    name: str
    tokens: int
    elements: int

    def bytes(self, batch: int, bits: Fraction) -> int:
        """Return the size in bytes of these layers' KV caches for `batch` sequences at `bits` per element."""
        return ceil_div(batch * self.layers * self.tokens * self.elements * bits.numerator, 8 * bits.denominator)


def kv_cache_term(
    architecture: Architecture,
    batch: int,
    tokens: int,
    encoder_tokens: int,
    kv_format: str,
    *,
    prefilling: bool = False,
) -> Term | None:
    """Return the KV cache memory of `batch` sequences of `tokens` tokens each, None if the model has no cache.

    **Formula**: B · Σ over layers nᵢ · eᵢ · c / 8, where nᵢ is the tokens that a layer keeps (the window for sliding
    layers, the encoder's length for cross-attention) and eᵢ the elements per token: 2 · kv heads · head size, or
    the latent and the rotary key for multi-head latent attention.

    **Source**: transformers `cache_utils`. A sliding layer keeps window − 1 tokens as a view: of the whole prompt
    right after prefill (`prefilling`), of those and the newest token in decoding.
    """
    cache = deferred_kv_cache_term(architecture, batch, tokens, encoder_tokens, kv_format, prefilling=prefilling)
    return cache.write() if cache else None


def deferred_kv_cache_term(
    architecture: Architecture,
    batch: int,
    tokens: int,
    encoder_tokens: int,
    kv_format: str,
    *,
    prefilling: bool = False,
) -> DeferredTerm | None:
    """Return the KV cache memory as `kv_cache_term` does, but as a deferred term that is written out on demand."""
    kinds = _equal_caches(architecture, tokens, encoder_tokens, prefilling=prefilling)
    if not kinds:
        return None
    size = sum([kind.bytes(batch, KV_FORMATS[kv_format]) for kind in kinds])
    return DeferredTerm("kv_cache", size, size, size, partial(_write_cache_term, kinds, size, batch, kv_format))


def _write_cache_term(kinds: tuple[_EqualCacheLayers, ...], size: int, batch: int, kv_format: str) -> Term:
    """Return the memory of the KV cache, `size` bytes, with its formula written out."""
    bits = KV_FORMATS[kv_format]
    several = len(kinds) > 1
    marks = [str(number).translate(_SUBSCRIPT) for number in range(1, len(kinds) + 1)] if several else [""]
    products = " + ".join([f"L{mark} × n{mark} × e{mark}" for mark in marks])
    return term(
        "kv_cache",
        size,
        f"B × ({products}) × c / 8" if several else f"B × {products} × c / 8",
        (
            workload_symbol("B", batch, "sequences"),
            *(symbol for kind, mark in zip(kinds, marks, strict=True) for symbol in _cache_symbols(kind, mark)),
            format_symbol("c", float(bits), f"bits per element in {kv_format}"),
        ),
        _SOURCE,
        parts=tuple(_cache_part(kind, batch, bits) for kind in kinds) if several else (),
    )


def state_term(architecture: Architecture, batch: int) -> Term | None:
    """Return the memory of recurrent layers' fixed-size states for `batch` sequences, None without such layers.

    **Formula**: B · layers · (convolution + recurrent elements) · 4 bytes.

    **Assumes** fp32 states, as the reference implementations of Mamba and gated delta nets keep them.
    """
    elements = sum(
        group.count * (mixer.conv_state_elements + mixer.recurrent_state_elements)
        for group in architecture.main.groups
        for mixer in (group.layer.mixer, group.layer.second_mixer)
        if isinstance(mixer, StateMixer)
    )
    if not elements:
        return None
    return term(
        "state",
        batch * elements * _STATE_BYTES,
        "B × e × 4",
        (
            workload_symbol("B", batch, "sequences"),
            model_symbol("e", elements, "state elements per sequence, all layers together"),
        ),
        "Mamba (arXiv 2312.00752 §3) and gated delta net reference states",
    )


@lru_cache(maxsize=1024)
def _equal_caches(
    architecture: Architecture, tokens: int, encoder_tokens: int, *, prefilling: bool
) -> tuple[_EqualCacheLayers, ...]:
    """Return the cached layers of the main stack, grouped by equal cache size."""
    if architecture.kind in ("encoder", "vision-encoder"):
        return ()
    layers: dict[tuple[str, int, int], int] = {}
    for group in architecture.main.groups:
        for elements, window in _cached_elements_and_windows(group.layer):
            kept = tokens if window is None or prefilling else min(tokens, window)
            name = "layers" if window is None else f"sliding layers, window {window:,}"
            layers[name, kept, elements] = layers.get((name, kept, elements), 0) + group.count
        if group.layer.cross_attention is not None:
            key = ("layers' cross-attention", encoder_tokens, 2 * group.layer.cross_attention.kv_dim)
            layers[key] = layers.get(key, 0) + group.count
    return tuple(_EqualCacheLayers(count, *key) for key, count in layers.items())


def _cache_symbols(layers: _EqualCacheLayers, subscript: str) -> tuple[Symbol, ...]:
    """Return the formula symbols for layers with equal caches: number, tokens and elements per token."""
    return (
        model_symbol(f"L{subscript}", layers.layers, layers.name),
        workload_symbol(f"n{subscript}", layers.tokens, "tokens cached per layer"),
        model_symbol(f"e{subscript}", layers.elements, "elements cached per token and layer"),
    )


def _cache_part(layers: _EqualCacheLayers, batch: int, bits: Fraction) -> TermPart:
    """Return the part of the KV cache in layers with equal caches."""
    formula = f"{batch:,} × {layers.layers} × {layers.tokens:,} × {layers.elements:,} × {float(bits):g} / 8"
    return TermPart(
        name=f"{layers.layers} {layers.name}", bytes=layers.bytes(batch, bits), formula=formula, source=_SOURCE
    )


def _cached_elements_and_windows(layer: Layer) -> list[tuple[int, int | None]]:
    """Return (elements per cached token, sliding window or None) for each mixer of `layer` with a cache."""
    cached: list[tuple[int, int | None]] = []
    for mixer in (layer.mixer, layer.second_mixer):
        if isinstance(mixer, LatentAttention):
            cached.append((mixer.latent_dim + mixer.indexer_dim, None))
        elif isinstance(mixer, Attention) and not mixer.kv_shared:
            cached.append((2 * mixer.cached_dim, mixer.window))
    return cached


@lru_cache(maxsize=256)
def without_windows(architecture: Architecture) -> Architecture:
    """Return `architecture` without windows, for caches that are as long as the context in every layer."""
    return with_changed_attention(architecture, lambda mixer: mixer.evolve(window=None))


def with_changed_attention(architecture: Architecture, change: Callable[[Attention], Attention]) -> Architecture:
    """Return `architecture` with `change` made to the attention of each layer of its main stack."""
    groups = []
    for group in architecture.main.groups:
        mixer = group.layer.mixer
        changed = change(mixer) if isinstance(mixer, Attention) else mixer
        groups.append(group.evolve(layer=group.layer.evolve(mixer=changed)))
    main = architecture.main.evolve(groups=tuple(groups))
    return architecture.evolve(stacks=(*architecture.stacks[:-1], main))
