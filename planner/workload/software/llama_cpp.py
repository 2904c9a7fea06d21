"""Inference capabilities and settings of llama.cpp."""

from typing import Annotated, Final

from pydantic import Field

from planner.workload.presentation import Presentation
from planner.workload.software.software import EngineSettings, ServingSupport, Software


class LlamaCppSettings(EngineSettings):
    """Settings of llama.cpp, by llama.cpp's own names; unset fields have the defaults of llama-server."""

    n_batch: Annotated[
        int | None,
        Field(
            ge=1,
            le=1_000_000,
            title="Logical batch size",
            description="llama.cpp: maximum number of tokens in one logical batch",
        ),
        Presentation(default="2,048", explanation="Tokens that are submitted to the model in one call."),
    ] = None
    n_ubatch: Annotated[
        int | None,
        Field(
            ge=1,
            le=1_000_000,
            title="Physical batch size",
            description="llama.cpp: maximum number of tokens in one physical batch",
        ),
        Presentation(default="512", explanation="The compute buffer grows with the physical batch size."),
    ] = None
    slots: Annotated[
        int | None,
        Field(ge=1, le=256, title="Slots", description="llama.cpp: number of concurrent sequences of llama-server"),
        Presentation(default="4, or the batch if that is more"),
    ] = None
    kv_unified: Annotated[
        bool | None,
        Field(title="Unified KV cache", description="llama.cpp: one KV cache for all slots"),
        Presentation(
            default="true, unless slots are given",
            explanation="All slots share one KV cache, or each slot has its own.",
        ),
    ] = None
    swa_full: Annotated[
        bool | None,
        Field(title="Full SWA cache", description="llama.cpp: full context for sliding-window layers"),
        Presentation(default="false", explanation="Sliding-window layers then cache the whole context."),
    ] = None
    n_outputs_max: Annotated[
        int | None,
        Field(ge=1, le=1_000_000, title="Output rows", description="llama.cpp: maximum rows of logits in one batch"),
        Presentation(default="one per slot"),
    ] = None


LLAMA_CPP: Final = Software(
    name="llama.cpp",
    module="llama_cpp",
    title="llama.cpp",
    version="llama.cpp 0.5.0",
    needs=(),
    started_as=("llama-server", "llama-cli", "llama-bench", "ollama", "koboldcpp", "llamafile", "lmstudio", "llamacpp"),
    serving=ServingSupport(
        settings=LlamaCppSettings,
        cache_formats=("fp32", "bf16", "fp16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0"),
        cache_names={"bf16": "fp16"},  # caches of 16 bits are in F16
        containers=("gguf",),
        own_fields=("gpu_layers",),
        ignored_fields=("prompt_length", "prompt_logits", "compute"),
        quantised_cache_attention=("flash", "sdpa"),
        working_memory="llama.cpp computes a prompt in micro-batches of n_ubatch tokens, in one buffer per device.",
        outside_memory="The figure includes memory of other processes on the card.",
        narrows_fp32=True,
    ),
)
