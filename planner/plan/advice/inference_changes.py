"""Memory-saving changes of inference workloads, and the program that answers faster."""

from collections.abc import Iterator, Mapping
from typing import Final

from planner.plan.advice.change import PlanChange, quantization_change
from planner.plan.advice.search import ChangedPlan, ChangeSearch
from planner.plan.evaluate import evaluate
from planner.workload.software.transformers import TRANSFORMERS
from planner.workload.software.vllm import VLLM
from planner.workload.workload import Workload

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
    sentence="Serve the model with vLLM, whose cards compute each layer together instead of one after another.",
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
        name = f"Run in {CONTINUOUS_BATCHING.name}: {after:,.0f} instead of {before:,.0f} tokens/s"
        yield changed._replace(changes=(CONTINUOUS_BATCHING._replace(name=name, slower_by_about=before / after),))


def _tokens_per_second(search: ChangeSearch, changed: ChangedPlan) -> float | None:
    time = evaluate(changed.plan, search.catalog).time
    return None if time is None else time.tokens_per_second
