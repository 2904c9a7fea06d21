"""Settings of other programs, the job that they describe, and the files of a launch."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple, Self

from planner.base import Spec
from planner.cost.renting.offer import Offer
from planner.hardware.gpu import Gpu
from planner.memory.logs.reading import FigureName
from planner.models.architecture import Architecture
from planner.plan.evaluate import Evaluation
from planner.plan.logs.log_amounts import RowName
from planner.plan.plan import Plan
from planner.workload.alignment import AlignmentMethod
from planner.workload.choices import Task
from planner.workload.recipes.config_reader import ConfigReader
from planner.workload.recipes.servers import Option
from planner.workload.rules import field_reader
from planner.workload.workload import Inference, Training, Workload

Scalar = str | int | float | bool | None
SettingValue = Scalar | tuple[Scalar | dict[str, str], ...]
"""Value of a setting: one, or a list of them or of small sections."""

FITTING_HINT: Final = "What would help is listed by `gpu-planner fit` with --advise, and below the memory of the plan."


class RawWord(str):
    """A word of a command that the shell expands, such as `"$MASTER_ADDR"`; it is written without quoting."""

    __slots__ = ()


class Setting(NamedTuple):
    """A key of another program with its value, the plan's fields that it expresses, and a comment that says so.

    The key of a nested setting is dotted, such as `fsdp_config.fsdp_version`.
    """

    key: str
    value: SettingValue
    comment: str
    fields: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """Return the setting as words of a command; a switch has no value, a list has several."""
        if self.value is True:
            return (self.key,)
        if isinstance(self.value, tuple):
            return (self.key, *map(str, self.value))
        return (self.key, self.value if isinstance(self.value, str) else str(self.value))


class ConfigFile(NamedTuple):
    """A configuration file of a program, with its settings."""

    name: str
    form: Literal["yaml", "json", "modelfile"]
    settings: tuple[Setting, ...]


class Job(NamedTuple):
    """A program's command with its settings: `start`, the arguments, then `rest`.

    `environment` are variables, `configs` the files that the command reads, and `requirement` its package and version.
    `image` is a container with the program, or with PyTorch alone unless `in_image`, in which it starts by
    `container_start`; `local_files` is whether it reads
    weights from a file beside its script, and `places` are those that are written for it, empty for all. `before` are
    commands that run first, `keep_running` one that runs last, and `port` is that of a server. `rendezvous` are
    arguments of each node if there are several; empty if the program cannot span them. `expressed` are the plan's
    fields that the command or the version expresses, `unexpressed` the reasons why others cannot be, and `named` those
    of them that are told even at their defaults.
    """

    start: tuple[str, ...]
    requirement: str
    arguments: tuple[Setting, ...] = ()
    rest: tuple[str, ...] = ()
    environment: tuple[Setting, ...] = ()
    configs: tuple[ConfigFile, ...] = ()
    image: str = ""
    in_image: bool = True
    container_start: tuple[str, ...] = ()
    local_files: bool = False
    places: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    keep_running: str = ""
    port: int | None = None
    rendezvous: tuple[Setting, ...] = ()
    expressed: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    unexpressed: Mapping[str, str] = {}

    @property
    def settings(self) -> tuple[Setting, ...]:
        """Return all settings of the job, those of its files included."""
        return (*self.arguments, *self.environment, *(one for file in self.configs for one in file.settings))

    def on_nodes(self, nodes: int) -> Self:
        """Return the job as each of `nodes` starts it: with the arguments by which several find each other."""
        return self._replace(arguments=(*self.rendezvous, *self.arguments)) if nodes > 1 else self


class Measurement(NamedTuple):
    """A command that measures what is estimated: rows of memory and figures of speed with the words that print them."""

    title: str
    command: str
    memory: tuple[tuple[RowName, str], ...] = ()
    figures: tuple[tuple[FigureName, str], ...] = ()


class LaunchFacts(NamedTuple):
    """The facts of a plan that programs and places need: its evaluation, and how many GPUs each node has.

    `workload` has all defaults filled in, those of the engine on this GPU included. `offer` is the rental offer that
    the plan names.
    """

    evaluation: Evaluation
    workload: Workload
    architecture: Architecture
    gpu: Gpu
    nodes: int
    cards_per_node: int
    offer: Offer | None = None

    @property
    def cards(self) -> int:
        """Return the number of GPUs on all nodes."""
        return self.nodes * self.cards_per_node

    @property
    def inference(self) -> Inference:
        """Return the workload of a server's launcher."""
        assert isinstance(self.workload, Inference)
        return self.workload

    @property
    def training(self) -> Training:
        """Return the workload of a trainer's launcher."""
        assert isinstance(self.workload, Training)
        return self.workload

    @property
    def model(self) -> str:
        """Return the name or file by which a program loads the model."""
        choice = self.evaluation.plan.model
        return (choice.path or choice.id).removeprefix("hf:")


class CommandReader(NamedTuple):
    """Reader of a program's command: the words that start it, and the function that reads its options.

    `aliases` are the names of options by their other names. The keys of the file that `config_option` names are read
    as options, too, those of its sections with dots.
    """

    commands: tuple[tuple[str, ...], ...]
    read: Callable[[ConfigReader], None]
    aliases: Mapping[str, str] = {}
    config_option: str = ""


