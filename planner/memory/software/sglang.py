"""Memory behavior of SGLang: a static share of what is free at start for weights and cache, the rest for steps.

**Source**: SGLang 0.5.23 (PyPI) `srt/arg_groups/memory_hook.py` (defaults by card, reserve for graphs),
`srt/mem_cache/kv_cache_configurator.py` `_profile_available_bytes` and `resolve_max_num_reqs`,
`srt/model_executor/pool_configurator.py` (bytes of a token), `srt/arg_groups/model_override_base.py`
`get_default_attn_backend`, `srt/distributed/utils.py` `get_pp_indices`.
"""

from collections.abc import Hashable
from functools import lru_cache
from typing import Final, NamedTuple

from planner.dtypes import ELEMENT_BYTES
from planner.hardware.gpu import Gpu
from planner.memory.inference.engine import (
    CachedBytes,
    cache_in_ram,
    draft_term,
    engine_cache_bytes,
    engine_pages_term,
    engine_sampler_terms,
    engine_step_term,
    served_adapters_term,
    shared_pages,
    verified_rows,
    waiting_notes,
)
from planner.memory.logits import output_width
from planner.memory.overhead import fixed_overhead
from planner.memory.phases import PagePool, PhaseSnapshots, Snapshot
from planner.memory.result import Term, TermPart
from planner.memory.software.base import ServingMemory
from planner.memory.terms import library_symbol, model_symbol, term, workload_symbol
from planner.memory.weights import weights_term
from planner.models.architecture import Architecture, LatentAttention
from planner.units import GIB, MIB, ceil_div
from planner.workload.software.sglang import SGLANG, SglangSettings
from planner.workload.workload import Inference

_LIMIT: Final = "max_running_requests"
_LEAST_CAPABILITY: Final = 7.5
_BFLOAT16_CAPABILITY: Final = 8.0
_ROCM_FAMILIES: Final = ("CDNA3", "CDNA4", "CDNA5")
_VOCABULARY: Final = 64
"""Multiple to which SGLang pads the number of vocabulary rows (`DEFAULT_VOCAB_PADDING_SIZE`)."""
_ADAPTERS: Final = "SGLang 0.5.23 lora/mem_pool.py init_buffers: max_loras_per_batch slots of max_lora_rank"
_REQUESTS: Final = 2_048
"""Most running requests where the cache has room for them (`resolve_max_num_reqs`)."""
_TABLE_EXTRA: Final = 4
"""Tokens by which a row of the table of cached tokens exceeds the context (`get_req_to_token_extra_context_len`)."""
_INT32: Final = 4
_FLOAT: Final = 4
_WINDOW_SHARE: Final = (4, 5)
"""Tokens in the pool of sliding layers for each token in the other pool: `swa_full_tokens_ratio` 0.8."""
_STATE_SHARE: Final = (9, 10)
"""Bytes of recurrent states for each byte of the cache: `mamba_full_memory_ratio` 0.9."""
_STATES_EACH: Final = 3
"""Slots for states that each running request takes with a radix cache (`_calculate_mamba_ratio`)."""
_CACHE_SOURCE: Final = (
    "SGLang 0.5.23 pool_configurator.py: bytes of a token in all layers; layers with a window have a pool of their "
    "own, with 0.8 tokens for each of the other (swa_full_tokens_ratio), and states 0.9 of the cache's bytes"
)
_TABLE_SOURCE: Final = (
    "SGLang 0.5.23 memory_pool.py ReqToTokenPool: int32 for each token of the context of each request"
)
_LOGITS_SOURCE: Final = "SGLang 0.5.23 decode_cuda_graph_runner.py: logits of the largest captured batch, in fp32"
_SAMPLER_SOURCE: Final = "SGLang 0.5.23 layers/sampler.py: logits in fp32, and probabilities"
_GRAPHS_SOURCE: Final = (
    "SGLang's own reserve (memory_hook.py reserve_for_graph_mb): 2 MiB for each sequence of the largest captured "
    "batch, 8 MiB for each captured prompt size, 1.5 GiB with latent attention; a log has 0.93 GiB with 13 sizes"
)
_LEAST_GRAPHS: Final = GIB // 10
"""Least bytes of CUDA graphs in published logs of engines: vLLM 0.11 (llm-d-planner)."""
_MOST_GRAPHS: Final = 193 * GIB // 100
"""Most bytes of CUDA graphs in published logs of SGLang on one or few cards: 1.93 GB with 53 sizes."""
_LATENT_GRAPHS: Final = 3 * GIB // 2
_WORKSPACE_SOURCE: Final = (
    "SGLang 0.5.23: FlashInfer's workspace of 384 MiB (environ.py), 512 MiB of trtllm_mha on B200 and alike; FA3, "
    "Triton and AITER have none of this size"
)


