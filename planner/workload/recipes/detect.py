"""Detection of a training file's format by its characteristic keys."""

from collections.abc import Callable, Mapping
from typing import Final

from planner.errors import RecipeError
from planner.parsing import flattened
from planner.workload.recipes.accelerate import read_accelerate
from planner.workload.recipes.axolotl import read_axolotl
from planner.workload.recipes.config_reader import ConfigReader
from planner.workload.recipes.deepspeed import read_deepspeed
from planner.workload.recipes.llama_factory import read_llama_factory
from planner.workload.recipes.peft import read_peft
from planner.workload.recipes.recipe import FORMATS, TRAINER_MARKS, Recipe
from planner.workload.recipes.servers import read_ollama
from planner.workload.recipes.torchtitan import read_torchtitan
from planner.workload.recipes.trainer import read_training_arguments, read_trl

_TRAINER: Final = TRAINER_MARKS | {"output_dir"}
_READERS: Final[dict[str, Callable[[ConfigReader], None]]] = {
    "accelerate": read_accelerate,
    "axolotl": read_axolotl,
    "llama-factory": read_llama_factory,
    "trl": read_trl,
    "transformers": read_training_arguments,
    "deepspeed": read_deepspeed,
    "peft": read_peft,
    "ollama": read_ollama,
    "torchtitan": read_torchtitan,
}


def detect_format(config: Mapping[str, object]) -> str | None:
    """Return the format of a training file by its characteristic keys, or None if unknown."""
    keys = frozenset(config)
    for kind, known in FORMATS.items():
        # What a model is called is in other files, too.
        if keys & known.marks and (kind != "trl" or keys & _TRAINER or "use_peft" in keys):
            return kind
    return None


def read_recipe(config: Mapping[str, object], source: str, kind: str | None = None) -> Recipe:
    """Return the recipe in a parsed file, of the format `kind` if known; `source` names the file in errors.

    The recipe accounts for every key: read, or ignored with a reason.

    Raises:
        RecipeError: If the format is unknown, a value is not allowed, or the training cannot be estimated.
    """
    kind = kind or detect_format(config)
    if kind is None and any(str(value).startswith("torchtune.") for _, value in flattened(config)):
        hint = "Describe it by options: gpu-planner fit MODEL --task training --profile torchtune --method lora."
        raise RecipeError(source, "is a configuration of torchtune, which is not read", hint)
    if kind is None:
        known = ", ".join(known.title for known in FORMATS.values())
        raise RecipeError(source, "is not a training file of a supported program", f"Supported formats: {known}.")
    reader = ConfigReader(config, source)
    _READERS[kind](reader)
    return reader.finish(kind)
