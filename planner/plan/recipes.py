"""Presets, and other programs' training files with their conversion to plans.

YAML and JSON files are untrusted input: references, duplicate keys, deep nesting and tags are rejected.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import Field

from planner.base import Spec
from planner.errors import RecipeError, SpecError
from planner.models.catalog import ModelCatalog
from planner.models.load import load_model
from planner.models.readers.config_json import read_config
from planner.models.readers.model_file import ADAPTER_FILE
from planner.parsing import parse_json
from planner.parsing.yaml_text import parse_yaml
from planner.paths import catalog_dir
from planner.plan.plan import ModelChoice, Plan
from planner.records import read_records
from planner.storage import UnreadableFileError, decode_text, read_regular
from planner.units import MIB
from planner.workload.recipes.detect import detect_format, read_recipe
from planner.workload.recipes.recipe import Recipe
from planner.workload.workload import Workload

MAX_BYTES: Final = 256 * 2**10
_HINT: Final = "Open the configuration file of the training program."


def parse_recipe(data: bytes, source: str, *, is_json: bool) -> Mapping[str, object]:
    """Return the keys of a training file in YAML or JSON; `source` names it in errors.

    Raises:
        RecipeError: If it is not UTF-8 text, larger than 256 KiB, not valid YAML or JSON, has duplicate keys or
            references, is nested too deeply, or is not a mapping.
    """
    if len(data) > MAX_BYTES:
        reason = f"is {len(data):,} bytes, but a training file has at most {MAX_BYTES:,}"
        raise RecipeError(source, reason, _HINT)
    try:
        content = parse_json(data, unique_keys=True) if is_json else parse_yaml(data)
    except UnreadableFileError as error:
        raise RecipeError(source, error.reason, f"{error.hint} {_HINT}") from error
    if not isinstance(content, dict):
        raise RecipeError(source, f"has no keys, but {_describe_content(content)}", _HINT)
    return {str(key): value for key, value in content.items()}


def _describe_content(content: object) -> str:
    return "nothing" if content is None else "a list" if isinstance(content, list) else "a single value"


YAML_ENDINGS: Final = (".yml", ".yaml")
_JSON: Final = ".json"
_CONFIG: Final = "config.json"
CONFIG_MAP: Final = "settings.yaml"
_MODEL_KEYS: Final = ("architectures", "schema_version", "task", "model_type")
# Keys that name a DeepSpeed file: at the top level, or in a section.
_LINK_KEYS: Final = (("deepspeed",), ("deepspeed_config", "deepspeed_config_file"))


def load_recipe(path: Path | str) -> Recipe:
    """Read a training file of axolotl, TRL, transformers, DeepSpeed, accelerate or LLaMA-Factory.

    PEFT's `adapter_config.json`, or its folder, gives the training of such adapters. A DeepSpeed file that the training
    file names is included if it is in the same folder or below.

    Raises:
        RecipeError: If it cannot be read, is not a training file, has a value that is not allowed, or its training
            cannot be estimated; the error names the file and the key.
    """
    file = _recipe_file(Path(path))
    return read_recipe(_with_linked_files(parsed_file(file), file), str(file))


def is_recipe_file(path: Path) -> bool:
    """Return whether `path` is another program's training file, or a folder with a PEFT adapter.

    YAML files always count. JSON files count if they have keys of such a program and none of a model, plan or workload.
    """
    path = _recipe_file(path)
    ending = path.suffix.lower()
    if ending != _JSON:
        return ending in YAML_ENDINGS
    try:
        config = parsed_file(path)
    except RecipeError:
        return False
    return detect_format(config) is not None and not any(key in config for key in _MODEL_KEYS)


def plan_of_recipe(recipe: Recipe, path: Path, catalog: ModelCatalog) -> Plan:
    """Return a plan with the model, workload and number of GPUs of the recipe at `path`.

    Raises:
        RecipeError: If it names no model, or one that is neither in the catalog nor a file.
        ModelFileError: If the model's file cannot be read.
    """
    if recipe.model is None:
        raise RecipeError(path, "names no model", f"Name the model: gpu-planner fit MODEL --workload {path}")
    try:
        model = load_model(recipe.model, catalog)
    except SpecError as error:
        hint = f"Read it from the Hugging Face Hub: gpu-planner fit hf:{recipe.model} --workload {path}"
        raise RecipeError(path, f"its model {recipe.model!r} is not in the catalog", hint) from error
    if model.path is None:
        return with_recipe(Plan(model=ModelChoice(id=model.name)), recipe)
    return with_recipe(Plan(model=ModelChoice.of_file(model.name, model.architecture, model.path)), recipe)


def with_recipe(plan: Plan, recipe: Recipe) -> Plan:
    """Return `plan` with the workload of `recipe` and its number of GPUs, or enough GPUs for its parallelism.

    The GPUs of a recipe are replicas unless it says otherwise: nothing shares a model that the recipe does not share.
    """
    workload, parallel = recipe.workload, recipe.workload.parallel
    if recipe.cards is not None or parallel.model_fields_set:
        workload = workload.evolve(parallel=parallel.evolve(sharing="manual"))
    card = {} if recipe.gpu is None else {"gpu": recipe.gpu}
    return plan.evolve(workload=workload, count=recipe.cards or max(plan.count, parallel.model_shards), **card)


def _recipe_file(path: Path) -> Path:
    """Return `path`, or the configuration file in it if `path` is an adapter's folder without a whole model."""
    adapter = path / ADAPTER_FILE
    return adapter if os.path.isfile(adapter) and not os.path.lexists(path / _CONFIG) else path


