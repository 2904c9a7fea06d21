"""Presets (`--preset NAME`, `--list-presets`) and training files as starting points of a plan, and their reports."""

from pathlib import Path
from typing import Final

from pydantic_core import to_json

from planner.cli.table import TableColumn, prose_width, table, wrap
from planner.errors import SpecError
from planner.plan.catalog import Catalog
from planner.plan.files import named_plan
from planner.plan.plan import Plan
from planner.plan.recipes import Preset, find_preset, load_presets, plan_of_preset, with_preset
from planner.present.plan.starting_points import preset_detail, preset_notes, recipe_details, recipe_summary
from planner.workload.recipes.recipe import Recipe

_HEADS: Final = (TableColumn("Preset"), TableColumn("Runs", flexible=True), TableColumn("Description", flexible=True))


def preset_list(catalog: Catalog, width: int | None, *, as_json: bool) -> str:
    """Return all presets as a table, or as JSON text."""
    presets = load_presets()
    if as_json:
        return to_json([preset.model_dump(mode="json", exclude_unset=True) for preset in presets], indent=2).decode()
    rows = [[preset.id, preset_detail(preset, catalog.hardware), preset.summary] for preset in presets]
    return table(_HEADS, rows, width)


def plan_with_preset(name: str, model: str | None, workload: Path | None, catalog: Catalog) -> tuple[Plan, Preset]:
    """Return the plan of the preset `name`, for `model` unless None, and the preset.

    Raises:
        SpecError: If there is no such preset, the preset needs a model, or a file gives another workload.
        PlannerError: If there is no such model.
    """
    if workload is not None:
        raise SpecError("--preset", "cannot be combined with --workload", "Leave out --preset or --workload.")
    preset = find_preset(load_presets(), name)
    if model is None:
        return plan_of_preset(preset), preset
    return with_preset(named_plan(model, catalog), preset), preset


def preset_block(preset: Preset, width: int | None) -> str:
    """Return notes on the preset and its sources as text."""
    notes = (wrap(line, prose_width(width), rest="    ") for line in preset_notes(preset))
    return "\n".join([*notes, *(f"    {source}" for source in preset.sources)])


def recipe_block(recipe: Recipe, name: str, width: int | None, *, explain: bool) -> str:
    """Return a summary of the settings read from the training file `name`, or with `explain` a line for every key."""
    prose = prose_width(width)
    if explain:
        return "\n".join(wrap(line, prose, rest="      ") for line in recipe_details(recipe, name))
    return "\n".join(wrap(line, prose) for line in recipe_summary(recipe, name))
