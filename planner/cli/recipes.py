"""Training files of other programs on the command line, as MODEL or as `--workload`."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from planner.cli.report import prose_width, wrapped
from planner.cli.subjects import plan_about
from planner.errors import SpecError
from planner.plan.catalog import Catalog
from planner.plan.plan import Plan
from planner.present.plan.starting_points import recipe_details, recipe_summary

if TYPE_CHECKING:
    from planner.workload.recipes.recipe import Recipe

_ENDINGS: Final = (".yml", ".yaml", ".json")


class GivenRecipe(NamedTuple):
    """A training file: the recipe in it, and where it is."""

    recipe: "Recipe"
    path: Path


def take_recipe(arguments: argparse.Namespace) -> GivenRecipe | None:
    """Return the training file that is named as MODEL or by `--workload`, none if neither is one.

    Raises:
        RecipeError: If it cannot be read.
        SpecError: If both are training files.
    """
    model, workload = (_recipe_path(word) for word in (arguments.model, arguments.workload))
    if model is not None and workload is not None:
        hint = "Name the model instead of one of them: gpu-planner fit MODEL --workload FILE"
        raise SpecError("--workload", "there are two training files", hint)
    path = model or workload
    if path is None:
        return None
    from planner.plan.recipes.files import load_recipe

    return GivenRecipe(load_recipe(path), path)


def plan_with_recipe(given: GivenRecipe, word: str | None, catalog: Catalog) -> Plan:
    """Return the plan for the training file, about the model `word` unless that is the file.

    Raises:
        PlannerError: If there is no such model, or the file names none.
    """
    from planner.plan.recipes.files import plan_of_recipe, with_recipe

    if word is None or Path(word) == given.path:
        return plan_of_recipe(given.recipe, given.path, catalog.models)
    return with_recipe(plan_about(word, catalog), given.recipe)


def recipe_block(given: GivenRecipe, width: int | None, *, explain: bool) -> str:
    """Return what was read of the training file as text; with `explain` a line for every key."""
    prose = prose_width(width)
    if explain:
        return "\n".join(wrapped(line, prose, rest="      ") for line in recipe_details(given.recipe, given.path.name))
    return "\n".join(wrapped(line, prose) for line in recipe_summary(given.recipe, given.path.name))


def _recipe_path(word: str | Path | None) -> Path | None:
    # Most words are names: they need no reader of YAML.
    if word is None or not (str(word).lower().endswith(_ENDINGS) or os.path.isdir(word)):
        return None
    from planner.plan.recipes.files import is_recipe_file

    return Path(word) if is_recipe_file(Path(word)) else None
