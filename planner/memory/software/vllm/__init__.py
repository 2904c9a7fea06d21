"""Memory behavior of vLLM: profiling step, sampling, and the KV cache pages that the workload needs.

Before it sizes the cache, vLLM runs one step with its maximum number of tokens, then samples for its maximum number of
sequences. The larger of the two stays free for later steps.

**Source**: vLLM v1/worker/gpu/model_runner.py profile_run and _dummy_sampler_run, v1/worker/gpu/sample/.
"""

from collections.abc import Hashable
from functools import partial
from typing import Final, NamedTuple

from planner.hardware.gpu import Gpu
from planner.memory.inference.engine import (
    STEP_SOURCE,
    cache_in_ram,
    draft_term,
    engine_pages_term,
    engine_step_term,
    served_adapters_term,
    shared_pages,
    verified_rows,
    waiting_notes,
)
from planner.memory.logits import output_width
from planner.memory.phases import PagePool, PhaseSnapshots, Snapshot
from planner.memory.result import Term, TermPart
from planner.memory.software.base import ServingMemory
from planner.memory.software.vllm.cache import SOURCE, Pages, pages_of
from planner.memory.software.vllm.setup import CardSetup, VllmSetup, card_setup, padded_weights_term, setup_of
from planner.memory.terms import library_symbol, model_symbol, term
from planner.models.architecture import Architecture
from planner.units import GIB, MIB, ceil_div
from planner.workload.software.vllm import VLLM, VllmSettings, VllmVersion, reserved_rank
from planner.workload.workload import Inference

_COUNTS_GRAPHS: Final = "0.33"
"""First vLLM version that subtracts CUDA graphs from the cache's memory; before 0.21 graphs took memory beyond vLLM's
share."""
_OUTSIDE_PYTORCH: Final = 143 * MIB
"""Bytes outside PyTorch that start-up subtracts from the cache: 0.13 to 0.16 GiB in five logs (0.11 on H100)."""
_ADAPTERS: Final = (
    "vLLM 0.33 lora/layers/base_linear.py create_lora_weights (A and B of all slots in the computing format), on every "
    "linear layer, experts, embedding and head unless lora_target_modules names some (lora/model_manager.py)"
)
_MOST_TOKENS: Final = "max_num_batched_tokens"
_VOCABULARY: Final = 64
"""Multiple to which vLLM pads the number of vocabulary rows (`DEFAULT_VOCAB_PADDING_SIZE`)."""
_METAL: Final = "Apple GPUs run vLLM through the plugin vllm-metal, whose memory this estimate does not describe"
_PLUGIN_USERS: Final = {"Google": "TPUs run", "AWS": "Trainium runs", "Intel": "Gaudi runs"}
_ROCM_FAMILIES: Final = ("CDNA2", "CDNA3", "CDNA4", "CDNA5", "RDNA3", "RDNA4")
_LEAST_CAPABILITY: Final = {"0.33": 7.5, "0.19": 7.0, "0.11": 7.0}
_BFLOAT16_CAPABILITY: Final = 8.0


