"""Memory of an inference engine, or of the trainer itself, while the completions of a step are generated."""

from typing import Final, NamedTuple

from planner.dtypes import ELEMENT_BYTES
from planner.memory.inference.timeline import inference_timeline
from planner.memory.parallel.placing import EngineCard
from planner.memory.phases import AnyTerm, PhaseSnapshots
from planner.memory.result import Term, TermPart
from planner.memory.software import serving_memory
from planner.memory.terms import library_symbol, term
from planner.models.architecture import Architecture
from planner.workload.alignment import ROLLOUT_ENGINE, aligned_lengths
from planner.workload.defaults import with_defaults
from planner.workload.formats import is_plain, product_format
from planner.workload.software.registry import DEFAULT
from planner.workload.software.vllm import VllmSettings
from planner.workload.training import Training
from planner.workload.workload import Inference

_STEP_TOKENS: Final = 4_096
"""Tokens of a step of the engine: `max_num_batched_tokens` in TRL 1.10 generation/vllm_generation.py."""
_SOURCE: Final = (
    "vLLM takes its memory fraction of the whole GPU, whatever the trainer holds; TRL 1.10 (f2cd577) "
    "generation/vllm_generation.py: sleep(level=2) frees weights and KV cache, wake_up(['weights']) before a sync"
)
_SIXTEEN_BITS: Final = ("bf16", "fp16")


def rollout_workload(architecture: Architecture, workload: Training, sequences: int) -> Inference:
    """Return the generation of `sequences` completions of `workload` (defaults filled in) as an inference workload.

    The trainer itself multiplies with the weights that it trains; an engine has a copy in the compute precision, or
    in the format of quantized weights.

    **Source**: TRL 1.10 (f2cd577) generation/vllm_generation.py: `max_num_seqs` is the sequences of a generation,
    `max_num_batched_tokens` 4,096.
    """
    lengths = aligned_lengths(workload.alignment, workload.sequence_length or 1)
    by_engine = workload.alignment.engine != "none"
    compute = product_format(workload.compute)
    weights = workload.weights or compute
    settings = VllmSettings(
        memory_utilization=workload.alignment.engine_memory,
        max_num_seqs=sequences,
        max_num_batched_tokens=max(_STEP_TOKENS, sequences),
    )
    asked = Inference(
        weights=compute if is_plain(weights) else weights,
        compute=compute if compute in _SIXTEEN_BITS else "fp32",
        batch=sequences,
        context_length=lengths.prompt + lengths.completion,
        prompt_length=lengths.prompt,
        kv_cache=compute if compute in _SIXTEEN_BITS else "fp32",
        attention=workload.attention,
        profile=ROLLOUT_ENGINE if by_engine else DEFAULT,
        **({"engine": settings} if by_engine else {}),
    )
    settled = with_defaults(asked, architecture, 1)
    assert isinstance(settled, Inference)
    return settled


class EngineShare(NamedTuple):
    """Memory of an inference engine on the card that trains: while it generates, is loaded with weights, and waits.

    `note` says what its cache has room for, `refusal` why it does not start.
    """

    generating: Term
    loading: Term
    waiting: Term
    note: str
    refusal: str


def engine_share(
    architecture: Architecture, workload: Training, card: EngineCard | None, *, shares_weights: bool
) -> EngineShare:
    """Return the memory of vLLM beside training on `card`, None without a chosen card.

    **Formula**: generating u · C, at least what one step and the weights need; asleep the graphs and tables alone;
    awake throughout as while generating.

    **Assumes** that weights which trainer and engine share count with the trainer.
    """
    alignment = workload.alignment
    generation = rollout_workload(
        architecture, workload, alignment.sequences(workload.micro_batch) * workload.gradient_accumulation
    )
    timeline = serving_memory(ROLLOUT_ENGINE).timeline(architecture, generation, card.engine if card else None)
    peak = timeline.peak()
    parts = {each.name: each.bytes for each in peak.terms}
    weights, cache = parts.get("weights", 0), parts.get("kv_cache", 0) + parts.get("state", 0)
    outside = peak.total - weights - cache
    held = peak.total
    note, refusal = f"vLLM holds what the {generation.batch:,} completions of a step need.", ""
    if timeline.pool and card and card.usable_bytes:
        pool = timeline.pool.capacity(card.usable_bytes)
        cache = pool.bytes
        held = max(pool.reserved_bytes, weights + outside)
        percent = f"{100 * alignment.engine_memory:.3g} % of the GPU"
        note = (
            f"vLLM takes {percent}: room for {int(pool.sequences):,} "
            f"completions at once, of {generation.batch:,} in a step."
        )
        if pool.sequences < 1:
            refusal = f"vLLM does not start with {percent}: raise the engine's memory (--engine-memory)"
            note = f"vLLM does not start with {percent}: its weights and one completion need more."
    owned = 0 if shares_weights else weights
    held -= weights - owned
    tables = sum(each.bytes for each in peak.terms if each.name == "buffers")
    generating = _engine_term(owned, held - owned, "weights, KV cache and the largest step")
    awake = alignment.engine == "same-cards"
    return EngineShare(
        generating=generating,
        loading=generating if awake else _engine_term(owned, tables, "weights, tables and CUDA graphs"),
        waiting=generating if awake else _engine_term(0, tables, "tables and CUDA graphs of the engine asleep"),
        note=note,
        refusal=refusal,
    )


def _engine_term(weights: int, other: int, meaning: str) -> Term:
    """Return the memory of an engine that holds `weights` and `other` bytes."""
    parts = [("weights of the engine", weights), (meaning if not weights else "cache, step and tables", other)]
    return term(
        "engine",
        weights + other,
        "W + E",
        (
            library_symbol("W", weights, "bytes of the engine's own weights"),
            library_symbol("E", other, f"bytes besides: {meaning}"),
        ),
        _SOURCE,
        certainty="measured",
        parts=tuple(TermPart(name, size, f"{size:,}", _SOURCE) for name, size in parts if size),
    )


def own_generation(architecture: Architecture, workload: Training) -> list[AnyTerm]:
    """Return what the trainer itself holds at the peak of generating a step's completions, without the weights."""
    sequences = workload.alignment.sequences(workload.micro_batch) * workload.gradient_accumulation
    timeline: PhaseSnapshots = inference_timeline(architecture, rollout_workload(architecture, workload, sequences))
    peak = max(timeline.snapshots, key=lambda one: one.total)
    return [each for each in peak.terms if each.name != "weights"]


def compute_bytes(workload: Training) -> int:
    """Return the bytes per element of the compute precision."""
    return ELEMENT_BYTES[product_format(workload.compute)]
