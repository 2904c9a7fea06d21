"""The catalog as a person has it, with their own hardware and fetched prices, and what a word names in it."""

import sys
from pathlib import Path

from planner.models.load import load_model
from planner.paths import own_hardware_file, prices_dir
from planner.plan.catalog import Catalog, load_catalog_or_bundled
from planner.plan.files import is_plan_file, load_plan
from planner.plan.plan import ModelChoice, Plan


def persons_catalog() -> Catalog:
    """Return the catalog with what the person added to it.

    A file of their own that cannot be read is warned of on stderr, and everything else is answered without it.

    Raises:
        CatalogError: If a bundled record does not validate.
    """
    catalog, unread = load_catalog_or_bundled(prices_dir(), own_hardware_file())
    if unread is not None:
        print(f"warning: your own hardware is left out: {unread.message}\nhint: {unread.hint}", file=sys.stderr)
    return catalog


def plan_about(word: str, catalog: Catalog) -> Plan:
    """Return the plan in the file `word`, or a new one about the model that `word` names.

    Raises:
        PlannerError: If it is neither, or the file cannot be read.
    """
    path = Path(word)
    return load_plan(path) if is_plan_file(path) else Plan(model=_model(word, catalog))


def _model(word: str, catalog: Catalog) -> ModelChoice:
    loaded = load_model(word, catalog.models)
    if loaded.path is None:
        return ModelChoice(id=loaded.name)
    return ModelChoice.of_file(loaded.name, loaded.architecture, loaded.path)
