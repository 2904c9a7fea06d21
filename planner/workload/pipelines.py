"""Default settings of diffusion workloads, and checks for settings that diffusion pipelines do not support."""

from typing import Final

from pydantic import ValidationError

from planner.dtypes import AS_STORED, GGUF_FILE_TYPES
from planner.errors import SpecError
from planner.models.architecture import Architecture
from planner.models.diffusion import DiffusionTransformer, find_networks
from planner.workload.parallel import Parallel
from planner.workload.software.registry import DEFAULT, serving_support
from planner.workload.training import Training
from planner.workload.workload import Inference

_TRACED: Final = (
    "Trace the denoiser with your own step function: “Trace a module…” in the window's Plan menu, or "
    "`gpu-planner trace my_step.py:NAME --task training` in a shell."
)


def pipeline_defaults(workload: Training | Inference, architecture: Architecture, parallel: Parallel) -> Inference:
    """Return `workload` with its unset fields filled in: image size, guidance, and weights in the compute precision.

    Raises:
        SpecError: If the pipeline is to be trained, split across cards or run by an engine for text, or cannot generate
            images of this size.
    """
    if isinstance(workload, Training):
        raise SpecError("task", "training a diffusion pipeline cannot be estimated by a formula", _TRACED)
    if "diffusion" not in serving_support(workload.profile).networks:
        raise SpecError(
            "profile", f"{workload.profile} cannot run diffusion pipelines", f"Choose {DEFAULT}: the diffusers library."
        )
    _check_formats(workload, architecture)
    denoiser, decoder = find_networks(architecture.components)
    if workload.attention == "eager" and isinstance(denoiser, DiffusionTransformer):
        reason = "eager attention is estimated for U-Nets only; diffusion transformers run fused kernels"
        raise SpecError("attention", reason, "Choose sdpa or flash.")
    default = denoiser.sample_size * decoder.scale
    size = workload.image_size or (default, default)
    unit = decoder.scale * (denoiser.patch if isinstance(denoiser, DiffusionTransformer) else 1)
    if any(side % unit for side in size):
        raise SpecError("image_size", f"{size[0]:,} × {size[1]:,} pixels are not multiples of {unit:,}")
    guided = not (isinstance(denoiser, DiffusionTransformer) and denoiser.guidance_embedded)
    settings = workload.diffusion
    try:
        return workload.evolve(
            profile=workload.profile or DEFAULT,
            weights=workload.weights or workload.compute,
            image_size=size,
            diffusion=settings.evolve(
                guidance=guided if settings.guidance is None else settings.guidance,
                text_weights=settings.text_weights or workload.compute,
            ),
            parallel=parallel,
        )
    except ValidationError as error:
        raise SpecError.from_validation(error) from error


def _check_formats(workload: Inference, architecture: Architecture) -> None:
    for name, value in (("weights", workload.weights), ("diffusion.text_weights", workload.diffusion.text_weights)):
        if value in GGUF_FILE_TYPES:
            raise SpecError(
                name,
                "GGUF files of diffusion models mix weight formats, which is not supported",
                "Choose nf4, int8 or fp8.",
            )
        if value == AS_STORED and not all(component.stored for component in architecture.components):
            raise SpecError(
                name,
                "the weight formats in the files are unknown, because the pipeline's files were not read",
                "Choose the pipeline's folder, or hf:owner/name.",
            )
