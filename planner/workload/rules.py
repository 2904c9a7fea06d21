"""What goes together in a workload: each rule with its fields, when it holds, its sentence and its remedies.

Validation refuses by these rules, editing moves what was not asked for until they hold (`planner.plan.answers`), and
forms offer only the answers with which they hold.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Any, Final, Literal

from planner.errors import SpecError
from planner.models.architecture import Architecture
from planner.workload.formats import BASE_FORMATS, WAYS, computed_formats, formats_for, quantised_compute, title_of
from planner.workload.optimizers import OPTIMIZERS

Read = Callable[[str], Any]
"""What a field holds, by its dotted name; `count` is the number of GPUs, `model` the network."""
Remedy = Mapping[str, Any]
"""The fields that are set so that a rule holds, to a value or to what a function makes of the rule's values."""

OPEN: Final = object()
"""Set a field back to its default."""

_SHARED: Final = ("parallel.tensor", "parallel.pipeline", "parallel.context")
_STAGES: Final = {"parallel.interleave": OPEN, "parallel.pipeline_layers": OPEN}
_ALONE: Final = {**dict.fromkeys((*_SHARED, "parallel.expert", "parallel.data"), OPEN), **_STAGES}
_COUNT_HINT: Final = "Change one of them, or the number of cards."


