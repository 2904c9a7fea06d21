"""The plan: the document that all tabs, the command line and the Python API read and write."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import Field, GetJsonSchemaHandler, PlainValidator, TypeAdapter, field_validator, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from planner.base import Spec
from planner.cost.terms import CostTerms
from planner.memory.corrections import Correction
from planner.models.architecture import Architecture
from planner.performance.setting import TimeSetting
from planner.validation import HintedError
from planner.workload.parallel import MOST_CARDS
from planner.workload.workload import Inference, Workload

if TYPE_CHECKING:
    from planner.trace.recording import TracedFacts

SCHEMA_VERSION: Final = 2


class _FactsOfTrace:
    """Validation and JSON schema of the facts of a trace, whose many classes few plans have: they are imported late."""

    @staticmethod
    def validate(value: object) -> "TracedFacts | None":
        from planner.trace.recording import TracedFacts

        return None if value is None else TracedFacts.model_validate(value)

    @staticmethod
    def __get_pydantic_json_schema__(_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        from planner.trace.recording import TracedFacts

        return {"anyOf": [handler(TypeAdapter(TracedFacts).core_schema), {"type": "null"}]}


if TYPE_CHECKING:
    Trace = TracedFacts | None
else:
    Trace = Annotated[Any, PlainValidator(_FactsOfTrace.validate), _FactsOfTrace]


class ModelChoice(Spec):
    """The model of a plan: a catalog id, or the user's own architecture or trace, stored in the plan."""

    id: str = Field(min_length=1, description="catalog id, or the name of the user's own model")
    architecture: Architecture | None = Field(
        default=None, description="architecture of a model that is not in the catalog"
    )
    trace: Trace = Field(default=None, description="facts from tracing the user's own module")
    path: str | None = Field(default=None, description="file or Hugging Face name that the model was read from")

    @classmethod
    def of_file(cls, name: str, architecture: Architecture, path: Path | str) -> Self:
        """Return the choice of a model from `path`, a file or a model name on the Hugging Face Hub.

        Bytes in a path that are not valid text become question marks.
        """
        return cls(id=_readable_text(name), architecture=architecture, path=_readable_text(str(path)))

    @classmethod
    def of_trace(cls, facts: "TracedFacts") -> Self:
        """Return the choice of a traced module, named after its file without folders."""
        target = facts.request.target
        path = _readable_text(target.place) if target.kind == "file" else None
        return cls(id=_readable_text(target.short_title), trace=facts, path=path)

    @model_validator(mode="after")
    def _check_single_source(self) -> Self:
        """Reject a model with both an architecture and a trace."""
        if self.architecture is not None and self.trace is not None:
            raise ValueError("a model has an architecture or a trace, not both")
        return self


class Plan(Spec):
    """A model, its workload, and the GPUs to run it on."""

    schema_version: Literal[2] = SCHEMA_VERSION
    model: ModelChoice
    workload: Workload = Inference.model_construct()
    gpu: str | None = Field(default=None, description="catalog id of the GPU")
    count: int = Field(
        default_factory=lambda known: _named_card_count(known.get("workload")) or 1,
        ge=1,
        le=MOST_CARDS,
        validate_default=True,
        description="total number of GPUs, of all kinds together",
    )
    corrections: tuple[Correction, ...] = Field(
        default=(), description="corrections of the memory estimate, derived from the user's own logs"
    )
    timing: TimeSetting = Field(
        default=TimeSetting.model_construct(),
        description="settings of the time estimate: interconnects, input pipeline and a measured speed",
    )
    cost: CostTerms = Field(
        default=CostTerms.model_construct(),
        description="settings of the cost estimate: the job, and terms of renting and owning",
    )

    def with_parts(self, **parts: object) -> "Plan":
        """Return a copy with other values of fields, each valid by itself; only what goes together is checked.

        The result is that of `evolve`. A plan of a file needs the validator of all its parts, which takes as long to
        build as an estimate; a plan that the program puts together does not.

        Raises:
            SpecError: If the number of GPUs is out of range, or not that of the workload's GPUs.
        """
        fields = {name: getattr(self, name) for name in self.model_fields_set}
        plan = Plan.model_construct(**{**fields, **parts})
        if 1 <= plan.count <= MOST_CARDS and _named_card_count(plan.workload) in (0, plan.count):
            return plan
        return self.evolve(**parts)

    @field_validator("model", mode="before")
    @classmethod
    def _explain_a_text(cls, model: object) -> object:
        if isinstance(model, str):
            hint = f'In Python: ModelChoice(id="{model}"); in a file: {{"id": "{model}"}}.'
            raise HintedError(f"{model[:80]!r} is a name, not a model", hint)
        return model

    @model_validator(mode="before")
    @classmethod
    def _upgrade(cls, fields: object) -> object:
        """Read a file of schema 1, in which several GPUs without degrees of parallelism were replicas."""
        if not (isinstance(fields, Mapping) and fields.get("schema_version") == 1):
            return fields
        return {**fields, "schema_version": SCHEMA_VERSION, "workload": _as_replicas(fields)}

    @model_validator(mode="after")
    def _check_card_count(self) -> Self:
        """Reject a GPU count that differs from the total of the unequal GPUs."""
        named = _named_card_count(self.workload)
        if named and named != self.count:
            raise ValueError(f"count is {self.count:,}, but workload.gpus names {named:,} GPUs")
        return self


def _as_replicas(fields: Mapping[str, object]) -> object:
    """Return the workload in the fields of a plan of schema 1, with several GPUs as replicas unless it shares them."""
    workload = fields.get("workload", {"task": "inference"})
    if fields.get("count", 1) == 1 and not (isinstance(workload, Mapping) and workload.get("gpus")):
        return workload
    parallel = workload.get("parallel", {}) if isinstance(workload, Mapping) else None
    if not isinstance(workload, Mapping) or not isinstance(parallel, Mapping):
        return workload  # not of a file, or not valid
    return {**workload, "parallel": {"sharing": "manual", **parallel}}


def _named_card_count(workload: Workload | None) -> int:
    """Return the total number of GPUs of several kinds that a workload names, 0 if it names none."""
    return sum(kind.count for kind in workload.gpus) if workload else 0


def _readable_text(text: str) -> str:
    """Return `text` with undecodable bytes replaced by question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")
