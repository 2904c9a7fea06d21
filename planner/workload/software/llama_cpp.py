"""llama.cpp."""

from typing import Final

from pydantic import Field

from planner.workload.software.settings import EngineSettings
from planner.workload.software.software import Serving, Software


class LlamaCppSettings(EngineSettings):
    """Settings of llama.cpp by its own names; open ones have the defaults of llama-server."""

    n_batch: int | None = Field(default=None, ge=1, le=1_000_000, description="llama.cpp: tokens in one batch [2,048]")
    n_ubatch: int | None = Field(
        default=None, ge=1, le=1_000_000, description="llama.cpp: tokens computed at once [512]"
    )
    slots: int | None = Field(
        default=None, ge=1, le=256, description="llama.cpp: sequences at once [4, or the batch if that is more]"
    )
    kv_unified: bool | None = Field(
        default=None, description="llama.cpp: one cache for all slots [true, unless slots are given]"
    )
    swa_full: bool | None = Field(default=None, description="llama.cpp: whole contexts for sliding layers [false]")
    n_outputs_max: int | None = Field(
        default=None, ge=1, le=1_000_000, description="llama.cpp: rows with logits in one batch [one for each slot]"
    )


LLAMA_CPP: Final = Software(
    name="llama.cpp",
    module="llama_cpp",
    title="llama.cpp",
    version="llama.cpp 0.5.0",
    serving=Serving(
        settings=LlamaCppSettings,
        cache_formats=("fp32", "bf16", "fp16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0"),
        cache_names={"bf16": "fp16"},  # caches of 16 bits are in F16
        containers=("gguf",),
        own_fields=("gpu_layers",),
        ignored_fields=("prompt_length", "prompt_logits", "compute"),
        quantised_cache_attention=("flash", "sdpa"),
        log="llama.cpp",
    ),
)
