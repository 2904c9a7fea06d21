"""Memory-saving changes of inference workloads and of image pipelines, and the program that answers faster."""

from collections.abc import Iterator, Mapping
from typing import Final

from planner.plan.advice.change import ChangeSequence, PlanChange, quantization_change
from planner.plan.advice.search import ChangedPlan, ChangeSearch
from planner.plan.evaluate import evaluate
from planner.workload.software.transformers import TRANSFORMERS
from planner.workload.software.vllm import VLLM
from planner.workload.workload import Inference, Training, Workload

_HALF: Final = "16 bits are half of fp32's bits; checkpoints are trained and published in 16 bits"
_LLM_INT8: Final = (
    "Dettmers et al. 2022, arXiv 2208.07339; Hugging Face blog, bitsandbytes: BLOOM is 15 to 23 % slower in INT8"
)
_NF4: Final = "Dettmers et al. 2023, arXiv 2305.14314: NF4 loses little quality compared with 16 bits"
_AWQ: Final = "Lin et al. 2024, arXiv 2306.00978: 4-bit weights lose little quality compared with 16 bits"
_LAST_LOGITS: Final = "Hugging Face transformers, logits_to_keep: generation reads the logits of the last token only"

TEXT_GENERATION_ONLY: Final[Mapping[str, tuple[object, ...]]] = {"task": ("inference",), "diffusion.guidance": (None,)}
"""Condition that excludes diffusion pipelines, which have a filled-in guidance and changes of their own."""
_SIXTEEN: Final = ("bf16", "fp16")
PLAIN_FORMATS: Final = ("fp32", *_SIXTEEN)

INFERENCE_CHANGES: Final[tuple[PlanChange, ...]] = (
    *(
        PlanChange(
            name=f"weights in {half}",
            lever="weights",
            sentence="Store the weights in 16 bits.",
            source=_HALF,
            settings={"weights": half, "compute": half},
            applies={"task": ("inference",), "weights": ("fp32",)},
            risk="small",
            native_bf16=half == "bf16",
        )
        for half in _SIXTEEN
    ),
    PlanChange(
        name="weights in INT8",
        lever="weights",
        sentence="Quantize the linear layers to 8 bits; outliers are computed in 16 bits.",
        source=_LLM_INT8,
        settings={"weights": "int8"},
        applies={**TEXT_GENERATION_ONLY, "weights": PLAIN_FORMATS},
        cost="time",
        slower_by_about=1.2,
        costs="a larger slowdown for small models",
        risk="small",
        needs="bitsandbytes",
    ),
    quantization_change(
        name="weights in NF4",
        sentence="Quantize the linear layers to 4 bits, with one scale per 64 weights.",
        source=_NF4,
        settings={"weights": "nf4"},
        applies={**TEXT_GENERATION_ONLY, "weights": (*PLAIN_FORMATS, "int8")},
        needs="bitsandbytes",
    ),
    quantization_change(
        name="4-bit weights (AWQ)",
        sentence="Run a checkpoint whose linear layers were quantized to 4 bits on calibration texts.",
        source=_AWQ,
        settings={"weights": "awq4-128"},
        applies={**TEXT_GENERATION_ONLY, "weights": (*PLAIN_FORMATS, "int8")},
        needs="an AWQ checkpoint",
    ),
    PlanChange(
        name="logits of the last token only",
        lever="logits",
        sentence="Compute only the logits of the prompt's last token, which generation starts from.",
        source=_LAST_LOGITS,
        settings={"prompt_logits": "last"},
        applies={**TEXT_GENERATION_ONLY, "prompt_logits": ("all",)},
        keeps="the outputs, but not the scores of the prompt",
    ),
)


CONTINUOUS_BATCHING: Final = PlanChange(
    name=VLLM.title,
    lever="program",
    sentence="Serve the model with vLLM, whose GPUs compute each layer together instead of one after another.",
    source="vLLM, Parallelism and Scaling; both rates are the estimates of these plans",
    settings={"profile": VLLM.name},
    applies={**TEXT_GENERATION_ONLY, "profile": (TRANSFORMERS.name,)},
    costs=f"{VLLM.title} reserves most of the memory for its KV cache",
    needs="vllm",
    keeps="the model",
)
"""The change from a program that answers a batch as a whole to one that takes new requests into the running batch."""
_WORTHWHILE: Final = 1.2
"""Factor on the tokens per second below which another program is not worth the change."""


def faster_program(search: ChangeSearch, workload: Workload) -> Iterator[ChangedPlan]:
    """Yield the change of the program if the plan still fits and generates more tokens per second; else nothing.

    `workload` is the plan's, with its defaults filled in.
    """
    several = search.start.plan.count > 1 or getattr(workload, "batch", 1) > 1
    if not several or not CONTINUOUS_BATCHING.applies_to(workload, None):
        return
    changed = search.evaluate(search.start, CONTINUOUS_BATCHING)
    if changed is None or changed.fit.verdict != "fits":
        return
    before, after = (_tokens_per_second(search, each) for each in (search.start, changed))
    if before and after and after > _WORTHWHILE * before:
        name = f"Run in {CONTINUOUS_BATCHING.name}: {_rate(after)} instead of {_rate(before)} tokens/s"
        yield changed._replace(changes=(CONTINUOUS_BATCHING._replace(name=name, slower_by_about=before / after),))


def _rate(value: float) -> str:
    """Return an estimated rate in three significant figures: `4,530`."""
    return f"{float(f'{value:.3g}'):,.0f}"


def _tokens_per_second(search: ChangeSearch, changed: ChangedPlan) -> float | None:
    time = evaluate(changed.plan, search.catalog).time
    return None if time is None else time.tokens_per_second


_OFFLOAD: Final = (
    "Hugging Face Diffusers, Reduce memory usage: enable_model_cpu_offload keeps the running component on the GPU; "
    "enable_sequential_cpu_offload one module at a time, which is extremely slow"
)
_VAE: Final = "Hugging Face Diffusers, Reduce memory usage: enable_vae_slicing and enable_vae_tiling"
_FLUX_NF4: Final = "Hugging Face blog, Exploring Quantization Backends in Diffusers: FLUX.1-dev in NF4 by bitsandbytes"
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
        costs="components are copied to the GPU for each image",
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
        costs="all parameters are copied to the GPU in every step",
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
        source=_FLUX_NF4,
        settings={"weights": "nf4"},
        applies={**_ANY_PIPELINE, "weights": (*_PLAIN, "int8")},
        needs="bitsandbytes",
    ),
    PlanChange(
        name="text encoders in NF4",
        lever="text-weights",
        sentence="Quantize the text encoders' linear layers to 4 bits.",
        source=_FLUX_NF4,
        settings={"diffusion": {"text_weights": "nf4"}},
        applies={**_ANY_PIPELINE, "diffusion.text_weights": _PLAIN},
        risk="small",
        needs="bitsandbytes",
    ),
)


def smaller_images(workload: Inference | Training) -> ChangeSequence:
    """Return the changes to smaller images with nearly the same aspect ratio, the largest first."""
    width, height = workload.image_size or (_MIN_PIXELS, _MIN_PIXELS)
    longer = max(width, height)
    verb = "Generate" if isinstance(workload, Inference) else "Train on"

    def change_to_image_size(side: int) -> PlanChange:
        size = (_scaled_side(width, side, longer), _scaled_side(height, side, longer))
        return PlanChange(
            name=f"images of {size[0]:,} × {size[1]:,} pixels",
            lever="length",
            sentence=f"{verb} images of {size[0]:,} × {size[1]:,} pixels instead of {width:,} × {height:,}.",
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
