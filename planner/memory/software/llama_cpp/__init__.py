"""Memory behavior of llama.cpp, which reserves weights, KV cache and compute buffer before the first token."""

from collections.abc import Hashable
from itertools import accumulate
from typing import Final

from planner.hardware.gpu import Gpu
from planner.memory.inference.engine import served_adapters_term, verified_rows
from planner.memory.logits import output_width
from planner.memory.parallel.layer_splitting import without_empty_stages
from planner.memory.phases import PhaseSnapshots, Snapshot
from planner.memory.result import Term, TermPart
from planner.memory.software.base import ServingMemory
from planner.memory.software.llama_cpp.graph import (
    NO_COPIES,
    GraphBatch,
    GraphNetwork,
    compute_buffer_bytes,
    graph_mask_bytes,
)
from planner.memory.software.llama_cpp.setup import (
    BATCH,
    LlamaCppSetup,
    PlacedWeights,
    cache_terms,
    placed_weights,
    setup_of,
)
from planner.memory.terms import library_symbol, model_symbol, term, workload_symbol
from planner.models.architecture import Architecture, Attention, Layer, LayerGroup
from planner.workload.parallel import Parallel
from planner.workload.software.llama_cpp import LLAMA_CPP, LlamaCppSettings
from planner.workload.speculation import Speculation
from planner.workload.workload import Inference

_GRAPH_SOURCE: Final = (
    "llama.cpp 0.5.0 src/llama-graph.cpp, laid out as ggml/src/ggml-alloc.c does; equal to what its CPU build reserves"
)
_OFFLOAD_SOURCE: Final = "llama.cpp 0.5.0 ggml-backend.cpp: weights in RAM are copied to the GPU for batches of 32 rows"
_FLOAT: Final = 4
_UNCHECKED_SHARE: Final = 0.3
"""Assumed relative error of the compute buffer for kinds of layers that were not compared with llama.cpp."""
_CHECKED_SHARE: Final = 0.05
_ADAPTERS: Final = (
    "llama.cpp 0.5.0 src/llama-adapter.cpp: tensors as in the file, which convert_lora_to_gguf.py writes in F32"
)
_DRAFT_SOURCE: Final = "llama.cpp 0.5.0 common/speculative.cpp: a draft has a model and a context of its own"
_DRAFT_SYMBOLS: Final = (
    ("W", ("weights",), "bytes of the draft's weights"),
    ("K", ("kv_cache", "state"), "bytes of its KV cache, for as many cells as the model's"),
    ("G", ("activations",), "bytes of its compute buffer"),
)
_UNREAD_BACKENDS: Final = {"Huawei": "CANN", "Moore Threads": "MUSA"}


class LlamaCpp(ServingMemory):
    """Serving with llama.cpp, which splits layers over cards without NCCL communicators."""

    split_note = (
        "llama.cpp splits the layers in proportion to the GPUs' free memory; the output layer counts as one of them."
    )
    place_decides_formats = True

    def timeline(self, architecture: Architecture, workload: Inference, card_class: Hashable = None) -> PhaseSnapshots:
        """Return the memory on the card in each phase of `workload` (defaults filled in), and in host memory.

        **Formula**: weights on the card + cells + states + compute buffer, from the first token on.
        """
        setup = setup_of(architecture, workload)
        weights = placed_weights(architecture, workload.weights or "F16", setup)
        kept = cache_terms(architecture, setup, workload.kv_cache)
        buffer = _compute_buffer_term(architecture, workload, setup, weights)
        draft = self._draft_timeline(architecture, workload, card_class)
        drafts = [] if draft is None else [_whole_draft_term(draft)]
        adapters = served_adapters_term(architecture, workload, workload.adapters.rank, _FLOAT, _ADAPTERS)
        held = (weights.term, adapters, kept.cache, kept.state, buffer)
        own = [item for item in held if item is not None and item.bytes]
        reserved = [*own, *drafts]
        return PhaseSnapshots(
            (
                Snapshot("load", [weights.term], "the layers are on the GPU"),
                Snapshot(
                    "prefill",
                    reserved,
                    "memory for the whole KV cache and for one physical batch is reserved at the start",
                ),
                Snapshot("decode", reserved, "no more memory is reserved while the answer grows"),
            ),
            dynamic=0,
            host_bytes=weights.host_bytes
            + kept.host_bytes
            + _host_buffer_bytes(architecture, workload, setup)
            + (draft.host_bytes or 0 if draft else 0),
            notes=_setup_notes(setup, workload, weights.layers_with_experts_in_ram),
        )

    def _draft_timeline(
        self, architecture: Architecture, workload: Inference, card_class: Hashable
    ) -> PhaseSnapshots | None:
        """Return the timeline of the network that drafts, which has a context of its own on the card, None without one.

        **Source**: llama.cpp 0.5.0 common/speculative.cpp: as many cells as the model, in F16
        (`--spec-draft-type-k`), all layers on cards.
        """
        if architecture.draft is None:
            return None
        engine = workload.settings_as(LlamaCppSettings).evolve(n_cpu_moe=None, cpu_moe_layers=(), n_outputs_max=None)
        own = workload.evolve(speculation=Speculation(), gpu_layers=None, kv_cache="fp16", engine=engine)
        return self.timeline(architecture.draft, own, card_class)

    def unsupported_reasons(self, workload: Inference, gpu: Gpu) -> tuple[str, ...]:
        """Return the reason why llama.cpp does not run on `gpu`, empty if it does.

        **Source**: llama.cpp 0.5.0 README.md, supported backends: CUDA, HIP, SYCL, Metal, and Vulkan for other GPUs; it
        lists none for TPUs, Trainium or Gaudi, and CANN for Ascend and MUSA for Moore Threads, which were not read.
        """
        if gpu.has_pytorch_build:
            return ()
        if gpu.vendor in _UNREAD_BACKENDS:
            return (
                f"llama.cpp runs on it through {_UNREAD_BACKENDS[gpu.vendor]}, which this estimate does not describe",
            )
        return ("llama.cpp has no backend for this GPU",)

    def split_layers(
        self, architecture: Architecture, workload: Inference, free_bytes: tuple[int, ...] = ()
    ) -> tuple[int, ...]:
        """Return the number of layers on each card, in proportion to its free memory."""
        return layers_by_memory(architecture.depth, free_bytes or (1,) * workload.parallel.pipeline)

    def communication_group_sizes(self, parallel: Parallel) -> dict[str, int]:
        """Return no communication groups, since llama.cpp copies tensors directly from card to card."""
        return {}

    def settings_in_use(self, architecture: Architecture, workload: Inference, gpu: Gpu | None) -> LlamaCppSettings:
        """Return the llama.cpp settings of `workload`, unset ones replaced by llama-server's defaults."""
        setup = setup_of(architecture, workload)
        settings = workload.settings_as(LlamaCppSettings)
        return settings.evolve(
            n_batch=settings.n_batch or BATCH,
            n_ubatch=setup.tokens,
            slots=setup.slots,
            kv_unified=setup.unified,
            swa_full=setup.swa_full,
            n_outputs_max=setup.outputs,
        )


