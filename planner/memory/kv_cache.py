"""Keys and values kept for decoding, and the fixed-size state of layers that keep no cache."""

from fractions import Fraction
from math import ceil

from planner.dtypes import KV_FORMATS
from planner.memory.result import Part, Term
from planner.memory.terms import model, number_format, term
from planner.memory.terms import workload as chosen
from planner.models.architecture import Architecture, Attention, LatentAttention, Layer, StateMixer

_SOURCE = "transformers 5.23 cache_utils: DynamicLayer and DynamicSlidingWindowLayer"
_STATE_BYTES = 4


def kv_cache_term(
    architecture: Architecture,
    batch: int,
    tokens: int,
    encoder_tokens: int,
    kv_format: str,
    *,
    prefilling: bool = False,
) -> Term | None:
    """Return the cache of `batch` sequences of `tokens` tokens each, or none if the model keeps no cache.

    **Formula**: B · Σ over layers nᵢ · eᵢ · c / 8, where nᵢ is the tokens that a layer keeps (the window for sliding
    layers, the encoder's length for cross-attention) and eᵢ the elements per token: 2 · kv heads · head size, or
    the latent and the rotary key for multi-head latent attention.

    **Source**: transformers `cache_utils`. A sliding layer keeps window − 1 tokens as a view: of the whole prompt
    right after prefill (`prefilling`), of those and the newest token in decoding.
    """
    bits = KV_FORMATS[kv_format]
    parts = tuple(_parts(architecture, batch, tokens, encoder_tokens, bits, prefilling))
    if not parts:
        return None
    return term(
        "kv_cache",
        sum(part.bytes for part in parts),
        "B × Σ layers × tokens kept × elements per token × c / 8",
        (
            chosen("B", batch, "sequences"),
            chosen("n", tokens, "tokens of context"),
            number_format("c", float(bits), f"bits per element in {kv_format}"),
        ),
        _SOURCE,
        parts=parts,
    )


def cache_bytes_per_token(layer: Layer, kv_format: str) -> Fraction:
    """Return the bytes that one more token of context adds to `layer`'s cache, sliding windows aside."""
    return sum((Fraction(elements) for elements, _ in _cached(layer)), Fraction(0)) * KV_FORMATS[kv_format] / 8


def state_term(architecture: Architecture, batch: int) -> Term | None:
    """Return the state of layers whose memory does not grow with the context, or none if there are none.

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
        (chosen("B", batch, "sequences"), model("e", elements, "state elements of all layers, per sequence")),
        "Mamba (arXiv 2312.00752 §3) and gated delta net reference states",
    )


def _parts(
    architecture: Architecture, batch: int, tokens: int, encoder_tokens: int, bits: Fraction, prefilling: bool
) -> list[Part]:
    found: list[Part] = []
    if architecture.kind in ("encoder", "vision-encoder"):
        return found
    for group in architecture.main.groups:
        for elements, window in _cached(group.layer):
            kept = tokens if window is None or prefilling else min(tokens, window)
            name = f"{group.count} layers" if window is None else f"{group.count} sliding layers, window {window:,}"
            found.append(_part(name, batch, group.count, kept, elements, bits))
        if group.layer.cross_attention is not None:
            elements = 2 * group.layer.cross_attention.kv_dim
            name = f"cross-attention of {group.count} layers"
            found.append(_part(name, batch, group.count, encoder_tokens, elements, bits))
    return found


def _part(name: str, batch: int, layers: int, tokens: int, elements: int, bits: Fraction) -> Part:
    formula = f"{batch:,} × {layers} × {tokens:,} × {elements:,} × {float(bits):g} / 8"
    return Part(name=name, bytes=ceil(batch * layers * tokens * elements * bits / 8), formula=formula, source=_SOURCE)


def _cached(layer: Layer) -> list[tuple[int, int | None]]:
    """Return (elements per token, window) of each mixer of `layer` that has a cache."""
    cached: list[tuple[int, int | None]] = []
    for mixer in (layer.mixer, layer.second_mixer):
        if isinstance(mixer, LatentAttention):
            cached.append((mixer.latent_dim + mixer.indexer_dim, None))
        elif isinstance(mixer, Attention) and not mixer.kv_shared:
            cached.append((2 * mixer.kv_dim, mixer.window))
    return cached
