"""Memory-saving changes of inference workloads."""

from collections.abc import Mapping
from typing import Final

from planner.plan.advice.change import PlanChange, quantization_change

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
