"""Plans named on the command line: by a plan file, a model's file, or a model of the catalog."""

from pathlib import Path

from planner.models.load import load_model
from planner.plan.catalog import Catalog
from planner.plan.files import is_plan_file, load_plan
from planner.plan.plan import ModelChoice, Plan


def named_plan(word: str, catalog: Catalog) -> Plan:
    """Return the plan in the file `word`, or a new plan for the model that `word` names.

    Raises:
        PlannerError: If `word` is neither, or the file cannot be read.
    """
    path = Path(word)
    return load_plan(path) if is_plan_file(path) else Plan(model=_named_model(word, catalog))


def _named_model(word: str, catalog: Catalog) -> ModelChoice:
    loaded = load_model(word, catalog.models)
    if loaded.path is None:
        return ModelChoice(id=loaded.name)
    return ModelChoice.of_file(loaded.name, loaded.architecture, loaded.path)
