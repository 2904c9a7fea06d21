"""Setup of llama.cpp for a workload: slots, micro-batches, layers on the card, KV cells and recurrent states.

**Source**: llama.cpp 0.5.0: src/llama-context.cpp (cells in multiples of 256, rows with an output),
src/llama-kv-cache.cpp (latent attention keeps no values), src/llama-kv-cache-iswa.cpp (cells of sliding layers),
src/llama-memory-recurrent.cpp, src/llama-model.cpp load_tensors (layers on the card), tools/server/server.cpp (by
default 4 slots with one cache), common/common.h (batches).
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Final, NamedTuple

from planner.dtypes import AS_STORED, KV_FORMATS
from planner.memory.gguf import block_bytes, expert_layer_bytes, gguf_category, layer_bytes, tensor_bytes
from planner.memory.inference.engine import verified_rows
from planner.memory.result import Symbol, Term, TermPart
from planner.memory.software.llama_cpp.graph import NO_COPIES, ExpertCopies
from planner.memory.terms import format_symbol, model_symbol, term, workload_symbol
from planner.models.architecture import Architecture, Attention, LatentAttention, LayerGroup, Mixer, StateMixer, Tensor
from planner.units import ceil_div
from planner.workload.software.llama_cpp import LlamaCppSettings
from planner.workload.workload import Inference

CELLS: Final = 256
"""Multiple to which llama.cpp rounds up the number of cells in a KV cache."""
_SERVER_SLOTS: Final = 4
BATCH: Final = 2_048
_MICRO_BATCH: Final = 512


class LlamaCppSetup(NamedTuple):
    """Resolved settings of llama.cpp, such as slots; there are `streams` caches with `cells` cells each."""

    slots: int
    streams: int
    cells: int
    tokens: int
    outputs: int
    unified: bool
    swa_full: bool
    layers: int
    layers_on_card: int
    output_on_card: bool
    experts_in_ram: frozenset[int] = frozenset()
    """Numbers of the layers whose routed experts are in RAM, counted from the first layer of this card."""

    def sliding_cells(self, window: int) -> int:
        """Return the number of cells in the cache of a layer with a sliding window of `window` tokens.

        **Formula**: pad256(min(cells, window · (slots if they share a cache, else 1) + micro-batch)).
        """
        if self.swa_full:
            return self.cells
        return padded_cells(min(self.cells, window * (self.slots if self.unified else 1) + self.tokens))

    def cells_of(self, mixer: object) -> int:
        """Return the number of cells in the cache of a layer with `mixer`."""
        window = mixer.window if isinstance(mixer, Attention) else None
        return self.cells if window is None else self.sliding_cells(window)

    def layers_on_card_in(self, group: LayerGroup) -> int:
        """Return how many layers of `group` are on the card, where llama.cpp places the last layers of the network."""
        first = self.layers - self.layers_on_card
        places = group.places or range(group.count)
        return sum(place >= first for place in places)


def padded_cells(cells: int) -> int:
    """Return `cells` rounded up to a multiple of 256."""
    return ceil_div(cells, CELLS) * CELLS


def setup_of(architecture: Architecture, workload: Inference) -> LlamaCppSetup:
    """Return the resolved settings with which llama-server runs `workload` (defaults filled in).

    Without `gpu_layers` everything is on the card; otherwise the output is placed there first, and the last layers
    follow.
    """
    settings = workload.settings_as(LlamaCppSettings)
    slots = max(settings.slots or max(_SERVER_SLOTS, workload.batch), workload.batch)
    unified = settings.kv_unified if settings.kv_unified is not None else settings.slots is None
    context = workload.context_length or 1
    cells = padded_cells(workload.batch * context if unified else context)
    streams = 1 if unified else slots
    batch = min(settings.n_batch or BATCH, cells * streams)
    tokens = min(settings.n_ubatch or _MICRO_BATCH, batch)
    rows = verified_rows(workload, slots)
    layers = architecture.main.layer_count
    requested_layers = layers + 1 if workload.gpu_layers is None else min(workload.gpu_layers, layers + 1)
    first = architecture.main.first_place
    return LlamaCppSetup(
        slots=slots,
        streams=streams,
        cells=cells,
        tokens=ceil_div(tokens, slots) * slots,
        outputs=min(max(settings.n_outputs_max or rows, rows), tokens),
        unified=unified,
        swa_full=bool(settings.swa_full),
        layers=layers,
        layers_on_card=max(requested_layers - 1, 0),
        output_on_card=requested_layers > 0,
        experts_in_ram=frozenset(layer for layer in range(layers) if settings.has_experts_in_ram(first + layer)),
    )


_SOURCE: Final = "llama.cpp 0.5.0 src/llama-model.cpp load_tensors; bytes of each tensor by its block type"


class PlacedWeights(NamedTuple):
    """The weights on the card as a term, the weight bytes in host memory, and the largest matrix of a layer there.

    `layers_with_experts_in_ram` are the layers on the card whose routed experts are not; their matrices are copied to
    it as `expert_copies`.
    """

    term: Term
    host_bytes: int
    largest_on_host: int
    layers_with_experts_in_ram: int
    expert_copies: ExpertCopies


@lru_cache(maxsize=256)
def placed_weights(architecture: Architecture, file_type: str, setup: LlamaCppSetup) -> PlacedWeights:
    """Return the weights on the card and in host memory, split by the setup's layers on the card.

    **Formula**: card = Σ bytes of the layers on it, without routed experts kept in RAM, + output; RAM = token
    embedding + the other layers + those experts.
    """
    bytes_of = tensor_bytes(architecture, file_type)
    by_layer, experts = layer_bytes(architecture, file_type), _experts_in_ram(architecture, file_type, setup)
    on_card = sum(by_layer[setup.layers - setup.layers_on_card :]) - sum(experts)
    in_layers = bytes_of["layers"]
    towers = in_layers - sum(by_layer)
    copied = bytes_of["embedding"] if architecture.tied_head else 0
    output = (bytes_of["output"] + bytes_of["other"] + towers + copied) if setup.output_on_card else 0
    held = bytes_of["embedding"] + sum(by_layer) - on_card
    if not setup.output_on_card:
        held += bytes_of["output"] + bytes_of["other"] + towers
    return PlacedWeights(
        _weights_on_card_term(on_card, output, setup, sum(experts), len(experts), tied=architecture.tied_head),
        held,
        _largest_matrix_bytes(architecture, file_type) if setup.layers_on_card < setup.layers else 0,
        len(experts),
        _expert_copies(architecture, file_type) if experts else NO_COPIES,
    )


def _experts_in_ram(architecture: Architecture, file_type: str, setup: LlamaCppSetup) -> tuple[int, ...]:
    """Return the bytes of the routed experts that are in RAM, of each layer on the card that has such."""
    if not setup.experts_in_ram:
        return ()
    first = setup.layers - setup.layers_on_card
    sizes = enumerate(expert_layer_bytes(architecture, file_type))
    return tuple(size for layer, size in sizes if size and layer >= first and layer in setup.experts_in_ram)


def _weights_on_card_term(
    layer_weight_bytes: int, output_bytes: int, setup: LlamaCppSetup, ram_bytes: int, ram_layers: int, *, tied: bool
) -> Term:
    """Return the memory of the weights on the card: `layer_weight_bytes` bytes and `output_bytes` bytes.

    The routed experts of `ram_layers` of the layers, `ram_bytes` bytes, are in RAM instead.
    """
    again = ", the tied embedding once more" if tied else ""
    without = f", without experts of {ram_layers} layers in RAM ({ram_bytes:,} bytes)" if ram_layers else ""
    return term(
        "weights",
        layer_weight_bytes + output_bytes,
        "L + O",
        (
            model_symbol("L", layer_weight_bytes, f"bytes of {setup.layers_on_card} of {setup.layers} layers{without}"),
            model_symbol(
                "O", output_bytes, f"bytes of the output layer{again}; the token embedding stays in host memory"
            ),
        ),
        _SOURCE,
        parts=(
            TermPart(
                name=f"{setup.layers_on_card} of {setup.layers} layers",
                bytes=layer_weight_bytes,
                formula="L",
                source=_SOURCE,
            ),
            TermPart(name="output", bytes=output_bytes, formula="O", source=_SOURCE),
        ),
    )


def _largest_matrix_bytes(architecture: Architecture, file_type: str) -> int:
    """Return the bytes of the largest matrix of any layer, all experts together."""
    return max(size for _, size in _matrices(architecture, file_type))


def _expert_copies(architecture: Architecture, file_type: str) -> ExpertCopies:
    """Return the largest bytes of expert matrices: those before the down projection, and the down projection."""
    sizes = {True: 0, False: 0}
    for tensor, size in _matrices(architecture, file_type):
        if tensor.role == "expert":
            is_down = gguf_category(tensor) == "down"
            sizes[is_down] = max(sizes[is_down], size)
    return ExpertCopies(sizes[False], sizes[True])


def _matrices(architecture: Architecture, file_type: str) -> Iterator[tuple[Tensor, int]]:
    """Yield the tensors of each kind of layer with their bytes, all experts together.

    Where a mixture gives some layers more bits, they have those.

    **Source**: llama.cpp 0.5.0 conversion/: gate and up projections of experts are two tensors, though a checkpoint may
    have one.
    """
    for group in architecture.main.groups:
        places = group.places or range(group.count)
        for tensor in group.layer.tensors:
            parts = 2 if tensor.role == "expert" and "gate_up" in tensor.name else 1
            if file_type == AS_STORED:
                elements = tensor.parameters // parts
                yield tensor, elements * architecture.stored_bytes // max(architecture.parameters, 1)
            else:
                yield tensor, max(block_bytes(architecture, tensor, file_type, places)) // parts


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
    return "layers on the GPU" if kind.window is None else f"sliding layers on the GPU, window {kind.window:,}"


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
            model_symbol("e", elements, "state elements of all layers on the GPU"),
        ),
        _STATE_SOURCE,
    )