class Vllm(ServingMemory):
    """Serving with vLLM, which gives the memory that remains of its share of the card to the KV cache."""

    split_note = (
        "vLLM splits the layers evenly, regardless of the GPUs' memory (override with VLLM_PP_LAYER_PARTITION)."
    )
    communicator_bytes = int((2.07 - 0.25) * GIB), int((2.13 - 0.25) * GIB)
    communicator_source = (
        "llm-d-planner logs of vLLM on H100: outside PyTorch 0.25 GiB on 1 GPU, 2.07 GiB on 2 GPUs and 2.13 GiB on 4"
    )

    def timeline(self, architecture: Architecture, workload: Inference, card_class: Hashable = None) -> PhaseSnapshots:
        """Return the memory in each phase of `workload` (defaults filled in) on a card of `card_class`.

        **Formula**: weights + tables and graphs + pages of all sequences + the larger of a step of the most tokens and
        of sampling for the most sequences. vLLM gives the cache the rest of its share of the card; here it has
        what the workload needs, and the pool is what the card has room for.
        """
        setup = setup_of(workload, card_class)
        weights = padded_weights_term(architecture, workload.weights or "bf16", setup.experts)
        pages = pages_of(architecture, workload.kv_cache, setup, workload.prompt_length or 1)
        sequences = min(workload.batch, setup.sequences)
        shared = shared_pages(workload, pages.page_tokens, pages.pages) if pages and pages.page_tokens else 0
        cache = states = None
        if pages:
            pages_term = partial(engine_pages_term, page_bytes=pages.page_bytes, limit="max_num_seqs", source=SOURCE)
            cache = pages_term("kv_cache", sequences, pages.cache_pages, shared=shared)
            states = pages_term("state", sequences, pages.state_pages)
        buffers = buffers_term(architecture, setup)
        adapters = served_adapters_term(
            architecture, workload, reserved_rank(workload.adapters.rank), setup.element, _ADAPTERS, embeds=True
        )
        loaded = [item for item in (weights, draft_term(architecture, workload), adapters) if item is not None]
        kept = [item for item in (*loaded, cache, states, buffers) if item is not None and item.bytes]
        forward = engine_step_term(architecture, setup.tokens, setup.element, _MOST_TOKENS)
        hidden, sampler = hidden_term(architecture, setup), sampler_term(architecture, setup)
        step = max(forward.bytes, hidden.bytes + (sampler.bytes if sampler else 0))
        checked = verification_term(architecture, setup, verified_rows(workload, sequences))
        largest = checked if checked and sampler and checked.bytes > sampler.bytes else sampler
        sampling = [hidden, *([largest] if largest else [])]
        counted = buffers.bytes if buffers and setup.version == _COUNTS_GRAPHS else 0
        beside = sum([item.bytes for item in loaded]) + counted + step + _OUTSIDE_PYTORCH
        return PhaseSnapshots(
            (
                Snapshot("load", loaded, "the parameters are on the GPU"),
                Snapshot(
                    "prefill", [*kept, forward], "a step with the maximum number of tokens (max_num_batched_tokens)"
                ),
                Snapshot(
                    "decode",
                    [*kept, *sampling],
                    "the next tokens are sampled for the maximum number of sequences (max_num_seqs)",
                ),
            ),
            dynamic=max(step, sum(item.bytes for item in sampling)),
            pool=PagePool(pages.page_bytes, pages.pages, setup.length, beside, setup.utilization, shared_pages=shared)
            if pages
            else None,
            host_bytes=cache_in_ram(workload),
            notes=_setup_notes(setup, pages, workload),
        )

    def card_class(self, gpu: Gpu) -> CardSetup:
        """Return what sets the server's default limits and its kernels on `gpu`."""
        return card_setup(gpu)

    def unsupported_reasons(self, workload: Inference, gpu: Gpu) -> tuple[str, ...]:
        """Return the reasons why vLLM does not run `workload` on `gpu`, empty if it does.

        **Source**: vLLM's installation guides: compute capability 7.5 (7.0 in 0.14), MI200 and newer, Radeon RX 7900
        and newer, Intel Arc and Data Center GPUs; platforms/cuda.py check_if_supports_dtype for bf16.
        """
        if gpu.vendor == "Apple":
            return (_METAL,)
        if not gpu.has_pytorch_build:
            runs = _PLUGIN_USERS.get(gpu.vendor, f"{gpu.vendor}'s accelerators run")
            return (f"{runs} vLLM through a separate plugin, if at all, whose memory this estimate does not describe",)
        if gpu.vendor == "AMD":
            supported = gpu.architecture.startswith(_ROCM_FAMILIES)
            return () if supported else ("vLLM needs an AMD Instinct MI200 or newer, or a Radeon of RDNA 3 or newer",)
        return _cuda_reasons(workload, gpu) if gpu.vendor == "NVIDIA" else ()

    def vocabulary_multiple(self, tensor: int) -> int:
        """Return the multiple to which each tensor-parallel card rounds up its vocabulary rows: 64 / `tensor`, or 1."""
        return 1 if _VOCABULARY % tensor else _VOCABULARY // tensor

    def split_layers(
        self, architecture: Architecture, workload: Inference, free_bytes: tuple[int, ...] = ()
    ) -> tuple[int, ...]:
        """Return the number of layers of each pipeline stage, as even as possible."""
        return even_layers(architecture.depth, workload.parallel.pipeline)

    def pool_beside(self, pool: PagePool, communicator_bytes: int) -> PagePool:
        """Return the cache pool of a card whose communicators take `communicator_bytes` of vLLM's share.

        **Source**: vLLM 0.33 v1/worker/gpu_worker.py determine_available_memory: what grows outside PyTorch counts.
        """
        return pool._replace(other_bytes=pool.other_bytes + communicator_bytes)

    def settings_in_use(self, architecture: Architecture, workload: Inference, gpu: Gpu | None) -> VllmSettings:
        """Return the vLLM settings of `workload`, unset ones replaced by the server's defaults on `gpu`."""
        setup = setup_of(workload, card_setup(gpu) if gpu else None)
        return VllmSettings(
            version=setup.version,
            max_num_seqs=setup.sequences,
            max_num_batched_tokens=setup.tokens,
            memory_utilization=setup.utilization,
            block_size=setup.page_tokens,
            enforce_eager=not setup.graphs,
        )


