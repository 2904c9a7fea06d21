"""How a model is run: training or inference, with the choices that decide its memory."""

from typing import Annotated, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from planner.base import Spec, no_such_name
from planner.dtypes import AS_STORED, KV_FORMATS, SCHEMES
from planner.workload.choices import Attention
from planner.workload.diffusion import Diffusion, ImageSize
from planner.workload.parallel import CardCount, Parallel
from planner.workload.software.registry import (
    SOFTWARE,
    FlatSettings,
    ServerName,
    servers,
    serving,
    setting_owner,
    settings_for,
)
from planner.workload.software.settings import EngineSettings
from planner.workload.training import Training

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
    profile: ServerName | None = Field(
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
    engine: FlatSettings = Field(
        default=EngineSettings(), validate_default=True, description="settings of the engine by its own names"
    )
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

    @field_validator("engine")
    @classmethod
    def _of_the_profile(cls, value: EngineSettings, others: ValidationInfo) -> EngineSettings:
        """Take settings of which nothing is said for those of the program that is named."""
        profile = others.data.get("profile")
        return value if profile is None else settings_for(profile, value)

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
        title, own = SOFTWARE[self.profile].title, serving(self.profile)
        for name in self.engine.given():
            owner = setting_owner(name)
            if owner is not None and owner.name != self.profile:
                raise ValueError(f"{name} is a setting of {owner.title}, and the profile is {title}")
        for other in servers().values():
            for name in serving(other.name).own_fields:
                if name not in own.own_fields and getattr(self, name) is not None:
                    raise ValueError(f"{name} is a setting of {other.title}, and the profile is {title}")
        if self.kv_cache not in own.cache_formats:
            raise ValueError(f"{title} has no {self.kv_cache} cache; it has {', '.join(own.cache_formats)}")
        if "q" in self.kv_cache and self.attention not in own.quantised_cache_attention:
            raise ValueError(f"{title} quantises the cached values only with flash attention")
        return self


Workload = Annotated[Training | Inference, Field(discriminator="task")]
