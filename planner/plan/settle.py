"""One answer, and what it makes impossible: moved to what is allowed, and named.

The shell refuses what does not go together, since all of it was asked for at once. In a window one thing is asked after
another, and the last answer counts.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, cast

from pydantic import ValidationError

from planner.base import Spec
from planner.errors import SpecError
from planner.plan.catalog import Catalog
from planner.plan.evaluate import evaluate
from planner.plan.plan import Plan
from planner.workload.engines import CACHE_FORMATS, SETTINGS
from planner.workload.optimizers import OPTIMIZERS
from planner.workload.training import Compute, Lora, Method, TrainingProfile, formats_for, quantised_compute
from planner.workload.workload import Inference, Training, Workload

WORKLOAD: Final = "workload."
DEGREES: Final = ("parallel.tensor", "parallel.pipeline", "parallel.context", "parallel.expert")
_OF_STAGES: Final = ("parallel.interleave", "parallel.pipeline_layers")
_WAYS: Final[tuple[Compute, ...]] = ("amp-bf16", "bf16", "amp-fp16", "fp16", "fp32")
_USUAL_GGUF: Final = "Q4_K_M"
_ENGINE: Final = tuple(f"engine.{name}" for names in SETTINGS.values() for name in names)


class Settled(NamedTuple):
    """A plan that can be evaluated, and the fields of its workload that moved along with an answer."""

    plan: Plan
    moved: tuple[str, ...] = ()


def settle(plan: Plan, answer: Mapping[str, object], catalog: Catalog) -> Settled:
    """Return `plan` with the fields in `answer` changed, and with what that makes impossible set to what is allowed.

    Fields of the workload are named as `workload.lora.rank`, those of the plan by their names.

    Raises:
        SpecError: If the answer itself is not allowed; what was asked for is never moved.
        PlannerError: If the plan cannot be evaluated.
    """
    own = {name: value for name, value in answer.items() if not name.startswith(WORKLOAD)}
    asked = {name.removeprefix(WORKLOAD): value for name, value in answer.items() if name.startswith(WORKLOAD)}
    draft = _Draft(plan.workload, asked, number_of_cards=own.get("count", plan.count))
    if plan.workload.gpus and own.keys() & {"gpu", "count"} and "gpus" not in asked:
        draft.move("gpus", ())
        own = {"gpu": plan.workload.gpus[0].id, "count": plan.count} | own
    for rule in _TRAINING if isinstance(plan.workload, Training) else _INFERENCE:
        rule(draft)
    while True:
        changed = _changed(plan, own, draft)
        try:
            evaluate(changed, catalog)
        except SpecError as error:
            # Each time another field goes back to its default, until none is left that could.
            draft.give_way(error, counted="count" in own)
        else:
            return Settled(changed, draft.moved)


class _Draft:
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
            self.open(*DEGREES, *_OF_STAGES, "parallel.data")
        elif name == "weights" and name in self.asked and "profile" not in self.asked and self._names_engine():
            self.open("profile", "gpu_layers", *_ENGINE)
        elif name == "weights" and self.asked.get("profile") == "llama.cpp" and self.value(name) is None:
            self.move(name, _USUAL_GGUF)
        elif name not in self.asked and self.value(name) != _default(self, name):
            self.open(name)
        else:
            raise error

    def _names_engine(self) -> bool:
        return any(self.value(name) is not None for name in ("profile", "gpu_layers", *_ENGINE))

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


def _default(draft: _Draft, name: str) -> object:
    outer, _, inner = name.partition(".")
    held = Lora() if outer == "lora" else getattr(_FRESH[draft.kind], outer, None)
    return getattr(held, inner, None) if inner else held


def _changed(plan: Plan, own: Mapping[str, object], draft: _Draft) -> Plan:
    try:
        return plan.evolve(**own, workload=draft.built())
    except ValidationError as error:
        problem = SpecError.from_validation(error)
        place = problem.field if problem.field in Plan.model_fields else f"{WORKLOAD}{problem.field}"
        raise SpecError(place, problem.reason, problem.hint) from None


def _method(draft: _Draft) -> None:
    """Leave out adapters where there are none, and patterns where adapters are what is trained."""
    if draft.value("method") == "full":
        draft.drop("lora")
    else:
        draft.move("trainable", ())


def _precision(draft: _Draft) -> None:
    """Compute quantised weights under autocast, and keep parameters in a format that the arithmetic takes."""
    if draft.value("lora.adapter_dtype") == "bf16" and draft.value("compute") in ("fp16", "amp-fp16"):
        if "lora.adapter_dtype" in draft.asked:
            draft.move("compute", "amp-bf16")
        draft.move("lora.adapter_dtype", "fp32")
    method, compute = cast("Method", draft.value("method")), cast("Compute", draft.value("compute"))
    profile = cast("TrainingProfile", draft.value("profile"))
    quantised = quantised_compute(profile)
    if method == "qlora" and compute not in quantised:
        draft.move("compute", quantised[1] if "fp16" in compute else quantised[0])
    elif "weights" in draft.asked and draft.value("weights") not in (None, *formats_for(method, compute, profile)):
        ways = (way for way in _WAYS if draft.value("weights") in formats_for(method, way, profile))
        draft.move("compute", next(ways, compute))
    if draft.value("weights") not in (None, *formats_for(method, cast("Compute", draft.value("compute")), profile)):
        draft.move("weights", None)


def _step(draft: _Draft) -> None:
    """Step as the optimizer can, and keep every k-th input only where inputs are kept."""
    if draft.value("optimizer_step") not in (None, *_steps(draft.value("optimizer"))):
        draft.open("optimizer_step")
    if draft.value("checkpoint_every") != 1 and draft.value("activation_checkpointing") != "full":
        if "checkpoint_every" in draft.asked:
            draft.move("activation_checkpointing", "full")
        draft.open("checkpoint_every")


def _selective(draft: _Draft) -> None:
    """Keep what selective checkpoints can: torchtune's are every k-th layer's, and DoRA's products are too much."""
    if draft.value("activation_checkpointing") != "selective":
        return
    if "activation_checkpointing" in draft.asked:
        draft.move("lora.dora", False)
        draft.move("profile", "hf" if draft.value("profile") == "torchtune" else draft.value("profile"))
    elif draft.value("profile") == "torchtune" or draft.value("lora.dora"):
        draft.move("activation_checkpointing", "full")


