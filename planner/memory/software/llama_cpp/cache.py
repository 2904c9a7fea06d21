"""llama.cpp's KV cells and recurrent states, on the card and in host memory.

**Source**: llama.cpp 0.5.0: src/llama-kv-cache.cpp (latent attention keeps no values), src/llama-memory-recurrent.cpp.
"""

from fractions import Fraction
from math import ceil
from typing import Final, NamedTuple

from planner.dtypes import KV_FORMATS
from planner.memory.result import Symbol, Term, TermPart
from planner.memory.software.llama_cpp.setup import LlamaCppSetup
from planner.memory.terms import format_symbol, model_symbol, term, workload_symbol
from planner.models.architecture import Architecture, Attention, LatentAttention, Mixer, StateMixer

_CACHE_SOURCE: Final = "llama.cpp 0.5.0 src/llama-kv-cache.cpp, llama-kv-cache-iswa.cpp"
_STATE_SOURCE: Final = "llama.cpp 0.5.0 src/llama-memory-recurrent.cpp: states in fp32, one row a slot"
_STATE_BYTES: Final = 4


class CacheKind(NamedTuple):
    """Layers with equal caches: their number on the card and in total, cells per cache, elements per cell."""

    on_card: int
    layers: int
    cells: int
    elements: int
    window: int | None

    def bytes(self, layers: int, bits: Fraction) -> int:
        """Return the size in bytes of the caches of `layers` such layers at `bits` per element."""
        return ceil(layers * self.cells * self.elements * bits / 8)


class CacheTerms(NamedTuple):
    """KV cache and state terms on the card, and the bytes of caches and states in host memory."""

    cache: Term | None
    state: Term | None
    host_bytes: int


def cache_terms(architecture: Architecture, setup: LlamaCppSetup, kv_format: str) -> CacheTerms:
    """Return the memory of KV caches and recurrent states of all layers.

    **Formula**: Σ over layers cells · elements · bits / 8, and slots · elements · 4 for states.
    """
    bits = KV_FORMATS[kv_format]
    kinds = _cache_kinds(architecture, setup)
    states = _state_elements(architecture, setup)
    on_host = sum(kind.bytes(kind.layers - kind.on_card, bits) for kind in kinds)
    return CacheTerms(
        _cache_term([kind for kind in kinds if kind.on_card], kv_format),
        _state_term(setup, states[0]) if states[0] else None,
        on_host + setup.slots * states[1] * _STATE_BYTES,
    )


def _cache_kinds(architecture: Architecture, setup: LlamaCppSetup) -> list[CacheKind]:
    """Return the cached layers, grouped by cells per cache, elements per cell and window."""
    if architecture.kind == "encoder":
        return []
    layers: dict[tuple[int, int, int | None], tuple[int, int]] = {}
    for group in architecture.main.groups:
        for mixer in (group.layer.mixer, group.layer.second_mixer):
            if elements := _cell_elements(mixer):
                window = mixer.window if isinstance(mixer, Attention) else None
                key = (setup.streams * setup.cells_of(mixer), elements, window)
                on_card, count = layers.get(key, (0, 0))
                layers[key] = (on_card + setup.layers_on_card_in(group), count + group.count)
    return [CacheKind(on_card, count, *key) for key, (on_card, count) in layers.items()]


def _cell_elements(mixer: Mixer | None) -> int:
    """Return the elements of one cache cell: keys and values, or only the latent; 0 without a cache."""
    if isinstance(mixer, LatentAttention):
        return mixer.latent_dim + mixer.indexer_dim
    if isinstance(mixer, Attention) and not mixer.kv_shared:
        return 2 * mixer.kv_dim
    return 0


def _cache_term(kinds: list[CacheKind], kv_format: str) -> Term | None:
    """Return the memory of the KV caches on the card, or None without any."""
    if not kinds:
        return None
    bits = KV_FORMATS[kv_format]
    names = [f"{number}" for number in range(1, len(kinds) + 1)] if len(kinds) > 1 else [""]
    marks = [name.translate(str.maketrans("123456789", "₁₂₃₄₅₆₇₈₉")) for name in names]
    products = " + ".join(f"L{mark} × n{mark} × e{mark}" for mark in marks)
    return term(
        "kv_cache",
        sum(kind.bytes(kind.on_card, bits) for kind in kinds),
        f"({products}) × c / 8" if len(kinds) > 1 else f"{products} × c / 8",
        (
            *(symbol for kind, mark in zip(kinds, marks, strict=True) for symbol in _cache_symbols(kind, mark)),
            format_symbol("c", float(bits), f"bits per element in {kv_format}"),
        ),
        _CACHE_SOURCE,
        parts=tuple(_cache_part(kind, bits) for kind in kinds) if len(kinds) > 1 else (),
    )


def _cache_symbols(kind: CacheKind, subscript: str) -> tuple[Symbol, ...]:
    """Return the formula symbols for layers with equal caches: number, cells and elements per cell."""
    return (
        model_symbol(f"L{subscript}", kind.on_card, _layers_name(kind)),
        workload_symbol(f"n{subscript}", kind.cells, "cells per layer, all sequences together"),
        model_symbol(f"e{subscript}", kind.elements, "elements per cell"),
    )


def _cache_part(kind: CacheKind, bits: Fraction) -> TermPart:
    """Return the part of the KV cache term in layers with equal caches."""
    formula = f"{kind.on_card} × {kind.cells:,} × {kind.elements:,} × {float(bits):g} / 8"
    name = f"{kind.on_card} {_layers_name(kind)}"
    return TermPart(name=name, bytes=kind.bytes(kind.on_card, bits), formula=formula, source=_CACHE_SOURCE)


def _layers_name(kind: CacheKind) -> str:
    """Return the name of these layers in formulas: with their window if they have one."""
    return "layers on the card" if kind.window is None else f"sliding layers on the card, window {kind.window:,}"


def _state_elements(architecture: Architecture, setup: LlamaCppSetup) -> tuple[int, int]:
    """Return the recurrent-state elements per slot on the card, and in host memory."""
    on_card = on_host = 0
    for group in architecture.main.groups:
        for mixer in (group.layer.mixer, group.layer.second_mixer):
            if isinstance(mixer, StateMixer):
                elements = mixer.conv_inputs_kept + mixer.recurrent_state_elements
                on_card += setup.layers_on_card_in(group) * elements
                on_host += (group.count - setup.layers_on_card_in(group)) * elements
    return on_card, on_host


def _state_term(setup: LlamaCppSetup, elements: int) -> Term:
    """Return the memory of the recurrent states on the card: `elements` per slot."""
    return term(
        "state",
        setup.slots * elements * _STATE_BYTES,
        "S × e × 4",
        (
            workload_symbol("S", setup.slots, "number of slots, each with its own state"),
            model_symbol("e", elements, "state elements of all layers on the card"),
        ),
        _STATE_SOURCE,
    )
