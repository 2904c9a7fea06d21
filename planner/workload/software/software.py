"""Description of a program that trains or runs models: its training and inference capabilities."""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, get_args

from planner.base import Spec
from planner.dtypes import KV_FORMATS
from planner.models.architecture import ModelKind
from planner.workload.choices import Attention, Checkpointing, Compute, Loss, Offload, Task


class EngineSettings(Spec):
    """Settings of an inference program, by the program's own names; this base class has none.

    An unset field has the program's default.
    """

    def explicit_names(self) -> tuple[str, ...]:
        """Return the names of the settings that are explicitly set."""
        return tuple(name for name in type(self).model_fields if getattr(self, name) is not None)


Container = Literal["safetensors", "gguf"]
_OF_TEXT: Final[tuple[ModelKind, ...]] = ("decoder", "encoder", "encoder-decoder", "vision-language")


class ServingSupport(NamedTuple):
    """Inference capabilities of a program, such as its formats, settings and offloads.

    `containers` are the supported file types, the native one first, `weight_formats` the formats of weights that it
    runs, the usual one first (empty: all in these files), and `networks` the kinds of models; `prompt_inputs` are the
    inputs that estimates cover. `cache_names` maps KV-cache formats to the program's names. `own_fields` are workload
    fields that only this program uses, besides its settings, and `ignored_fields` those that do not affect its memory.
    `quantised_cache_attention` are the attention implementations that support a quantized cache. `offloads` are the
    supported values of `parallel.offload`, and `default_split` is what its default parallelism splits. `graphs` is the
    row of a log that includes CUDA graphs; `working_memory` and `outside_memory` explain the other contents of the
    log's rows. `narrows_fp32` is whether FP32 checkpoints are loaded in 16 bits unless asked otherwise, and
    `memory_fraction` the setting by which the program sizes its KV cache, `sequence_limit` the one that limits how many
    sequences run at the same time. `drafts` are its ways of speculative decoding, `adapters` is whether its slots for
    LoRA adapters are estimated, `adapter_ranks` the ranks that it reserves, empty if any, and `caches_prefixes` whether
    it uses blocks of common beginnings again, on cards and in RAM. `takes_fraction_of_card` means that
    `memory_fraction` is of the whole card, whatever else is on it. `process` is a word in the command line of its
    processes if these reserve a fixed share of a card's memory at start.

    **Source** of `narrows_fp32`: vLLM, `--dtype auto`: "FP16 precision for FP32 and FP16 models"; llama.cpp,
    `convert_hf_to_gguf.py --outtype auto`: "the highest-fidelity 16-bit float type"; transformers 5 loads as stored.
    """

    settings: type[EngineSettings] = EngineSettings
    cache_formats: tuple[str, ...] = tuple(KV_FORMATS)
    cache_names: Mapping[str, str] = {}
    containers: tuple[Container, ...] = ("safetensors",)
    weight_formats: tuple[str, ...] = ()
    networks: tuple[ModelKind, ...] = _OF_TEXT
    prompt_inputs: tuple[Literal["text", "images"], ...] = ("text",)
    own_fields: tuple[str, ...] = ()
    ignored_fields: tuple[str, ...] = ()
    quantised_cache_attention: tuple[Attention, ...] = get_args(Attention)
    offloads: tuple[Offload, ...] = ("none",)
    default_split: Literal["layers", "matrices"] = "layers"
    graphs: Literal["overhead", "working"] = "overhead"
    working_memory: str = ""
    outside_memory: str = ""
    narrows_fp32: bool = False
    memory_fraction: str = ""
    sequence_limit: str = ""
    drafts: tuple[str, ...] = ()
    adapters: bool = False
    adapter_ranks: tuple[int, ...] = ()
    caches_prefixes: bool = False
    takes_fraction_of_card: bool = False
    process: str = ""


class TrainingSupport(NamedTuple):
    """Training capabilities of a program, such as its precisions, ZeRO stages and offloads.

    `quantised_compute` are the compute precisions with a quantized base model, the default first, and `four_bits` is
    the format that it has with 4 bits if nothing is chosen. `zero_limit` is the
    highest ZeRO stage, and `zero_limit_in_pipeline` the highest one with pipeline stages. `most_cards` is the largest
    number of cards that can be estimated, None for no limit. `refused_optimizers` do not work on several cards.
    `default_split` is what cards share if one is not enough: the states of replicas (ZeRO, FSDP), or matrices first.
    `inputs` are the inputs that estimates cover. `aligns` is whether preference tuning and reinforcement learning on
    top of it are estimated, `alignment_loss` how their log-probabilities are computed by default.
    """

    loss: Loss = "full-logits"
    compute: tuple[Compute, ...] = get_args(Compute)
    quantised_compute: tuple[Compute, ...] = ("amp-bf16", "amp-fp16")
    four_bits: Literal["nf4", "nf4-dq"] = "nf4"
    checkpointing: tuple[Checkpointing, ...] = get_args(Checkpointing)
    offloads: tuple[Offload, ...] = get_args(Offload)
    zero_limit: int = 3
    zero_limit_in_pipeline: int = 3
    most_cards: int | None = None
    refused_optimizers: tuple[str, ...] = ()
    default_split: Literal["states", "matrices"] = "states"
    inputs: tuple[Literal["text", "images"], ...] = ("text",)
    aligns: bool = False
    alignment_loss: Loss = "chunked"


class Software(NamedTuple):
    """A program that trains or runs models: `name` is its value in files, `module` its file in each `software` folder.

    `log` names the program with the same log format, if any, and `needs` its dependencies. `started_as` are the
    commands that start it or a program built on it, in lower case. The estimates follow the
    source and figures of `version`. `training_title` is the title with the training libraries around it, if that
    differs.
    """

    name: str
    module: str
    title: str
    version: str
    training: TrainingSupport | None = None
    serving: ServingSupport | None = None
    training_title: str = ""
    short_title: str = ""
    log: str = ""
    needs: tuple[Literal["pytorch"], ...] = ("pytorch",)
    started_as: tuple[str, ...] = ()

    def title_for(self, task: Task) -> str:
        """Return the title of the program for `task`."""
        return (self.training_title or self.title) if task == "training" else self.title

    @property
    def log_format(self) -> str:
        """Return the name of the program's log format."""
        return self.log or self.name

    @property
    def brief_title(self) -> str:
        """Return the program's short title, or its title if there is no short one."""
        return self.short_title or self.title
