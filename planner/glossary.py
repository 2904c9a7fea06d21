"""Glossary of the field's terms, read from `resources/glossary.toml`."""

import tomllib
from functools import cache

from planner.base import Spec
from planner.paths import resources_dir


class GlossaryTerm(Spec):
    """A glossary entry: a term with its definition, where the app shows it, and a source."""

    term: str
    definition: str
    shows_as: str
    source: str


@cache
def glossary() -> tuple[GlossaryTerm, ...]:
    """Return all glossary entries in alphabetical order."""
    with (resources_dir() / "glossary.toml").open("rb") as file:
        return tuple(GlossaryTerm.model_validate(entry) for entry in tomllib.load(file)["terms"])
