"""Base class of all frozen, validated values of the core, and the type of a question whether to stop."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeVar, dataclass_transform

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import PydanticKnownError

from planner.errors import SpecError

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass as _ModelType
else:
    _ModelType = type(BaseModel)  # pydantic names it nowhere in public

Stop = Callable[[], bool]
"""A function that long work asks whether it was cancelled, and then ends early."""


class _SpecType(_ModelType):
    """Type of the classes of values, which reports wrong fields of a direct call in plain words.

    Not an `__init__`: pydantic would call it for every value inside another, and lose the place of what is wrong there.
    """

    model_fields: Mapping[str, object]

    def __call__(cls, *arguments: Any, **fields: Any) -> Any:  # noqa: ANN401, N805  # whatever the class takes
        """Return a new value.

        Raises:
            SpecError: If a field is unknown or its value is not allowed.
        """
        try:
            return super().__call__(*arguments, **fields)
        except ValidationError as error:
            raise SpecError.from_validation(error, names=cls.model_fields) from None


class Spec(BaseModel, metaclass=_SpecType):
    """Base class of immutable values: hashable, comparable, validated when made, and without unknown fields.

    Fields that hold several values are tuples, so that results can be cached on their inputs. A call of the class and
    `evolve` raise a `SpecError` for wrong fields; `model_validate` leaves the wording to its callers. Results and
    defaults, which the program itself vouches for, are made by `model_construct`: to build the validator of a class
    that nobody enters takes milliseconds of a short run.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    def evolve(self, **changes: object) -> Self:
        """Return a copy with `changes` to its fields, validated like a new value (`model_copy` would not validate).

        Fields that were not set stay unset, because their defaults may depend on what changes.

        Raises:
            SpecError: If a changed field is unknown or its value is not allowed.
        """
        # Not dict(self): that would also hold the cached properties that were read so far.
        fields = {name: getattr(self, name) for name in self.model_fields_set}
        try:
            return type(self).model_validate({**fields, **changes})
        except ValidationError as error:
            raise SpecError.from_validation(error, names=type(self).model_fields) from None

    def replaced(self, **changes: object) -> Self:
        """Return a copy with `changes` to its fields, without validation: the caller ensures valid values."""
        copy, fields = self.model_copy(update=changes), type(self).model_fields
        for name in [name for name in copy.__dict__ if name not in fields]:
            del copy.__dict__[name]  # a cached property, which is that of the values before
        return copy

    @cached_property
    def _value_hash(self) -> int:
        return hash((type(self), *(getattr(self, name) for name in type(self).model_fields)))

    def __hash__(self) -> int:
        return self._value_hash


ValueT = TypeVar("ValueT")


@dataclass_transform(frozen_default=True)
def record(cls: type[ValueT]) -> type[ValueT]:
    """Return `cls` as a dataclass that type checkers know to be frozen, for the many small parts of a result.

    `frozen=True` would check it at run time as well, by a function call for each field: constructing a value then takes
    two to four times as long, and one estimate constructs about sixty. A class with a hash of its own keeps it.
    """
    return dataclass(slots=True, unsafe_hash="__hash__" not in vars(cls))(cls)


def unknown_name_error(names: Iterable[str]) -> PydanticKnownError:
    """Return the validation error for a name that is not in `names`, like pydantic's error for a `Literal`.

    `SpecError.from_validation` turns it into a sentence and suggests close names.
    """
    return PydanticKnownError("literal_error", {"expected": ", ".join(f"'{name}'" for name in names)})
