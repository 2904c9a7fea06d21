"""Result of reading a training file or the command of a server that was written for another program."""

from typing import Final, Literal

from pydantic import Field

from planner.base import Spec
from planner.workload.software.registry import SOFTWARE
from planner.workload.training import Training
from planner.workload.workload import Inference

Format = Literal[
    "axolotl", "trl", "transformers", "deepspeed", "accelerate", "llama-factory", "peft", "ollama", "torchtitan"
]
"""Formats that are known by their keys; the commands of other programs have the programs' names."""

FORMAT_TITLES: Final[dict[str, str]] = {
    "axolotl": "axolotl",
    "trl": "TRL",
    "transformers": "transformers TrainingArguments",
    "deepspeed": "DeepSpeed",
    "accelerate": "accelerate",
    "llama-factory": "LLaMA-Factory",
    "peft": "PEFT's adapters",
    "ollama": "Ollama",
    "torchtitan": "torchtitan",
}
FORMAT_VERSIONS: Final[dict[str, str]] = {
    "axolotl": "axolotl 0.19.0",
    "trl": "TRL 1.10.0.dev0",
    "transformers": "transformers 5.23.0",
    "deepspeed": "DeepSpeed 0.16.5",
    "accelerate": "accelerate 1.15.0.dev0",
    "llama-factory": "LLaMA-Factory 0.9.6.dev0",
    "peft": "PEFT 0.21",
    "ollama": "Ollama 0.30",
    "torchtitan": "torchtitan 0.3.0",
}
"""Program versions whose source code defines the keys and defaults."""


class ReadKey(Spec):
    """A key of a file that set a workload field, the model or the number of GPUs."""

    key: str
    value: str
    field: str


class IgnoredKey(Spec):
    """A key of a file that set no workload field, with the reason."""

    key: str
    reason: str


class AssumedKey(Spec):
    """A key that a file omits, with the program's default and the workload field with this value."""

    key: str
    value: str
    field: str


class Recipe(Spec):
    """A workload read from another program's file, with a record of every key.

    `model` is the model name in the file, `cards` the number of GPUs, and `gpu` the catalog id of their kind, if the
    file states them.
    """

    format: str
    workload: Training | Inference = Field(discriminator="task")
    model: str | None = None
    cards: int | None = None
    gpu: str | None = None
    read: tuple[ReadKey, ...] = ()
    ignored: tuple[IgnoredKey, ...] = ()
    assumed: tuple[AssumedKey, ...] = ()

    @property
    def title(self) -> str:
        """Return the display name of the program that the file is for."""
        return FORMAT_TITLES.get(self.format) or SOFTWARE[self.format].title

    @property
    def not_estimated(self) -> tuple[IgnoredKey, ...]:
        """Return the ignored keys that may affect memory: keys that are not estimated, and unknown keys."""
        return tuple(entry for entry in self.ignored if entry.reason.startswith((NOT_ESTIMATED, UNKNOWN)))


NOT_ESTIMATED: Final = "not estimated"
UNKNOWN: Final = "unknown"
NEUTRAL: Final = "does not change memory"


def split_keys(text: str) -> frozenset[str]:
    """Return the blank-separated keys in `text`."""
    return frozenset(text.split())