class CardSetup(NamedTuple):
    """The facts of a card on which SGLang's defaults depend: total in MiB, workspace, and bytes of a process's context.

    `total_mib` is what nvidia-smi shows, None if it is unknown.
    """

    total_mib: int | None
    workspace: int
    context: int


_UNKNOWN_CARD: Final = CardSetup(None, 0, 0)


class SglangSetup(NamedTuple):
    """Resolved settings of SGLang for a workload."""

    fraction: float
    requests: int
    chunk: int
    page_tokens: int
    graph_batch: int
    graphs: bool
    prompt_graphs: int
    element: int
    length: int
    card: CardSetup


class Sglang(ServingMemory):
    """Serving with SGLang, whose weights and cache fill a fraction of the memory that is free at start."""

    split_note = (
        "SGLang splits the layers evenly, regardless of the GPUs' memory (override with SGLANG_PP_LAYER_PARTITION)."
    )

    def timeline(self, architecture: Architecture, workload: Inference, card_class: Hashable = None) -> PhaseSnapshots:
        """Return the memory in each phase of `workload` (defaults filled in) on a card of `card_class`.

        **Formula**: weights + pages of all sequences + tables, workspace and graphs + the larger of a chunk of a prompt
        and of sampling. SGLang gives the cache what weights leave of its fraction of the memory free at start; here it
        has what the workload needs, and the pool is what the card has room for.
        """
        setup = setup_of(architecture, workload, card_class)
        weights = weights_term(architecture, workload.weights or "bf16")
        cached = engine_cache_bytes(architecture, workload.kv_cache, setup.element)
        adapters = served_adapters_term(architecture, workload, workload.adapters.rank, setup.element, _ADAPTERS)
        loaded = [item for item in (weights, draft_term(architecture, workload), adapters) if item is not None]
        loaded_bytes = sum([item.bytes for item in loaded])
        pool = _pool(cached, setup, loaded_bytes, workload.other_processes_bytes)
        sequences = min(workload.batch, setup.requests)
        cache, shared = None, 0
        if pool and not cached.windowed and not cached.state:
            shared = shared_pages(workload, setup.page_tokens, pool.pages)
            pool = pool._replace(shared_pages=shared)
        if pool:
            pages, page_bytes = pool.pages, pool.page_bytes
            cache = engine_pages_term("kv_cache", sequences, pages, page_bytes, _LIMIT, _CACHE_SOURCE, shared)
        buffers = _buffers_term(architecture, setup, verified_rows(workload, 1))
        kept = [item for item in (*loaded, cache, buffers) if item is not None and item.bytes]
        step = engine_step_term(architecture, setup.chunk, setup.element, "chunked_prefill_size")
        sampling = engine_sampler_terms(architecture, verified_rows(workload, sequences), _SAMPLER_SOURCE)
        dynamic = max(step.bytes, sum(item.bytes for item in sampling))
        return PhaseSnapshots(
            (
                Snapshot("load", loaded, "the parameters are on the GPU"),
                Snapshot("prefill", [*kept, step], "a chunk of a prompt is computed (chunked_prefill_size)"),
                Snapshot("decode", [*kept, *sampling], "the next tokens of all running requests are sampled"),
            ),
            dynamic=dynamic,
            pool=pool._replace(beyond_bytes=buffers.bytes + dynamic) if pool else None,
            host_bytes=cache_in_ram(workload),
            notes=_notes(setup, cached, workload),
        )

    def card_class(self, gpu: Gpu) -> CardSetup:
        """Return what sets the server's defaults on `gpu`."""
        return card_setup(gpu)

    def unsupported_reasons(self, workload: Inference, gpu: Gpu) -> tuple[str, ...]:
        """Return the reasons why SGLang does not run `workload` on `gpu`, empty if it does.

        **Source**: SGLang 0.5.23 load_model_utils.py ("SGLang only supports sm75 and above", float16 below sm80);
        installation guide: Instinct MI300 and newer, Intel GPUs by a build of their own.
        """
        if gpu.vendor == "NVIDIA":
            return _cuda_reasons(workload, gpu)
        if gpu.vendor == "AMD":
            supported = gpu.architecture.startswith(_ROCM_FAMILIES)
            return () if supported else ("SGLang needs an AMD Instinct MI300 or newer",)
        return (
            f"{gpu.vendor}'s accelerators run SGLang through a build or plugin that this estimate does not describe",
        )

    def vocabulary_multiple(self, tensor: int) -> int:
        """Return the multiple to which each tensor-parallel card rounds up its vocabulary rows: 64 / `tensor`, or 1."""
        return 1 if _VOCABULARY % tensor else _VOCABULARY // tensor

    def split_layers(
        self, architecture: Architecture, workload: Inference, free_bytes: tuple[int, ...] = ()
    ) -> tuple[int, ...]:
        """Return the number of layers of each pipeline stage: as even as possible, the remainder in the last stages."""
        each, more = divmod(architecture.depth, workload.parallel.pipeline)
        stages = workload.parallel.pipeline
        return tuple(each + (stage >= stages - more) for stage in range(stages))

    def settings_in_use(self, architecture: Architecture, workload: Inference, gpu: Gpu | None) -> SglangSettings:
        """Return the SGLang settings of `workload`, unset ones replaced by the server's defaults on `gpu`."""
        setup = setup_of(architecture, workload, card_setup(gpu) if gpu else None)
        return SglangSettings(
            mem_fraction_static=setup.fraction,
            max_running_requests=setup.requests,
            chunked_prefill_size=setup.chunk,
            page_size=setup.page_tokens,
            cuda_graph_max_bs=setup.graph_batch,
            scheduler_recv_interval=workload.settings_as(SglangSettings).scheduler_recv_interval,
            disable_cuda_graph=not setup.graphs,
        )