@dataclass(frozen=True, eq=False)
class Rule:
    """What `fields` have to be together: `holds`, `message` and `hint` take their values in this order.

    `remedies` are tried in their order: the first that moves nothing that was asked for, and after which the rule
    holds. `narrows` are the fields of which forms offer only what goes with the others. `blames` is the field that the
    refusal names, none where several do not go together. A rule of one `task` does not concern the other. After an
    answer about one of `yields_to` nothing is moved.
    """

    fields: tuple[str, ...]
    holds: Callable[..., bool]
    message: Callable[..., str] = field(default=lambda *_: "")
    hint: Callable[..., str] = field(default=lambda *_: "")
    blames: str = ""
    task: Literal["training", "inference"] | None = None
    narrows: tuple[str, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    yields_to: tuple[str, ...] = ()

    @cached_property
    def reads_adapters(self) -> bool:
        """Return whether the rule is about adapters, and means nothing without them."""
        return any(name.startswith("lora.") for name in self.fields)

    def values(self, read: Read) -> tuple[Any, ...]:
        """Return the values of the rule's fields."""
        return tuple(map(read, self.fields))

    def concerns(self, task: str) -> bool:
        """Return whether the rule is about `task`."""
        return self.task is None or self.task == task


def refuse(rules: Iterable[Rule], read: Read, task: str, *, adapters: bool = True) -> None:
    """Refuse a workload with which one of `rules` does not hold; those about adapters need some.

    Raises:
        SpecError: If a rule does not hold, about the field that it blames.
    """
    for rule in rules:
        if rule.concerns(task) and (adapters or not rule.reads_adapters):
            values = rule.values(read)
            if not rule.holds(*values):
                raise SpecError(rule.blames, rule.message(*values), rule.hint(*values))


def reader(workload: object, **others: object) -> Read:
    """Return what reads the fields of `workload` by their dotted names, and `others` by theirs."""

    def read(name: str) -> Any:
        return others[name] if name in others else _getter(name)(workload)

    return read


@lru_cache(maxsize=256)
def _getter(name: str) -> Callable[[object], Any]:
    return attrgetter(name)


def is_offered(name: str, value: object, read: Read, task: str, *, adapters: bool) -> bool:
    """Return whether `value` goes with the other fields by the rules that narrow what `name` can be."""

    def changed(other: str) -> Any:
        return value if other == name else read(other)

    return all(
        rule.holds(*rule.values(changed))
        for rule in RULES
        if name in rule.narrows and rule.concerns(task) and (adapters or not rule.reads_adapters)
    )


def _adapts(method: str) -> bool:
    return method != "full"


def _format_message(weights: str, method: str, compute: str, software: str) -> str:
    if weights not in BASE_FORMATS[method]:
        if method == "full":
            reason = "bitsandbytes cannot train quantised weights themselves; choose the method qlora or lora"
            return f"{title_of(weights)}: {reason}"
        return f"{method} keeps the network in {' or '.join(BASE_FORMATS[method])}, not in {weights}"
    allowed = computed_formats(weights, method, compute)
    if allowed is None:
        ways = " or ".join(quantised_compute(software))
        return f"{weights} under adapters is not computed in {compute}: choose {ways}"
    return f"parameters in {weights} cannot be trained in {compute}; it takes {' or '.join(allowed)}"


def _compute_for_format(weights: str, method: str, compute: str, software: str) -> str:
    ways = (way for way in WAYS if weights in formats_for(method, way, software))
    return next(ways, compute)


def _compute_for_quantised(_method: str, compute: str, software: str) -> str:
    ways = quantised_compute(software)
    return ways[1] if "fp16" in compute else ways[0]


def _is_16_bit(weights: str | None, compute: str) -> bool:
    return (weights or compute) in ("bf16", "fp16")


OF_TRAINING: Final = (
    Rule(
        ("lora", "method"),
        lambda lora, method: lora is None or _adapts(method),
        lambda *_: "adapters belong to the methods lora and qlora, and the method is full",
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
        lambda *_: "fp8 takes the place of linear layers, and so do adapters: choose amp-bf16",
        narrows=("compute",),
        remedies=({"compute": "amp-bf16"}, {"method": "full", "lora": None}),
    ),
    Rule(
        ("compute", "profile"),
        lambda compute, profile: compute != "fp8" or software(profile).takes_fp8,
        lambda _, profile: (
            f"fp8 is torchao's, and {software(profile).title} has linear layers of its own: choose bf16 or amp-bf16"
        ),
        narrows=("compute",),
        remedies=({"compute": "amp-bf16"}, {"profile": OPEN}),
    ),
    Rule(
        ("method", "compute", "profile"),
        lambda method, compute, profile: method != "qlora" or compute in quantised_compute(profile),
        lambda _, compute, profile: (
            f"qlora is not computed in {compute} here: choose {' or '.join(quantised_compute(profile))}"
        ),
        narrows=("compute",),
        remedies=({"compute": _compute_for_quantised},),
    ),
    Rule(
        ("weights", "method", "compute", "profile"),
        lambda weights, method, compute, profile: weights in (None, *formats_for(method, compute, profile)),
        _format_message,
        narrows=("weights",),
        remedies=({"weights": None}, {"compute": _compute_for_format}),
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
        lambda *_: "checkpoint_every needs activation_checkpointing full",
        remedies=({"checkpoint_every": 1}, {"activation_checkpointing": "full"}),
    ),
    Rule(
        ("activation_checkpointing", "profile"),
        lambda kind, profile: kind in software(profile).checkpointing,
        lambda _, profile: (
            f"{software(profile).title}'s selective checkpoints are every k-th layer's: choose full or none"
        ),
        narrows=("activation_checkpointing",),
        remedies=({"activation_checkpointing": "full"}, {"profile": OPEN}),
    ),
    Rule(
        ("activation_checkpointing", "lora.dora"),
        lambda kind, dora: not (kind == "selective" and dora),
        lambda *_: "selective checkpoints would keep DoRA's products of weights, too: choose full or none",
        narrows=("activation_checkpointing",),
        remedies=({"activation_checkpointing": "full"}, {"lora.dora": False}),
    ),
    Rule(
        ("optimizer", "method", "weights", "compute"),
        lambda optimizer, method, weights, compute: (
            optimizer != "soap" or _adapts(method) or not _is_16_bit(weights, compute)
        ),
        lambda *_: _SOAP,
        remedies=({"weights": None, "compute": "amp-bf16"}, {"optimizer": OPEN}),
    ),
    Rule(
        ("optimizer", "lora.adapter_dtype"),
        lambda optimizer, adapters: not (optimizer == "soap" and adapters == "bf16"),
        lambda *_: _SOAP,
        narrows=("lora.adapter_dtype",),
        remedies=({"lora.adapter_dtype": "fp32"}, {"optimizer": OPEN}),
    ),
)
"""What is refused as soon as a training run is written down."""

OF_STAGES: Final = (
    Rule(
        ("parallel.pipeline_layers", "parallel.pipeline"),
        lambda layers, stages: not layers or len(layers) == stages,
        lambda layers, stages: f"pipeline_layers names {len(layers):,} stages, and pipeline is {stages:,}",
        remedies=({"parallel.pipeline_layers": ()},),
    ),
    Rule(
        ("parallel.interleave", "parallel.pipeline"),
        lambda groups, stages: groups == 1 or stages > 1,
        lambda *_: "interleave needs a pipeline of at least 2 stages",
        remedies=({"parallel.interleave": 1},),
    ),
    Rule(
        ("parallel.interleave", "parallel.pipeline_layers"),
        lambda groups, layers: groups == 1 or not layers,
        lambda *_: "interleaved stages are even: leave out pipeline_layers",
        remedies=({"parallel.interleave": 1}, {"parallel.pipeline_layers": ()}),
    ),
)
"""What is refused as soon as stages of a pipeline are written down."""

OF_COUNT: Final = (
    Rule(
        ("profile", "count"),
        lambda profile, count: count == 1 or software(profile).most_cards is None,
        lambda profile, _: f"{software(profile).title} on several cards is not described",
        lambda *_: "Choose the profile hf.",
        blames="profile",
        task="training",
        narrows=("profile",),
        remedies=({"profile": OPEN},),
    ),
    Rule(
        ("parallel.data", *_SHARED, "count"),
        lambda data, *sizes: data is None or prod(sizes[:-1]) > 1 or data == sizes[-1],
        lambda data, *sizes: f"{data:,} replicas need as many cards, not {sizes[-1]:,}",
        lambda *_: "Leave it out, or change the number of cards.",
        blames="parallel.data",
        remedies=({"parallel.data": None},),
    ),
    Rule(
        ("parallel.data", *_SHARED, "count"),
        lambda data, *sizes: data is None or data * prod(sizes[:-1]) == sizes[-1],
        lambda data, *sizes: (
            f"{_product(data, *sizes[:-1])} are {data * prod(sizes[:-1]):,} cards, and there are {sizes[-1]:,}"
        ),
        lambda *_: _COUNT_HINT,
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
        lambda *_: _COUNT_HINT,
        blames="parallel",
        remedies=(_ALONE,),
        yields_to=("count",),
    ),
)
"""What is refused once the number of cards is known."""

OF_SHARING: Final = (
    Rule(
        ("parallel.interleave", "parallel.pipeline", "model"),
        lambda groups, stages, model: groups == 1 or model.depth % (stages * groups) == 0,
        lambda groups, stages, model: (
            f"{model.depth:,} layers cannot be divided into {stages * groups:,} even groups"
        ),
        blames="parallel.interleave",
        narrows=("parallel.interleave",),
        remedies=({"parallel.interleave": 1},),
    ),
    Rule(
        ("parallel.context", "attention"),
        lambda cards, attention: cards == 1 or attention != "eager",
        lambda *_: "cards that share a sequence attend in a ring with flash attention, not eagerly",
        lambda *_: "Choose sdpa or flash.",
        blames="parallel.context",
        remedies=({"attention": "sdpa"}, {"parallel.context": 1}),
    ),
    Rule(
        ("parallel.offload", "parallel.zero"),
        lambda offload, zero: offload != "optimizer" or zero > 0,
        lambda *_: "optimizer states are offloaded by ZeRO",
        lambda *_: "Set zero to 1, 2 or 3.",
        blames="parallel.offload",
        task="training",
        remedies=({"parallel.offload": "none"}, {"parallel.zero": 2}),
    ),
    Rule(
        ("parallel.offload", "parallel.zero"),
        lambda offload, zero: offload not in ("parameters", "nvme") or zero == 3,
        lambda *_: "parameters are offloaded by ZeRO-3 and FSDP",
        lambda *_: "Set zero to 3.",
        blames="parallel.offload",
        task="training",
        remedies=(
            {"parallel.offload": lambda _, zero: "optimizer" if zero else "none"},
            {"parallel.zero": 3},
        ),
    ),
    Rule(
        ("parallel.offload", "profile"),
        lambda offload, profile: offload != "nvme" or software(profile).offloads_to_disk,
        lambda *_: "FSDP offloads to RAM only",
        lambda *_: "Choose parameters.",
        blames="parallel.offload",
        task="training",
        narrows=("parallel.offload",),
        remedies=({"parallel.offload": "parameters"},),
    ),
    Rule(
        ("parallel.zero", "profile", "parallel.pipeline"),
        lambda zero, profile, stages: zero <= _most_shared(profile, stages),
        _zero_message,
        _zero_hint,
        blames="parallel.zero",
        task="training",
        narrows=("parallel.zero",),
        remedies=({"parallel.zero": lambda _, profile, stages: _most_shared(profile, stages)},),
    ),
    Rule(
        ("parallel.offload", "profile", "parallel.pipeline"),
        lambda offload, profile, stages: offload in ("none", "optimizer") or _most_shared(profile, stages) == 3,
        lambda *_: "parameters are offloaded by ZeRO-3 and FSDP",
        blames="parallel.offload",
        task="training",
        narrows=("parallel.offload",),
        remedies=({"parallel.offload": "optimizer"},),
    ),
    Rule(
        ("parallel.zero",),
        lambda zero: zero == 0,
        lambda *_: "ZeRO shares what training keeps",
        lambda *_: "Share layers: pipeline or tensor.",
        blames="parallel.zero",
        task="inference",
        narrows=("parallel.zero",),
        remedies=({"parallel.zero": 0},),
    ),
    Rule(
        ("parallel.offload",),
        lambda offload: offload in ("none", "parameters"),
        lambda offload: f"answering has no {offload} to offload",
        lambda *_: "Try parameters.",
        blames="parallel.offload",
        task="inference",
        narrows=("parallel.offload",),
        remedies=({"parallel.offload": "none"},),
    ),
    Rule(
        ("parallel.offload", "profile"),
        lambda offload, profile: offload != "parameters" or profile is None or software(profile).offloads_weights,
        lambda _, profile: f"{profile} has a way of its own",
        lambda *_: "llama.cpp takes gpu_layers.",
        blames="parallel.offload",
        task="inference",
        narrows=("parallel.offload",),
        remedies=({"parallel.offload": "none"},),
    ),
    Rule(
        ("parallel.sequence",),
        lambda sequence: not sequence,
        lambda *_: "norms share their tokens in training only",
        blames="parallel.sequence",
        task="inference",
        narrows=("parallel.sequence",),
        remedies=({"parallel.sequence": False},),
    ),
)
"""What is refused once the network is known, where cards share it or something is offloaded."""

OF_FORMS: Final = (
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
        ("parallel.sequence", "parallel.tensor"),
        lambda sequence, tensor: not sequence or tensor > 1,
        remedies=({"parallel.sequence": False},),
    ),
)
"""What nobody refuses, and editing takes back: ways to share of which a form would not show that they are set."""
