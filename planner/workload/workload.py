"""Inference workloads, and the union of training and inference workloads."""

from typing import Annotated, Final, Literal, Self, TypeVar

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from planner.base import Spec, unknown_name_error
from planner.dtypes import AS_STORED, KV_FORMATS, SCHEMES, SchemeFamily
from planner.models.architecture import embeds_images
from planner.workload.choices import ATTENTION_TITLES, SERVED_RANK, Attention
from planner.workload.diffusion import IMAGE_SIZE, IMAGE_SIZE_SHOWN, Diffusion, ImageSize, known_weight_format
from planner.workload.parallel import OtherProcesses, Parallel, UnequalCards
from planner.workload.presentation import (
    FieldContext,
    Presentation,
    doubling,
    generates_text,
    is_diffusion,
    is_not_diffusion,
)
from planner.workload.rules import INFERENCE_RULES
from planner.workload.software.registry import (
    SERVERS,
    FlatSettings,
    ServerName,
    serving_support,
    settings_for,
)
from planner.workload.software.software import EngineSettings
from planner.workload.speculation import Speculation, has_drafts
from planner.workload.training import Lora, Training

__all__ = ["Inference", "Parallel", "Training", "Workload"]


def serves_adapters(context: FieldContext) -> bool:
    """Return whether the model generates text in an engine whose slots for adapters are estimated."""
    return generates_text(context) and serving_support(context.workload.profile).adapters


def _has_slots(context: FieldContext) -> bool:
    return bool(context.workload.adapters.slots)


class ServedAdapters(Spec):
    """LoRA adapters of an engine: how many are on the GPU at once, their highest rank, and the adapted layers."""

    slots: Annotated[
        int,
        Field(ge=0, le=10_000, title="LoRA slots", description="LoRA adapters that are on the GPU at once"),
        Presentation(
            "--lora-slots",
            explanation="An engine reserves each slot for the highest rank at its start, also while it is empty.",
            stops=(0, *doubling(1, 64)),
            brief="{} LoRA slots",
        ),
    ] = 0
    rank: Annotated[
        int,
        Field(ge=1, le=65_536, title="Highest rank", description="highest rank of the LoRA adapters that are served"),
        Presentation("--lora-rank", stops=doubling(8, 256), shown_when=_has_slots),
    ] = SERVED_RANK
    targets: Annotated[
        Literal["all-linear"] | tuple[str, ...],
        Field(
            title="Target modules",
            description="layers with adapters: all-linear (all that the engine prepares), or q_proj,v_proj",
        ),
        Presentation("--lora-targets", metavar="NAMES", shown_when=_has_slots),
    ] = "all-linear"

    @field_validator("targets", mode="before")
    @classmethod
    def _split_names(cls, value: object) -> object:
        return Lora.split_names(value)


SettingsT = TypeVar("SettingsT", bound=EngineSettings)
_LONGEST: Final = 1_048_576
_FAMILIES: Final[dict[SchemeFamily, str]] = {
    "plain": "plain format",
    "bitsandbytes": "bitsandbytes",
    "integer": "GPTQ and AWQ",
    "float8": "8-bit float",
    "float4": "4-bit float",
    "gguf": "GGUF",
    "gguf-file": "GGUF",
}


_USUAL: Final = frozenset(("nf4", "gptq4-128", "awq4-128", "Q4_K_M"))
"""The formats of each family that most checkpoints and guides use."""


def _format_family_and_size(name: str) -> str:
    """Return family and size of a weight format as text: `bitsandbytes · 4-bit, 4.13 bits per weight`."""
    if name == AS_STORED:
        return "as in the checkpoint"
    scheme = SCHEMES[name]
    size = f"{int(scheme.bits_per_weight)}-bit, {scheme.bits_per_weight:.3g} bits per weight"
    return " · ".join((_FAMILIES[scheme.family], size, *(("the usual choice",) if name in _USUAL else ())))


def _cache_title(name: str) -> str:
    """Return the title of a KV-cache format; llama.cpp's formats, such as `q8_0`, are shown with their bits."""
    return f"{name.upper()}, {float(KV_FORMATS[name]):.3g} bits" if "_" in name else name.upper()


