"""Inference capabilities and settings of vLLM."""

from typing import Annotated, Final, Literal, get_args

from pydantic import Field, field_validator

from planner.workload.presentation import Presentation
from planner.workload.software.software import EngineSettings, ServingSupport, Software

VllmVersion = Literal["0.33", "0.19", "0.11"]


class VllmSettings(EngineSettings):
    """Settings of vLLM, by vLLM's own names; unset fields have the server's defaults, which depend on the card."""

    version: Annotated[
        VllmVersion | None,
        Field(title="Version", description="vLLM: version 0.33, 0.19 (also for 0.18 and 0.17) or 0.11"),
        Presentation(
            default="0.33",
            explanation="Versions of vLLM reserve different amounts of memory.",
            choices={version: f"vLLM {version}" for version in get_args(VllmVersion)},
        ),
    ] = None
    max_num_seqs: Annotated[
        int | None,
        Field(
            ge=1, le=1_000_000, title="Sequences per step", description="vLLM: maximum number of sequences in one step"
        ),
        Presentation(explanation="vLLM warms up with this many sequences and reserves their logits."),
    ] = None
    max_num_batched_tokens: Annotated[
        int | None,
        Field(ge=1, le=100_000_000, title="Tokens per step", description="vLLM: maximum number of tokens in one step"),
        Presentation(explanation="The activations of a step grow with the number of tokens."),
    ] = None
    memory_utilization: Annotated[
        float | None,
        Field(gt=0, le=1, title="Memory utilization", description="vLLM: fraction of GPU memory that vLLM uses"),
        Presentation(
            default="0.92",
            explanation="The KV cache fills what weights and activations leave of this memory.",
            stops=(0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.92, 0.95, 0.98),
        ),
    ] = None
    block_size: Annotated[
        int | None,
        Field(ge=1, le=4096, title="Block size", description="vLLM: number of tokens per KV-cache block"),
        Presentation(default="16", explanation="Larger blocks leave more unused space at the end of each sequence."),
    ] = None
    enforce_eager: Annotated[
        bool | None,
        Field(title="No CUDA graphs", description="vLLM: run without CUDA graphs"),
        Presentation(default="false", explanation="CUDA graphs are faster but need memory of their own."),
    ] = None

    @field_validator("version", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        """Return a version written as a number as text; other values unchanged."""
        return str(value) if isinstance(value, float) else value


_LORA_RANKS: Final = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Ranks that vLLM reserves (0.33 config/lora.py, `MaxLoRARanks`); others are served in the next one."""


def reserved_rank(rank: int) -> int:
    """Return the rank that vLLM reserves for adapters of `rank`; one above the highest stays, and is refused."""
    return next((one for one in _LORA_RANKS if one >= rank), rank)


VLLM: Final = Software(
    name="vllm",
    module="vllm",
    title="vLLM",
    version="vLLM 0.33",
    started_as=("vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server"),
    serving=ServingSupport(
        settings=VllmSettings,
        cache_formats=("fp32", "bf16", "fp16", "fp8"),
        containers=("safetensors", "gguf"),
        ignored_fields=("prompt_length", "prompt_logits", "attention"),
        default_split="matrices",
        graphs="working",
        working_memory="vLLM profiles its largest batch and the logits of all slots, whatever the plan's batch is.",
        outside_memory="vLLM measures its memory after start, so the GPU context is not included.",
        narrows_fp32=True,
        memory_fraction="memory_utilization",
        sequence_limit="max_num_seqs",
        drafts=("model", "mtp", "eagle", "eagle3", "ngram"),
        caches_prefixes=True,
        takes_fraction_of_card=True,
        adapters=True,
        adapter_ranks=_LORA_RANKS,
        process="vllm",  # VLLM::EngineCore
    ),
)
