"""Memory-saving changes of diffusion pipelines, and the ordered list of smaller image sizes."""

from collections.abc import Mapping
from typing import Final

from planner.plan.advice.change import ChangeSequence, PlanChange, quantization_change
from planner.workload.workload import Inference

_OFFLOAD: Final = (
    "Hugging Face Diffusers, Reduce memory usage: enable_model_cpu_offload keeps the running component on the card; "
    "enable_sequential_cpu_offload one module at a time, which is extremely slow"
)
_VAE: Final = "Hugging Face Diffusers, Reduce memory usage: enable_vae_slicing and enable_vae_tiling"
_NF4: Final = "Hugging Face blog, Exploring Quantization Backends in Diffusers: FLUX.1-dev in NF4 by bitsandbytes"
_INT8: Final = "Hugging Face blog, Exploring Quantization Backends in Diffusers: FLUX.1-dev in 8 bits by bitsandbytes"
_ANY_PIPELINE: Final[Mapping[str, tuple[object, ...]]] = {"diffusion.guidance": (True, False)}
"""Condition that matches all diffusion pipelines: only diffusion workloads have a filled-in guidance."""
_PLAIN: Final = ("fp32", "bf16", "fp16")
_STEP_PIXELS: Final = 64
_MIN_PIXELS: Final = 256

PIPELINE_CHANGES: Final[tuple[PlanChange, ...]] = (
    PlanChange(
        name="model offload",
        lever="offload",
        sentence="Keep idle components in RAM.",
        source=_OFFLOAD,
        settings={"diffusion": {"offload": "model"}},
        applies={**_ANY_PIPELINE, "diffusion.offload": ("none",)},
        cost="time",
        slower_by_about=None,
        costs="components are copied to the card for each image",
        needs="RAM for the whole pipeline",
        keeps="the images",
    ),
    PlanChange(
        name="sequential offload",
        lever="offload",
        sentence="Keep everything but the running module in RAM.",
        source=_OFFLOAD,
        settings={"diffusion": {"offload": "sequential"}},
        applies={**_ANY_PIPELINE, "diffusion.offload": ("none", "model")},
        cost="much-time",
        slower_by_about=None,
        costs="all parameters are copied to the card in every step",
        needs="RAM for the whole pipeline",
        keeps="the images",
    ),
    PlanChange(
        name="VAE slicing",
        lever="slicing",
        sentence="Decode the images of a batch one at a time.",
        source=_VAE,
        settings={"diffusion": {"vae_slicing": True}},
        applies={**_ANY_PIPELINE, "diffusion.vae_slicing": (False,)},
        keeps="the images",
    ),
    PlanChange(
        name="VAE tiling",
        lever="tiling",
        sentence="Decode large images in overlapping tiles, one at a time.",
        source=_VAE,
        settings={"diffusion": {"vae_tiling": True}},
        applies={**_ANY_PIPELINE, "diffusion.vae_tiling": (False,)},
        cost="time",
        slower_by_about=None,
        costs="the overlaps are decoded twice",
        risk="small",
    ),
    quantization_change(
        name="denoiser in INT8",
        sentence="Quantize the denoiser's linear layers to 8 bits.",
        source=_INT8,
        settings={"weights": "int8"},
        applies={**_ANY_PIPELINE, "weights": _PLAIN},
        needs="bitsandbytes",
    ),
    quantization_change(
        name="denoiser in NF4",
        sentence="Quantize the denoiser's linear layers to 4 bits, with one scale per 64 weights.",
        source=_NF4,
        settings={"weights": "nf4"},
        applies={**_ANY_PIPELINE, "weights": (*_PLAIN, "int8")},
        needs="bitsandbytes",
    ),
    PlanChange(
        name="text encoders in NF4",
        lever="text-weights",
        sentence="Quantize the text encoders' linear layers to 4 bits.",
        source=_NF4,
        settings={"diffusion": {"text_weights": "nf4"}},
        applies={**_ANY_PIPELINE, "diffusion.text_weights": _PLAIN},
        risk="small",
        needs="bitsandbytes",
    ),
)


def smaller_images(workload: Inference) -> ChangeSequence:
    """Return the changes to smaller images with nearly the same aspect ratio, the largest first."""
    width, height = workload.image_size or (_MIN_PIXELS, _MIN_PIXELS)
    longer = max(width, height)

    def change_to_image_size(side: int) -> PlanChange:
        size = (_scaled_side(width, side, longer), _scaled_side(height, side, longer))
        return PlanChange(
            name=f"images of {size[0]:,} × {size[1]:,} pixels",
            lever="length",
            sentence=f"Generate images of {size[0]:,} × {size[1]:,} pixels instead of {width:,} × {height:,}.",
            source="this plan's own estimate with fewer pixels",
            settings={"image_size": f"{size[0]}x{size[1]}"},
            cost="less",
            costs="fewer pixels; most pipelines are trained for one size",
            kept=size[0] * size[1] / (width * height),
            risk="real",
        )

    return ChangeSequence(
        "length",
        range((longer - 1) // _STEP_PIXELS * _STEP_PIXELS, _MIN_PIXELS - 1, -_STEP_PIXELS),
        change_to_image_size,
    )


def _scaled_side(side: int, longest: int, longer: int) -> int:
    """Return `side` in pixels, scaled so that the longer side is `longest`, in steps that every pipeline accepts."""
    return max(_STEP_PIXELS, side * longest // longer // _STEP_PIXELS * _STEP_PIXELS)
