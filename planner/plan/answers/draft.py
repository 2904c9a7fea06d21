"""A workload by the dotted names of its fields, of which some are asked for and the others may move."""

from collections.abc import Mapping
from typing import Final

from planner.base import Spec
from planner.errors import SpecError
from planner.workload.software.registry import servers, serving, setting_names
from planner.workload.training import Lora
from planner.workload.workload import Inference, Training, Workload

WORKLOAD: Final = "workload."
DEGREES: Final = ("parallel.tensor", "parallel.pipeline", "parallel.context", "parallel.expert")
OF_STAGES: Final = ("parallel.interleave", "parallel.pipeline_layers")
OF_ENGINES: Final = tuple(f"engine.{name}" for name in setting_names())
_USUAL_GGUF: Final = "Q4_K_M"
_FRESH: Final[dict[type[Training] | type[Inference], Workload]] = {Training: Training(), Inference: Inference()}


class Draft:
    """The workload's fields by their dotted names, of which some were asked for and the others may move."""

    def __init__(self, workload: Workload, asked: Mapping[str, object], number_of_cards: object) -> None:
        self.kind = type(workload)
        self.number_of_cards = number_of_cards
        self.asked = asked
        self._before = _flat(workload)
        self._fields = {**self._before, **asked}
        self._moves: dict[str, None] = {}

    @property
    def moved(self) -> tuple[str, ...]:
        """Return the fields that have another value than before, and were not asked for."""
        return tuple(name for name in self._moves if self.value(name) != self._before.get(name, _default(self, name)))

    def value(self, name: str) -> object:
        """Return the value of the field `name`."""
        return self._fields.get(name, _default(self, name))

    def move(self, name: str, value: object) -> None:
        """Set a field that was not asked for."""
        if name not in self.asked and self.value(name) != value:
            self._fields[name] = value
            self._moves.setdefault(name)

    def open(self, *names: str) -> None:
        """Set fields that were not asked for back to their defaults."""
        for name in names:
            self.move(name, _default(self, name))

    def drop(self, part: str) -> None:
        """Leave out a part that the workload does not have any more."""
        self._fields = {name: value for name, value in self._fields.items() if not name.startswith(f"{part}.")}

    def give_way(self, error: SpecError, *, counted: bool) -> None:
        """Set what `error` is about back to its default.

        Raises:
            SpecError: The same, if that was asked for.
        """
        name = error.field.removeprefix(WORKLOAD)
        shared = [field for field in self.asked if field.startswith("parallel.")]
        if name == "parallel" and not counted and not shared:
            self.open(*DEGREES, *OF_STAGES, "parallel.data")
        elif name == "weights" and name in self.asked and "profile" not in self.asked and self._names_engine():
            self.open("profile", "gpu_layers", *OF_ENGINES)
        elif name == "weights" and self._reads_gguf_only() and self.value(name) is None:
            self.move(name, _USUAL_GGUF)
        elif name not in self.asked and self.value(name) != _default(self, name):
            self.open(name)
        else:
            raise error

    def _names_engine(self) -> bool:
        return any(self.value(name) is not None for name in ("profile", "gpu_layers", *OF_ENGINES))

    def _reads_gguf_only(self) -> bool:
        asked = self.asked.get("profile")
        return isinstance(asked, str) and asked in servers() and "safetensors" not in serving(asked).containers

    def built(self) -> Workload:
        """Return the workload.

        Raises:
            pydantic.ValidationError: If a value is not allowed.
        """
        plain = {name: value for name, value in self._fields.items() if "." not in name}
        parts: dict[str, dict[str, object]] = {}
        for name in self._fields.keys() - plain.keys():
            outer, _, inner = name.partition(".")
            parts.setdefault(outer, {})[inner] = self._fields[name]
        return self.kind.model_validate(plain | parts)


def _flat(workload: Workload) -> dict[str, object]:
    fields: dict[str, object] = {}
    for name in workload.model_fields_set:
        value = getattr(workload, name)
        if isinstance(value, Spec):
            fields |= {f"{name}.{inner}": getattr(value, inner) for inner in value.model_fields_set}
        else:
            fields[name] = value
    return fields


def _default(draft: Draft, name: str) -> object:
    outer, _, inner = name.partition(".")
    held = Lora() if outer == "lora" else getattr(_FRESH[draft.kind], outer, None)
    return getattr(held, inner, None) if inner else held