def parsed_file(file: Path) -> Mapping[str, object]:
    """Return the keys of the training file, YAML or JSON."""
    try:
        data = read_regular(file, "training file", MIB)
    except UnreadableFileError as error:
        raise RecipeError(file, error.reason, error.hint) from error
    return parse_recipe(data, str(file), is_json=file.suffix.lower() == _JSON)


def _with_linked_files(config: Mapping[str, object], file: Path) -> Mapping[str, object]:
    """Return `config` with the names of linked DeepSpeed files in the folder of `file` replaced by their content."""
    for outer, *inner in _LINK_KEYS:
        value = config.get(outer)
        if not inner:
            linked = _read_linked_file(value, file)
            config = config if linked is None else {**config, outer: linked}
        elif isinstance(value, Mapping):
            linked = _read_linked_file(value.get(inner[0]), file)
            config = config if linked is None else {**config, outer: {**value, inner[0]: linked}}
    return config


def linked_config(name: str, file: Path) -> Mapping[str, object] | str | None:
    """Return the keys of the file `name` beside `file`, or the text of a file in another form; None if it is missing.

    Files of a Kubernetes ConfigMap stand in `settings.yaml` beside it.
    """
    target = _file_inside(name, file)
    if target is not None:
        is_parsed = target.suffix.lower() in (*YAML_ENDINGS, _JSON)
        return _with_linked_files(parsed_file(target), target) if is_parsed else _raw_text(target)
    held = _file_inside(CONFIG_MAP, file)
    data = parsed_file(held).get("data") if held is not None and held != file else None
    text = data.get(os.path.basename(name)) if isinstance(data, Mapping) else None
    if not isinstance(text, str):
        return None
    ending = os.path.splitext(name)[1].lower()
    known = ending in (*YAML_ENDINGS, _JSON)
    return _with_linked_files(parse_recipe(text.encode(), name, is_json=ending == _JSON), file) if known else text


def _raw_text(file: Path) -> str:
    try:
        return decode_text(read_regular(file, "configuration file", MAX_BYTES))
    except UnreadableFileError as error:
        raise RecipeError(file, error.reason, error.hint) from error


def _read_linked_file(name: object, file: Path) -> Mapping[str, object] | None:
    """Return the keys of the DeepSpeed file `name` in the folder of `file`, or None if that folder has no such file."""
    target = _file_inside(name, file) if isinstance(name, str) and name.endswith(_JSON) else None
    return None if target is None else parsed_file(target)


def _file_inside(name: str, file: Path) -> Path | None:
    """Return the file `name` in the folder of `file` or below, None if there is none."""
    folder = os.path.realpath(file.parent)
    try:
        target = os.path.realpath(os.path.join(folder, name))
        # An untrusted file must not read files elsewhere on this machine.
        inside = os.path.commonpath([folder, target]) == folder and os.path.isfile(target)
    except ValueError:
        return None
    return Path(target) if inside else None


