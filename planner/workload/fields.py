"""All fields of workloads by their dotted names, as the pydantic models declare the fields.

The command line, forms, sentences and documentation are generated from them, so a new option needs one declaration.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import NoneType
from typing import Final, Literal, get_args

from pydantic.fields import FieldInfo

from planner.base import Spec
from planner.numbers import NumberKind, number_kind
from planner.workload.choices import Task
from planner.workload.formats import EXCLUSIVE_FIELDS
from planner.workload.presentation import YES_OR_NO, ChoiceTitles, FieldContext, Group, Presentation
from planner.workload.rules import FieldValue
from planner.workload.software.registry import SERVERS, serving_support
from planner.workload.software.software import EngineSettings
from planner.workload.workload import Inference, Training

Kind = Literal["choice", "number", "share", "bytes", "list"]

TASKS: Final[dict[Task, type[Training] | type[Inference]]] = {"inference": Inference, "training": Training}


@dataclass(frozen=True, eq=False)
class WorkloadField:
    """A workload field, with the tasks that have it, its pydantic declaration and its presentation."""

    name: str
    tasks: tuple[Task, ...]
    info: FieldInfo
    option: Presentation
    whole: Presentation | None = None

    @property
    def group(self) -> Group:
        """Return the form section of the field, by default that of the field around it."""
        return self.option.group or (self.whole.group if self.whole else "")

    @property
    def metavar(self) -> str:
        """Return the placeholder for the field's value in `--help`."""
        return self.option.metavar or self.option.unit.upper() or ("N" if self.kind == "number" else "NAME")

    @property
    def title(self) -> str:
        """Return the field's display name, such as `Micro-batch size`."""
        return self.info.title or self.name

    @property
    def help(self) -> str:
        """Return the field's one-line description in `--help`, in lower case."""
        return self.info.description or ""

    @property
    def default(self) -> FieldValue:
        """Return the field's default value, or None if it depends on the model."""
        return self.info.default

    @property
    def is_optional(self) -> bool:
        """Return whether the field may be unset, so that it is filled in for the model."""
        return NoneType in get_args(self.info.annotation)

    @property
    def kind(self) -> Kind:
        """Return the kind of form control for the field: choice, number, bytes, share or list."""
        kinds = get_args(self.info.annotation) if self.is_optional else (self.info.annotation,)
        if self.option.choices is not None or bool in kinds:
            return "choice"
        if self.name.endswith("_bytes"):
            return "bytes"
        return "number" if int in kinds else "share" if float in kinds else "list"

    @property
    def number_kind(self) -> NumberKind | None:
        """Return the kind of the field's numbers, None for text, choices of words, switches and lists."""
        return number_kind(self.name, self.info.annotation)

    def is_shown(self, context: FieldContext) -> bool:
        """Return whether a form shows the field for the model and software in `context`."""
        if isinstance(context.workload, Inference):
            own = serving_support(context.workload.profile)
            part, _, setting = self.name.rpartition(".")
            if part == "engine" and setting not in own.settings.model_fields:
                return False
            if self.name in own.ignored_fields or (self.name in EXCLUSIVE_FIELDS and self.name not in own.own_fields):
                return False
        return self.option.shown_when(context) and (self.whole is None or self.whole.shown_when(context))

    def bound(self, name: Literal["ge", "le"], otherwise: int) -> int:
        """Return the lower (`ge`) or upper (`le`) bound of the field's value, or `otherwise` if there is none."""
        limits = (getattr(limit, name, None) for limit in self.info.metadata)
        return next((limit for limit in limits if isinstance(limit, int)), otherwise)

    def choices(self, situation: FieldContext | None) -> ChoiceTitles:
        """Return the field's allowed values with titles; choices that depend on the model need a `situation`."""
        choices = self.option.choices
        if callable(choices):
            return choices(situation) if situation is not None else {}
        return choices if choices is not None else YES_OR_NO if self.kind == "choice" else {}


@lru_cache(maxsize=2)
def fields_of(task: Task) -> Mapping[str, WorkloadField]:
    """Return the fields of a task's workloads by name, in order of declaration."""
    return {field.name: field for field in _declared_fields(TASKS[task], task)}


@lru_cache(maxsize=1)
def all_fields() -> tuple[WorkloadField, ...]:
    """Return the fields of training and inference; a field that each task declares separately appears twice."""
    fields: dict[tuple[str, int], WorkloadField] = {}
    for task in TASKS:
        for field in fields_of(task).values():
            same = fields.get((field.name, id(field.option)))
            tasks = (*same.tasks, task) if same else (task,)
            fields[field.name, id(field.option)] = replace(field, tasks=tasks)
    return tuple(fields.values())


def find_field(name: str, task: Task | None = None) -> WorkloadField | None:
    """Return the field `name` of `task`, by default of any task, or None if there is no such field."""
    tasks = (task,) if task else tuple(TASKS)
    return next((field for each_task in tasks if (field := fields_of(each_task).get(name))), None)


def _declared_fields(
    model: type[Spec], task: Task, prefix: str = "", whole: Presentation | None = None
) -> Iterator[WorkloadField]:
    """Yield the fields that a pydantic model declares, including those of nested models, by dotted name."""
    for name, info in model.model_fields.items():
        option = next((one for one in info.metadata if isinstance(one, Presentation)), None)
        parts = _nested_models(info.annotation)
        for part in parts:
            yield from _declared_fields(part, task, f"{prefix}{name}.", option)
        if option is not None and not parts:
            yield WorkloadField(f"{prefix}{name}", (task,), info, option, whole)


def _nested_models(annotation: object) -> list[type[Spec]]:
    """Return the pydantic models that a field of this type can hold; `EngineSettings` means every server's settings."""
    if annotation is EngineSettings:
        return [serving_support(name).settings for name in SERVERS]
    kinds = get_args(annotation) if NoneType in get_args(annotation) else (annotation,)
    return [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Spec)]
