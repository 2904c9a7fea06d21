"""Throughput of a saturated service: requests per second, and the time of a request."""

from typing import Final

from planner.base import Spec
from planner.hardware.gpu import Gpu
from planner.models.architecture import Architecture
from planner.performance.inference.estimate import served_model
from planner.performance.inference.throughput import saturated_throughput, sequences_that_fit
from planner.performance.setting import TimeSetting
from planner.workload.workload import Inference

MAX_SEQUENCES_PER_STEP: Final = 256
"""Maximum number of sequences in one step of a replica: vLLM's default `max_num_seqs` on most cards."""


class ServiceRate(Spec):
    """Throughput of all replicas with a never-ending queue of requests of equal lengths."""

    at_once: int
    requests_per_second: float
    tokens_per_second: float
    reading_seconds: float
    """Seconds of a request that replicas spend on its own prompt and on the prompts of concurrent requests."""
    output_token_seconds: float


def service_rate(
    architecture: Architecture, workload: Inference, gpu: Gpu, setting: TimeSetting, prompt: float, answer: float
) -> ServiceRate | None:
    """Return the throughput of all replicas of `workload` on cards `gpu`, or None if it cannot be estimated.

    Engines with continuous batching run as many sequences as fit besides the weights, up to `MAX_SEQUENCES_PER_STEP` or
    the workload's batch; others run the workload's batch, all together.

    **Formula**: n concurrent sequences: a slot is occupied for n · t_prompt + answer · t_step.

    **Assumes** text-only requests of equal lengths, and that there is always a next one.
    """
    if architecture.kind not in ("decoder", "vision-language") or workload.images or gpu.memory_bytes is None:
        return None
    run = served_model(architecture, workload, gpu, setting)
    if run is None:
        return None
    fitting = workload.batch
    if run.machine.engine.batches_continuously:
        held = sequences_that_fit(run, workload.weights or "bf16", prompt + answer, gpu.memory_bytes / gpu.device_count)
        fitting = max(fitting, min(held, MAX_SEQUENCES_PER_STEP))
    read = max(prompt, 1.0)
    found, replicas = saturated_throughput(run, fitting, read, answer), workload.parallel.data or 1
    return ServiceRate(
        at_once=replicas * fitting,
        requests_per_second=replicas * found.requests_per_second,
        tokens_per_second=replicas * found.tokens_per_second,
        reading_seconds=fitting / found.requests_per_second - answer * found.output_token_seconds,
        output_token_seconds=found.output_token_seconds,
    )
