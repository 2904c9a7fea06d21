"""Typed, validated access to the fields of a model's configuration, and the defaults of transformers' classes for them.

Configurations are untrusted input. Every value is checked for type and bounds when it is read, and each problem is a
`ModelFileError` that names the file and the field. A composite model's file states only what differs from the defaults
of its components' classes, so they are part of the format, not a guess.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, NoReturn, TypeVar

from pydantic import Field

from planner.base import Spec
from planner.errors import ModelFileError
from planner.paths import catalog_dir
from planner.records import read_records

MAX_WIDTH: Final = 10_000_000
MAX_LAYERS: Final = 100_000

_SHOWN_CHARACTERS: Final = 60
_ORIGINAL: Final = "Check that the file is the model's original config.json."

Choice = TypeVar("Choice")


class ConfigFields:
    """The fields of one configuration object; `null` counts as missing.

    Methods take the field's name and its aliases, such as `"hidden_size", "n_embd"`; the first one present is used.
    """

    def __init__(self, config: Mapping[str, object], source: str, prefix: str = "") -> None:
        self.source = source
        self.notes: list[str] = []
        self._config = config
        self._prefix = prefix

    @property
    def model_type(self) -> str:
        """Return the configuration's `model_type`."""
        return self.text("model_type")

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of all fields of the configuration, in order."""
        return tuple(self._config)

    def has(self, *names: str) -> bool:
        """Return whether one of the fields `names` is present and not `null`."""
        return any(self._config.get(name) is not None for name in names)

    def is_list(self, *names: str) -> bool:
        """Return whether the field `names` holds a list."""
        return isinstance(self._find_field(names)[1], list | tuple)

    def is_stated(self, name: str) -> bool:
        """Return whether the field `name` is present, even as `null`."""
        return name in self._config

    def integer(self, *names: str, default: int | None = None, low: int = 1, high: int = MAX_WIDTH) -> int:
        """Return the field's whole number from `low` to `high`; without a default the field is required."""
        name, value = self._find_field(names)
        if value is None:
            return self._default_or_fail(default, names)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            self.fail(name, f"must be a whole number from {low:,} to {high:,}, got {_shown_value(value)}")
        return value

    def optional_integer(self, *names: str, low: int = 1, high: int = MAX_WIDTH) -> int | None:
        """Return the field's whole number from `low` to `high`, or None if the field is missing."""
        return self.integer(*names, low=low, high=high) if self.has(*names) else None

    def automatic_integer(self, *names: str, default: int) -> int:
        """Return the field's whole number, or the default if the field is missing or `auto`."""
        return default if self._find_field(names)[1] == "auto" else self.integer(*names, default=default)

    def number(self, *names: str, default: float | None = None, low: float = 0.0, high: float = 1e9) -> float:
        """Return the field's finite number from `low` to `high`; without a default the field is required."""
        name, value = self._find_field(names)
        if value is None:
            return self._default_or_fail(default, names)
        if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
            self.fail(name, f"must be a number from {low:g} to {high:g}, got {_shown_value(value)}")
        return float(value)

    def dropout(self, *names: str, default: float = 0.0) -> float:
        """Return the field's dropout probability, which must be below 1."""
        return self.number(*names, default=default, high=math.nextafter(1.0, 0.0))

    def flag(self, *names: str, default: bool | None = None) -> bool:
        """Return the field's flag, true or false; without a default the field is required."""
        name, value = self._find_field(names)
        if value is None:
            return self._default_or_fail(default, names)
        if not isinstance(value, bool):
            self.fail(name, f"must be true or false, got {_shown_value(value)}")
        return value

    def text(self, *names: str, default: str | None = None) -> str:
        """Return the field's text; without a default the field is required."""
        name, value = self._find_field(names)
        if value is None:
            return self._default_or_fail(default, names)
        if not isinstance(value, str):
            self.fail(name, f"must be a text, got {_shown_value(value)}")
        return value

    def choice(self, *names: str, among: Mapping[str, Choice], default: str | None = None) -> Choice:
        """Return the value in `among` for the field's text, which must be one of its keys."""
        value = self.text(*names, default=default)
        if value not in among:
            self.fail(
                self._find_field(names)[0], f"{_shown_value(value)} is not known; known are {', '.join(sorted(among))}"
            )
        return among[value]

    def integers(self, *names: str, low: int = 0, high: int = MAX_WIDTH) -> tuple[int, ...] | None:
        """Return the field's list of whole numbers, or None if the field is missing."""
        items = self._read_list(names)
        if items is None:
            return None
        for item in items:
            if not isinstance(item, int) or isinstance(item, bool) or not low <= item <= high:
                self.fail(
                    self._find_field(names)[0],
                    f"must hold whole numbers from {low:,} to {high:,}, got {_shown_value(item)}",
                )
        return tuple(item for item in items if isinstance(item, int))

    def texts(self, *names: str) -> tuple[str, ...] | None:
        """Return the field's list of texts, or None if the field is missing."""
        items = self._read_list(names)
        if items is None:
            return None
        found = tuple(item for item in items if isinstance(item, str))
        if len(found) != len(items):
            self.fail(self._find_field(names)[0], "must hold texts only")
        return found

    def texts_per_layer(self, *names: str, layers: int) -> tuple[str, ...] | None:
        """Return the field's list of one text for each of `layers`, or None if the field is missing."""
        found = self.texts(*names)
        if found is not None and len(found) != layers:
            self.fail(self._find_field(names)[0], f"has {len(found)} entries for {layers} layers")
        return found

    def split_texts(self, *names: str) -> tuple[str, ...]:
        """Return the field's list of texts, or its text split at `|`; empty if the field is missing."""
        value = self._find_field(names)[1]
        if isinstance(value, str):
            return tuple(word.strip() for word in value.split("|"))
        return self.texts(*names) or ()

    def pair(self, *names: str, default: int | None = None) -> tuple[int, int]:
        """Return height and width from a field with one number or a list of two."""
        if not self.is_list(*names):
            return (self.integer(*names, default=default),) * 2
        found = self.integers(*names, low=1) or ()
        if len(found) != 2:
            self.fail(self._find_field(names)[0], f"must be a number or a list of two, got a list of {len(found)}")
        return found[0], found[1]

    def length(self, *names: str) -> int | None:
        """Return the number of entries in the field's object or list, or None if the field is missing."""
        name, value = self._find_field(names)
        if value is not None and not isinstance(value, Mapping | list | tuple):
            self.fail(name, f"must be an object or a list, got {_shown_value(value)}")
        return None if value is None else len(value)

    def with_defaults(self, defaults: Mapping[str, object]) -> "ConfigFields":
        """Return a copy with `defaults` for missing fields, which shares this object's notes."""
        filled = ConfigFields({**defaults, **self._config}, self.source, self._prefix)
        filled.notes = self.notes
        return filled

    def with_changes(self, changes: Mapping[str, object]) -> "ConfigFields":
        """Return a copy with the fields in `changes` replaced, which shares this object's notes."""
        found = ConfigFields({**self._config, **changes}, self.source, self._prefix)
        found.notes = self.notes
        return found

    def nested(self, *names: str) -> "ConfigFields | None":
        """Return the fields of the nested object `names`, which share the notes, or None if it is missing."""
        name, value = self._find_field(names)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            self.fail(name, f"must be an object, got {_shown_value(value)}")
        inner = ConfigFields(value, self.source, f"{self._prefix}{name}.")
        inner.notes = self.notes
        return inner

    def required(self, *names: str) -> "ConfigFields":
        """Return the fields of the nested object `names`; a missing object is an error."""
        return self.nested(*names) or self._default_or_fail(None, names)

    def note(self, text: str) -> None:
        """Add a note for the user on what was assumed or ignored."""
        if text not in self.notes:
            self.notes.append(text)

    def fail(self, name: str, reason: str, hint: str = _ORIGINAL) -> NoReturn:
        """Raise a `ModelFileError` about the field `name`."""
        raise ModelFileError(self.source, f"{self._prefix}{name} {reason}", hint)

    def _find_field(self, names: Sequence[str]) -> tuple[str, object]:
        present = ((name, self._config[name]) for name in names if self._config.get(name) is not None)
        return next(present, (names[0], None))

    def _read_list(self, names: Sequence[str]) -> Sequence[object] | None:
        name, value = self._find_field(names)
        if value is None:
            return None
        if not isinstance(value, list | tuple) or len(value) > MAX_LAYERS:
            self.fail(name, f"must be a list of at most {MAX_LAYERS:,}, got {_shown_value(value)}")
        return value

    def _default_or_fail(self, default: "_DefaultType | None", names: Sequence[str]) -> "_DefaultType":
        if default is None:
            others = f" (or {', '.join(names[1:])})" if len(names) > 1 else ""
            self.fail(names[0], f"is missing{others}")
        return default


_DefaultType = TypeVar("_DefaultType")


def _shown_value(value: object) -> str:
    if isinstance(value, int) and value.bit_length() > 4 * _SHOWN_CHARACTERS:
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, list | tuple | Mapping):
        return f"{'an object' if isinstance(value, Mapping) else 'a list'} of {len(value)}"
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


_FOLDER: Final = "config-defaults"


class ConfigDefaults(Spec):
    """Defaults of one transformers configuration class, without defaults that readers know or derive themselves."""

    id: str = Field(description="`model_type` of the configuration class")
    aliases: tuple[str, ...] = Field(default=(), description="`model_type` of further classes with the same defaults")
    defaults: dict[str, Any] = Field(
        description="default values by field; composite classes list the defaults of missing components"
    )
    sources: tuple[str, ...] = Field(min_length=1)
    as_of: str = Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", description="day on which the sources were read")


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
