"""Memory-saving changes of vLLM."""

from collections.abc import Iterator
from typing import Final

from planner.models.architecture import Architecture
from planner.plan.advice.change import ChangeSequence, PlanChange, smaller_chunks, smaller_powers_of_two
from planner.plan.advice.inference_changes import PLAIN_FORMATS
from planner.workload.software.vllm import VLLM, VllmSettings
from planner.workload.workload import Inference

_FP8_CACHE: Final = (
    "vLLM, Quantized KV Cache: an fp8 cache holds about twice as many tokens, and is no faster by itself"
)
_GRAPHS: Final = "vLLM, enforce_eager: no CUDA graphs, which save the launches of small kernels"
_PIECES: Final = "vLLM --max-num-batched-tokens: longer prompts are processed in several steps"
_SEQUENCES: Final = "vLLM --max-num-seqs: number of sequences for which the warm-up computes logits"
# The smallest limits that vLLM sets by default: a lower limit is always a change.
_TOKENS: Final = 2_048
_AT_ONCE: Final = 256

CHANGES: Final[tuple[PlanChange, ...]] = (
    PlanChange(
        name="FP8 KV cache",
        lever="cache",
        sentence="Quantize the KV cache to 8 bits.",
        source=_FP8_CACHE,
        settings={"kv_cache": "fp8"},
        applies={"kv_cache": PLAIN_FORMATS, "profile": (VLLM.name,)},
        risk="small",
    ),
    PlanChange(
        name="no CUDA graphs",
        lever="graphs",
        sentence="Launch kernels individually instead of replaying CUDA graphs.",
        source=_GRAPHS,
        settings={"engine": {"enforce_eager": True}},
        applies={"profile": (VLLM.name,), "engine.enforce_eager": (None, False)},
        cost="time",
        slower_by_about=None,
        costs="slower with few sequences at once",
        keeps="the outputs",
    ),
)


def change_sequences(workload: Inference, _architecture: Architecture) -> Iterator[ChangeSequence]:
    """Yield the changes of vLLM to smaller prompt chunks, and to fewer sequences per step."""
    settings = workload.settings_as(VllmSettings)
    yield smaller_chunks("max_num_batched_tokens", settings.max_num_batched_tokens or _TOKENS, _PIECES)
    yield _fewer_sequences_changes(settings.max_num_seqs or _AT_ONCE, workload.batch)


def _fewer_sequences_changes(present: int, batch: int) -> ChangeSequence:
    def change_to_sequences(sequences: int) -> PlanChange:
        return PlanChange(
            name=f"at most {sequences:,} sequences per step",
            lever="slots",
            sentence="Limit the number of sequences in one step.",
            source=_SEQUENCES,
            settings={"engine": {"max_num_seqs": sequences}},
            keeps=f"{batch:,} sequences at once",
        )

    return ChangeSequence("slots", smaller_powers_of_two(present, batch), change_to_sequences)