SERVING: Final = Vllm()


def even_layers(layers: int, stages: int) -> tuple[int, ...]:
    """Return the number of layers on each of `stages` pipeline stages, split as evenly as vLLM does.

    **Formula**: as even as possible; the remainder goes to the stages before the last, from the back.

    **Source**: vLLM distributed/utils.py `get_pp_indices`.
    """
    each, more = divmod(layers, stages)
    return tuple(each + (1 if stages - 1 - more <= stage < stages - 1 else 0) for stage in range(stages))


def _cuda_reasons(workload: Inference, gpu: Gpu) -> tuple[str, ...]:
    """Return the reason why vLLM does not run `workload` on an NVIDIA `gpu`, empty if it does."""
    version = workload.settings_as(VllmSettings).version or "0.33"
    least = _LEAST_CAPABILITY[version]
    capability = float(gpu.compute_capability or 0)
    if capability < least:
        return (f"vLLM {version} needs compute capability {least}",)
    if workload.compute == "bf16" and capability < _BFLOAT16_CAPABILITY:
        return ("vLLM computes in bf16 from compute capability 8.0 on; choose fp16",)
    return ()


def _setup_notes(setup: VllmSetup, pages: Pages | None, workload: Inference) -> tuple[str, ...]:
    """Return notes on the vLLM settings that the estimate assumes."""
    graphs = "with CUDA graphs" if setup.graphs else "without CUDA graphs"
    version = VLLM.version if setup.version == "0.33" else f"vLLM {setup.version}"
    notes = [
        f"Modeled on {version}: at most {setup.sequences:,} sequences and {setup.tokens:,} tokens in a step, "
        f"KV-cache blocks of {setup.page_tokens} tokens, {graphs}."
    ]
    if pages and pages.slots > pages.layers:
        notes.append(
            f"KV-cache blocks are reserved for {pages.slots} layers: groups are padded, the model has {pages.layers}."
        )
    return (*notes, *waiting_notes(workload.batch, setup.sequences))


_FLOAT: Final = 4
_INT32_BITS: Final = 32
_MOST_COPIED: Final = GIB


class _SamplerBytes(NamedTuple):
    """Bytes per logit that a vLLM version's sampler needs besides the logits and their fp32 copy; and the source."""

    bytes: int
    source: str


