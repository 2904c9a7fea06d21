"""Memory behavior of TensorRT-LLM's PyTorch backend: the cache gets a fraction of what a profiled step leaves free.

**Source**: NVIDIA/TensorRT-LLM@0004396 `tensorrt_llm/_torch/pyexecutor/_util.py` (`_cal_max_memory`), @00209af
`tensorrt_llm/commands/serve.py`, `tensorrt_llm/llmapi/llm_args.py` (`KvCacheConfig`, `CudaGraphConfig`) and
`tensorrt_llm/mapping.py` (`pp_layers`), version 1.2. The formula of the pool gives what a published log of 1.2 prints:
(119.70 − 113.65 + 0.56 GiB) · 0.9 = 5.95 GiB.
"""

from collections.abc import Hashable
from functools import lru_cache
from typing import Final, NamedTuple

from planner.dtypes import ELEMENT_BYTES
from planner.hardware.gpu import Gpu
from planner.memory.inference.engine import (
    cache_in_ram,
    draft_term,
    engine_cache_bytes,
    engine_pages_term,
    engine_sampler_terms,
    engine_step_term,
    shared_pages,
    verified_rows,
    waiting_notes,
)
from planner.memory.overhead import fixed_overhead
from planner.memory.phases import PagePool, PhaseSnapshots, Snapshot
from planner.memory.result import Term, TermPart
from planner.memory.software.base import ServingMemory
from planner.memory.terms import library_symbol, model_symbol, term
from planner.memory.weights import weights_term
from planner.models.architecture import Architecture
from planner.units import GIB, MIB, ceil_div
from planner.workload.software.tensorrt_llm import TENSORRT_LLM, TensorRtLlmSettings
from planner.workload.workload import Inference

