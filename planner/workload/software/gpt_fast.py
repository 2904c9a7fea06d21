"""Inference capabilities and settings of gpt-fast, as torchao's Llama script runs it."""

from typing import Annotated, Final

from pydantic import Field

from planner.workload.presentation import Presentation
from planner.workload.software.software import EngineSettings, ServingSupport, Software


class GptFastSettings(EngineSettings):
    """Settings of gpt-fast, by the names of torchao's script."""

    kv_cache_quantization: Annotated[
        bool | None,
        Field(title="INT8 KV cache", description="gpt-fast: KV cache in int8, with a scale for each token and head"),
        Presentation(default="false", explanation="One layer's cache at a time is written out in full for attention."),
    ] = None
    linear_causal_mask: Annotated[
        bool | None,
        Field(title="Linear causal mask", description="gpt-fast: one row of the causal mask instead of a whole table"),
        Presentation(default="false", explanation="A table holds a byte for each pair of tokens in the cache."),
    ] = None


GPT_FAST: Final = Software(
    name="gpt-fast",
    module="gpt_fast",
    title="gpt-fast",
    version="gpt-fast in torchao 0.7",
    serving=ServingSupport(
        settings=GptFastSettings,
        cache_formats=("fp32", "bf16", "fp16"),
        weight_formats=("bf16", "fp16", "fp32"),
        networks=("decoder",),
        ignored_fields=("prompt_logits", "attention"),
    ),
)
