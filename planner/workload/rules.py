"""What goes together in a workload: each rule with its fields, when it holds, its sentence and its remedies.

Validation refuses by these rules, editing moves what was not asked for until they hold (`planner.plan.answers`), and
forms offer only the answers with which they hold.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, Final

from planner.dtypes import SCHEMES
from planner.errors import SpecError
from planner.models.architecture import Architecture
from planner.workload.choices import Compute, Method, Offload, Task
from planner.workload.formats import BASE_FORMATS, formats_for, is_plain, plain_formats
from planner.workload.optimizers import OPTIMIZERS
from planner.workload.software.registry import (
    DEFAULT,
    SERVERS,
    SOFTWARE,
    serving,
    setting_names,
    setting_owner,
    trainer,
)
from planner.workload.software.settings import EngineSettings
from planner.workload.weight_files import OWN_FIELDS, USUAL_GGUF, default_profile, why_not_run

FieldValue = Any
"""What a field holds, of whichever type that is."""
Read = Callable[[str], FieldValue]
"""What a field holds, by its dotted name; `count` is the number of GPUs, `model` the network."""
Remedy = Mapping[str, Any] | Callable[..., Mapping[str, Any]]
"""What is set so that a rule holds: fields with their new values, or what makes these from the rule's values."""

OPEN: Final = object()
"""Set a field back to its default."""

_BESIDE: Final = ("count", "model")
_SHARED: Final = ("parallel.tensor", "parallel.pipeline", "parallel.context")
_STAGES: Final = {"parallel.interleave": OPEN, "parallel.pipeline_layers": OPEN}
_ALONE: Final = {**dict.fromkeys((*_SHARED, "parallel.expert", "parallel.data"), OPEN), **_STAGES}
_WAYS: Final[tuple[Compute, ...]] = ("amp-bf16", "bf16", "amp-fp16", "fp16", "fp32")
_ALL_SETTINGS: Final = tuple(f"engine.{name}" for name in setting_names())
_SOAP: Final = "SOAP multiplies gradients with fp32 matrices: keep what is trained in fp32"
_PARAMETERS_SHARED: Final = 3
"""The ZeRO stage that shares parameters, too."""
COUNT_HINT: Final = "Change one of them, or the number of cards."