SERVING: Final = LlamaCpp()


def _whole_draft_term(timeline: PhaseSnapshots) -> Term:
    """Return the memory of a draft, all that its own context reserves, as one term."""
    terms = timeline.peak().written()
    parts = (TermPart(name=each.name, bytes=each.bytes, formula=each.formula, source=each.source) for each in terms)
    return term(
        "draft",
        sum([each.bytes for each in terms]),
        "W + K + G",
        tuple(
            model_symbol(name, sum([each.bytes for each in terms if each.name in names]), meaning)
            for name, names, meaning in _DRAFT_SYMBOLS
        ),
        _DRAFT_SOURCE,
        certainty="measured",
        low_bytes=sum([each.low_bytes for each in terms]),
        high_bytes=sum([each.high_bytes for each in terms]),
        parts=tuple(parts),
    )


def layers_by_memory(layers: int, free_bytes: tuple[int, ...]) -> tuple[int, ...]:
    """Return how many of `layers` layers each card holds if split in proportion to the cards' free memory.

    **Formula**: layer i of L + 1, the output counted as one, goes to the first card whose share of all free bytes,
    with those before it, is more than i / (L + 1).

    **Source**: llama.cpp src/llama-model.cpp: `std::upper_bound` over the normalized splits, by default the devices'
    free memory.
    """
    total = sum(free_bytes)
    ends = [free * (layers + 1) for free in accumulate(free_bytes)]
    counts = [0] * len(free_bytes)
    card = 0
    for layer in range(layers):
        while ends[card] <= layer * total:
            card += 1
        counts[card] += 1
    return without_empty_stages(counts)


def reserved_batch(architecture: Architecture, workload: Inference, setup: LlamaCppSetup) -> GraphBatch:
    """Return the micro-batch for which the compute buffer is reserved."""
    encodes = architecture.kind == "encoder"
    flash = workload.attention != "eager"
    windows = [mixer.window for group in architecture.main.groups for mixer in _windowed_attentions(group.layer)]
    cells = setup.tokens if encodes else setup.cells
    return GraphBatch(
        tokens=setup.tokens,
        outputs=setup.tokens if encodes else setup.outputs,
        cells=cells,
        sliding_cells=max((setup.sliding_cells(window) for window in windows if window), default=cells),
        flash=flash,
        widened=flash and workload.kv_cache not in ("fp16", "bf16") and not encodes,
    )


def _windowed_attentions(layer: Layer) -> list[Attention]:
    """Return the attentions of `layer` that have a sliding window."""
    return [mixer for mixer in (layer.mixer, layer.second_mixer) if isinstance(mixer, Attention) and mixer.window]