def _attention_titles(context: FieldContext) -> dict[Attention, str]:
    """Return the titles of attention implementations; llama.cpp is with or without its flash attention."""
    if "safetensors" in serving_support(context.workload.profile).containers:
        return ATTENTION_TITLES
    return {"sdpa": "Flash attention", "eager": "Without flash attention"}


def caches_prefixes(context: FieldContext) -> bool:
    """Return whether the model generates text in an engine whose prefix cache is estimated."""
    return generates_text(context) and serving_support(context.workload.profile).caches_prefixes


class Inference(Spec):
    """An inference workload: prefill and generation up to the context length, for a batch of equal sequences.

    `with_defaults` fills in fields that are `None` for the model.
    """

    task: Literal["inference"] = "inference"
    weights: Annotated[
        str | None,
        AfterValidator(known_weight_format),
        Field(
            title="Weight format",
            description="weight format: fp32, bf16, fp16, fp8, int8, nf4, gptq4-128, Q4_K_M, …",
        ),
        Presentation(
            "--weights",
            "main",
            default="as stored",
            choices={AS_STORED: "As stored in the files", **{name: scheme.title for name, scheme in SCHEMES.items()}},
            details=_format_family_and_size,
            mnemonic="g",
        ),
    ] = None
    compute: Annotated[
        Literal["fp32", "bf16", "fp16"],
        Field(title="Compute precision", description="precision of activations and logits: fp32, bf16 or fp16"),
        Presentation(
            "--compute",
            "precision",
            choices={"bf16": "BF16", "fp16": "FP16", "fp32": "FP32"},
        ),
    ] = "bf16"
    batch: Annotated[
        int,
        Field(
            ge=1,
            le=1_000_000,
            title="Batch size",
            description="requests answered at the same time (users), or images generated together, per replica",
        ),
        Presentation(
            "--batch",
            "main",
            explanation="Activations and the KV cache grow with the batch size.",
            stops=doubling(1, 1_024),
            mnemonic="b",
        ),
    ] = 1
    context_length: Annotated[
        int | None,
        Field(ge=1, le=100_000_000, title="Context length", description="number of prompt and output tokens together"),
        Presentation(
            "--context",
            "main",
            default="4,096, or the model's maximum",
            explanation="The KV cache grows with the context length.",
            unit="tokens",
            stops=doubling(128, _LONGEST),
            mnemonic="l",
            shown_when=lambda context: is_not_diffusion(context) and context.has_variable_length,
        ),
    ] = None
    prompt_length: Annotated[
        int | None,
        Field(
            ge=1,
            le=100_000_000,
            title="Prompt length",
            description="number of prompt tokens, processed in one prefill pass",
        ),
        Presentation(
            "--prompt",
            "main",
            default="4,096, or the context",
            explanation="Activations grow with the prompt length.",
            unit="tokens",
            stops=doubling(128, _LONGEST),
            mnemonic="r",
            shown_when=lambda context: generates_text(context) and context.has_variable_length,
        ),
    ] = None
    kv_cache: Annotated[
        str,
        Field(title="KV-cache precision", description=f"format of cached keys and values: {', '.join(KV_FORMATS)}"),
        Presentation(
            "--kv-cache",
            "precision",
            explanation="A format with fewer bits leaves room for longer contexts.",
            choices={name: _cache_title(name) for name in KV_FORMATS},
            mnemonic="k",
            brief="KV cache in {}",
            shown_when=generates_text,
        ),
    ] = "bf16"
    attention: Annotated[
        Attention,
        Field(title="Attention", description="attention implementation: sdpa, flash or eager"),
        Presentation(
            "--attention",
            "attention",
            explanation=(
                "Eager attention stores a tokens × tokens matrix for every head; FlashAttention does not, nor does "
                "SDPA unless it falls back to its math kernel."
            ),
            choices=_attention_titles,
            shown_when=is_not_diffusion,
        ),
    ] = "sdpa"
    prompt_logits: Annotated[
        Literal["last", "all"],
        Field(title="Prompt logits", description="prompt tokens that logits are computed for: last or all"),
        Presentation(
            group="attention",
            explanation="Generating text needs only the logits of the last token; scoring a text needs all of them.",
            choices={"last": "Last token only", "all": "All tokens"},
            shown_when=generates_text,
        ),
    ] = "last"
    profile: Annotated[
        ServerName | None,
        Field(title="Software", description=f"inference engine: {', '.join(SERVERS)}"),
        Presentation(
            "--profile",
            "software",
            default="chosen by the weight files",
            explanation="Each inference engine reserves memory differently.",
            choices={name: one.title for name, one in SERVERS.items()},
            leads=True,
            shown_when=is_not_diffusion,
        ),
    ] = None
    gpu_layers: Annotated[
        int | None,
        Field(
            ge=0, le=100_000, title="GPU layers", description="llama.cpp: layers on the GPU, including the output layer"
        ),
        Presentation(
            "--gpu-layers",
            "software",
            default="all",
            explanation="The last layers are on the GPU, the others in RAM.",
            placeholder="all",
            brief="{} layers on the GPU",
        ),
    ] = None
    image_size: Annotated[ImageSize | None, IMAGE_SIZE, IMAGE_SIZE_SHOWN._replace(mnemonic="z")] = None
    images: Annotated[
        int | None,
        Field(
            ge=0, le=100_000, title="Images per prompt", description="images in each prompt of a vision-language model"
        ),
        Presentation(
            group="main",
            default="1",
            explanation="The vision encoder processes the images before the prompt.",
            shown_when=lambda context: embeds_images(context.architecture),
        ),
    ] = None
    diffusion: Annotated[
        Diffusion, Field(description="settings of a diffusion pipeline"), Presentation(shown_when=is_diffusion)
    ] = Diffusion.model_construct()
    engine: Annotated[
        FlatSettings,
        Field(validate_default=True, description="settings of the inference engine, by its own names"),
        Presentation(group="software"),
    ] = EngineSettings.model_construct()
    speculation: Annotated[
        Speculation,
        Field(description="speculative decoding: how tokens are drafted"),
        Presentation(group="besides", shown_when=has_drafts),
    ] = Speculation.model_construct()
    common_prefix: Annotated[
        int,
        Field(
            ge=0,
            le=100_000_000,
            title="Shared prefix",
            description="tokens with which the prompts of all requests begin",
        ),
        Presentation(
            "--common-prefix",
            "besides",
            explanation="With a prefix cache, whole blocks of it are on the GPU once, not once for each request.",
            unit="tokens",
            stops=(0, *doubling(256, 32_768)),
            brief="prompts begin with {} common tokens",
            shown_when=caches_prefixes,
        ),
    ] = 0
    cache_in_ram_bytes: Annotated[
        int,
        Field(
            ge=0,
            le=2**50,
            title="KV cache in RAM",
            description="RAM of each replica for the KV cache that leaves its GPUs, such as 64GiB",
        ),
        Presentation(
            "--cache-in-ram",
            "besides",
            metavar="SIZE",
            explanation="What the GPU overwrites is brought back over the bus instead of being computed again.",
            shown_when=caches_prefixes,
        ),
    ] = 0
    adapters: Annotated[
        ServedAdapters,
        Field(description="LoRA adapters that an engine serves beside each other"),
        Presentation(group="besides", shown_when=serves_adapters),
    ] = ServedAdapters.model_construct()
    parallel: Parallel = Parallel.model_construct()
    gpus: UnequalCards = ()
    other_processes_bytes: OtherProcesses = 0

    def settings_as(self, kind: type[SettingsT]) -> SettingsT:
        """Return the settings of the engine if they are of `kind`, and otherwise settings of `kind`, all unset."""
        return self.engine if isinstance(self.engine, kind) else kind()

    @field_validator("engine")
    @classmethod
    def _settings_of_profile(cls, value: EngineSettings, others: ValidationInfo) -> EngineSettings:
        """Return settings of the chosen program's class if none are set, else `value`."""
        profile = others.data.get("profile")
        return value if profile is None else settings_for(profile, value)

    @field_validator("kv_cache")
    @classmethod
    def _known_cache_format(cls, value: str) -> str:
        """Return the KV-cache format `value` if it is known; reject any other name."""
        if value not in KV_FORMATS:
            raise unknown_name_error(KV_FORMATS)
        return value

    @model_validator(mode="after")
    def _check_rules(self) -> Self:
        INFERENCE_RULES.validate(self)
        return self


Workload = Annotated[Training | Inference, Field(discriminator="task")]