_SAMPLERS: Final[dict[VllmVersion, _SamplerBytes]] = {
    "0.33": _SamplerBytes(
        8,
        "vLLM 0.33 _dummy_sampler_run with warm-up parameters: logits, fp32 copy, and FlashInfer's masked logits and "
        "probabilities",
    ),
    "0.19": _SamplerBytes(
        8, "vLLM 0.19 _dummy_sampler_run: logits, fp32 copy, probabilities and exponential noise of forward_native"
    ),
    "0.11": _SamplerBytes(
        32,
        "vLLM 0.11 apply_top_k_top_p sorts: values 4 and indices 8; segmented_sort_pairs of ATen's Sort.cu: indices "
        "8, and cub's second buffers 12",
    ),
}
_TABLES_SOURCE: Final = (
    "vLLM 0.33 v1/worker/gpu/sample/penalties.py: counts (int32) and a mask of one bit for each token of the vocabulary"
)
_GRAPHS_SOURCE: Final = (
    "0.1 to 1.03 GiB in vLLM 0.11's logs (llm-d-planner), 0.5 to 1.8 GiB published for an H100; vLLM's own estimate "
    "has been off by three times (vllm-project/vllm#45178, #53013)"
)
_GRAPHS: Final = (GIB // 2, GIB // 10, 18 * GIB // 10)
"""Assumed bytes of CUDA graphs (expected, minimum, maximum), within the range of published values."""


def hidden_term(architecture: Architecture, setup: VllmSetup) -> Term:
    """Return the memory that a step keeps until sampling: its hidden states, and the rows to sample from."""
    rows = setup.tokens + 2 * setup.sequences
    return term(
        "activations",
        rows * architecture.hidden * setup.element,
        "(T + 2 × n) × h × w",
        (
            library_symbol("T", setup.tokens, "tokens in the largest step (max_num_batched_tokens)"),
            library_symbol("n", setup.sequences, "sequences in the largest step (max_num_seqs)"),
            model_symbol("h", architecture.hidden, "width of the residual stream"),
            library_symbol("w", setup.element, "bytes per element"),
        ),
        STEP_SOURCE,
        certainty="measured",
    )


def sampler_term(architecture: Architecture, setup: VllmSetup) -> Term | None:
    """Return the memory of logits and sampler for the maximum number of sequences, None without a vocabulary.

    **Formula**: n · V · k, where k is w for the logits, 4 for their fp32 copy unless w is 4, and the bytes of the
    version's sampler: 8, or 32 if it sorts.
    """
    width = output_width(architecture)
    if not width:
        return None
    sampler = _SAMPLERS[setup.version]
    per_logit = setup.element + (_FLOAT if setup.element < _FLOAT else 0) + sampler.bytes
    return term(
        "logits",
        setup.sequences * width * per_logit,
        "n × V × k",
        (
            library_symbol("n", setup.sequences, "sequences in the largest step (max_num_seqs)"),
            model_symbol("V", width, "output width: logits per token"),
            library_symbol("k", per_logit, f"bytes per logit that the sampler of vLLM {setup.version} holds"),
        ),
        sampler.source,
        certainty="measured",
    )


def verification_term(architecture: Architecture, setup: VllmSetup, rows: int) -> Term | None:
    """Return the memory of logits that check drafted tokens, None if nothing is drafted or there is no vocabulary.

    The profile of the start samples one row a sequence, so that this comes on top of what it leaves.

    **Formula**: r · V · w, and their fp32 copy in parts of at most 1 GiB.

    **Source**: vLLM 0.33 v1/worker/gpu/spec_decode/rejection_sampler.py, MAX_CHUNK_BYTES.
    """
    width = output_width(architecture)
    if rows <= setup.sequences or not width:
        return None
    copied = min(rows * width * _FLOAT, _MOST_COPIED)
    return term(
        "logits",
        rows * width * setup.element + copied,
        "r × V × w + C",
        (
            library_symbol("r", rows, "rows of logits: the drafted tokens of each sequence, and one more"),
            model_symbol("V", width, "output width: logits per token"),
            library_symbol("w", setup.element, "bytes per element"),
            library_symbol("C", copied, "bytes of the copy in fp32, at most 1 GiB at a time"),
        ),
        "vLLM 0.33 v1/worker/gpu/spec_decode/rejection_sampler.py, MAX_CHUNK_BYTES",
        certainty="measured",
    )


def buffers_term(architecture: Architecture, setup: VllmSetup) -> Term | None:
    """Return the memory of the sampler's penalty tables (0.33) and CUDA graphs, None if there are neither."""
    width = output_width(architecture)
    tables = setup.sequences * _FLOAT * (width + ceil_div(width, _INT32_BITS)) if setup.version == "0.33" else 0
    expected, least, most = _GRAPHS if setup.graphs else (0, 0, 0)
    if not tables + expected:
        return None
    return term(
        "buffers",
        tables + expected,
        "n × 4 × (V + V / 32) + G" if tables else "G",
        (
            library_symbol("n", setup.sequences, "sequences in the largest step (max_num_seqs)"),
            model_symbol("V", width, "output width: logits per token"),
            library_symbol("G", expected, "bytes of CUDA graphs"),
        ),
        f"{_TABLES_SOURCE}; {_GRAPHS_SOURCE}",
        certainty="assumed" if expected else "exact",
        low_bytes=tables + least,
        high_bytes=tables + most,
        parts=(
            TermPart(name="penalty tables", bytes=tables, formula="n × 4 × (V + V / 32)", source=_TABLES_SOURCE),
            TermPart(name="CUDA graphs", bytes=expected, formula="G", source=_GRAPHS_SOURCE),
        ),
    )