def graph_network(architecture: Architecture) -> GraphNetwork:
    """Return the layers to lay out in the compute graph: each kind of layer once, and the last layer.

    The last kind appears twice, after another kind and after its own; more layers change nothing.
    """
    stack = architecture.main
    ordered = sorted(stack.groups, key=lambda group: group.places[0] if group.places else 0)
    kinds = tuple(group.layer for group in ordered)
    return GraphNetwork(
        stack.hidden, output_width(architecture), (*kinds, kinds[-1], _last_layer_group(stack.groups).layer)
    )


def _last_layer_group(groups: tuple[LayerGroup, ...]) -> LayerGroup:
    """Return the group that contains the last layer."""
    return max(groups, key=lambda group: group.places[-1] if group.places else -1)


def _compute_buffer_term(
    architecture: Architecture, workload: Inference, setup: LlamaCppSetup, weights: PlacedWeights
) -> Term:
    """Return the memory of the compute buffer, including a copy of the largest matrix left in RAM."""
    offloaded_matrix_bytes = weights.largest_on_host
    copies = NO_COPIES if offloaded_matrix_bytes else weights.expert_copies
    network = graph_network(architecture)
    batch = reserved_batch(architecture, workload, setup)._replace(copies=copies)
    graph = compute_buffer_bytes(network, batch)
    known = _is_compared_with_llama_cpp(architecture)
    share = _CHECKED_SHARE if known else _UNCHECKED_SHARE
    beside = (
        (
            TermPart(
                name="copy of the largest matrix in RAM",
                bytes=offloaded_matrix_bytes,
                formula="M",
                source=_OFFLOAD_SOURCE,
            ),
        )
        if offloaded_matrix_bytes
        else ()
    )
    return term(
        "activations",
        graph + offloaded_matrix_bytes,
        "G + M" if offloaded_matrix_bytes else "G",
        (
            model_symbol("G", graph, "bytes of the graph's tensors, laid out by ggml's allocator"),
            *(
                (model_symbol("M", offloaded_matrix_bytes, "bytes of the largest matrix that stays in RAM"),)
                if offloaded_matrix_bytes
                else ()
            ),
            workload_symbol("u", batch.tokens, "tokens per physical batch"),
            library_symbol("o", batch.outputs, "rows of logits per physical batch"),
        ),
        _GRAPH_SOURCE,
        certainty="measured" if known and not offloaded_matrix_bytes else "assumed",
        low_bytes=int(graph * (1 - share)),
        high_bytes=int((graph + offloaded_matrix_bytes) * (1 + share)),
        parts=(
            TermPart(
                name="masks", bytes=graph_mask_bytes(network, batch), formula="cells × u × 2 or 4", source=_GRAPH_SOURCE
            ),
            TermPart(
                name="layers", bytes=graph - graph_mask_bytes(network, batch), formula="G − masks", source=_GRAPH_SOURCE
            ),
            *beside,
        ),
    )


def _is_compared_with_llama_cpp(architecture: Architecture) -> bool:
    """Return whether estimates for these kinds of layers were compared with sizes that llama.cpp reserves."""
    return all(
        isinstance(group.layer.mixer, Attention) and group.layer.second_mixer is None
        for group in architecture.main.groups
    ) and architecture.kind in ("decoder", "vision-language")


def _host_buffer_bytes(architecture: Architecture, workload: Inference, setup: LlamaCppSetup) -> int:
    """Return the bytes of llama.cpp's host buffers: returned logits, and the graph's part in host memory.

    With all layers on the card that part is the embedded tokens and the masks, otherwise a whole graph.
    """
    network = graph_network(architecture)
    batch = reserved_batch(architecture, workload, setup)
    logits = verified_rows(workload, setup.slots) * network.width * _FLOAT
    if setup.layers_on_card < setup.layers:
        return logits + compute_buffer_bytes(network, batch._replace(on_card=False, widened=False))
    return logits + network.hidden * batch.tokens * _FLOAT + graph_mask_bytes(network, batch)


def _setup_notes(setup: LlamaCppSetup, workload: Inference, expert_layers: int) -> tuple[str, ...]:
    """Return notes on the llama.cpp settings that the estimate assumes."""
    cache = "one shared KV cache" if setup.unified else f"a KV cache of {setup.cells:,} cells each"
    notes = [
        f"Modeled on {LLAMA_CPP.version}: {setup.slots} slots, {cache}, {setup.tokens:,} tokens per "
        "physical batch. llama.cpp's --fit option keeps a further 1,024 MiB of the GPU free.",
    ]
    if setup.layers_on_card < setup.layers:
        notes.append(f"{setup.layers_on_card} of {setup.layers} layers are on the GPU; the others stay in RAM.")
    if expert_layers:
        notes.append(
            f"The routed experts of {expert_layers} of the layers on the GPU are in RAM, where the CPU computes them; "
            "for 32 tokens or more, the GPU copies them and computes."
        )
    return tuple(notes)
