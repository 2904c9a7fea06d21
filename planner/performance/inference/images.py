"""Time of an image from a diffusion pipeline: its text encoding, denoising steps and decoding."""

from typing import Final

from planner.hardware.gpu import Gpu
from planner.models.architecture import Architecture
from planner.models.diffusion import Component, find_networks
from planner.performance.inference.denoising import decoder_counts, denoiser_counts
from planner.performance.links import links_of
from planner.performance.result import TimeResult
from planner.performance.setting import TimeSetting
from planner.performance.traced import TracedStep, step_time
from planner.performance.vision import OperationCounts, Precision
from planner.workload.workload import Inference

DEFAULT_STEPS: Final = 30
"""Default number of denoising steps: between the 20 of MLPerf's rule and the 50 of diffusers' pipelines."""
_PROMPT_TOKENS: Final = 77
"""Prompt length of CLIP's text encoders in tokens (openai/clip-vit-large-patch14, max_position_embeddings)."""


def image_time(architecture: Architecture, workload: Inference, gpu: Gpu, setting: TimeSetting) -> TimeResult:
    """Return the time of one batch of images on each card, for a `workload` with its defaults filled in.

    **Formula**: steps · (2 with guidance) · denoiser + text encoders + decoder, each F ÷ (a · C) + b · n · w ÷ B.

    **Assumes** 30 steps if the setting has no number.
    """
    steps = setting.diffusion_steps or DEFAULT_STEPS
    counts = pipeline_counts(architecture, workload, steps)
    batch = workload.batch
    whole = batch_counts(counts, batch)
    precision: Precision = "tf32" if workload.compute == "fp32" else "fp16"
    step = TracedStep("inference", whole, batch, precision, compiled=setting.compiled)
    found = step_time(step, gpu, links_of(gpu, setting), workload.parallel.data or 1)
    return (
        found.evolve(notes=(f"Assumes {steps:,} denoising steps per image.", *found.notes)) if found.seconds else found
    )


def pipeline_counts(architecture: Architecture, workload: Inference, steps: int = DEFAULT_STEPS) -> OperationCounts:
    """Return the operation counts of one image in all components of the pipeline."""
    denoiser, decoder = find_networks(architecture.components)
    width, height = workload.image_size or (denoiser.sample_size * decoder.scale,) * 2
    size = (height // decoder.scale, width // decoder.scale)
    text = max(
        [_prompt_tokens(part) for part in architecture.components if part.part == "text"], default=_PROMPT_TOKENS
    )
    one, last = denoiser_counts(denoiser, *size, text), decoder_counts(decoder, *size)
    each = steps * (2 if workload.diffusion.guidance else 1)
    encoders = sum(
        2 * part.parameters * _prompt_tokens(part) for part in architecture.components if part.part == "text"
    )
    flops, elements = each * one.flops + last.flops + encoders, each * one.elements + last.elements
    return OperationCounts(flops, elements, "diffusion", steps * one.calls + last.calls)


def batch_counts(counts: OperationCounts, images: int) -> OperationCounts:
    """Return the operation counts of a batch of images, which takes as many launches as one image."""
    return counts._replace(flops=images * counts.flops, elements=images * counts.elements)


def _prompt_tokens(part: Component) -> int:
    return part.tokens or _PROMPT_TOKENS