_LEAST_CAPABILITY: Final = 8.0
_FP8_CAPABILITY: Final = 8.9
_FP8_FORMATS: Final = ("fp8", "fp8-block128")
_FP4_CAPABILITY: Final = 10.0
_BATCH: Final = 2_048
_TOKENS: Final = 8_192
_FRACTION: Final = 0.9
_BLOCK: Final = 32
_GRAPH_BATCH: Final = 128
_CACHE_SOURCE: Final = (
    "TensorRT-LLM 1.2 resource_manager.py KVCacheManager: blocks of 32 tokens of all layers; without "
    "max_attention_window, layers with a window cache the whole context, too"
)
_STATE_SOURCE: Final = "TensorRT-LLM 1.2 MambaCacheManager: states of max_batch_size requests, allocated at start"
_LOGITS_SOURCE: Final = "TensorRT-LLM 1.2 sampler.py TorchSampler: logits in fp32, and probabilities"
_GRAPHS_SOURCE: Final = (
    "as of vLLM, whose graphs are of the same kernels' number: 0.1 to 1.8 GiB published; TensorRT-LLM captures batches "
    "of 1 to 32, 64 and 128 by default, and prints graphs only together with NCCL"
)
_GRAPHS: Final = (GIB // 2, GIB // 10, 18 * GIB // 10)
"""Assumed bytes of CUDA graphs (expected, minimum, maximum), within the range of published values of vLLM."""
_WORKSPACE: Final = 100_738_048
_WORKSPACE_SOURCE: Final = (
    "NVIDIA/TensorRT-LLM#8961: attention workspace grown to 100,738,048 bytes for 8,192 tokens; 67,462,144 in "
    "triton-inference-server/tutorials#150"
)


class CardSetup(NamedTuple):
    """The fact of a card on which TensorRT-LLM's pool depends: bytes of a process's context."""

    context: int


class TensorRtLlmSetup(NamedTuple):
    """Resolved settings of TensorRT-LLM for a workload."""

    sequences: int
    tokens: int
    fraction: float
    block_tokens: int
    graph_batch: int
    element: int
    length: int
    context: int


class TensorRtLlm(ServingMemory):
    """Serving with TensorRT-LLM, which gives the cache a fraction of what is free after a step of the most tokens."""

    split_note = "TensorRT-LLM splits the layers evenly, regardless of the GPUs' memory (override with pp_partition)."

    def timeline(self, architecture: Architecture, workload: Inference, card_class: Hashable = None) -> PhaseSnapshots:
        """Return the memory in each phase of `workload` (defaults filled in) on a card of `card_class`.

        **Formula**: weights + blocks of all sequences + states + graphs and workspace + the larger of a step of the
        most tokens and of sampling. The pool is a fraction of what all but the blocks leave of the card.
        """
        setup = setup_of(workload, card_class)
        weights = weights_term(architecture, workload.weights or "bf16")
        cached = engine_cache_bytes(architecture, workload.kv_cache, setup.element)
        token, sequences = cached.token + cached.windowed, min(workload.batch, setup.sequences)
        blocks, block = ceil_div(setup.length, setup.block_tokens), setup.block_tokens * token
        shared = 0 if cached.windowed or cached.state else shared_pages(workload, setup.block_tokens, blocks)
        cache = engine_pages_term("kv_cache", sequences, blocks, block, "max_batch_size", _CACHE_SOURCE, shared)
        state = _state_term(setup.sequences, cached.state) if cached.state else None
        buffers = _buffers_term()
        loaded = [item for item in (weights, draft_term(architecture, workload)) if item is not None]
        kept = [item for item in (*loaded, cache, state, buffers) if item is not None]
        step = engine_step_term(architecture, setup.tokens, setup.element, "max_num_tokens")
        sampling = engine_sampler_terms(architecture, verified_rows(workload, sequences), _LOGITS_SOURCE)
        dynamic = max(step.bytes, sum(item.bytes for item in sampling))
        taken = (
            sum([item.bytes for item in loaded])
            + (state.bytes if state else 0)
            + buffers.bytes
            + dynamic
            + setup.context
        )
        taken += workload.other_processes_bytes
        return PhaseSnapshots(
            (
                Snapshot("load", loaded, "the parameters are on the GPU"),
                Snapshot("prefill", [*kept, step], "a step with the maximum number of tokens (max_num_tokens)"),
                Snapshot("decode", [*kept, *sampling], "the next tokens of all requests are sampled"),
            ),
            dynamic=dynamic,
            pool=PagePool(block, blocks, setup.length, 0, setup.fraction, taken, shared_pages=shared)
            if token
            else None,
            host_bytes=cache_in_ram(workload),
            notes=_notes(setup, workload, windowed=bool(cached.windowed and cached.token)),
        )

    def card_class(self, gpu: Gpu) -> CardSetup:
        """Return what sets the pool on `gpu`."""
        return card_setup(gpu)

    def unsupported_reasons(self, workload: Inference, gpu: Gpu) -> tuple[str, ...]:
        """Return the reasons why TensorRT-LLM does not run `workload` on `gpu`, empty if it does.

        **Source**: TensorRT-LLM support matrix: Ampere and newer; fp8 from Ada Lovelace, NVFP4 from Blackwell on.
        """
        if gpu.vendor != "NVIDIA":
            return ("TensorRT-LLM runs on NVIDIA GPUs only",)
        capability = float(gpu.compute_capability or 0)
        if capability < _LEAST_CAPABILITY:
            return (f"TensorRT-LLM 1.2 needs compute capability {_LEAST_CAPABILITY}",)
        reasons = []
        if "fp8" in workload.kv_cache and capability < _FP8_CAPABILITY:
            reasons.append(f"TensorRT-LLM's fp8 cache needs compute capability {_FP8_CAPABILITY}")
        if workload.weights in _FP8_FORMATS and capability < _FP8_CAPABILITY:
            reasons.append(f"TensorRT-LLM's fp8 products need compute capability {_FP8_CAPABILITY}")
        if workload.weights == "nvfp4" and capability < _FP4_CAPABILITY:
            reasons.append(f"TensorRT-LLM's NVFP4 products need compute capability {_FP4_CAPABILITY}")
        return tuple(reasons)

    def split_layers(
        self, architecture: Architecture, workload: Inference, free_bytes: tuple[int, ...] = ()
    ) -> tuple[int, ...]:
        """Return the number of layers of each pipeline stage: as even as possible, the remainder in the first."""
        stages = workload.parallel.pipeline
        each, more = divmod(architecture.depth, stages)
        return tuple(each + (stage < more) for stage in range(stages))

    def settings_in_use(
        self, _architecture: Architecture, workload: Inference, _gpu: Gpu | None
    ) -> TensorRtLlmSettings:
        """Return the TensorRT-LLM settings of `workload`, unset ones replaced by the server's defaults."""
        setup = setup_of(workload, None)
        return TensorRtLlmSettings(
            max_batch_size=setup.sequences,
            max_num_tokens=setup.tokens,
            free_gpu_memory_fraction=setup.fraction,
            tokens_per_block=setup.block_tokens,
            cuda_graph_max_batch_size=setup.graph_batch,
        )


SERVING: Final = TensorRtLlm()


@lru_cache(maxsize=1024)
def card_setup(gpu: Gpu) -> CardSetup:
    """Return the facts of `gpu` on which TensorRT-LLM's pool depends."""
    return CardSetup(fixed_overhead(gpu).context.bytes)


def setup_of(workload: Inference, card_class: Hashable) -> TensorRtLlmSetup:
    """Return the resolved settings with which `trtllm-serve` runs `workload` on a card of `card_class`."""
    settings = workload.settings_as(TensorRtLlmSettings)
    return TensorRtLlmSetup(
        sequences=settings.max_batch_size or _BATCH,
        tokens=settings.max_num_tokens or _TOKENS,
        fraction=settings.free_gpu_memory_fraction or _FRACTION,
        block_tokens=settings.tokens_per_block or _BLOCK,
        graph_batch=settings.cuda_graph_max_batch_size or _GRAPH_BATCH,
        element=ELEMENT_BYTES[workload.compute],
        length=workload.context_length or 1,
        context=card_class.context if isinstance(card_class, CardSetup) else 0,
    )


def _state_term(sequences: int, state_bytes: int) -> Term:
    """Return the memory of the recurrent states of `sequences` requests."""
    return term(
        "state",
        sequences * state_bytes,
        "n × s",
        (
            library_symbol("n", sequences, "most requests in a step (max_batch_size)"),
            model_symbol("s", state_bytes, "bytes of a request's states"),
        ),
        _STATE_SOURCE,
    )


def _buffers_term() -> Term:
    """Return the memory of CUDA graphs and of the attention kernels' workspace."""
    expected, least, most = _GRAPHS
    return term(
        "buffers",
        expected + _WORKSPACE,
        "G + W",
        (
            library_symbol("G", expected, "bytes of CUDA graphs"),
            library_symbol("W", _WORKSPACE, "bytes of the attention kernels' workspace"),
        ),
        f"{_GRAPHS_SOURCE}; {_WORKSPACE_SOURCE}",
        certainty="assumed",
        low_bytes=least + 64 * MIB,
        high_bytes=most + _WORKSPACE,
        parts=(
            TermPart(name="CUDA graphs", bytes=expected, formula="G", source=_GRAPHS_SOURCE),
            TermPart(name="attention workspace", bytes=_WORKSPACE, formula="W", source=_WORKSPACE_SOURCE),
        ),
    )


def _notes(setup: TensorRtLlmSetup, workload: Inference, *, windowed: bool) -> tuple[str, ...]:
    """Return notes on the TensorRT-LLM settings that the estimate assumes."""
    notes = [
        f"Modeled on {TENSORRT_LLM.version} with its PyTorch backend: at most {setup.sequences:,} requests and "
        f"{setup.tokens:,} tokens in a step, KV-cache blocks of {setup.block_tokens} tokens, CUDA graphs up to "
        f"{setup.graph_batch:,} requests."
    ]
    if windowed:
        notes.append("Sliding-window layers cache the whole context unless max_attention_window is set.")
    return (*notes, *waiting_notes(workload.batch, setup.sequences))
