"""Numbers of vLLM and llama.cpp that decide memory: how much they compute at once, and how much stands on the card."""

from collections.abc import Iterator
from typing import Final

from planner.models.architecture import Architecture
from planner.plan.advice.change import Change
from planner.plan.advice.ladder import Ladder
from planner.workload.software.llama_cpp import LlamaCppSettings
from planner.workload.software.vllm import VllmSettings
from planner.workload.workload import Inference

_LLAMA_OFFLOAD: Final = "llama.cpp --n-gpu-layers: the other layers stay in RAM and run on the processor"
_LLAMA_PIECES: Final = "llama.cpp --ubatch-size: the prompt is read that many tokens at a time"
_VLLM_PIECES: Final = "vLLM --max-num-batched-tokens: longer prompts are read in several steps"
_VLLM_SEQUENCES: Final = "vLLM --max-num-seqs: its warm-up makes logits for that many sequences"
# The smallest limits that vLLM and llama.cpp start with by themselves: what is below them is always a change.
_VLLM_TOKENS: Final = 2_048
_VLLM_AT_ONCE: Final = 256
_LLAMA_TOKENS: Final = 512
_FEWEST_TOKENS: Final = 32


def engine_ladders(workload: Inference, architecture: Architecture) -> Iterator[Ladder]:
    """Yield the ladders of the engine that `workload`, its defaults filled in, runs in."""
    settings = workload.engine
    if isinstance(settings, VllmSettings):
        yield _pieces("max_num_batched_tokens", settings.max_num_batched_tokens or _VLLM_TOKENS, _VLLM_PIECES)
        yield _fewer_at_once(settings.max_num_seqs or _VLLM_AT_ONCE, workload.batch)
    if isinstance(settings, LlamaCppSettings):
        yield _pieces("n_ubatch", settings.n_ubatch or _LLAMA_TOKENS, _LLAMA_PIECES)
        yield _fewer_layers(workload, architecture)


def _pieces(setting: str, present: int, source: str) -> Ladder:
    def smaller(tokens: int) -> Change:
        return Change(
            name=f"prompt in pieces of {tokens:,} tokens",
            lever="pieces",
            sentence="Read long prompts in smaller pieces.",
            source=source,
            settings={"engine": {setting: tokens}},
            cost="time",
            slower_by_about=None,
            costs="prompts are read more slowly",
            keeps="the answers",
        )

    return Ladder("pieces", _halves(present, _FEWEST_TOKENS), smaller)


def _fewer_at_once(present: int, batch: int) -> Ladder:
    def fewer(sequences: int) -> Change:
        return Change(
            name=f"room for {sequences:,} sequences",
            lever="slots",
            sentence="Let fewer sequences into one step.",
            source=_VLLM_SEQUENCES,
            settings={"engine": {"max_num_seqs": sequences}},
            keeps=f"{batch:,} at once",
        )

    return Ladder("slots", _halves(present, batch), fewer)


def _fewer_layers(workload: Inference, architecture: Architecture) -> Ladder:
    layers = architecture.depth + 1
    present = layers if workload.gpu_layers is None else min(workload.gpu_layers, layers)

    def fewer(count: int) -> Change:
        return Change(
            name=f"{count:,} of {layers:,} layers on the card",
            lever="offload",
            sentence="Keep the other layers in RAM, where the processor runs them.",
            source=_LLAMA_OFFLOAD,
            settings={"gpu_layers": count},
            cost="much-time",
            slower_by_about=None,
            costs=f"{layers - count:,} layers run on the processor",
            needs="RAM for the other layers",
            keeps="the answers",
        )

    return Ladder("offload", range(present - 1, -1, -1), fewer)


def _halves(present: int, least: int) -> list[int]:
    """Return the powers of two below `present`, down to `least`, the largest first."""
    powers = (1 << exponent for exponent in range((present - 1).bit_length() - 1, -1, -1))
    return [power for power in powers if power >= least]
