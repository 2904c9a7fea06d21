"""What is known of a program that runs models: what it is for, and what it can."""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, get_args

from planner.dtypes import KV_FORMATS
from planner.models.architecture import Kind
from planner.workload.choices import Attention, Checkpointing, Compute, Loss, Offload, Task
from planner.workload.software.settings import EngineSettings

Container = Literal["safetensors", "gguf"]
_OF_TEXT: Final[tuple[Kind, ...]] = ("decoder", "encoder", "encoder-decoder", "vision-language")


class Serving(NamedTuple):
    """What a program that answers requests can.

    `containers` are the kinds of files that it runs, its native one first, and `networks` the kinds of models;
    `prompt_inputs` is what prompts are estimated with. `cache_names` are its own names for formats of the cache.
    `own_fields` are fields of the workload that only this program has beside its settings, and `ignored_fields`
    those that make no difference to what it reserves. `quantised_cache_attention` are the ways to attend that go
    with a quantised cache. `offloads` is what it can keep in RAM by sharing (`parallel.offload`), `usually_shares`
    what cards are usually given a part of each. `graphs` is the row of a log in which CUDA graphs are counted,
    `working_memory` and `outside_memory` say what else its log counts there.
    """

    settings: type[EngineSettings] = EngineSettings
    cache_formats: tuple[str, ...] = tuple(KV_FORMATS)
    cache_names: Mapping[str, str] = {}
    containers: tuple[Container, ...] = ("safetensors",)
    networks: tuple[Kind, ...] = _OF_TEXT
    prompt_inputs: tuple[Literal["text", "images"], ...] = ("text",)
    own_fields: tuple[str, ...] = ()
    ignored_fields: tuple[str, ...] = ()
    quantised_cache_attention: tuple[Attention, ...] = get_args(Attention)
    offloads: tuple[Offload, ...] = ("none",)
    usually_shares: Literal["layers", "matrices"] = "layers"
    graphs: Literal["overhead", "working"] = "overhead"
    working_memory: str = ""
    outside_memory: str = ""


class Trainer(NamedTuple):
    """What a program that trains can.

    `quantised_compute` are the ways to compute with a quantised network under adapters, the usual first. `zero_limit`
    is the highest ZeRO stage, and `zero_limit_in_pipeline` that beside pipeline stages. `most_cards` is how many cards
    are described, without a limit where it is none. `refused_optimizers` do not work on several cards.
    """

    loss: Loss = "full-logits"
    compute: tuple[Compute, ...] = get_args(Compute)
    quantised_compute: tuple[Compute, ...] = ("amp-bf16", "amp-fp16")
    checkpointing: tuple[Checkpointing, ...] = get_args(Checkpointing)
    offloads: tuple[Offload, ...] = get_args(Offload)
    zero_limit: int = 3
    zero_limit_in_pipeline: int = 3
    most_cards: int | None = None
    refused_optimizers: tuple[str, ...] = ()


class Software(NamedTuple):
    """A program: `name` is its value in files, `module` its file in this folder and in those of its behaviours.

    `log` is whose log lines it prints where they are not its own, and `needs` what it is built on. `version` is the
    version whose source and figures the estimates follow. `training_title` is what the program is called with what
    trains beside it, where that has a name of its own.
    """

    name: str
    module: str
    title: str
    version: str
    training: Trainer | None = None
    serving: Serving | None = None
    training_title: str = ""
    short_title: str = ""
    log: str = ""
    needs: tuple[Literal["pytorch"], ...] = ("pytorch",)

    def title_for(self, task: Task) -> str:
        """Return what the program is called where it does `task`."""
        return (self.training_title or self.title) if task == "training" else self.title

    @property
    def log_format(self) -> str:
        """Return whose log lines it prints."""
        return self.log or self.name

    @property
    def in_short(self) -> str:
        """Return the title where there is little room."""
        return self.short_title or self.title
