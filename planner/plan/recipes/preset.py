"""Presets: well-known training and inference setups, with their sources."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from pydantic import Field

from planner.base import Spec
from planner.errors import SpecError
from planner.paths import catalog_dir
from planner.plan.plan import ModelChoice, Plan
from planner.records import read_records
from planner.workload.workload import Workload

_SIZES: Final = ("batch", "micro_batch", "context_length", "prompt_length", "sequence_length", "images", "image_size")
_LIST_HINT: Final = "`gpu-planner fit --list-presets` lists all presets."


class Preset(Spec):
    """A well-known setup as plan fields; where it sets no model or card, the plan's own stays."""

    id: str = Field(pattern=r"^[a-z0-9]+([.-][a-z0-9]+)*$")
    title: str = Field(min_length=3)
    summary: str = Field(min_length=10, description="one sentence about the preset")
    model: str | None = Field(default=None, description="catalog id of the model, or its name if there is a config")
    config: dict[str, Any] | None = Field(default=None, description="config.json of a model that is not in the catalog")
    workload: Workload
    gpu: str | None = Field(default=None, description="catalog id of the card")
    count: int = Field(default=1, ge=1)
    sources: tuple[str, ...] = Field(min_length=1, description="links to the source of each number")
    as_of: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$", description="day on which the sources were read")
    notes: tuple[str, ...] = Field(default=(), description="differences from the original setup")

    def __hash__(self) -> int:
        # The configuration is a dictionary, which has no hash; the id is unique.
        return hash(self.id)

    @property
    def own_model(self) -> ModelChoice | None:
        """Return the preset's model, or None if the preset is for any model."""
        if self.model is None or self.config is None:
            return None if self.model is None else ModelChoice(id=self.model)
        from planner.models.readers.config_json import read_config  # most presets name a model of the catalog

        return ModelChoice(id=self.model, architecture=read_config(self.config, self.model))


@cache
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
    """Return `plan` with the workload of `preset`, and with the preset's cards if it names any.

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
