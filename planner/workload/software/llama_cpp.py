"""Inference capabilities and settings of llama.cpp."""

from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field

from planner.workload.presentation import FieldContext, Presentation
from planner.workload.software.ram import DEFAULT_RAM, RAM_TITLES, known_ram
from planner.workload.software.software import EngineSettings, ServingSupport, Software

_MOST_LAYERS: Final = 100_000


def _split_numbers(value: object) -> object:
    """Return the layer numbers in text such as `0-11,24-35`, a range or a number each; other values unchanged."""
    if not isinstance(value, str):
        return value
    layers: set[int] = set()
    for part in filter(None, (part.strip() for part in value.split(","))):
        first, dash, last = part.partition("-")
        if not (first.isdecimal() and (last.isdecimal() if dash else True)):
            raise ValueError(f"{part!r} is neither a layer's number nor a range such as 0-11")
        ends = (int(first), int(last) if dash else int(first))
        if ends[0] > ends[1] or ends[1] >= _MOST_LAYERS:
            raise ValueError(f"{part!r} is not a range of layers: begin with the lower number, below {_MOST_LAYERS:,}")
        layers.update(range(ends[0], ends[1] + 1))
    return tuple(sorted(layers))


def _layer_numbers(value: tuple[int, ...]) -> tuple[int, ...]:
    """Return layer numbers in order, each once; reject negative numbers."""
    if any(not 0 <= layer < _MOST_LAYERS for layer in value):
        raise ValueError(f"layers are numbered from 0, below {_MOST_LAYERS:,}")
    return tuple(sorted(set(value)))


def has_experts(context: FieldContext) -> bool:
    """Return whether the model has layers with routed experts."""
    return bool(context.architecture.expert_layers)


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
    n_cpu_moe: Annotated[
        int | None,
        Field(
            ge=0,
            le=_MOST_LAYERS,
            title="Layers with experts in RAM",
            description="llama.cpp: first layers whose routed experts are in RAM and are computed by the CPU",
        ),
        Presentation(
            "--n-cpu-moe",
            default="0",
            explanation=(
                "A token visits only a few experts of a layer, so that they are slow in RAM, but far less slow than "
                "whole layers. Attention, the KV cache and shared experts stay on the GPU."
            ),
            placeholder="0",
            brief="experts of {} layers in RAM",
            shown_when=has_experts,
        ),
    ] = None
    cpu_moe_layers: Annotated[
        tuple[int, ...],
        BeforeValidator(_split_numbers),
        AfterValidator(_layer_numbers),
        Field(
            title="Layers with experts in RAM, by number",
            description="llama.cpp: numbers of the layers whose routed experts are in RAM, such as 0-11,24-35",
        ),
        Presentation(
            default="none",
            explanation="With several GPUs, each needs room: choose some of the layers that each of them holds.",
            placeholder="0-11, 24-35",
            shown_when=lambda context: has_experts(context) and context.count > 1,
        ),
    ] = ()
    ram: Annotated[
        str | None,
        AfterValidator(known_ram),
        Field(
            title="RAM",
            description="llama.cpp: RAM of the machine, as type, MT/s and channels (DDR5-5600x2) or in GB/s (89.6GB/s)",
        ),
        Presentation(
            "--ram",
            default=DEFAULT_RAM,
            explanation="What stays in RAM is computed as fast as the CPU can read it.",
            choices=RAM_TITLES,
        ),
    ] = None

    def has_experts_in_ram(self, layer: int) -> bool:
        """Return whether the routed experts of the network's layer number `layer`, from 0, are in RAM."""
        return layer < (self.n_cpu_moe or 0) or layer in self.cpu_moe_layers

    @property
    def keeps_experts_in_ram(self) -> bool:
        """Return whether the routed experts of any layer are in RAM."""
        return bool(self.n_cpu_moe or self.cpu_moe_layers)

    def explicit_names(self) -> tuple[str, ...]:
        """Return the names of the settings that are explicitly set."""
        return tuple(name for name in super().explicit_names() if name != "cpu_moe_layers" or self.cpu_moe_layers)


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
        outside_memory="The figure includes memory of other processes on the GPU.",
        narrows_fp32=True,
        drafts=("model", "mtp", "eagle3", "ngram"),
        adapters=True,
    ),
)
