"""What a field of the workload says of itself beside its type, bounds, title and description."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from planner.models.architecture import Architecture

Group = Literal[
    "",
    "main",
    "decoding",
    "precision",
    "adapters",
    "trained",
    "step",
    "checkpointing",
    "attention",
    "software",
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
    "step": "Optimizer step",
    "checkpointing": "Checkpointing",
    "software": "Software",
    "attention": "Attention and logits",
    "cards": "Cards",
    "sharing": "Several GPUs",
    "offload": "Offload",
}
"""The sections of a form in their order, with their headings; what is asked first has none."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What decides whether a field is asked for and which values it can have.

    `used` is the workload with its defaults filled in for `architecture` on `count` GPUs; `sharder` is
    what spreads training over replicas, and `from_scratch` says that it is trained without anything to start from.
    """

    used: Any
    architecture: Architecture
    count: int = 1
    sharder: str = ""
    from_scratch: bool = False

    @property
    def takes_lengths(self) -> bool:
        """Return whether the length of an input can be chosen."""
        return self.architecture.takes_lengths


ChoiceTitles = Mapping[Any, str]
"""Values with their words."""


def always(_now: Situation) -> bool:
    """Return that a field is asked for in each situation."""
    return True


def command_line_only(_now: Situation) -> bool:
    """Return that a field has no place in a form: it is set on the command line or in a file."""
    return False


def is_diffusion(now: Situation) -> bool:
    """Return whether the model is a diffusion pipeline."""
    return now.architecture.kind == "diffusion"


def is_not_diffusion(now: Situation) -> bool:
    """Return whether the model is no diffusion pipeline."""
    return not is_diffusion(now)


def generates_text(now: Situation) -> bool:
    """Return whether the model answers token by token."""
    return now.architecture.kind not in ("encoder", "vision-encoder", "diffusion")


def has_several_gpus(now: Situation) -> bool:
    """Return whether there are several GPUs that can share the network."""
    return now.count > 1 and is_not_diffusion(now)


@dataclass(frozen=True, slots=True, eq=False)
class Presentation:
    """The declaration of a field for the command line, forms and sentences; it stands beside the type of the field.

    `flag` is its option on the command line, else it is set by `--set`; `default` says there what applies where it is
    left out, if its own default does not say it. `group` is its section in forms, and `asked_when` says whether it is
    asked for. `choices` are its values with their words, and `details` says more of each. `stops` are those of a
    slider. `mnemonic` is the letter of the title that leads to it with Alt. `brief` is what a folded section says of
    it, with its words in braces, or what makes that from its value; without one it says choices as they are, and the
    title of other fields where they differ from the default. The option of a field that holds others stands for what
    these leave out: their section, and when they are asked for.
    """

    flag: str = ""
    group: Group = ""
    metavar: str = ""
    default: str = ""
    explanation: str = ""
    unit: str = ""
    choices: ChoiceTitles | Callable[[Situation], ChoiceTitles] | None = None
    details: Callable[[Any], str] | None = None
    stops: tuple[float, ...] = ()
    mnemonic: str = ""
    brief: str | Callable[[Any], str] = ""
    placeholder: str = ""
    leads: bool = False
    asked_when: Callable[[Situation], bool] = always


YES_OR_NO: Final[ChoiceTitles] = {False: "No", True: "Yes"}


def doubling(first: int, last: int) -> tuple[int, ...]:
    """Return the powers of two from `first` to `last`, for a slider."""
    return tuple(1 << exponent for exponent in range(first.bit_length() - 1, last.bit_length()))