_SIZES: Final = ("batch", "micro_batch", "context_length", "prompt_length", "sequence_length", "images", "image_size")
_LIST_HINT: Final = "`gpu-planner fit --list-presets` lists all presets."


class Preset(Spec):
    """A well-known setup as plan fields; where it sets no model or GPU, the plan's own stays."""

    id: str = Field(pattern=r"^[a-z0-9]+([.-][a-z0-9]+)*$")
    title: str = Field(min_length=3)
    summary: str = Field(min_length=10, description="one sentence about the preset")
    model: str | None = Field(default=None, description="catalog id of the model, or its name if there is a config")
    config: dict[str, Any] | None = Field(default=None, description="config.json of a model that is not in the catalog")
    workload: Workload
    gpu: str | None = Field(default=None, description="catalog id of the GPU")
    count: int = Field(default=1, ge=1)
    sources: tuple[str, ...] = Field(min_length=1, description="links to the source of each number")
    as_of: str = Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", description="day on which the sources were read")
    notes: tuple[str, ...] = Field(default=(), description="differences from the original setup")

    def __hash__(self) -> int:
        # The configuration is a dictionary, which has no hash; the id is unique.
        return hash(self.id)

    @property
    def own_model(self) -> ModelChoice | None:
        """Return the preset's model, or None if the preset is for any model."""
        if self.model is None or self.config is None:
            return None if self.model is None else ModelChoice(id=self.model)
        return ModelChoice(id=self.model, architecture=read_config(self.config, self.model))


def load_presets(folder: Path | None = None) -> tuple[Preset, ...]:
    """Return the presets in `folder`, by default the bundled presets, training presets first.

    Raises:
        CatalogError: If a record does not validate; it names the file, the record and the field.
    """
    place = folder or catalog_dir() / "presets"
    presets = read_records(place, Preset)
    return tuple(sorted(presets, key=lambda preset: preset.workload.task, reverse=True))


def find_preset(presets: Sequence[Preset], name: str) -> Preset:
    """Return the preset with the id `name`, in any letter case.

    Raises:
        SpecError: If no preset has this id; the hint lists similar ids.
    """
    wanted = name.strip().casefold()
    preset = next((preset for preset in presets if preset.id == wanted), None)
    if preset is None:
        alike = [preset.id for preset in presets if wanted and wanted in preset.id]
        hint = f"Similar names: {', '.join(alike)}." if alike else _LIST_HINT
        raise SpecError("preset", f"no preset is called {name[:80]!r}", hint)
    return preset


def plan_of_preset(preset: Preset) -> Plan:
    """Return a new plan from `preset`.

    Raises:
        SpecError: If the preset names no model.
    """
    model = preset.own_model
    if model is None:
        hint = f"Name a model: gpu-planner fit MODEL --preset {preset.id}"
        raise SpecError("preset", f"{preset.id} is for any model, but no model is named", hint)
    return with_preset(Plan(model=model), preset)


def with_preset(plan: Plan, preset: Preset) -> Plan:
    """Return `plan` with the workload of `preset`, and with the preset's GPUs if it names any.

    The model and the memory used by other programs stay the same, and so do batch and lengths that a preset for any
    model does not state.

    Raises:
        SpecError: If the plan is for a traced module, which runs as traced.
    """
    if plan.model.trace is not None:
        raise SpecError("preset", "a traced module runs as it was traced", "Choose another model.")
    kept_fields: dict[str, object] = {"other_processes_bytes": plan.workload.other_processes_bytes}
    if preset.model is None and preset.workload.task == plan.workload.task:
        kept = (name for name in _SIZES if name not in preset.workload.model_fields_set)
        kept_fields |= {name: getattr(plan.workload, name) for name in kept if hasattr(plan.workload, name)}
    if preset.gpu is not None:
        return plan.evolve(workload=preset.workload.evolve(**kept_fields), gpu=preset.gpu, count=preset.count)
    if plan.workload.gpus:
        kept_fields["gpus"] = plan.workload.gpus
    return plan.evolve(workload=preset.workload.evolve(**kept_fields))