def _steps(optimizer: object) -> tuple[str, ...]:
    return next((kind.steps for name, kind in OPTIMIZERS.items() if name == optimizer), ())


def _cards(draft: _Draft) -> None:
    """Share nothing on one card, leave the replicas to what divides them, and stages to a pipeline."""
    if draft.number_of_cards == 1:
        draft.open(*DEGREES, "parallel.data")
        if draft.value("parallel.offload") == "none":
            draft.open("parallel.zero")
    if "parallel.data" not in draft.asked:
        draft.open("parallel.data")
    if draft.value("parallel.tensor") == 1:
        draft.open("parallel.sequence")
    stages = draft.value("parallel.pipeline_layers")
    if stages and "parallel.pipeline_layers" in draft.asked:
        draft.open("parallel.interleave")
    elif stages and ("parallel.pipeline" in draft.asked or "parallel.interleave" in draft.asked):
        draft.open("parallel.pipeline_layers")
    if draft.value("parallel.pipeline") == 1:
        draft.open(*_OF_STAGES)


def _sharing(draft: _Draft) -> None:
    """Share and offload what the trainer of the profile can."""
    offload = draft.value("parallel.offload")
    if "parallel.offload" in draft.asked and offload != "none":
        draft.move("parallel.zero", max(2, _number(draft, "parallel.zero")) if offload == "optimizer" else 3)
    most = _most_shared(draft)
    if _number(draft, "parallel.zero") > most:
        draft.move("parallel.zero", most)
    zero = _number(draft, "parallel.zero")
    if offload in ("parameters", "nvme") and zero < 3:
        draft.move("parallel.offload", "optimizer" if zero else "none")
    if offload == "nvme" and draft.value("profile") == "torchtune":
        draft.move("parallel.offload", "parameters")
    if draft.value("parallel.offload") == "optimizer" and zero == 0:
        draft.move("parallel.offload", "none")


def _number(draft: _Draft, name: str) -> int:
    value = draft.value(name)
    return value if isinstance(value, int) else 0


def _most_shared(draft: _Draft) -> int:
    staged = _number(draft, "parallel.pipeline") > 1
    if draft.value("profile") == "megatron" or (draft.value("profile") == "deepspeed" and staged):
        return 1
    return 3


def _attention(draft: _Draft) -> None:
    """Attend in a ring, not eagerly, where cards share a sequence; quantise cached values with flash attention only."""
    if draft.value("attention") != "eager":
        return
    shared = _number(draft, "parallel.context") > 1
    quantised = draft.value("profile") == "llama.cpp" and "q" in str(draft.value("kv_cache"))
    if (shared and "parallel.context" in draft.asked) or (quantised and "kv_cache" in draft.asked):
        draft.move("attention", "sdpa")
    if "attention" in draft.asked and shared:
        draft.open("parallel.context")
    if "attention" in draft.asked and quantised:
        draft.open("kv_cache")


def _engine(draft: _Draft) -> None:
    """Leave open what belongs to another engine than the one that was chosen."""
    profile = draft.value("profile")
    if "profile" not in draft.asked:
        return
    kept = next((names for name, names in SETTINGS.items() if name == profile), ())
    draft.open(*(name for name in _ENGINE if name.removeprefix("engine.") not in kept))
    if profile != "llama.cpp":
        draft.open("gpu_layers")
    caches = next((formats for name, formats in CACHE_FORMATS.items() if name == profile), None)
    if caches is not None and draft.value("kv_cache") not in caches:
        draft.open("kv_cache")


_FRESH: Final[dict[type[Training] | type[Inference], Workload]] = {Training: Training(), Inference: Inference()}
_TRAINING: Final[tuple[Callable[[_Draft], None], ...]] = (
    _method,
    _precision,
    _step,
    _selective,
    _cards,
    _sharing,
    _attention,
)
_INFERENCE: Final[tuple[Callable[[_Draft], None], ...]] = (_engine, _cards, _attention)
