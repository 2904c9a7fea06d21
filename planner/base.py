"""Base class of all frozen, validated values of the core."""

from collections.abc import Iterable
from functools import cached_property
from typing import Self

from pydantic import BaseModel, ConfigDict
from pydantic_core import PydanticKnownError


class Spec(BaseModel):
    """Base class of immutable values: hashable, comparable, validated when made, and without unknown fields.

    Fields that hold several values are tuples, so that results can be cached on their inputs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    def evolve(self, **changes: object) -> Self:
        """Return a copy with `changes` to its fields, validated like a new value (`model_copy` would not validate).

        Fields that were not set stay unset, because their defaults may depend on what changes.

        Raises:
            pydantic.ValidationError: If a changed field is unknown or its value is not allowed.
        """
        # Not dict(self): that would also hold the cached properties that were read so far.
        fields = {name: getattr(self, name) for name in self.model_fields_set}
        return type(self).model_validate({**fields, **changes})

    def replaced(self, **changes: object) -> Self:
        """Return a copy with `changes` to its fields, without validation: the caller ensures valid values."""
        copy = self.model_copy(update=changes)
        for name in copy.__dict__.keys() - type(self).model_fields.keys():
            del copy.__dict__[name]  # a cached property, which is that of the values before
        return copy

    @cached_property
    def _value_hash(self) -> int:
        return hash((type(self), *(getattr(self, name) for name in type(self).model_fields)))

    def __hash__(self) -> int:
        return self._value_hash


def unknown_name_error(names: Iterable[str]) -> PydanticKnownError:
    """Return the validation error for a name that is not in `names`, like pydantic's error for a `Literal`.

    `SpecError.from_validation` turns it into a sentence and suggests close names.
    """
    return PydanticKnownError("literal_error", {"expected": ", ".join(f"'{name}'" for name in names)})
