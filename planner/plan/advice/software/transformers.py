"""Memory-saving changes of Hugging Face Transformers, including the switch to other programs."""

from typing import Final

from planner.plan.advice.change import PlanChange, quantization_change
from planner.plan.advice.inference_changes import PLAIN_FORMATS, TEXT_GENERATION_ONLY
from planner.workload.software.liger import LIGER
from planner.workload.software.llama_cpp import LLAMA_CPP
from planner.workload.software.transformers import TRANSFORMERS
from planner.workload.software.unsloth import UNSLOTH

_GGUF: Final = "llama.cpp tools/quantize/README.md: Q4_K_M has about 4.9 bits per weight"
_FP8_CACHE: Final = (
    "vLLM, Quantized KV Cache: an fp8 cache holds about twice as many tokens, and is no faster by itself"
)
_LIGER: Final = "Hsu et al. 2024, arXiv 2410.10989: Liger kernels are exact, and faster than the plain operators"
_UNSLOTH: Final = "unslothai/unsloth, README.md: exact kernels, no approximations, on one GPU"

CHANGES: Final[tuple[PlanChange, ...]] = (
    PlanChange(
        name="Liger kernels",
        lever="loss",
        sentence="Use fused norms, activations and loss, which save less for the backward pass.",
        source=_LIGER,
        settings={"profile": LIGER.name, "loss": None},
        applies={"task": ("training",), "profile": (TRANSFORMERS.name,)},
        needs="liger-kernel",
        keeps="the mathematical result",
    ),
    PlanChange(
        name="Unsloth",
        lever="loss",
        sentence="Train the adapters in Unsloth: fused kernels, embeddings in 16 bits, checkpoints in RAM.",
        source=_UNSLOTH,
        settings={"profile": UNSLOTH.name, "loss": None},
        applies={
            "task": ("training",),
            "profile": (TRANSFORMERS.name,),
            "method": ("lora", "qlora"),
            "parallel.data": (1,),
        },
        needs="unsloth",
        excludes=("offload", "sharing", "cards"),
        keeps="the mathematical result",
    ),
    quantization_change(
        name="Q4_K_M in llama.cpp",
        sentence="Run a GGUF file with about 4.9 bits per weight.",
        source=_GGUF,
        settings={"weights": "Q4_K_M", "profile": LLAMA_CPP.name},
        applies={**TEXT_GENERATION_ONLY, "weights": (*PLAIN_FORMATS, "int8"), "profile": (TRANSFORMERS.name,)},
        needs="llama.cpp and a GGUF file",
    ),
    PlanChange(
        name="KV cache in fp8",
        lever="cache",
        sentence="Quantize the KV cache to 8 bits.",
        source=_FP8_CACHE,
        settings={"kv_cache": "fp8"},
        applies={**TEXT_GENERATION_ONLY, "kv_cache": PLAIN_FORMATS, "profile": (TRANSFORMERS.name,)},
        risk="small",
        needs="an engine with an fp8 cache, such as vLLM",
    ),
)
