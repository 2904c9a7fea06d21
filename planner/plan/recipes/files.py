"""Training files of other programs on disk, and the plans that they come to."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from planner.errors import RecipeError, SpecError
from planner.models.catalog import ModelCatalog
from planner.models.load import load_model
from planner.models.readers.adapter import ADAPTER_FILE
from planner.plan.plan import ModelChoice, Plan
from planner.plan.recipes.text import parse_recipe
from planner.storage import UnreadableFileError, read_regular
from planner.units import MIB
from planner.workload.recipes.detect import detect_format, read_recipe
from planner.workload.recipes.recipe import Recipe

YAML_ENDINGS: Final = (".yml", ".yaml")
_JSON: Final = ".json"
_CONFIG: Final = "config.json"
_MODEL_KEYS: Final = ("architectures", "schema_version", "task", "model_type")
# Where the formats name a file of DeepSpeed's: at the top, or in a section.
_LINKS: Final = (("deepspeed",), ("deepspeed_config", "deepspeed_config_file"))


def load_recipe(path: Path | str) -> Recipe:
    """Return the workload in a training file of axolotl, TRL, transformers, DeepSpeed, accelerate or LLaMA-Factory.

    PEFT's `adapter_config.json` is one too, or the folder that holds it: the training of such adapters.

    A file of DeepSpeed's that it names is read with it if it lies in the same folder, or below.

    Raises:
        RecipeError: If it cannot be read, is no such file, holds a value that is not allowed, or trains what cannot be
            estimated; the file and the key are named.
    """
    file = _file_of(Path(path))
    return read_recipe(_with_linked(_parsed(file), file), str(file))


def is_recipe_file(path: Path) -> bool:
    """Return whether the file is one that a training program takes, or a folder with an adapter of PEFT's.

    YAML always is: nothing else here is in YAML. JSON is if it has keys of such a program and none of a model, a plan
    or a workload of ours.
    """
    path = _file_of(path)
    ending = path.suffix.lower()
    if ending != _JSON:
        return ending in YAML_ENDINGS
    try:
        config = _parsed(path)
    except RecipeError:
        return False
    return detect_format(config) is not None and not any(key in config for key in _MODEL_KEYS)


def plan_of_recipe(recipe: Recipe, path: Path, catalog: ModelCatalog) -> Plan:
    """Return the plan that the recipe at `path` describes: its network, workload and number of cards.

    Raises:
        RecipeError: If it names no network, or one that is neither in the catalog nor a file.
        ModelFileError: If that is a file that cannot be read.
    """
    if recipe.model is None:
        raise RecipeError(path, "names no model", f"Name it: gpu-planner fit MODEL --workload {path}")
    try:
        found = load_model(recipe.model, catalog)
    except SpecError as error:
        hint = f"Read it from the Hugging Face Hub: gpu-planner fit hf:{recipe.model} --workload {path}"
        raise RecipeError(path, f"its model {recipe.model!r} is not in the catalog", hint) from error
    if found.path is None:
        return with_recipe(Plan(model=ModelChoice(id=found.name)), recipe)
    return with_recipe(Plan(model=ModelChoice.of_file(found.name, found.architecture, found.path)), recipe)


def with_recipe(plan: Plan, recipe: Recipe) -> Plan:
    """Return `plan` with the workload of `recipe`, on as many cards as it says or needs, else as many as before."""
    cards = recipe.cards or max(plan.count, recipe.workload.parallel.model_shards)
    return plan.evolve(workload=recipe.workload, count=cards)


def _file_of(path: Path) -> Path:
    """Return the adapter's configuration where `path` is the folder of an adapter and of no whole model."""
    adapter = path / ADAPTER_FILE
    return adapter if os.path.isfile(adapter) and not os.path.lexists(path / _CONFIG) else path


def _parsed(file: Path) -> Mapping[str, object]:
    try:
        data = read_regular(file, "training file", MIB)
    except UnreadableFileError as error:
        raise RecipeError(file, error.reason, error.hint) from error
    return parse_recipe(data, str(file), is_json=file.suffix.lower() == _JSON)


def _with_linked(config: Mapping[str, object], file: Path) -> Mapping[str, object]:
    """Return `config` with what a file of DeepSpeed's says in the place of its name, where it lies beside `file`."""
    for outer, *inner in _LINKS:
        value = config.get(outer)
        if not inner:
            linked = _linked(value, file)
            config = config if linked is None else {**config, outer: linked}
        elif isinstance(value, Mapping):
            linked = _linked(value.get(inner[0]), file)
            config = config if linked is None else {**config, outer: {**value, inner[0]: linked}}
    return config


def _linked(name: object, file: Path) -> Mapping[str, object] | None:
    if not isinstance(name, str) or not name.endswith(_JSON):
        return None
    folder = os.path.realpath(file.parent)
    try:
        target = os.path.realpath(os.path.join(folder, name))
        # A stranger's file names no file elsewhere on this machine.
        inside = os.path.commonpath([folder, target]) == folder and os.path.isfile(target)
    except ValueError:
        return None
    return _parsed(Path(target)) if inside else None
