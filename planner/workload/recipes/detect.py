"""Detection of a training file's format by its characteristic keys."""

from collections.abc import Callable, Mapping
from typing import Final

from planner.errors import RecipeError
from planner.workload.recipes.accelerate import read_accelerate
from planner.workload.recipes.axolotl import read_axolotl
from planner.workload.recipes.config_reader import ConfigReader
from planner.workload.recipes.deepspeed import read_deepspeed
from planner.workload.recipes.llama_factory import read_llama_factory
from planner.workload.recipes.peft import read_peft
from planner.workload.recipes.recipe import FORMAT_TITLES, Format, Recipe, split_keys
from planner.workload.recipes.servers import read_ollama
from planner.workload.recipes.torchtitan import read_torchtitan
from planner.workload.recipes.trainer import read_training_arguments, read_trl

_MARKS: Final[dict[Format, frozenset[str]]] = {
    "peft": frozenset({"peft_type"}),
    "accelerate": frozenset({"distributed_type", "compute_environment"}),
    "axolotl": frozenset({"base_model"}),
    "llama-factory": frozenset({"finetuning_type", "lora_target", "quantization_bit", "stage"}),
    "trl": split_keys(
        """
        model_name_or_path use_peft max_length packing dataset_name dataset_text_field loss_type completion_only_loss
        """
    ),
    "transformers": split_keys(
        "per_device_train_batch_size per_gpu_train_batch_size optim gradient_checkpointing max_grad_norm"
    ),
    "deepspeed": frozenset({"zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size"}),
}
_TRAINER: Final = frozenset({"output_dir", *_MARKS["transformers"]})
_READERS: Final[dict[Format, Callable[[ConfigReader], None]]] = {
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


def detect_format(config: Mapping[str, object]) -> Format | None:
    """Return the format of a training file by its characteristic keys, or None if unknown."""
    keys = frozenset(config)
    for kind, marks in _MARKS.items():
        # What a model is called is in other files, too.
        if keys & marks and (kind != "trl" or keys & _TRAINER or "use_peft" in keys):
            return kind
    return None


def read_recipe(config: Mapping[str, object], source: str, kind: Format | None = None) -> Recipe:
    """Return the recipe in a parsed file, of the format `kind` if known; `source` names the file in errors.

    The recipe accounts for every key: read, or ignored with a reason.

    Raises:
        RecipeError: If the format is unknown, a value is not allowed, or the training cannot be estimated.
    """
    kind = kind or detect_format(config)
    if kind is None:
        known = ", ".join(FORMAT_TITLES.values())
        raise RecipeError(source, "is not a training file of a supported program", f"Supported formats: {known}.")
    reader = ConfigReader(config, source)
    _READERS[kind](reader)
    return reader.finish(kind)
