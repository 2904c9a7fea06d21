"""Result of reading a training file or the command of a server that was written for another program."""

from typing import Final, NamedTuple

from pydantic import Field

from planner.base import Spec
from planner.workload.software.registry import SOFTWARE
from planner.workload.training import Training
from planner.workload.workload import Inference


def split_keys(text: str) -> frozenset[str]:
    """Return the blank-separated keys in `text`."""
    return frozenset(text.split())


class RecipeFormat(NamedTuple):
    """A format of files, known by its keys: its title, the version whose source defines keys and defaults, and marks.

    A file with one of the keys `marks` is of this format; without marks, it is known otherwise. The commands of other
    programs have no format but the programs' names.
    """

    title: str
    version: str
    marks: frozenset[str] = frozenset()


TRAINER_MARKS: Final = split_keys(
    "per_device_train_batch_size per_gpu_train_batch_size optim gradient_checkpointing max_grad_norm"
)
FORMATS: Final[dict[str, RecipeFormat]] = {
    "peft": RecipeFormat("PEFT's adapters", "PEFT 0.21", frozenset({"peft_type"})),
    "accelerate": RecipeFormat(
        "accelerate", "accelerate 1.15.0.dev0", frozenset({"distributed_type", "compute_environment"})
    ),
    "axolotl": RecipeFormat("axolotl", "axolotl 0.19.0", frozenset({"base_model"})),
    "llama-factory": RecipeFormat(
        "LLaMA-Factory",
        "LLaMA-Factory 0.9.6.dev0",
        frozenset({"finetuning_type", "lora_target", "quantization_bit", "stage"}),
    ),
    "trl": RecipeFormat(
        "TRL",
        "TRL 1.10.0.dev0",
        split_keys(
            "model_name_or_path use_peft max_length packing dataset_name dataset_text_field loss_type "
            "completion_only_loss"
        ),
    ),
    "transformers": RecipeFormat("transformers TrainingArguments", "transformers 5.23.0", TRAINER_MARKS),
    "deepspeed": RecipeFormat(
        "DeepSpeed",
        "DeepSpeed 0.16.5",
        frozenset({"zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size"}),
    ),
    "ollama": RecipeFormat("Ollama", "Ollama 0.30"),
    "torchtitan": RecipeFormat("torchtitan", "torchtitan 0.3.0"),
}
"""Formats by name; a file is of the first whose marks it has."""


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
        own = FORMATS.get(self.format)
        return own.title if own else SOFTWARE[self.format].title

    @property
    def not_estimated(self) -> tuple[IgnoredKey, ...]:
        """Return the ignored keys that may affect memory: keys that are not estimated, and unknown keys."""
        return tuple(entry for entry in self.ignored if entry.reason.startswith((NOT_ESTIMATED, UNKNOWN)))


NOT_ESTIMATED: Final = "not estimated"
UNKNOWN: Final = "unknown"
NEUTRAL: Final = "does not change memory"