class Launcher(NamedTuple):
    """A program that plans are written for; `profiles` are the programs of a workload that it runs.

    `complete` sets what a plan leaves open and the program needs, so that the plan is estimated as it will run.
    `measure` returns the commands that measure a job on the real GPUs; without it they are lines of PyTorch. `reader`
    reads the command of a program that is no training file's, and `objectives` are those that it can train.
    """

    name: str
    title: str
    version: str
    task: Task
    profiles: tuple[str, ...]
    write: Callable[[LaunchFacts], Job]
    complete: Callable[[Plan], Plan] = lambda plan: plan
    measure: Callable[[LaunchFacts, Job], tuple[Measurement, ...]] | None = None
    reader: CommandReader | None = None
    objectives: tuple[AlignmentMethod, ...] = ("none",)


class LaunchPlace(NamedTuple):
    """A place that programs run in, such as a cluster; `card_names` are its names of GPUs by catalog id.

    `holds_configs` is whether its own files hold those of programs. `read` returns the job in a parsed YAML file of
    this place, None if the file is of another place.
    """

    name: str
    title: str
    version: str
    write: Callable[[LaunchFacts, Job], tuple["LaunchFile", ...]]
    read: Callable[[Mapping[str, Any]], "PlacedJob | None"] = lambda _document: None
    card_names: Mapping[str, str] = {}
    unexpressed: Mapping[str, str] = {}
    spans_nodes: bool = False
    holds_configs: bool = False


class PlacedJob(NamedTuple):
    """The job that a file of a place describes: its script or its words, variables, number of GPUs, and their name.

    `profile` is that of a slice of a GPU (MIG).
    """

    script: str = ""
    words: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    cards: int | None = None
    card_name: str | None = None
    profile: str | None = None


class LaunchFile(Spec):
    """A file to run a plan with."""

    name: str
    text: str


class WrittenSetting(Spec):
    """A key that was written, with its value, the plan's fields that it expresses, and the comment beside it."""

    key: str
    value: SettingValue
    fields: tuple[str, ...]
    comment: str


class UnexpressedField(Spec):
    """A field of the plan that the program or the place cannot express, with its value and the reason."""

    field: str
    value: str
    reason: str


class LaunchSettings(Spec):
    """The files and settings that run a plan with a program in a place, and what these cannot express."""

    program: str
    """Name of the program."""
    title: str
    """Name of the program as it writes itself."""
    version: str
    """Package and version for which the settings are."""
    place: str
    """Name of the place."""
    plan: Plan
    """The plan as it will run, with what it left open and the program needs."""
    command: str
    """Command that starts the program, as a line of a shell."""
    files: tuple[LaunchFile, ...]
    """Files to run the plan with, the first of which starts it."""
    settings: tuple[WrittenSetting, ...]
    """Keys that were written, with the fields that they express."""
    not_expressed: tuple[UnexpressedField, ...]
    """Fields of the plan that neither the program nor the place can express."""


OF_REQUESTS: Final = {
    "prompt_length": "each request has its own; the longest that fits is the context",
    "prompt_logits": "each request asks for its own",
    "speculation.acceptance": "it is what the task gives: the server's metrics show it",
}
"""Fields that no server has a setting for, since requests bring them."""
TAKES_WHAT_IT_NEEDS: Final = {"other_processes_bytes": "training takes what it needs, whatever else is on the GPU"}
"""Field that no trainer has a setting for."""


def accumulation(workload: Training) -> Setting:
    """Return the setting of gradient accumulation, whose key is the same in all trainers."""
    passes = workload.gradient_accumulation
    comment = "forward passes before each optimizer step"
    return Setting("gradient_accumulation_steps", passes, comment, ("gradient_accumulation",))


def clipping(workload: Training, key: str) -> Setting:
    """Return the setting `key` of gradient clipping, which is on by default."""
    norm = 1.0 if workload.gradient_clipping else 0.0
    return Setting(key, norm, "largest norm of the gradients; 0 clips none", ("gradient_clipping",))


def with_prefix(prefix: str, settings: Iterable[Setting]) -> tuple[Setting, ...]:
    """Return `settings` with their keys in a section, or with what all keys there begin with."""
    return tuple(setting._replace(key=f"{prefix}{setting.key}") for setting in settings)


def lora_slot_settings(workload: Inference, targets_key: str) -> list[Setting]:
    """Return the switch for LoRA adapters, and the layers that have one if the plan names them; empty without slots."""
    own = workload.adapters
    if not own.slots:
        return []
    switch = Setting("--enable-lora", True, "slots for LoRA adapters", ("adapters.slots",))
    if own.targets == "all-linear":
        return [switch]
    return [switch, Setting(targets_key, own.targets, "layers that may have an adapter", ("adapters.targets",))]


def draft_checkpoint(facts: LaunchFacts) -> str:
    """Return the checkpoint that drafts for a plan: the one that it names, else where to put the one of its model."""
    own = facts.inference.speculation
    return own.model or f"./{facts.model.rstrip('/').rpartition('/')[2]}-{own.method}"


def settings_from(options: Iterable[Option], workload: Workload) -> Iterator[Setting]:
    """Yield the settings of a table of options for a workload; fields without a value or a name there are left out."""
    read = field_reader(workload)
    for option in options:
        value = read(option.field)
        if option.kind == "word":
            value = option.values.get(str(value))
        if value is not None and value is not False:
            assert isinstance(value, str | int | float)
            yield Setting(option.key, value, option.comment, (option.field,))
