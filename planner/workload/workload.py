"""How a model is run: training or inference, with the choices that decide its memory."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from planner.base import Spec
from planner.dtypes import AS_STORED, KV_FORMATS, SCHEMES
from planner.workload.parallel import Parallel
from planner.workload.training import Attention, Training

__all__ = ["Inference", "Parallel", "Training", "Workload"]


class Inference(Spec):
    """Prefill of a prompt and generation up to the context length, for a batch of equal sequences.

    Fields that are `None` are filled in by `with_defaults` from the model.
    """

    task: Literal["inference"] = "inference"
    weights: str | None = Field(default=None, description="a format or quantisation scheme; by default as stored")
    compute: Literal["fp32", "bf16", "fp16"] = "bf16"
    batch: int = Field(default=1, ge=1, le=1_000_000, description="sequences at once")
    context_length: int | None = Field(default=None, ge=1, le=100_000_000, description="prompt and answer, tokens")
    prompt_length: int | None = Field(default=None, ge=1, le=100_000_000, description="tokens read in one pass")
    kv_cache: str = Field(default="bf16", description="format of the cached keys and values")
    attention: Attention = "sdpa"
    prompt_logits: Literal["last", "all"] = Field(
        default="last", description="whether prefill makes logits for the last token or for the whole prompt"
    )
    profile: Literal["hf"] = "hf"
    parallel: Parallel = Parallel()
    other_processes_bytes: int = Field(default=0, ge=0, description="held on the card by other processes")

    @field_validator("weights")
    @classmethod
    def _known_scheme(cls, value: str | None) -> str | None:
        if value is not None and value != AS_STORED and value not in SCHEMES:
            raise ValueError(f"{value!r} is not a weight format; there are {', '.join((*SCHEMES, AS_STORED))}")
        return value

    @field_validator("kv_cache")
    @classmethod
    def _known_cache_format(cls, value: str) -> str:
        if value not in KV_FORMATS:
            raise ValueError(f"{value!r} is not a cache format; there are {', '.join(KV_FORMATS)}")
        return value


Workload = Annotated[Training | Inference, Field(discriminator="task")]
