"""What is known of a training file while it is read, and the recipe that it comes to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pydantic import ValidationError

from planner.errors import RecipeError, SpecError
from planner.workload.recipes.recipe import NOT_ESTIMATED, AssumedKey, Format, IgnoredKey, ReadKey, Recipe
from planner.workload.training import Training

# What the others are checked against comes first.
_FIRST: Final = ("method", "compute", "weights", "lora", "activation_checkpointing", "optimizer")
_ESSENTIAL: Final = ("method", "lora")


@dataclass
class Account:
    """The fields of the workload that were set so far, and what was said of the keys."""

    fields: dict[str, object] = field(default_factory=dict)
    model: str | None = None
    cards: int | None = None
    read: list[ReadKey] = field(default_factory=list)
    ignored: list[IgnoredKey] = field(default_factory=list)
    assumed: list[AssumedKey] = field(default_factory=list)

    def finish(self, kind: Format, source: str) -> Recipe:
        """Return the recipe; `source` names the file in errors.

        What the estimate has no formula for is moved from the keys that were read to those that were ignored.

        Raises:
            RecipeError: If what is trained cannot be estimated.
        """
        workload = self._workload(_nested(self.fields), source)
        return Recipe(
            format=kind,
            workload=workload,
            model=self.model,
            cards=self.cards,
            read=tuple(self.read),
            ignored=tuple(self.ignored),
            assumed=tuple(self.assumed),
        )

    def _workload(self, fields: dict[str, object], source: str) -> Training:
        try:
            return Training.model_validate(fields)
        except ValidationError:
            pass
        kept: dict[str, object] = {}
        for name in sorted(fields, key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST)):
            try:
                Training.model_validate({**kept, name: fields[name]})
            except ValidationError as error:
                self._drop(source, name, SpecError.from_validation(error).reason)
            else:
                kept[name] = fields[name]
        return Training.model_validate(kept)

    def _drop(self, source: str, name: str, reason: str) -> None:
        shown = reason.partition(", got ")[0]
        read = [entry for entry in self.read if entry.field.partition(".")[0] == name]
        assumed = [entry for entry in self.assumed if entry.field.partition(".")[0] == name]
        keys = [entry.key for entry in read] + [entry.key for entry in assumed]
        if name in _ESSENTIAL:
            raise RecipeError(source, f"{keys[0]}: {shown}", "Leave it out to see what the rest takes.")
        self.read = [entry for entry in self.read if entry not in read]
        self.assumed = [entry for entry in self.assumed if entry not in assumed]
        self.ignored += [IgnoredKey(key=key, reason=f"{NOT_ESTIMATED}: {shown}") for key in keys]


def _nested(fields: Mapping[str, object]) -> dict[str, object]:
    """Return `fields` with those of parts, such as `lora.rank`, in objects of their own."""
    found: dict[str, object] = {}
    parts: dict[str, dict[str, object]] = {}
    for name, value in fields.items():
        outer, dot, inner = name.partition(".")
        if dot:
            parts.setdefault(outer, {})[inner] = value
        else:
            found[outer] = value
    return {**found, **parts}
