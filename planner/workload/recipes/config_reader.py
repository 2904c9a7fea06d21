"""Typed access to a training file's keys, with a record of the effect of every key."""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NoReturn

from pydantic import ValidationError

from planner.errors import RecipeError, SpecError
from planner.workload.recipes.recipe import (
    NEUTRAL,
    NOT_ESTIMATED,
    UNKNOWN,
    AssumedKey,
    IgnoredKey,
    ReadKey,
    Recipe,
)
from planner.workload.rules import nest_fields
from planner.workload.training import Training
from planner.workload.workload import Inference

# What the others are checked against comes first.
_VALIDATED_FIRST: Final = ("method", "compute", "weights", "lora", "activation_checkpointing", "optimizer")
_ESSENTIAL: Final = ("method", "lora")


@dataclass
class RecipeBuilder:
    """Workload fields that a file has set so far, and the record of its keys."""

    kind: type[Training] | type[Inference] = Training
    fields: dict[str, object] = field(default_factory=dict)
    model: str | None = None
    cards: int | None = None
    read: list[ReadKey] = field(default_factory=list)
    ignored: list[IgnoredKey] = field(default_factory=list)
    assumed: list[AssumedKey] = field(default_factory=list)

    def finish(self, kind: str, source: str) -> Recipe:
        """Return the recipe of the training file; `source` names the file in errors.

        Keys that the estimate does not support are moved from the read keys to the ignored keys.

        Raises:
            RecipeError: If the training cannot be estimated.
        """
        workload = self._build_workload(nest_fields(self.fields), source)
        return Recipe(
            format=kind,
            workload=workload,
            model=self.model,
            cards=self.cards,
            read=tuple(self.read),
            ignored=tuple(self.ignored),
            assumed=tuple(self.assumed),
        )

    def _build_workload(self, fields: dict[str, object], source: str) -> Training | Inference:
        """Return the workload with `fields`, without fields that validation rejects."""
        try:
            return self.kind.model_validate(fields)
        except ValidationError:
            pass
        accepted: dict[str, object] = {}
        first = _VALIDATED_FIRST if self.kind is Training else ("profile",)
        for name in sorted(fields, key=lambda name: first.index(name) if name in first else len(first)):
            try:
                self.kind.model_validate({**accepted, name: fields[name]})
            except ValidationError as error:
                self._drop_field(source, name, SpecError.from_validation(error).reason)
            else:
                accepted[name] = fields[name]
        return self.kind.model_validate(accepted)

    def _drop_field(self, source: str, name: str, reason: str) -> None:
        short_reason = reason.partition(", got ")[0]
        read = [entry for entry in self.read if entry.field.partition(".")[0] == name]
        assumed = [entry for entry in self.assumed if entry.field.partition(".")[0] == name]
        keys = [entry.key for entry in read] + [entry.key for entry in assumed]
        if name in _ESSENTIAL:
            raise RecipeError(source, f"{keys[0]}: {short_reason}", "Remove the key to estimate the rest.")
        self.read = [entry for entry in self.read if entry not in read]
        self.assumed = [entry for entry in self.assumed if entry not in assumed]
        self.ignored += [IgnoredKey(key=key, reason=f"{NOT_ESTIMATED}: {short_reason}") for key in keys]


AUTO: Final = "auto"
_MOST: Final = 100_000_000
_SHOWN_CHARACTERS: Final = 80
_SWITCHES: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_OFF: Final[tuple[object, ...]] = (None, False, "", 0, [], {}, "no", "none", "null", "NO")


