"""A service: how many requests a replica answers when they come without end, and how long they wait for it."""

from typing import Final

from planner.base import Spec
from planner.hardware.gpu import Gpu
from planner.models.architecture import Architecture
from planner.performance.inference.estimate import run_of
from planner.performance.inference.throughput import queued, sequences_that_fit
from planner.performance.setting import TimeSetting
from planner.workload.workload import Inference

MOST_AT_ONCE: Final = 256
"""Sequences of one step on a replica: vLLM's `max_num_seqs` as it is on most cards."""


class Serving(Spec):
    """What all replicas do with requests of given lengths that come without end."""

    at_once: int
    requests_per_second: float
    tokens_per_second: float
    reading_seconds: float
    """Of a request's time, how long its place is taken by the reading of prompts: its own, and those of the others."""
    output_token_seconds: float


def serving(
    architecture: Architecture, workload: Inference, gpu: Gpu, setting: TimeSetting, prompt: float, answer: float
) -> Serving | None:
    """Return what replicas of `workload` (defaults filled in) on cards of `gpu` bring, or None where it is not known.

    Engines that batch as they go take as many sequences as fit beside the weights, up to `MOST_AT_ONCE` or what the
    workload says; others as many as the workload says, all together.

    **Formula**: n sequences at once: a place is taken for n · t_prompt + answer · t_step.

    **Assumes** requests of words alone, of equal lengths, and that there is always a next one.
    """
    if architecture.kind not in ("decoder", "vision-language") or workload.images or gpu.memory_bytes is None:
        return None
    run = run_of(architecture, workload, gpu, setting)
    if run is None:
        return None
    fitting = workload.batch
    if run.machine.engine.batches_continuously:
        held = sequences_that_fit(run, workload.weights or "bf16", prompt + answer, gpu.memory_bytes / gpu.device_count)
        fitting = max(fitting, min(held, MOST_AT_ONCE))
    read = max(prompt, 1.0)
    found, replicas = queued(run, fitting, read, answer), workload.parallel.data or 1
    return Serving(
        at_once=replicas * fitting,
        requests_per_second=replicas * found.requests_per_second,
        tokens_per_second=replicas * found.tokens_per_second,
        reading_seconds=fitting / found.requests_per_second - answer * found.output_token_seconds,
        output_token_seconds=found.output_token_seconds,
    )
