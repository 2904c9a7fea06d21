"""Defaults of transformers' configuration classes for the components of composite models.

A composite model's file states only what differs from these defaults, so they are part of the format, not a guess.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from pydantic import Field

from planner.base import Spec
from planner.models.readers.config_fields import ConfigFields
from planner.paths import catalog_dir
from planner.records import read_records

_FOLDER: Final = "config-defaults"


class ConfigDefaults(Spec):
    """Defaults of one transformers configuration class, without defaults that readers know or derive themselves."""

    id: str = Field(description="`model_type` of the configuration class")
    aliases: tuple[str, ...] = Field(default=(), description="`model_type` of further classes with the same defaults")
    defaults: dict[str, Any] = Field(
        description="default values by field; composite classes list the defaults of missing components"
    )
    sources: tuple[str, ...] = Field(min_length=1)
    as_of: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$", description="day on which the sources were read")


def config_defaults(model_type: str) -> Mapping[str, Any]:
    """Return the default values of the configuration class `model_type` by field; empty if none are recorded."""
    return _defaults_by_class().get(model_type, {})


def component_fields(fields: ConfigFields, name: str, model_type: str, *, states_class: bool = False) -> ConfigFields:
    """Return the configuration of the component `name`, with the defaults of its class for missing fields.

    `model_type` is the component's class, unless it `states_class` itself.
    """
    stated = fields.nested(name)
    component = stated or fields.with_defaults({name: {}}).required(name)
    kind = component.text("model_type", default=model_type) if states_class else model_type
    missing = {} if stated else config_defaults(fields.model_type).get(name, {})
    return component.with_defaults({**config_defaults(kind), **missing}).with_changes({"model_type": kind})


@cache
def _defaults_by_class() -> Mapping[str, Mapping[str, Any]]:
    folder = catalog_dir() / _FOLDER
    records = read_records(folder, ConfigDefaults)
    return {name: record.defaults for record in records for name in (record.id, *record.aliases)}