@dataclass(frozen=True, eq=False)
class Rule:
    """What `fields` have to be together: `holds` and `message` take their values in this order.

    `remedies` are tried in their order: the first that moves nothing that was asked for, and after which the rule
    holds. `narrows` are the fields of which forms offer only what goes with the others. `blames` is the field that the
    refusal names, else the first. A rule of one `task` does not concern the other. Editing obeys it after any answer,
    or only after one about a field of `after`, and not after one about `yields_to`.
    """

    fields: tuple[str, ...]
    holds: Callable[..., bool]
    message: Callable[..., str] | str = ""
    hint: Callable[..., str] | str = ""
    blames: str = ""
    task: Task | None = None
    narrows: tuple[str, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    after: tuple[str, ...] = ()
    yields_to: tuple[str, ...] = ()

    def values(self, read: Read) -> tuple[Any, ...]:
        """Return the values of the rule's fields."""
        return tuple(map(read, self.fields))

    def refusal(self, *values: object) -> tuple[str, str, str]:
        """Return the field, the reason and the hint with which `values` are refused."""
        reason, hint = (said if isinstance(said, str) else said(*values) for said in (self.message, self.hint))
        return self.blames or self.fields[0], reason, hint

    def concerns(self, task: str) -> bool:
        """Return whether the rule is about `task`."""
        return self.task in (None, task)


class Rulebook:
    """Rules that are asked of a workload at once, all of `task` where there is one.

    What they say of values is remembered: the same workload is made again and again while numbers are tried.
    """

    def __init__(self, *rules: Rule, task: Task | None = None) -> None:
        self.rules = tuple(replace(rule, task=task) for rule in rules) if task else rules
        outer = dict.fromkeys(name.partition(".")[0] for rule in rules for name in rule.fields)
        self._names = ("task", *(name for name in outer if name not in _BESIDE))
        self._values = attrgetter(*self._names)
        self._refusal = lru_cache(maxsize=4096)(self._first_refusal)

    def obey(self, made: object) -> None:
        """Refuse a model of pydantic that is being made, as its validators do.

        Raises:
            ValueError: If a rule does not hold.
        """
        if refusal := self._refusal(*self._values(made)):
            raise ValueError(refusal[1])

    def refuse(self, workload: object, **beside: object) -> None:
        """Refuse a workload with which a rule does not hold; `beside` are the number of GPUs and the network.

        Raises:
            SpecError: If a rule does not hold, about the field that it blames.
        """
        if refusal := self._refusal(*self._values(workload), **beside):
            raise SpecError(*refusal)

    def _first_refusal(self, *values: object, **beside: object) -> tuple[str, str, str] | None:
        fields = dict(zip(self._names, values, strict=True))
        read = reader(SimpleNamespace(**fields), **beside)
        found = (rule.values(read) for rule in self.rules)
        broken = (
            rule.refusal(*held)
            for rule, held in zip(self.rules, found, strict=True)
            if rule.task in (None, fields["task"]) and not rule.holds(*held)
        )
        return next(broken, None)


def reader(workload: object, **others: object) -> Read:
    """Return what reads the fields of `workload` by their dotted names, and `others` by theirs.

    A field of a part that is not there is none: of adapters, or a setting of another program.
    """

    def read(name: str) -> FieldValue:
        if name in others:
            return others[name]
        outer, _, inner = name.partition(".")
        held = getattr(workload, outer)
        return getattr(held, inner, None) if inner else held

    return read


def is_offered(name: str, value: object, read: Read, task: str) -> bool:
    """Return whether `value` goes with the other fields by the rules that narrow what `name` can be."""

    def changed(other: str) -> FieldValue:
        return value if other == name else read(other)

    narrowing = (rule for rule in RULES if name in rule.narrows and rule.concerns(task))
    return all(rule.holds(*rule.values(changed)) for rule in narrowing)


def _adapts(method: str) -> bool:
    return method != "full"


def _format_message(weights: str, method: Method, compute: Compute, profile: str) -> str:
    if weights not in BASE_FORMATS[method]:
        if method == "full":
            reason = "bitsandbytes cannot train quantised weights themselves; choose the method qlora or lora"
            return f"{SCHEMES[weights].title}: {reason}"
        return f"{method} keeps the network in {' or '.join(BASE_FORMATS[method])}, not in {weights}"
    if not is_plain(weights):
        ways = " or ".join(trainer(profile).quantised_compute)
        return f"{weights} under adapters is not computed in {compute}: choose {ways}"
    allowed = " or ".join(plain_formats(method, compute))
    return f"parameters in {weights} cannot be trained in {compute}; it takes {allowed}"


def _compute_for_format(weights: str, method: Method, compute: Compute, profile: str) -> Mapping[str, Any]:
    return {"compute": next((way for way in _WAYS if weights in formats_for(method, way, profile)), compute)}


def _compute_for_quantised(_method: Method, compute: Compute, profile: str) -> Mapping[str, Any]:
    ways = trainer(profile).quantised_compute
    return {"compute": ways[1] if "fp16" in compute else ways[0]}


def _is_16_bit(weights: str | None, compute: Compute) -> bool:
    return (weights or compute) in ("bf16", "fp16")


def _zero_limit(profile: str, stages: int) -> int:
    own = trainer(profile)
    return min(own.zero_limit, own.zero_limit_in_pipeline) if stages > 1 else own.zero_limit


def _offloads(profile: str, stages: int) -> tuple[Offload, ...]:
    """Return what a program can offload: parameters where replicas share them."""
    found = trainer(profile).offloads
    return found if _zero_limit(profile, stages) == _PARAMETERS_SHARED else found[:2]


def _zero_message(zero: int, profile: str, _stages: int) -> str:
    own, title = trainer(profile), SOFTWARE[profile].title
    if zero > own.zero_limit:
        return f"{title} shares up to ZeRO {own.zero_limit}"
    return f"{title}'s pipelines take ZeRO {own.zero_limit_in_pipeline} at most"


def _given(engine: EngineSettings | Mapping[str, object]) -> tuple[str, ...]:
    """Return the settings that are not left open, also of fields that are still being edited."""
    if isinstance(engine, EngineSettings):
        return engine.given()
    return tuple(name.removeprefix("engine.") for name, value in engine.items() if value is not None)


def _foreign_settings(engine: EngineSettings | Mapping[str, object], profile: str | None) -> tuple[str, ...]:
    own = serving(profile).settings.model_fields if profile else setting_names()
    return tuple(name for name in _given(engine) if name not in own)


def _foreign_message(engine: EngineSettings, profile: str) -> str:
    name = _foreign_settings(engine, profile)[0]
    owner = setting_owner(name)
    return f"{name} is a setting of {owner.title if owner else name}, and the profile is {SOFTWARE[profile].title}"


def _why_files_fail(
    weights: str | None,
    profile: str | None,
    engine: EngineSettings | Mapping[str, object],
    model: Architecture,
    *own: object,
) -> tuple[str, ...]:
    runner = profile or default_profile(_given(engine), own, weights, model)
    return why_not_run(runner, weights, model)


def _product(*sizes: int | None) -> str:
    """Return `data 2 × tensor 4`: the ways to share that `sizes` are of, but those of a single card."""
    named = zip(("data", "tensor", "pipeline", "context"), sizes, strict=True)
    return " × ".join(f"{name} {size:,}" for name, size in named if size is not None and size > 1)


OF_TRAINING: Final = Rulebook(
    Rule(
        ("lora", "method"),
        lambda lora, method: lora is None or _adapts(method),
        "adapters belong to the methods lora and qlora, and the method is full",
        remedies=({"lora": None}, {"method": "lora"}),
    ),
    Rule(
        ("trainable", "method"),
        lambda patterns, method: not (patterns and _adapts(method)),
        lambda _, method: f"{method} trains its adapters only: leave out trainable, or choose the method full",
        remedies=({"trainable": ()}, {"method": "full", "lora": None}),
    ),
    Rule(
        ("compute", "method"),
        lambda compute, method: not (compute == "fp8" and _adapts(method)),
        "fp8 takes the place of linear layers, and so do adapters: choose amp-bf16",
        narrows=("compute",),
        remedies=({"compute": "amp-bf16"}, {"method": "full", "lora": None}),
    ),
    Rule(
        ("compute", "profile"),
        lambda compute, profile: compute in trainer(profile).compute,
        lambda _, profile: (
            f"fp8 is torchao's, and {SOFTWARE[profile].title_for('training')} has linear layers of its own: "
            "choose bf16 or amp-bf16"
        ),
        narrows=("compute",),
        remedies=({"compute": "amp-bf16"}, {"profile": OPEN}),
    ),
    Rule(
        ("method", "compute", "profile"),
        lambda method, compute, profile: method != "qlora" or compute in trainer(profile).quantised_compute,
        lambda _, compute, profile: (
            f"qlora is not computed in {compute} here: choose {' or '.join(trainer(profile).quantised_compute)}"
        ),
        narrows=("compute",),
        remedies=(_compute_for_quantised,),
    ),
    Rule(
        ("weights", "method", "compute", "profile"),
        lambda weights, method, compute, profile: weights in (None, *formats_for(method, compute, profile)),
        _format_message,
        narrows=("weights",),
        remedies=({"weights": None}, _compute_for_format),
    ),
    Rule(
        ("lora.adapter_dtype", "compute"),
        lambda adapters, compute: not (adapters == "bf16" and compute in ("fp16", "amp-fp16")),
        lambda _, compute: f"adapters in bf16 do not go with {compute}; keep them in fp32",
        narrows=("lora.adapter_dtype",),
        remedies=({"lora.adapter_dtype": "fp32"}, {"compute": "amp-bf16"}),
    ),
    Rule(
        ("optimizer_step", "optimizer"),
        lambda step, optimizer: step in (None, *OPTIMIZERS[optimizer].steps),
        lambda step, optimizer: (
            f"{OPTIMIZERS[optimizer].title} has no {step} step; it has {', '.join(OPTIMIZERS[optimizer].steps)}"
        ),
        narrows=("optimizer_step",),
        remedies=({"optimizer_step": None},),
    ),
    Rule(
        ("checkpoint_every", "activation_checkpointing"),
        lambda every, kind: every == 1 or kind == "full",
        "checkpoint_every needs activation_checkpointing full",
        remedies=({"checkpoint_every": 1}, {"activation_checkpointing": "full"}),
    ),
    Rule(
        ("activation_checkpointing", "profile"),
        lambda kind, profile: kind in trainer(profile).checkpointing,
        lambda _, profile: f"{profile}'s selective checkpoints are every k-th layer's: choose full or none",
        narrows=("activation_checkpointing",),
        remedies=({"activation_checkpointing": "full"}, {"profile": OPEN}),
    ),
    Rule(
        ("activation_checkpointing", "lora.dora"),
        lambda kind, dora: not (kind == "selective" and dora),
        "selective checkpoints would keep DoRA's products of weights, too: choose full or none",
        narrows=("activation_checkpointing",),
        remedies=({"activation_checkpointing": "full"}, {"lora.dora": False}),
    ),
    Rule(
        ("optimizer", "method", "weights", "compute"),
        lambda optimizer, method, weights, compute: (
            not OPTIMIZERS[optimizer].fp32_only or _adapts(method) or not _is_16_bit(weights, compute)
        ),
        _SOAP,
        remedies=({"weights": None, "compute": "amp-bf16"}, {"optimizer": OPEN}),
    ),
    Rule(
        ("optimizer", "lora.adapter_dtype"),
        lambda optimizer, adapters: not (OPTIMIZERS[optimizer].fp32_only and adapters == "bf16"),
        _SOAP,
        narrows=("lora.adapter_dtype",),
        remedies=({"lora.adapter_dtype": "fp32"}, {"optimizer": OPEN}),
    ),
    task="training",
)
"""What is refused as soon as a training run is written down."""

OF_INFERENCE: Final = Rulebook(
    Rule(
        ("engine", "profile"),
        lambda engine, profile: not _foreign_settings(engine, profile),
        _foreign_message,
        remedies=(lambda engine, profile: {f"engine.{name}": None for name in _foreign_settings(engine, profile)},),
    ),
    *(
        Rule(
            (name, "profile"),
            lambda value, profile, name=name: value is None or profile is None or name in serving(profile).own_fields,
            lambda _, profile, name=name, title=owner.title: (
                f"{name} is a setting of {title}, and the profile is {SOFTWARE[profile].title}"
            ),
            remedies=({name: None},),
        )
        for owner in SERVERS.values()
        for name in serving(owner.name).own_fields
    ),
    Rule(
        ("kv_cache", "profile"),
        lambda cache, profile: profile is None or cache in serving(profile).cache_formats,
        lambda cache, profile: (
            f"{SOFTWARE[profile].title} has no {cache} cache; it has {', '.join(serving(profile).cache_formats)}"
        ),
        narrows=("kv_cache",),
        remedies=({"kv_cache": OPEN},),
    ),
    Rule(
        ("kv_cache", "attention", "profile"),
        lambda cache, attention, profile: (
            profile is None or "q" not in cache or attention in serving(profile).quantised_cache_attention
        ),
        lambda _cache, _attention, profile: (
            f"{SOFTWARE[profile].title} quantises the cached values only with flash attention"
        ),
        remedies=({"attention": "sdpa"}, {"kv_cache": OPEN}),
    ),
    task="inference",
)
"""What is refused as soon as a run is written down."""

OF_FILES: Final = Rulebook(
    Rule(
        ("weights", "profile", "engine", "model", *OWN_FIELDS),
        lambda *values: not _why_files_fail(*values),
        lambda *values: _why_files_fail(*values)[0],
        hint=lambda *values: _why_files_fail(*values)[1],
        remedies=(
            {"weights": None},
            {"weights": USUAL_GGUF},
            {"profile": None, **dict.fromkeys((*OWN_FIELDS, *_ALL_SETTINGS))},
        ),
    ),
    task="inference",
)
"""What is refused once the model's files are known."""

OF_STAGES: Final = Rulebook(
    Rule(
        ("parallel.pipeline_layers", "parallel.pipeline"),
        lambda layers, stages: not layers or len(layers) == stages,
        lambda layers, stages: f"pipeline_layers names {len(layers):,} stages, and pipeline is {stages:,}",
        remedies=({"parallel.pipeline_layers": ()},),
    ),
    Rule(
        ("parallel.interleave", "parallel.pipeline"),
        lambda groups, stages: groups == 1 or stages > 1,
        "interleave needs a pipeline of at least 2 stages",
        remedies=({"parallel.interleave": 1},),
    ),
    Rule(
        ("parallel.interleave", "parallel.pipeline_layers"),
        lambda groups, layers: groups == 1 or not layers,
        "interleaved stages are even: leave out pipeline_layers",
        remedies=({"parallel.interleave": 1}, {"parallel.pipeline_layers": ()}),
    ),
)
"""What is refused as soon as stages of a pipeline are written down."""

OF_COUNT: Final = Rulebook(
    Rule(
        ("profile", "count"),
        lambda profile, count: count <= (trainer(profile).most_cards or count),
        lambda profile, _: f"{SOFTWARE[profile].title} on several cards is not described",
        hint=f"Choose the profile {DEFAULT}.",
        task="training",
        narrows=("profile",),
        remedies=({"profile": OPEN},),
    ),
    Rule(
        ("parallel.data", *_SHARED, "count"),
        lambda data, *sizes: data is None or prod(sizes[:-1]) > 1 or data == sizes[-1],
        lambda data, *sizes: f"{data:,} replicas need as many cards, not {sizes[-1]:,}",
        hint="Leave it out, or change the number of cards.",
        remedies=({"parallel.data": None},),
    ),
    Rule(
        ("parallel.data", *_SHARED, "count"),
        lambda data, *sizes: data is None or data * prod(sizes[:-1]) == sizes[-1],
        lambda data, *sizes: (
            f"{_product(data, *sizes[:-1])} are {data * prod(sizes[:-1]):,} cards, and there are {sizes[-1]:,}"
        ),
        hint=COUNT_HINT,
        blames="parallel",
        remedies=({"parallel.data": None},),
    ),
    Rule(
        (*_SHARED, "count"),
        lambda *sizes: sizes[-1] % prod(sizes[:-1]) == 0,
        lambda *sizes: (
            f"{'1 card is' if sizes[-1] == 1 else f'{sizes[-1]:,} cards are'} not a multiple of "
            f"{_product(None, *sizes[:-1])}"
        ),
        hint=COUNT_HINT,
        blames="parallel",
        remedies=(_ALONE,),
        yields_to=("count",),
    ),
)
"""What is refused once the number of cards is known."""

OF_REPLICAS: Final = Rulebook(
    Rule(
        ("optimizer", "parallel.zero"),
        lambda optimizer, zero: not (zero and OPTIMIZERS[optimizer].whole_matrices),
        lambda optimizer, _: f"{OPTIMIZERS[optimizer].title} preconditions whole matrices, and ZeRO divides them",
        hint="Set zero to 0, or choose another optimizer.",
        narrows=("parallel.zero",),
        remedies=({"parallel.zero": 0}, {"optimizer": OPEN}),
    ),
    Rule(
        ("optimizer", "profile", "count"),
        lambda optimizer, profile, count: count == 1 or optimizer not in trainer(profile).refused_optimizers,
        lambda optimizer, profile, _: (
            f"{OPTIMIZERS[optimizer].title} preconditions whole matrices, and {SOFTWARE[profile].title} hands an "
            "optimizer flat shares of them"
        ),
        hint=f"Choose another optimizer, or the profile {DEFAULT}.",
        narrows=("profile",),
        remedies=({"optimizer": OPEN}, {"profile": OPEN}),
    ),
    task="training",
)
"""What is refused of training once the number of cards is known."""

OF_SHARING: Final = Rulebook(
    Rule(
        ("parallel.interleave", "parallel.pipeline", "model"),
        lambda groups, stages, model: groups == 1 or stages == 1 or model.depth % (stages * groups) == 0,
        lambda groups, stages, model: f"{model.depth:,} layers cannot be divided into {stages * groups:,} even groups",
        narrows=("parallel.interleave",),
        remedies=({"parallel.interleave": 1},),
    ),
    Rule(
        ("parallel.context", "attention"),
        lambda cards, attention: cards == 1 or attention != "eager",
        "cards that share a sequence attend in a ring with flash attention, not eagerly",
        hint="Choose sdpa or flash.",
        remedies=({"attention": "sdpa"}, {"parallel.context": 1}),
    ),
)
"""What is refused once the network is known, where cards share it or something is offloaded."""

OF_SHARED_TRAINING: Final = Rulebook(
    Rule(
        ("parallel.offload", "parallel.zero"),
        lambda offload, zero: offload != "optimizer" or zero > 0,
        "optimizer states are offloaded by ZeRO",
        hint="Set zero to 1, 2 or 3.",
        remedies=({"parallel.offload": "none"}, {"parallel.zero": 2}),
    ),
    Rule(
        ("parallel.offload", "parallel.zero"),
        lambda offload, zero: offload not in ("parameters", "nvme") or zero == _PARAMETERS_SHARED,
        "parameters are offloaded by ZeRO-3 and FSDP",
        hint="Set zero to 3.",
        remedies=(
            lambda _, zero: {"parallel.offload": "optimizer" if zero else "none"},
            {"parallel.zero": _PARAMETERS_SHARED},
        ),
    ),
    Rule(
        ("parallel.zero", "profile", "parallel.pipeline"),
        lambda zero, profile, stages: zero <= _zero_limit(profile, stages),
        _zero_message,
        hint="Set zero lower.",
        narrows=("parallel.zero",),
        remedies=(lambda _, profile, stages: {"parallel.zero": _zero_limit(profile, stages)},),
    ),
    Rule(
        ("parallel.offload", "profile", "parallel.pipeline"),
        lambda offload, profile, stages: offload in _offloads(profile, stages),
        lambda _, profile, stages: f"{SOFTWARE[profile].title} offloads {' or '.join(_offloads(profile, stages)[1:])}",
        hint="Choose another.",
        narrows=("parallel.offload",),
        remedies=({"parallel.offload": "parameters"}, {"parallel.offload": "optimizer"}),
    ),
    task="training",
)
"""What is refused of training then, too."""

OF_SHARED_INFERENCE: Final = Rulebook(
    Rule(
        ("parallel.zero",),
        lambda zero: zero == 0,
        "ZeRO shares what training keeps",
        hint="Share layers: pipeline or tensor.",
        narrows=("parallel.zero",),
        remedies=({"parallel.zero": 0},),
    ),
    Rule(
        ("parallel.offload",),
        lambda offload: offload in ("none", "parameters"),
        lambda offload: f"answering has no {offload} to offload",
        hint="Try parameters.",
        narrows=("parallel.offload",),
        remedies=({"parallel.offload": "none"},),
    ),
    Rule(
        ("parallel.offload", "profile"),
        lambda offload, profile: offload in serving(profile).offloads,
        lambda _, profile: f"{profile} has a way of its own",
        hint="llama.cpp takes gpu_layers.",
        narrows=("parallel.offload",),
        remedies=({"parallel.offload": "none"},),
    ),
    Rule(
        ("parallel.sequence",),
        lambda sequence: not sequence,
        "norms share their tokens in training only",
        narrows=("parallel.sequence",),
        remedies=({"parallel.sequence": False},),
    ),
    task="inference",
)
"""What is refused of inference then, too."""

OF_FORMS: Final = Rulebook(
    Rule(
        (*_SHARED, "parallel.expert", "count"),
        lambda *sizes: sizes[-1] > 1 or prod(sizes[:-1]) == 1,
        remedies=(_ALONE,),
    ),
    Rule(
        ("parallel.zero", "parallel.offload", "count"),
        lambda zero, offload, count: zero == 0 or count > 1 or offload != "none",
        remedies=({"parallel.zero": 0},),
    ),
    Rule(
        ("profile", "engine", *OWN_FIELDS),
        lambda profile, engine, *own: profile is not None or (not _given(engine) and set(own) <= {None}),
        task="inference",
        remedies=(dict.fromkeys((*OWN_FIELDS, *_ALL_SETTINGS)),),
        after=("profile",),
    ),
    Rule(
        ("parallel.sequence", "parallel.tensor"),
        lambda sequence, tensor: not sequence or tensor > 1,
        remedies=({"parallel.sequence": False},),
    ),
)
"""What nobody refuses, and editing takes back: what a form would not show, or would lead away from the answer."""

_BOOKS: Final = (
    OF_FORMS,
    OF_TRAINING,
    OF_INFERENCE,
    OF_FILES,
    OF_STAGES,
    OF_COUNT,
    OF_REPLICAS,
    OF_SHARING,
    OF_SHARED_TRAINING,
    OF_SHARED_INFERENCE,
)
RULES: Final = tuple(rule for book in _BOOKS for rule in book.rules)
"""Every rule, in the order in which editing obeys them."""
