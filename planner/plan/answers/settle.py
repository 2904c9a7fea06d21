"""One answer, and what it makes impossible: moved to what is allowed, and named.

The shell refuses what does not go together, since all of it was asked for at once. In a window one thing is asked after
another, and the last answer counts.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, cast, get_args

from pydantic import ValidationError

from planner.errors import SpecError
from planner.plan.answers.draft import DEGREES, OF_ENGINES, OF_STAGES, WORKLOAD, Draft
from planner.plan.catalog import Catalog
from planner.plan.evaluate import evaluate
from planner.plan.plan import Plan
from planner.workload.choices import Attention, Compute, Method
from planner.workload.optimizers import OPTIMIZERS
from planner.workload.software.registry import DEFAULT, servers, serving, trainer, trainers
from planner.workload.software.software import Trainer
from planner.workload.training import formats_for
from planner.workload.workload import Inference, Training

_WAYS: Final[tuple[Compute, ...]] = ("amp-bf16", "bf16", "amp-fp16", "fp16", "fp32")


class Settled(NamedTuple):
    """A plan that can be evaluated, and the fields of its workload that moved along with an answer."""

    plan: Plan
    moved: tuple[str, ...] = ()


def settle(plan: Plan, answer: Mapping[str, object], catalog: Catalog) -> Settled:
    """Return `plan` with the fields in `answer` changed, and with what that makes impossible set to what is allowed.

    Fields of the workload are named as `workload.lora.rank`, those of the plan by their names. A model that cannot be
    trained is run.

    Raises:
        SpecError: If the answer itself is not allowed; what was asked for is never moved.
        PlannerError: If the plan cannot be evaluated.
    """
    try:
        return _settle(plan, answer, catalog)
    except SpecError as error:
        if error.field != "task" or "model" not in answer or not isinstance(plan.workload, Training):
            raise
        held = {name: getattr(plan.workload, name) for name in ("gpus", "other_processes_bytes")}
        settled = _settle(plan.evolve(workload=Inference().evolve(**held), count=plan.count), answer, catalog)
        return settled._replace(moved=("task", *settled.moved))


def _settle(plan: Plan, answer: Mapping[str, object], catalog: Catalog) -> Settled:
    own = {name: value for name, value in answer.items() if not name.startswith(WORKLOAD)}
    asked = {name.removeprefix(WORKLOAD): value for name, value in answer.items() if name.startswith(WORKLOAD)}
    draft = Draft(plan.workload, asked, number_of_cards=own.get("count", plan.count))
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


def _changed(plan: Plan, own: Mapping[str, object], draft: Draft) -> Plan:
    try:
        return plan.evolve(**own, workload=draft.built())
    except ValidationError as error:
        problem = SpecError.from_validation(error)
        place = problem.field if problem.field in Plan.model_fields else f"{WORKLOAD}{problem.field}".removesuffix(".")
        raise SpecError(place, problem.reason, problem.hint) from None


def _method(draft: Draft) -> None:
    """Leave out adapters where there are none, and patterns where adapters are what is trained."""
    if draft.value("method") == "full":
        draft.drop("lora")
    else:
        draft.move("trainable", ())


def _precision(draft: Draft) -> None:
    """Compute quantised weights under autocast, and keep parameters in a format that the arithmetic takes."""
    if draft.value("lora.adapter_dtype") == "bf16" and draft.value("compute") in ("fp16", "amp-fp16"):
        if "lora.adapter_dtype" in draft.asked:
            draft.move("compute", "amp-bf16")
        draft.move("lora.adapter_dtype", "fp32")
    _fp8(draft)
    method, compute = cast("Method", draft.value("method")), cast("Compute", draft.value("compute"))
    profile = _trainer_name(draft)
    quantised = _trainer(draft).quantised_compute
    if method == "qlora" and compute not in quantised:
        draft.move("compute", quantised[1] if "fp16" in compute else quantised[0])
    elif "weights" in draft.asked and draft.value("weights") not in (None, *formats_for(method, compute, profile)):
        ways = (way for way in _WAYS if draft.value("weights") in formats_for(method, way, profile))
        draft.move("compute", next(ways, compute))
    if draft.value("weights") not in (None, *formats_for(method, cast("Compute", draft.value("compute")), profile)):
        draft.move("weights", None)


def _fp8(draft: Draft) -> None:
    """Train whole layers of PyTorch's own in fp8, and in another format what has layers of its own."""
    if draft.value("compute") != "fp8":
        return
    adapts, own_layers = draft.value("method") != "full", "fp8" not in _trainer(draft).compute
    if "compute" not in draft.asked and (adapts or own_layers):
        draft.move("compute", "amp-bf16")
        return
    if adapts:
        draft.move("method", "full")
        draft.drop("lora")
    if own_layers:
        draft.move("profile", DEFAULT)


