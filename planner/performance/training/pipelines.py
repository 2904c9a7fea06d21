"""Time of an optimizer step that trains the denoiser of an image pipeline."""

from typing import Final, NamedTuple

from planner.dtypes import ELEMENT_BYTES
from planner.hardware.gpu import Gpu
from planner.memory.terms import card_symbol, model_symbol
from planner.memory.training.adapters.trained import tune_tensors
from planner.memory.training.optimizer_states import optimizer_term, parameter_count
from planner.models.architecture import Architecture
from planner.models.diffusion import find_networks
from planner.performance.inference.images import denoiser_counts, encoder_counts, prompt_tokens
from planner.performance.links import links_of
from planner.performance.result import TimeResult, TimeTerm
from planner.performance.setting import TimeSetting
from planner.performance.traced import OperationCounts, Precision, TracedStep, step_time
from planner.workload.formats import product_format
from planner.workload.training import Training

_NOTE: Final = (
    "No training of a denoiser was measured on one card with these programs, so that the interval is that of unknown "
    "work."
)
_OPTIMIZER: Final = "gradients are read, parameters and optimizer states read and written once"


class _Trained(NamedTuple):
    """Number of trained parameters, and the bytes that an optimizer step moves and that GPUs exchange."""

    parameters: int
    moved_bytes: int
    gradient_bytes: int


def pipeline_step_time(
    architecture: Architecture, workload: Training, gpu: Gpu, count: int, setting: TimeSetting
) -> TimeResult:
    """Return the time of one optimizer step of `workload` (defaults filled in) on `count` GPUs.

    **Formula**: as of a traced module, from the operations of all micro-batches; plus the optimizer's bytes ÷ B.
    """
    trained, images = _trained_parameters(architecture, workload), workload.micro_batch * workload.gradient_accumulation
    counts = training_counts(architecture, workload)
    whole = counts._replace(
        flops=images * counts.flops,
        elements=images * counts.elements,
        calls=workload.gradient_accumulation * counts.calls,
    )
    precision = _PRECISIONS[product_format(workload.compute)] if workload.compute != "tf32" else "tf32"
    step = TracedStep("training", whole, images, precision, trained.gradient_bytes, setting.compiled)
    found = step_time(step, gpu, links_of(gpu, setting), count, setting.input_samples_per_second)
    if found.seconds is None:
        return found
    updated = _optimizer_term(trained, gpu)
    longer = 1 + updated.seconds / found.seconds
    return found.evolve(
        seconds=found.seconds * longer,
        low_seconds=None if found.low_seconds is None else found.low_seconds * longer,
        high_seconds=None if found.high_seconds is None else found.high_seconds * longer,
        samples_per_second=count * images / (found.seconds * longer),
        mfu_fraction=None if found.mfu_fraction is None else found.mfu_fraction / longer,
        terms=(*found.terms, updated),
        samples="images",
        notes=(_NOTE,),
    )


_PRECISIONS: Final[dict[str, Precision]] = {"fp32": "fp32", "bf16": "fp16", "fp16": "fp16"}
_FORWARD_AND_BACKWARD: Final = 3
"""Passes over the elements of a denoiser in a training step, in units of a forward pass: the gradients of both factors
are read and written as often as the factors."""


def training_counts(architecture: Architecture, workload: Training) -> OperationCounts:
    """Return the operation counts of one image in a training step, with those of the networks that make its inputs.

    **Formula**: F · (2 + 1 if the weights have gradients + 1 if it is checkpointed) + the encoders' forward passes.
    """
    denoiser, decoder = find_networks(architecture.components)
    width, height = workload.image_size or (0, 0)
    size = (height // decoder.scale, width // decoder.scale)
    texts = [part for part in architecture.components if part.part == "text"]
    tokens = max([prompt_tokens(part) for part in texts], default=0)
    one = denoiser_counts(denoiser, *size, tokens)
    again = int(workload.activation_checkpointing == "full")
    flops = one.flops * (2 + again + (not workload.adapts))
    elements, calls = (each * (_FORWARD_AND_BACKWARD + again) for each in (one.elements, one.calls))
    if workload.precomputed == "none":
        flops += sum(2 * part.parameters * prompt_tokens(part) for part in texts)
    if workload.precomputed != "all":
        images = encoder_counts(decoder, *size)
        flops, elements, calls = flops + images.flops, elements + images.elements, calls + images.calls
    return OperationCounts(flops, elements, "diffusion", calls, trains=True)


def _trained_parameters(architecture: Architecture, workload: Training) -> _Trained:
    """Return the size of what the workload trains."""
    denoiser = next(part for part in architecture.components if part.part == "denoiser")
    trained, _ = tune_tensors(denoiser.tensors, workload.lora)
    each = ELEMENT_BYTES[workload.lora.adapter_dtype if workload.lora else workload.weights or "fp32"]
    states = optimizer_term(trained, workload.optimizer, each)
    parameters = parameter_count(trained)
    moved = 3 * parameters * each + 2 * (states.bytes if states else 0)
    return _Trained(parameters, moved, parameters * each)


def _optimizer_term(trained: _Trained, gpu: Gpu) -> TimeTerm:
    bandwidth = (gpu.bandwidth_bytes_per_s or 1.0) / gpu.device_count
    return TimeTerm(
        name="optimizer",
        seconds=trained.moved_bytes / bandwidth,
        formula="(3 × G + 2 × S) ÷ B",
        symbols=(
            model_symbol("3 × G + 2 × S", trained.moved_bytes, "bytes of gradients, parameters and states moved"),
            card_symbol("B", bandwidth, "memory bandwidth of the GPU in bytes per second"),
        ),
        source=_OPTIMIZER,
        certainty="measured",
    )
