"""The moments of llama.cpp: everything it needs is reserved before the first token."""

from functools import lru_cache
from typing import Final

from planner.memory.engines.llama_cpp_cache import kept_by
from planner.memory.engines.llama_cpp_graph import Batch, Network, compute_buffer_bytes, mask_bytes
from planner.memory.engines.llama_cpp_setup import Setup, setup_of
from planner.memory.engines.llama_cpp_weights import placed_weights
from planner.memory.logits import output_width
from planner.memory.phases import Moment, Moments
from planner.memory.result import Part, Term
from planner.memory.terms import library, model, term
from planner.memory.terms import workload as chosen
from planner.models.architecture import Architecture, Attention, Layer, LayerGroup
from planner.workload.software.llama_cpp import LLAMA_CPP
from planner.workload.workload import Inference

_GRAPH_SOURCE: Final = (
    "llama.cpp 0.5.0 src/llama-graph.cpp, laid out as ggml/src/ggml-alloc.c does; equal to what its CPU build reserves"
)
_OFFLOAD_SOURCE: Final = (
    "llama.cpp 0.5.0 ggml-backend.cpp: weights in RAM are copied to the card for batches of 32 rows"
)
_FLOAT: Final = 4
_UNCHECKED_SHARE: Final = 0.3
"""How far the buffer of blocks that were not held against llama.cpp may be off: an assumption."""
_CHECKED_SHARE: Final = 0.05


def llama_cpp_moments(architecture: Architecture, workload: Inference) -> Moments:
    """Return what is alive on the card in each phase of `workload` (defaults filled in), and what stays in RAM.

    **Formula**: weights on the card + cells + states + compute buffer, from the first token on.
    """
    setup = setup_of(architecture, workload)
    weights = placed_weights(architecture, workload.weights or "F16", setup)
    kept = kept_by(architecture, setup, workload.kv_cache)
    buffer = _buffer_term(architecture, workload, setup, weights.largest_on_host)
    reserved = [item for item in (weights.term, kept.cache, kept.state, buffer) if item is not None and item.bytes]
    return Moments(
        (
            Moment("load", [weights.term], "the layers are on the card"),
            Moment(
                "prefill", reserved, "the whole context and the buffer of one micro-batch are reserved at the start"
            ),
            Moment("decode", reserved, "nothing more is reserved while the answer grows"),
        ),
        dynamic=0,
        host_bytes=weights.host_bytes + kept.host_bytes + _host_buffers(architecture, workload, setup),
        notes=_notes(setup, workload),
    )


def batch_of(architecture: Architecture, workload: Inference, setup: Setup) -> Batch:
    """Return the micro-batch that the compute buffer is reserved for. An encoder attends to the batch itself."""
    encodes = architecture.kind == "encoder"
    flash = workload.attention != "eager"
    windows = [mixer.window for group in architecture.main.groups for mixer in _windowed(group.layer)]
    cells = setup.tokens if encodes else setup.cells
    return Batch(
        tokens=setup.tokens,
        outputs=setup.tokens if encodes else setup.outputs,
        cells=cells,
        sliding_cells=max((setup.sliding_cells(window) for window in windows if window), default=cells),
        flash=flash,
        widened=flash and workload.kv_cache not in ("fp16", "bf16") and not encodes,
    )


def _windowed(layer: Layer) -> list[Attention]:
    return [mixer for mixer in (layer.mixer, layer.second_mixer) if isinstance(mixer, Attention) and mixer.window]


@lru_cache(maxsize=256)
def network_of(architecture: Architecture) -> Network:
    """Return what the graph depends on: each kind of layer in the order that they first stand, and the last layer.

    The last of the kinds stands there twice, behind another and behind its like; more layers change nothing.
    """
    stack = architecture.main
    ordered = sorted(stack.groups, key=lambda group: group.places[0] if group.places else 0)
    kinds = tuple(group.layer for group in ordered)
    return Network(stack.hidden, output_width(architecture), (*kinds, kinds[-1], _last(stack.groups).layer))


def _last(groups: tuple[LayerGroup, ...]) -> LayerGroup:
    return max(groups, key=lambda group: group.places[-1] if group.places else -1)


def _buffer_term(architecture: Architecture, workload: Inference, setup: Setup, copied: int) -> Term:
    network, batch = network_of(architecture), batch_of(architecture, workload, setup)
    graph = compute_buffer_bytes(network, batch)
    known = _is_checked(architecture)
    share = _CHECKED_SHARE if known else _UNCHECKED_SHARE
    beside = (
        (Part(name="largest matrix in RAM, copied", bytes=copied, formula="M", source=_OFFLOAD_SOURCE),)
        if copied
        else ()
    )
    return term(
        "activations",
        graph + copied,
        "G + M" if copied else "G",
        (
            model("G", graph, "bytes of the graph's tensors at the places that the allocator gives them"),
            *((model("M", copied, "bytes of the largest matrix that stays in RAM"),) if copied else ()),
            chosen("u", batch.tokens, "tokens computed at once"),
            library("o", batch.outputs, "rows of logits that are computed at once"),
        ),
        _GRAPH_SOURCE,
        certainty="measured" if known and not copied else "assumed",
        low_bytes=int(graph * (1 - share)),
        high_bytes=int((graph + copied) * (1 + share)),
        parts=(
            Part(name="masks", bytes=mask_bytes(network, batch), formula="cells × u × 2 or 4", source=_GRAPH_SOURCE),
            Part(name="layers", bytes=graph - mask_bytes(network, batch), formula="G − masks", source=_GRAPH_SOURCE),
            *beside,
        ),
    )


def _is_checked(architecture: Architecture) -> bool:
    """Return whether blocks of these kinds were held against the sizes that llama.cpp reserves."""
    return all(
        isinstance(group.layer.mixer, Attention) and group.layer.second_mixer is None
        for group in architecture.main.groups
    ) and architecture.kind in ("decoder", "vision-language")


def _host_buffers(architecture: Architecture, workload: Inference, setup: Setup) -> int:
    """Return the buffers in RAM: the rows of logits that are handed out, and the graph's part there.

    With all layers on the card that part is the embedded tokens and the masks, else a whole graph.
    """
    network = network_of(architecture)
    batch = batch_of(architecture, workload, setup)
    logits = setup.slots * network.width * _FLOAT
    if setup.layers_on_card < setup.layers:
        return logits + compute_buffer_bytes(network, batch._replace(on_card=False, widened=False))
    return logits + network.hidden * batch.tokens * _FLOAT + mask_bytes(network, batch)


def _notes(setup: Setup, workload: Inference) -> tuple[str, ...]:
    cache = "one cache for all of them" if setup.unified else f"a cache of {setup.cells:,} cells for each"
    notes = [
        f"Estimated as {LLAMA_CPP.version} does it: {setup.slots} slots, {cache}, {setup.tokens:,} tokens "
        "computed at once. Its --fit leaves a margin of 1,024 MiB on the card beside this.",
    ]
    if setup.layers_on_card < setup.layers:
        notes.append(
            f"{setup.layers_on_card} of {setup.layers} layers are on the card; the others are computed from RAM."
        )
    return tuple(notes)
