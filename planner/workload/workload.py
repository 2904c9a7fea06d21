"""How a model is run: training or inference, with the choices that decide its memory."""

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from planner.base import Spec, no_such_name
from planner.dtypes import AS_STORED, KV_FORMATS, SCHEMES
from planner.workload.diffusion import Diffusion, ImageSize
from planner.workload.engines import CACHE_FORMATS, PROFILE_TITLES, EngineSettings, Profile, foreign_setting
from planner.workload.parallel import CardCount, Parallel
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
    profile: Profile | None = Field(
        default=None, description="the engine: hf, vllm or llama.cpp; by default llama.cpp for GGUF files, else hf"
    )
    gpu_layers: int | None = Field(
        default=None, ge=0, le=100_000, description="llama.cpp: layers on the card, the output counted as one [all]"
    )
    image_size: ImageSize | None = Field(
        default=None,
        description="width and height in pixels: 1024, 1024x768 or [1024, 768]; by default the model's own",
    )
    images: int | None = Field(
        default=None, ge=0, le=100_000, description="in each prompt, of a model that reads them; by default one"
    )
    diffusion: Diffusion = Field(default=Diffusion(), description="settings of a diffusion pipeline")
    engine: EngineSettings = Field(default=EngineSettings(), description="settings of the engine by its own names")
    parallel: Parallel = Parallel()
    gpus: tuple[CardCount, ...] = Field(
        default=(), description="unequal cards, instead of the plan's one kind: [{id, count}, …]"
    )
    other_processes_bytes: int = Field(default=0, ge=0, description="held on the card by other processes")

    @field_validator("weights")
    @classmethod
    def _known_scheme(cls, value: str | None) -> str | None:
        if value is not None and value != AS_STORED and value not in SCHEMES:
            raise no_such_name((*SCHEMES, AS_STORED))
        return value

    @field_validator("kv_cache")
    @classmethod
    def _known_cache_format(cls, value: str) -> str:
        if value not in KV_FORMATS:
            raise no_such_name(KV_FORMATS)
        return value

    @model_validator(mode="after")
    def _engine_has_what_is_asked(self) -> Self:
        """Refuse settings of another engine than the one that is named, and formats that it does not have."""
        if self.profile is None:
            return self
        title = PROFILE_TITLES[self.profile]
        if foreign := foreign_setting(self.profile, self.engine):
            raise ValueError(f"{foreign[0]} is a setting of {foreign[1]}, and the profile is {title}")
        if self.gpu_layers is not None and self.profile != "llama.cpp":
            raise ValueError(f"gpu_layers is a setting of llama.cpp, and the profile is {title}")
        formats = CACHE_FORMATS[self.profile]
        if self.kv_cache not in formats:
            raise ValueError(f"{title} has no {self.kv_cache} cache; it has {', '.join(formats)}")
        if self.profile == "llama.cpp" and self.attention == "eager" and "q" in self.kv_cache:
            raise ValueError("llama.cpp quantises the cached values only with flash attention")
        return self


Workload = Annotated[Training | Inference, Field(discriminator="task")]
