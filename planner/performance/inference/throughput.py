"""Maximum throughput of cards while requests queue, with as many concurrent sequences as fit in memory."""

from math import ceil
from typing import Final, NamedTuple

from planner.memory.weights import weight_bytes
from planner.performance.inference.request import ServedModel, cached_bytes, decoding_step_time, prompt_time

_RESERVED_SHARE: Final = 0.10
"""Share of a card's memory that engines keep for activations and the device context: by default vLLM fills 0.92 of the
memory, TensorRT-LLM 0.90."""
MOST_SEQUENCES: Final = 2_048
"""Maximum number of sequences that an engine schedules per step on each card: `max_batch_size` of TensorRT-LLM, with
sequences distributed over the cards (`enable_attention_dp`)."""
_PROMPTS_FOR_CHUNKS: Final = 16
_STAGE_DELAY: Final = 0.10
"""Relative increase of the decoding step per further pipeline stage: stages are uneven, and wait for each other.

**Source**: NVIDIA/TensorRT-LLM@00f3768 perf-overview, Llama 3.3 70B on 1 to 8 RTX PRO 6000 (0.14) and
Llama 3.1 405B on 8 (0.05) in stages.
"""


class SaturatedThroughput(NamedTuple):
    """Throughput of a replica with a never-ending queue, and its number of concurrent sequences."""

    sequences: int
    requests_per_second: float
    tokens_per_second: float
    output_token_seconds: float


def sequences_that_fit(run: ServedModel, weights: str, context: float, card_bytes: float) -> int:
    """Return how many sequences of `context` tokens fit beside the weights on the cards of one replica.

    **Formula**: (cards · bytes · 0.9 − weights) ÷ bytes of a sequence, pages without loss.
    """
    cards = run.sharing.tensor * run.sharing.stages
    free = cards * card_bytes * (1 - _RESERVED_SHARE) - weight_bytes(run.architecture, weights)
    copies = run.sharing.tensor / run.machine.engine.cache_cards(run.work, run.sharing.tensor)
    each = max(copies * cached_bytes(run, context), 1.0)
    return min(MOST_SEQUENCES * run.sharing.tensor, max(0, int(free / each)))


def saturated_throughput(run: ServedModel, sequences: int, prompt: float, answer: float) -> SaturatedThroughput:
    """Return the throughput of `sequences` concurrent sequences if each finished request is replaced by a new one.

    **Formula**: a request occupies the cards for t_prompt + answer · t_step / B. The stages of a pipeline work on
    different sequences, B / p each, and wait for each other.

    **Assumes** that sequences are halfway through their answers on average, and that prompts fill whole chunks.
    """
    stages = run.sharing.stages if run.machine.engine.overlaps_stages else 1
    waits = 1 + _STAGE_DELAY * (stages - 1)
    several = max(1, ceil((run.machine.engine.chunk or prompt) * _PROMPTS_FOR_CHUNKS / prompt))
    reading = prompt_time(run, several, prompt).seconds / several
    step = waits * decoding_step_time(run, max(1.0, sequences / stages), prompt + answer / 2).seconds
    each = reading + answer * step / sequences
    return SaturatedThroughput(sequences, 1 / each, answer / each, step)