def _step(draft: Draft) -> None:
    """Step as the optimizer can, and keep every k-th input only where inputs are kept."""
    if draft.value("optimizer_step") not in (None, *_steps(draft.value("optimizer"))):
        draft.open("optimizer_step")
    if draft.value("checkpoint_every") != 1 and draft.value("activation_checkpointing") != "full":
        if "checkpoint_every" in draft.asked:
            draft.move("activation_checkpointing", "full")
        draft.open("checkpoint_every")


def _selective(draft: Draft) -> None:
    """Keep what selective checkpoints can: torchtune's are every k-th layer's, and DoRA's products are too much."""
    if draft.value("activation_checkpointing") != "selective":
        return
    if "activation_checkpointing" in draft.asked:
        draft.move("lora.dora", False)
        draft.move("profile", draft.value("profile") if "selective" in _trainer(draft).checkpointing else DEFAULT)
    elif "selective" not in _trainer(draft).checkpointing or draft.value("lora.dora"):
        draft.move("activation_checkpointing", "full")


def _steps(optimizer: object) -> tuple[str, ...]:
    return next((kind.steps for name, kind in OPTIMIZERS.items() if name == optimizer), ())


def _cards(draft: Draft) -> None:
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
        draft.open(*OF_STAGES)


def _sharing(draft: Draft) -> None:
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
    if offload == "nvme" and offload not in _trainer(draft).offloads:
        draft.move("parallel.offload", "parameters")
    if draft.value("parallel.offload") == "optimizer" and zero == 0:
        draft.move("parallel.offload", "none")


def _number(draft: Draft, name: str) -> int:
    value = draft.value(name)
    return value if isinstance(value, int) else 0


def _most_shared(draft: Draft) -> int:
    own = _trainer(draft)
    return own.zero_limit_in_pipeline if _number(draft, "parallel.pipeline") > 1 else own.zero_limit


def _trainer(draft: Draft) -> Trainer:
    return trainer(_trainer_name(draft))


def _trainer_name(draft: Draft) -> str:
    """Return the program that trains; for a name that none has, which is refused when the plan is made, the default."""
    profile = str(draft.value("profile"))
    return profile if profile in trainers() else DEFAULT


def _attention(draft: Draft) -> None:
    """Attend in a ring, not eagerly, where cards share a sequence; quantise cached values with flash attention only."""
    if draft.value("attention") != "eager":
        return
    shared = _number(draft, "parallel.context") > 1
    quantised = "q" in str(draft.value("kv_cache")) and "eager" not in _quantised_cache_attention(draft)
    if (shared and "parallel.context" in draft.asked) or (quantised and "kv_cache" in draft.asked):
        draft.move("attention", "sdpa")
    if "attention" in draft.asked and shared:
        draft.open("parallel.context")
    if "attention" in draft.asked and quantised:
        draft.open("kv_cache")


def _engine(draft: Draft) -> None:
    """Leave open what belongs to another engine than the one that was chosen."""
    profile = draft.value("profile")
    if "profile" not in draft.asked:
        return
    own = serving(profile) if isinstance(profile, str) and profile in servers() else None
    kept = own.settings.model_fields if own else ()
    draft.open(*(name for name in OF_ENGINES if name.removeprefix("engine.") not in kept))
    if own is None or "gpu_layers" not in own.own_fields:
        draft.open("gpu_layers")
    if own is not None and draft.value("kv_cache") not in own.cache_formats:
        draft.open("kv_cache")


def _quantised_cache_attention(draft: Draft) -> tuple[Attention, ...]:
    """Return the ways to attend that go with a quantised cache in the program of the draft; any where it trains."""
    profile = draft.value("profile")
    if draft.kind is Training or not (profile is None or profile in servers()):
        return get_args(Attention)
    return serving(None if profile is None else str(profile)).quantised_cache_attention


_TRAINING: Final[tuple[Callable[[Draft], None], ...]] = (
    _method,
    _precision,
    _step,
    _selective,
    _cards,
    _sharing,
    _attention,
)
_INFERENCE: Final[tuple[Callable[[Draft], None], ...]] = (_engine, _cards, _attention)
