"""The software that runs a model, and the settings of its own that decide memory."""

from typing import Final, Literal

from pydantic import Field, field_validator

from planner.base import Spec
from planner.dtypes import KV_FORMATS

Profile = Literal["hf", "vllm", "llama.cpp"]
VllmVersion = Literal["0.33", "0.19", "0.11"]

PROFILE_TITLES: Final[dict[Profile, str]] = {
    "hf": "Hugging Face Transformers",
    "vllm": "vLLM",
    "llama.cpp": "llama.cpp",
}
CHECKED_ON: Final[dict[Profile, str]] = {"hf": "transformers 5.23", "vllm": "vLLM 0.33", "llama.cpp": "llama.cpp 0.5.0"}
"""The version of each engine whose source and figures the estimate follows."""

CACHE_FORMATS: Final[dict[Profile, tuple[str, ...]]] = {
    "hf": tuple(KV_FORMATS),
    "vllm": ("fp32", "bf16", "fp16", "fp8"),
    "llama.cpp": ("fp32", "bf16", "fp16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0"),
}
"""The formats that each engine caches keys and values in."""


class EngineSettings(Spec):
    """Settings of vLLM and of llama.cpp by their own names; each belongs to one of them, and may be left open.

    Open ones have the engine's defaults: for vLLM those of its server, which depend on the card; for llama.cpp those
    of llama-server.
    """

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

    @field_validator("version", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        """Take a version that was written as a number."""
        return str(value) if isinstance(value, float) else value

    def given(self) -> tuple[str, ...]:
        """Return the names of the settings that are not left open."""
        return tuple(name for name in type(self).model_fields if getattr(self, name) is not None)


SETTINGS: Final[dict[Profile, tuple[str, ...]]] = {
    "hf": (),
    "vllm": (
        "version",
        "max_num_seqs",
        "max_num_batched_tokens",
        "memory_utilization",
        "block_size",
        "enforce_eager",
    ),
    "llama.cpp": ("n_batch", "n_ubatch", "slots", "kv_unified", "swa_full", "n_outputs_max"),
}
"""The settings that belong to each engine."""


def foreign_setting(profile: Profile, settings: EngineSettings) -> tuple[str, str] | None:
    """Return the first of `settings` that `profile` does not have, with the engine that has it, or none."""
    for name in settings.given():
        if name not in SETTINGS[profile]:
            return name, next(PROFILE_TITLES[owner] for owner, names in SETTINGS.items() if name in names)
    return None
