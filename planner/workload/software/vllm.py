"""vLLM."""

from typing import Final, Literal

from pydantic import Field, field_validator

from planner.workload.software.settings import EngineSettings
from planner.workload.software.software import Serving, Software

VllmVersion = Literal["0.33", "0.19", "0.11"]


class VllmSettings(EngineSettings):
    """Settings of vLLM by its own names; open ones have the defaults of its server, which depend on the card."""

    version: VllmVersion | None = Field(default=None, description="vLLM: 0.33, 0.19 (to 0.17) or 0.11 [0.33]")
    max_num_seqs: int | None = Field(default=None, ge=1, le=1_000_000, description="vLLM: sequences in one step")
    max_num_batched_tokens: int | None = Field(
        default=None, ge=1, le=100_000_000, description="vLLM: tokens in one step"
    )
    memory_utilization: float | None = Field(
        default=None, gt=0, le=1, description="vLLM: share of the card's memory that it takes [0.92]"
    )
    block_size: int | None = Field(default=None, ge=1, le=4096, description="vLLM: tokens in one page [16]")
    enforce_eager: bool | None = Field(default=None, description="vLLM: no CUDA graphs [false]")

    @field_validator("version", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        """Take a version that was written as a number."""
        return str(value) if isinstance(value, float) else value


VLLM: Final = Software(
    name="vllm",
    module="vllm",
    title="vLLM",
    version="vLLM 0.33",
    serving=Serving(
        settings=VllmSettings,
        cache_formats=("fp32", "bf16", "fp16", "fp8"),
        containers=("safetensors", "gguf"),
        ignored_fields=("prompt_length", "prompt_logits", "attention"),
        usually_shares="matrices",
        graphs="working",
        working_memory="vLLM profiles its own largest batch and the logits of every slot, "
        "whatever the plan's batch is.",
        outside_memory="vLLM counts from when it has started, so that the device context is not in it.",
    ),
)