SERVING: Final = Sglang()


@lru_cache(maxsize=1024)
def card_setup(gpu: Gpu) -> CardSetup:
    """Return the facts of `gpu` on which SGLang's defaults depend."""
    total = gpu.smi_memory_bytes or gpu.usable_memory_bytes or gpu.memory_bytes
    major = (gpu.compute_capability or "").partition(".")[0]
    workspace = 0
    if gpu.vendor == "NVIDIA" and major != "9":
        workspace = 512 * MIB if major == "10" else 384 * MIB
    return CardSetup(total // MIB if total else None, workspace, fixed_overhead(gpu).context.bytes)


def setup_of(architecture: Architecture, workload: Inference, card_class: Hashable) -> SglangSetup:
    """Return the resolved settings with which SGLang's server runs `workload` on a card of `card_class`."""
    settings = workload.settings_as(SglangSettings)
    card = card_class if isinstance(card_class, CardSetup) else _UNKNOWN_CARD
    tensor = workload.parallel.tensor
    default_chunk, default_batch = _defaults_by_memory(card.total_mib, tensor)
    requests = settings.max_running_requests or _REQUESTS
    chunk = settings.chunked_prefill_size or default_chunk
    graph_batch = settings.cuda_graph_max_bs or min(default_batch, requests)
    graphs = not settings.disable_cuda_graph
    latent = _is_latent(architecture)
    # The largest chunk is captured; with a pipeline prompts are computed without graphs.
    prompt_graphs = _prompt_graphs(min(chunk, 8_192) if latent else chunk) if workload.parallel.pipeline == 1 else 0
    reserve = _graph_bytes(graph_batch, prompt_graphs, latent=latent) if graphs else 0
    return SglangSetup(
        fraction=settings.mem_fraction_static or _default_fraction(card, chunk, reserve, workload),
        requests=requests,
        chunk=chunk,
        page_tokens=settings.page_size or (64 if card.workspace == 512 * MIB else 1),
        graph_batch=graph_batch,
        graphs=graphs,
        prompt_graphs=prompt_graphs,
        element=ELEMENT_BYTES[workload.compute],
        length=workload.context_length or 1,
        card=card,
    )


def _defaults_by_memory(total_mib: int | None, tensor: int) -> tuple[int, int]:
    """Return tokens of a prefill chunk and largest captured batch by a card's memory."""
    if total_mib is None:
        return 4_096, 160
    wide = tensor >= 4
    if total_mib < 20 * 1024:
        return 2_048, 8
    if total_mib < 35 * 1024:
        return 4_096, 160 if wide else 48
    if total_mib < 60 * 1024:
        return 4_096, 160 if wide else 32
    if total_mib < 160 * 1024:
        return 8_192, 512 if wide else 256
    return 16_384, 512


def _default_fraction(card: CardSetup, chunk: int, graph_bytes: int, workload: Inference) -> float:
    """Return the fraction that SGLang takes if none is set.

    **Formula**: 1 − r / C, r = 512 MiB + 1.5 MiB · chunk + tp · pp / 8 GiB + graphs, at least 10 GiB on cards with
    more than 60 GiB.
    """
    if card.total_mib is None:
        return 0.88
    reserved = 512 + 1.5 * max(chunk, 2_048) + workload.parallel.tensor * workload.parallel.pipeline / 8 * 1024
    reserved += graph_bytes / MIB
    if card.total_mib > 60 * 1024:
        reserved = max(reserved, 10 * 1024)
    return max(round((card.total_mib - reserved) / card.total_mib, 3), 0.001)


def _prompt_graphs(most: int) -> int:
    """Return the number of prompt sizes up to `most` tokens for which graphs are captured.

    **Source**: SGLang 0.5.23 cuda_graph_hook.py `generate_prefill_cuda_graph_batch_sizes`.
    """
    spans = ((4, 32, 4), (48, 256, 16), (288, 512, 32), (576, 1_024, 64), (1_280, 4_096, 256), (4_608, most, 512))
    return sum(len(range(first, min(last, most) + 1, step)) for first, last, step in spans)


def _graph_bytes(batch: int, prompt_graphs: int, *, latent: bool) -> int:
    """Return the bytes that SGLang reserves for CUDA graphs."""
    prompts = 8 * MIB * prompt_graphs if not latent else _LATENT_GRAPHS if prompt_graphs else 0
    return 2 * MIB * batch + prompts


def _is_latent(architecture: Architecture) -> bool:
    return any(isinstance(group.layer.mixer, LatentAttention) for group in architecture.main.groups)


def _pool(cached: CachedBytes, setup: SglangSetup, weights: int, other_processes: int) -> PagePool | None:
    """Return the cache that fills what the weights leave of the static fraction, None if nothing is cached.

    A page has the layers without a window, 0.8 tokens of those with one for each token, and 0.9 of its bytes for
    states; a sequence takes as many pages as the scarcest of these needs.
    """
    tokens, (num, den) = setup.page_tokens, _WINDOW_SHARE
    has_both = cached.token and cached.windowed
    # Networks whose layers all have a window are cached in full, as in one pool.
    token = cached.token + cached.windowed * num // den if has_both else cached.token + cached.windowed
    states = _STATES_EACH * cached.state
    page, pages = tokens * token, ceil_div(setup.length, tokens)
    if has_both:
        kept = min(cached.window + tokens, setup.length)
        pages = max(pages, ceil_div(kept * den, num * tokens))
    if states and page:
        share, of = _STATE_SHARE
        pages = max(pages, ceil_div(states * of, share * page))
        page += page * share // of
    elif states:
        page, pages = states, 1
    if not page:
        return None
    taken = setup.card.context + other_processes
    return PagePool(page, pages, setup.length, weights, setup.fraction, taken)


def _buffers_term(architecture: Architecture, setup: SglangSetup, rows_each: int) -> Term:
    """Return the memory of the table of cached tokens, the attention workspace, and CUDA graphs with their logits."""
    table = (setup.requests + 1) * (setup.length + _TABLE_EXTRA) * _INT32
    logits = setup.graph_batch * rows_each * output_width(architecture) * _FLOAT if setup.graphs else 0
    latent = _is_latent(architecture)
    graphs = _graph_bytes(setup.graph_batch, setup.prompt_graphs, latent=latent) if setup.graphs else 0
    workspace = setup.card.workspace
    exact = table + logits + workspace
    return term(
        "buffers",
        exact + graphs,
        "(n + 1) × (L + 4) × 4 + W + b × V × 4 + G" if graphs else "(n + 1) × (L + 4) × 4 + W",
        (
            library_symbol("n", setup.requests, f"most running requests ({_LIMIT})"),
            workload_symbol("L", setup.length, "context length"),
            library_symbol("W", workspace, "bytes of the attention kernels' workspace"),
            library_symbol(
                "b", setup.graph_batch * rows_each, "rows of the largest captured batch (cuda_graph_max_bs)"
            ),
            model_symbol("V", output_width(architecture), "output width: logits per token"),
            library_symbol("G", graphs, "bytes of CUDA graphs"),
        ),
        f"{_TABLE_SOURCE}; {_WORKSPACE_SOURCE}; {_GRAPHS_SOURCE}",
        certainty="assumed" if graphs else "exact",
        low_bytes=exact + min(graphs, _LEAST_GRAPHS),
        high_bytes=exact + (max(graphs, _MOST_GRAPHS) if graphs else 0),
        parts=(
            TermPart(name="table of cached tokens", bytes=table, formula="(n + 1) × (L + 4) × 4", source=_TABLE_SOURCE),
            TermPart(name="attention workspace", bytes=workspace, formula="W", source=_WORKSPACE_SOURCE),
            TermPart(name="logits of CUDA graphs", bytes=logits, formula="b × V × 4", source=_LOGITS_SOURCE),
            TermPart(name="CUDA graphs", bytes=graphs, formula="G", source=_GRAPHS_SOURCE),
        ),
    )


def _cuda_reasons(workload: Inference, gpu: Gpu) -> tuple[str, ...]:
    """Return the reason why SGLang does not run `workload` on an NVIDIA `gpu`, empty if it does."""
    capability = float(gpu.compute_capability or 0)
    if capability < _LEAST_CAPABILITY:
        return (f"SGLang needs compute capability {_LEAST_CAPABILITY}",)
    if workload.compute == "bf16" and capability < _BFLOAT16_CAPABILITY:
        return ("SGLang computes in fp16 below compute capability 8.0; choose fp16",)
    return ()


def _notes(setup: SglangSetup, cached: CachedBytes, workload: Inference) -> tuple[str, ...]:
    """Return notes on the SGLang settings that the estimate assumes."""
    graphs = f"CUDA graphs up to {setup.graph_batch:,} sequences" if setup.graphs else "no CUDA graphs"
    notes = [
        f"Modeled on {SGLANG.version}: {setup.fraction:.3g} of the memory free at start for weights and cache, "
        f"prompts in chunks of {setup.chunk:,} tokens, {graphs}."
    ]
    if cached.token and cached.windowed:
        notes.append(
            "Sliding-window layers have a pool of their own, with 0.8 tokens for each token of the other layers."
        )
    if cached.state:
        notes.append("Recurrent states take 0.9 of the cache's bytes, and each running request three slots of them.")
    return (*notes, *waiting_notes(workload.batch, setup.requests))