class ConfigReader:
    """Reader of the keys in a training file or in one of its sections, which builds a workload.

    Typed getters return `None` for a key that is missing, empty or `auto`.
    """

    def __init__(
        self, config: Mapping[str, object], source: str, prefix: str = "", builder: RecipeBuilder | None = None
    ) -> None:
        self._config, self._source, self._prefix = config, source, prefix
        self._builder = builder or RecipeBuilder()
        self._read_keys: set[str] = set()
        self._accounted: set[str] = set()

    def raw(self, key: str) -> object:
        """Return the value of `key` as written."""
        self._read_keys.add(key)
        return self._config.get(key)

    def has(self, key: str) -> bool:
        """Return whether `key` has a value, including `auto`."""
        return self._config.get(key) is not None

    def field(self, name: str) -> object:
        """Return the value to which the workload field `name` was set, or None."""
        return self._builder.fields.get(name)

    def integer(self, key: str, low: int = 1, high: int = _MOST) -> int | None:
        """Return the whole number at `key`; strings of digits are accepted, as in the training programs.

        Raises:
            RecipeError: If the value is not a whole number or is out of bounds.
        """
        value = self._config_value(key)
        if isinstance(value, str) and value.strip().isdecimal() and len(value) < 20:
            value = int(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            self.fail(key, f"must be a whole number from {low:,} to {high:,}")
        return value

    def number(self, key: str, high: float = 1e9) -> float | None:
        """Return the number at `key`, from 0 to `high`; strings are accepted, since YAML reads `1e-4` as text.

        Raises:
            RecipeError: If the value is not a number or is out of bounds.
        """
        value = self._config_value(key)
        if isinstance(value, str):
            value = _parse_number(value)
        if value is None and self._config_value(key) is None:
            return None
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= high:
            self.fail(key, f"must be a number from 0 to {high:g}")
        return float(value)

    def flag(self, key: str) -> bool | None:
        """Return the boolean at `key`; quoted values such as "yes", which accelerate writes, are accepted.

        Raises:
            RecipeError: If the value is not a boolean.
        """
        value = self._config_value(key)
        if isinstance(value, str):
            value = _SWITCHES.get(value.lower(), value)
        if value is not None and not isinstance(value, bool):
            self.fail(key, "must be true or false")
        return value

    def string(self, key: str) -> str | None:
        """Return the string at `key`, or None if it is empty.

        Raises:
            RecipeError: If the value is not a string.
        """
        value = self._config_value(key)
        if value is not None and not isinstance(value, str):
            self.fail(key, "must be a string")
        return value or None

    def strings(self, key: str) -> tuple[str, ...] | None:
        """Return the list of strings at `key`; a single string is split at commas and blanks.

        Raises:
            RecipeError: If the value is not a list of strings.
        """
        value = self._config_value(key)
        if isinstance(value, str):
            value = value.replace(",", " ").split()
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.fail(key, "must be a list of strings")
        return tuple(value) or None

    def section(self, key: str, key_prefix: str = "") -> "ConfigReader | None":
        """Return a reader of the section `key` for the same workload; its keys are read without `key_prefix`.

        Raises:
            RecipeError: If the value is not a section.
        """
        value = self._config_value(key)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            self.fail(key, "must be a section with keys")
        self._accounted.add(key)
        section = {str(name).removeprefix(key_prefix): item for name, item in value.items()}
        return ConfigReader(section, self._source, f"{self._prefix}{key}.", self._builder)

    def inline(self, key: str, section: Mapping[str, object]) -> "ConfigReader":
        """Return a reader of `section`, which is written as text at `key`, for the same workload."""
        self._accounted.add(key)
        return ConfigReader(section, self._source, f"{self._prefix}{key}.", self._builder)

    def set(self, key: str, name: str, value: object) -> None:
        """Set the workload field `name` to `value`, as read from `key`."""
        self._builder.fields[name] = value
        self.record_read(key, name)

    def set_if_enabled(self, key: str, name: str, value: object = True) -> None:
        """Set the workload field `name` to `value` if `key` is true."""
        if self.flag(key):
            self.set(key, name, value)

    def record_read(self, key: str, name: str) -> None:
        """Record that `key` set the workload field `name`."""
        self._accounted.add(key)
        value_text = _format_value(self._config.get(key))
        self._builder.read.append(ReadKey(key=self._prefix + key, value=value_text, field=name))

    def assume(self, key: str, default: object, name: str, value: object) -> None:
        """Set the workload field `name` to `value`, because the missing `key` has the program's `default`."""
        self._builder.fields[name] = value
        entry = AssumedKey(key=self._prefix + key, value=_format_value(default), field=name)
        self._builder.assumed.append(entry)

    def ignore(self, key: str, reason: str) -> None:
        """Record that `key` sets no workload field, with the reason."""
        self._accounted.add(key)
        self._builder.ignored.append(IgnoredKey(key=self._prefix + key, reason=reason))

    def ignore_all(self, keys: Iterable[str], reason: str) -> None:
        """Record for each of `keys` in the file that it sets no workload field, with the reason."""
        for key in keys:
            if self.has(key):
                self.ignore(key, reason)

    def ignore_unestimated(self, key: str, feature: str) -> None:
        """Record that `key` enables a feature that the estimate does not support."""
        self.ignore(key, f"{NOT_ESTIMATED}: {feature}")

    def set_or_default(self, key: str, name: str, value: object, default: object = None) -> None:
        """Set the workload field `name` to `value` from `key`, or to the program's `default` if `value` is None."""
        if value is not None:
            self.set(key, name, value)
        elif default is not None:
            self.assume(key, default, name, default)

    def read_model(self, key: str) -> None:
        """Read the model's name from `key`."""
        name = self.string(key)
        if name is not None:
            self._builder.model = name
            self.record_read(key, "model")

    def set_gpu_count(self, key: str, cards: int) -> None:
        """Set the number of GPUs to `cards`, as stated by `key`."""
        self._builder.cards = cards
        self.record_read(key, "cards")

    def set_known_count(self, cards: int) -> None:
        """Set the number of GPUs to `cards`, which follows from keys that were read already."""
        self._builder.cards = cards

    def set_task_inference(self) -> None:
        """Make the workload one of inference; files are of training otherwise."""
        self._builder.kind = Inference

    def ignore_rest(self, neutral: Collection[str], others: Mapping[str, str] | None = None) -> None:
        """Record all remaining keys of the file as ignored.

        `neutral` keys do not change memory; `others` maps keys to the unsupported features that they may enable.
        """
        for key in self._config:
            if key not in self._accounted:
                self.ignore(key, self._ignore_reason(key, neutral, others or {}))

    def _ignore_reason(self, key: str, neutral: Collection[str], others: Mapping[str, str]) -> str:
        """Return the reason why a key that was not read is ignored."""
        value = self._config[key]
        if key in neutral:
            return NEUTRAL
        if value is None:
            return "empty"
        if value == AUTO and (key in self._read_keys or key in others):
            return "auto: the value is determined by another part of the run"
        if key in others:
            return "switched off" if value in _OFF else f"{NOT_ESTIMATED}: {others[key]}"
        if key in self._read_keys:
            return "switched off" if value in _OFF else NEUTRAL
        return UNKNOWN

    def fail(self, key: str, reason: str, hint: str = "Correct the value or remove the key.") -> NoReturn:
        """Raise a `RecipeError` about the value of `key`."""
        value_text = _format_value(self._config.get(key))
        raise RecipeError(self._source, f"{self._prefix}{key} {reason}, got {value_text}", hint)

    def finish(self, kind: str) -> Recipe:
        """Return the recipe of the whole file, whose format or program is called `kind`.

        Raises:
            RecipeError: If the training cannot be estimated.
        """
        return self._builder.finish(kind, self._source)

    def _config_value(self, key: str) -> object:
        """Return the value of `key`, with `auto` as None."""
        value = self.raw(key)
        return None if value == AUTO else value


def _parse_number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _format_value(value: object) -> str:
    """Return a training file's value as short printable text."""
    if isinstance(value, bool) or value is None:
        text = {True: "true", False: "false", None: "nothing"}[value]
    elif isinstance(value, dict):
        text = f"{{{', '.join(f'{key}: {_format_value(item)}' for key, item in [*value.items()][:12])}}}"
    elif isinstance(value, list | tuple):
        text = ", ".join(_format_value(item) for item in value[:12])
    else:
        text = str(value)
    text = "".join(letter if letter.isprintable() else "·" for letter in text[: 2 * _SHOWN_CHARACTERS])
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"
