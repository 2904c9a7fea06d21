"""Presentation of workload fields on the command line, in forms and in sentences."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple

from planner.base import record
from planner.models.architecture import Architecture

Group = Literal[
    "",
    "main",
    "decoding",
    "precision",
    "adapters",
    "trained",
    "alignment",
    "step",
    "checkpointing",
    "attention",
    "software",
    "besides",
    "cards",
    "sharing",
    "offload",
]

GROUPS: Final[dict[Group, str]] = {
    "main": "",
    "decoding": "Passes and decoding",
    "precision": "Precision",
    "adapters": "Adapters",
    "trained": "Partial training",
    "alignment": "Objective",
    "step": "Optimizer step",
    "checkpointing": "Activation checkpointing",
    "software": "Software",
    "besides": "Drafts, adapters and caches",
    "attention": "Attention and logits",
    "cards": "GPUs",
    "sharing": "Parallelism",
    "offload": "Offload",
}
"""Sections of a form in display order, with their headings; the first section has none."""


@record
class FieldContext:
    """Workload, model and GPU count, on which the visibility and the choices of a field depend.

    `workload` has its defaults filled in for `architecture` on `count` GPUs. `sharding_library` is the library that
    shards training across replicas, `from_scratch` whether training starts from random weights, and `chosen_sharing`
    how the GPUs share the model if the software chose that: `FSDP over 4`.
    """

    workload: Any
    architecture: Architecture
    count: int = 1
    sharding_library: str = ""
    from_scratch: bool = False
    chosen_sharing: str = ""

    @property
    def has_variable_length(self) -> bool:
        """Return whether the model's input length is variable, so that it can be chosen."""
        return self.architecture.has_variable_length


ChoiceTitles = Mapping[Any, str]
"""Allowed values of a workload field, with their titles."""


def command_line_only(_context: FieldContext) -> bool:
    """Return False, so that forms hide the field; only the command line and files can set it."""
    return False


def is_diffusion(context: FieldContext) -> bool:
    """Return whether the model is a diffusion pipeline."""
    return context.architecture.kind == "diffusion"


def is_not_diffusion(context: FieldContext) -> bool:
    """Return whether the model is anything but a diffusion pipeline."""
    return not is_diffusion(context)


def generates_text(context: FieldContext) -> bool:
    """Return whether the model generates text token by token."""
    return context.architecture.kind not in ("encoder", "vision-encoder", "diffusion")


def has_several_gpus(context: FieldContext) -> bool:
    """Return whether the plan has several GPUs, across which the model or its work can be split."""
    return context.count > 1 and is_not_diffusion(context)


class Presentation(NamedTuple):
    """Presentation of a workload field on the command line, in forms and in sentences; it annotates the field's type.

    `flag` is the command-line option; a field without one is set by `--set`. `default` is the `--help` text for an
    omitted option whose default depends on other fields. `group` is the section in forms, and `shown_when` whether a
    form shows the field. `choices` maps values to titles, and `details` returns further text for a value. `stops` are
    the positions of a slider. `mnemonic` is the letter of the title that focuses the field with Alt. `brief` summarizes
    the field in the heading of a collapsed section: a template with the choice's title in braces, or a function of the
    value. Without one, choices appear by their titles, and other fields by their own title where they differ from the
    default. On a field that contains other fields, `group` and `shown_when` apply to all of them.
    """

    flag: str = ""
    group: Group = ""
    metavar: str = ""
    default: str = ""
    explanation: str = ""
    unit: str = ""
    choices: ChoiceTitles | Callable[[FieldContext], ChoiceTitles] | None = None
    details: Callable[[Any], str] | None = None
    stops: tuple[float, ...] = ()
    mnemonic: str = ""
    brief: str | Callable[[Any], str] = ""
    placeholder: str = ""
    leads: bool = False
    shown_when: Callable[[FieldContext], bool] = lambda _context: True


YES_OR_NO: Final[ChoiceTitles] = {False: "No", True: "Yes"}


def doubling(first: int, last: int) -> tuple[int, ...]:
    """Return the powers of two from `first` to `last`, as the stops of a slider."""
    return tuple(1 << exponent for exponent in range(first.bit_length() - 1, last.bit_length()))
