"""Throughput of a saturated service: requests per second, and the time of a request."""

from math import ceil
from typing import Final, NamedTuple

from planner.base import Spec
from planner.hardware.gpu import Gpu
from planner.memory.weights import weight_bytes
from planner.models.architecture import Architecture
from planner.performance.inference.estimate import served_model
from planner.performance.inference.request import ServedModel, cached_bytes, decoding_step_time, prompt_time
from planner.performance.inference.steps import STAGE_DELAY
from planner.performance.setting import TimeSetting
from planner.workload.workload import Inference

_RESERVED_SHARE: Final = 0.10
"""Share of a GPU's memory that engines keep for activations and the GPU context: by default vLLM fills 0.92 of the
memory, TensorRT-LLM 0.90."""
MOST_SEQUENCES: Final = 2_048
"""Maximum number of sequences that an engine schedules per step on each GPU: `max_batch_size` of TensorRT-LLM, with
sequences distributed over the GPUs (`enable_attention_dp`)."""
_PROMPTS_FOR_CHUNKS: Final = 16


class SaturatedThroughput(NamedTuple):
    """Throughput of a replica with a never-ending queue, and its number of concurrent sequences."""

    sequences: int
    requests_per_second: float
    tokens_per_second: float
    output_token_seconds: float


def sequences_that_fit(served: ServedModel, weights: str, context: float, card_bytes: float) -> int:
    """Return how many sequences of `context` tokens fit beside the weights on the GPUs of one replica.

    **Formula**: (GPUs · bytes · 0.9 − weights) ÷ bytes of a sequence, pages without loss.
    """
    cards = served.split.tensor * served.split.stages
    free = cards * card_bytes * (1 - _RESERVED_SHARE) - weight_bytes(served.architecture, weights)
    drafter = served.draft.model if served.draft else None
    if drafter is not None:
        free -= drafter.work.fixed_bytes
    copies = served.split.tensor / served.speed.engine.cache_cards(served.work, served.split.tensor)
    drafted = cached_bytes(drafter, context) if drafter else 0.0
    each = max(copies * (cached_bytes(served, context) + drafted), 1.0)
    return min(MOST_SEQUENCES * served.split.tensor, max(0, int(free / each)))


def saturated_throughput(served: ServedModel, sequences: int, prompt: float, answer: float) -> SaturatedThroughput:
    """Return the throughput of `sequences` concurrent sequences if each finished request is replaced by a new one.

    **Formula**: a request occupies the GPUs for t_prompt + answer · t_step / B. The stages of a pipeline work on
    different sequences, B / p each, and wait for each other.

    **Assumes** that sequences are halfway through their answers on average, and that prompts fill whole chunks.
    """
    stages = served.split.stages if served.speed.engine.overlaps_stages else 1
    waits = 1 + STAGE_DELAY * (stages - 1)
    several = max(1, ceil((served.most_pass_tokens or prompt) * _PROMPTS_FOR_CHUNKS / prompt))
    reading = prompt_time(served, several, prompt).seconds / several
    step = waits * decoding_step_time(served, max(1.0, sequences / stages), prompt + answer / 2).seconds
    each = reading + answer * step / sequences
    return SaturatedThroughput(sequences, 1 / each, answer / each, step)


MAX_SEQUENCES_PER_STEP: Final = 256
"""Maximum number of sequences in one step of a replica: vLLM's default `max_num_seqs` on most GPUs."""


class ServiceRate(Spec):
    """Throughput of all replicas with a never-ending queue of requests of equal lengths."""

    concurrent_requests: int
    requests_per_second: float
    tokens_per_second: float
    prompt_seconds: float
    """Seconds of a request that replicas spend on its own prompt and on the prompts of concurrent requests."""
    output_token_seconds: float


def service_rate(
    architecture: Architecture, workload: Inference, gpu: Gpu, setting: TimeSetting, prompt: float, answer: float
) -> ServiceRate | None:
    """Return the throughput of all replicas of `workload` on GPUs `gpu`, or None if it cannot be estimated.

    Engines with continuous batching run as many sequences as fit besides the weights, up to `MAX_SEQUENCES_PER_STEP` or
    the workload's batch; others run the workload's batch, all together.

    **Formula**: n concurrent sequences: a slot is occupied for n · t_prompt + answer · t_step.

    **Assumes** text-only requests of equal lengths, and that there is always a next one.
    """
    if architecture.kind not in ("decoder", "vision-language") or workload.images or gpu.memory_bytes is None:
        return None
    served = served_model(architecture, workload, gpu, setting)
    if served is None:
        return None
    fitting = workload.batch
    if served.speed.engine.batches_continuously:
        held = sequences_that_fit(
            served, workload.weights or "bf16", prompt + answer, gpu.memory_bytes / gpu.device_count
        )
        fitting = max(fitting, min(held, MAX_SEQUENCES_PER_STEP))
    read = max(prompt, 1.0)
    found, replicas = saturated_throughput(served, fitting, read, answer), workload.parallel.data or 1
    return ServiceRate(
        concurrent_requests=replicas * fitting,
        requests_per_second=replicas * found.requests_per_second,
        tokens_per_second=replicas * found.tokens_per_second,
        prompt_seconds=fitting / found.requests_per_second - answer * found.output_token_seconds,
        output_token_seconds=found.output_token_seconds,
    )
