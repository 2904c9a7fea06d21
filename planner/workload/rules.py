"""Rules on several fields of a workload, with error messages and remedies.

Validation rejects workloads by these rules, editing adjusts other fields until they hold (`planner.plan.editing`), and
forms offer only values that satisfy them.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from math import gcd, inf, lcm, prod
from operator import attrgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from planner.dtypes import SCHEMES
from planner.errors import SpecError
from planner.models.architecture import Architecture
from planner.validation import HintedError
from planner.workload.alignment import Alignment
from planner.workload.choices import DEFAULT_CONTEXT, SERVED_RANK, Compute, Method, Offload, Task
from planner.workload.formats import (
    BASE_FORMATS,
    DEFAULT_GGUF,
    EXCLUSIVE_FIELDS,
    Incompatibility,
    default_profile,
    formats_for,
    incompatibility,
    is_plain,
    plain_formats,
)
from planner.workload.optimizers import OPTIMIZERS, Optimizer
from planner.workload.software.registry import (
    DEFAULT,
    SERVERS,
    SOFTWARE,
    serving_support,
    setting_names,
    setting_owner,
    training_support,
)
from planner.workload.software.software import EngineSettings

if TYPE_CHECKING:
    from planner.workload.training import Training

FieldValue = Any
"""Value of a workload field, of any type."""
FieldReader = Callable[[str], FieldValue]
"""Function that returns the value of a field by its dotted name, or the GPU count (`count`) or architecture
(`model`)."""
Remedy = Mapping[str, Any] | Callable[..., Mapping[str, Any]]
"""Field changes after which a rule holds: new values by field, or a function from the rule's values to such a
mapping."""

RESET: Final = object()
"""Marker in a remedy for a field that is reset to its default."""

_CONTEXT: Final = ("count", "model")
_MODEL_PARALLEL: Final = ("parallel.tensor", "parallel.pipeline", "parallel.context")
_DEGREES: Final = (*_MODEL_PARALLEL, "parallel.expert", "parallel.data", "parallel.zero")
_RESET_STAGES: Final = {"parallel.interleave": RESET, "parallel.pipeline_layers": RESET}
_RESET_PARALLELISM: Final = {
    **dict.fromkeys((*_MODEL_PARALLEL, "parallel.expert", "parallel.data"), RESET),
    **_RESET_STAGES,
}
_PRECISIONS: Final[tuple[Compute, ...]] = ("amp-bf16", "bf16", "amp-fp16", "fp16", "fp32")
_ENGINE_SETTINGS: Final = tuple(f"engine.{name}" for name in setting_names())
_PARAMETER_SHARDING_STAGE: Final = 3
"""ZeRO stage that shards parameters besides gradients and optimizer states."""
COUNT_HINT: Final = "Change one of them or the number of GPUs."


class RuleRefusal(NamedTuple):
    """Field that is to blame for a broken rule, the reason, and a hint."""

    field: str
    reason: str
    hint: str


class WorkloadRule(NamedTuple):
    """A rule on several workload fields; `holds` and `message` take the values of `fields` in this order.

    Editing applies the first of `remedies` that leaves the edited fields alone and after which the rule holds. Forms
    restrict the choices of the fields in `narrows` to values that satisfy the rule. `blames` is the field that the
    error names, by default the first. A rule with a `task` applies to that task only. Editing checks it after every
    edit, or only after edits of a field in `after`, and never after edits of a field in `yields_to`.
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

    def values(self, read: FieldReader) -> tuple[Any, ...]:
        """Return the values of the rule's fields, in order."""
        return tuple(map(read, self.fields))

    def refusal(self, *values: object) -> RuleRefusal:
        """Return the refusal of `values`, which break the rule."""
        reason, hint = (text if isinstance(text, str) else text(*values) for text in (self.message, self.hint))
        return RuleRefusal(self.blames or self.fields[0], reason, hint)

    def concerns(self, task: str) -> bool:
        """Return whether the rule applies to `task`."""
        return self.task in (None, task)


class RuleSet:
    """Workload rules that are checked together; with `task`, only in workloads of this task.

    Results are cached by value, since searches validate equal workloads many times.
    """

    def __init__(self, *rules: WorkloadRule, task: Task | None = None) -> None:
        self.rules = tuple(rule._replace(task=task) for rule in rules) if task else rules
        outer = dict.fromkeys(name.partition(".")[0] for rule in rules for name in rule.fields)
        self._names = ("task", *(name for name in outer if name not in _CONTEXT))
        self._values = attrgetter(*self._names)
        self._refusal = lru_cache(maxsize=4096)(self._first_refusal)

    def validate(self, model: object) -> None:
        """Check the rules on a pydantic model during its construction.

        Raises:
            HintedError: If a rule does not hold.
        """
        if refusal := self._refusal(*self._values(model)):
            raise HintedError(refusal.reason, refusal.hint)

    def check(self, workload: object, **context: object) -> None:
        """Check the rules on a workload; `context` has the number of GPUs (`count`) and the architecture (`model`).

        Raises:
            SpecError: If a rule does not hold, with the field that the rule blames.
        """
        if refusal := self._refusal(*self._values(workload), **context):
            raise SpecError(refusal.field, refusal.reason, refusal.hint)

    def _first_refusal(self, *values: object, **context: object) -> RuleRefusal | None:
        fields = dict(zip(self._names, values, strict=True))
        read = field_reader(SimpleNamespace(**fields), **context)
        value_tuples = (rule.values(read) for rule in self.rules)
        broken = (
            rule.refusal(*values)
            for rule, values in zip(self.rules, value_tuples, strict=True)
            if rule.task in (None, fields["task"]) and not rule.holds(*values)
        )
        return next(broken, None)


def field_reader(workload: object, **others: object) -> FieldReader:
    """Return a function that returns a workload field by its dotted name, or a value in `others` by its keyword.

    It returns None for a field of a part that is missing, such as adapters, or of another program's settings.
    """

    def read(name: str) -> FieldValue:
        if name in others:
            return others[name]
        outer, _, inner = name.partition(".")
        part = getattr(workload, outer)
        return getattr(part, inner, None) if inner else part

    return read


def nest_fields(fields: Mapping[str, object]) -> dict[str, object]:
    """Return `fields` with dotted names such as `lora.rank` grouped into nested objects."""
    nested: dict[str, object] = {}
    parts: dict[str, dict[str, object]] = {}
    for name, value in fields.items():
        outer, dot, inner = name.partition(".")
        if dot:
            parts.setdefault(outer, {})[inner] = value
        else:
            nested[outer] = value
    return {**nested, **parts}


def is_offered(name: str, value: object, read: FieldReader, task: str) -> bool:
    """Return whether `value` for the field `name` satisfies the rules that narrow its choices."""

    def changed(other: str) -> FieldValue:
        return value if other == name else read(other)

    narrowing = (rule for rule in ALL_RULES if name in rule.narrows and rule.concerns(task))
    return all(rule.holds(*rule.values(changed)) for rule in narrowing)


def _trains_adapters(method: str) -> bool:
    return method != "full"


def _weight_format_message(weights: str, method: Method, compute: Compute, profile: str) -> str:
    if weights not in BASE_FORMATS[method]:
        if method == "full":
            reason = "bitsandbytes cannot train quantized weights; choose the method qlora or lora"
            return f"{SCHEMES[weights].title}: {reason}"
        return f"{method} keeps the base model in {' or '.join(BASE_FORMATS[method])}, not in {weights}"
    if not is_plain(weights):
        precisions = " or ".join(training_support(profile).quantised_compute)
        return f"a base model in {weights} cannot compute in {compute}: choose {precisions}"
    allowed = " or ".join(plain_formats(method, compute))
    return f"parameters in {weights} cannot be trained in {compute}; choose {allowed}"


def _compute_for_format(weights: str, method: Method, compute: Compute, profile: str) -> Mapping[str, Any]:
    return {"compute": next((name for name in _PRECISIONS if weights in formats_for(method, name, profile)), compute)}


def _compute_for_quantized_weights(_method: Method, compute: Compute, profile: str) -> Mapping[str, Any]:
    usual, *others = training_support(profile).quantised_compute
    return {"compute": others[0] if "fp16" in compute else usual}


def _trains_in_16_bits(weights: str | None, compute: Compute) -> bool:
    return (weights or compute) in ("bf16", "fp16")


def _fp32_only_message(optimizer: Optimizer, *_: object) -> str:
    return f"{OPTIMIZERS[optimizer].title} multiplies gradients by fp32 matrices: train parameters in fp32"


def _max_zero_stage(profile: str, stages: int) -> int:
    own = training_support(profile)
    return min(own.zero_limit, own.zero_limit_in_pipeline) if stages > 1 else own.zero_limit


def _supported_offloads(profile: str, stages: int) -> tuple[Offload, ...]:
    """Return the supported values of `offload`; a program can offload parameters only if replicas shard them."""
    offloads = training_support(profile).offloads
    return offloads if _max_zero_stage(profile, stages) == _PARAMETER_SHARDING_STAGE else offloads[:2]


def _zero_stage_message(zero: int, profile: str, _stages: int) -> str:
    own, title = training_support(profile), SOFTWARE[profile].title
    if zero > own.zero_limit:
        return f"{title} supports ZeRO up to stage {own.zero_limit}"
    return f"{title} supports ZeRO up to stage {own.zero_limit_in_pipeline} in a pipeline"


def _explicit_setting_names(engine: EngineSettings | Mapping[str, object]) -> tuple[str, ...]:
    """Return the names of the explicitly set engine settings; during an edit, `engine` is a mapping."""
    if isinstance(engine, EngineSettings):
        return engine.explicit_names()
    return tuple(name.removeprefix("engine.") for name, value in engine.items() if value is not None)


def _foreign_setting_names(engine: EngineSettings | Mapping[str, object], profile: str | None) -> tuple[str, ...]:
    own = serving_support(profile).settings.model_fields if profile else setting_names()
    return tuple(name for name in _explicit_setting_names(engine) if name not in own)


def _foreign_setting_message(engine: EngineSettings, profile: str) -> str:
    name = _foreign_setting_names(engine, profile)[0]
    owner = setting_owner(name)
    return f"{name} is a setting of {owner.title if owner else name}, but the profile is {SOFTWARE[profile].title}"


def _weight_file_conflict(
    weights: str | None,
    profile: str | None,
    engine: EngineSettings | Mapping[str, object],
    model: Architecture,
    *own: object,
) -> Incompatibility:
    runner = profile or default_profile(_explicit_setting_names(engine), own, weights, model)
    return incompatibility(runner, weights, model)


def _degrees_text(*sizes: int | None) -> str:
    """Return the degrees of parallelism above 1, such as `data 2 × tensor 4`."""
    named = zip(("data", "tensor", "pipeline", "context"), sizes, strict=True)
    return " × ".join(f"{name} {size:,}" for name, size in named if size is not None and size > 1)


def _longest_prompt(prompt: int | None, context: int | None) -> int:
    """Return the tokens of prompts with these settings, of which unset ones have their defaults."""
    return min(prompt or DEFAULT_CONTEXT, context or prompt or DEFAULT_CONTEXT)


def _highest_rank(profile: str | None) -> float:
    return max(serving_support(profile).adapter_ranks, default=inf) if profile else inf


def _unknown_targets(targets: str | tuple[str, ...], model: Architecture) -> list[str]:
    """Return the targets of served adapters that no layer of the model has for a name."""
    return [] if isinstance(targets, str) else sorted(set(targets) - set(model.adaptable_names))


_OBJECTIVE_FIELDS: Final = ("alignment.method", "alignment.engine", "alignment.reward", "alignment.reference")
_USED_BY: Final[Mapping[str, str]] = {
    "completion_length": "",
    "group": "GRPO alone compares a group of completions",
    "reference": "",
    "reward": "only PPO and GRPO reward completions",
    "reward_parameters": "they are of a reward model (--reward model)",
    "value": "only PPO has a value model",
    "engine_memory": "it is of vLLM on the GPUs that train (--rollout same-cards)",
    "engine_cards": "they are of vLLM on other GPUs (--rollout other-cards)",
    "score_batch": "no model scores completions (DPO, or a trainer that generates, without reference and reward model)",
}
"""Settings of an objective, and what uses them besides one."""


def _objective(*values: str | None) -> Alignment:
    """Return an objective with the values of `_OBJECTIVE_FIELDS`, by which a setting is used or not."""
    names = (name.partition(".")[2] for name in _OBJECTIVE_FIELDS)
    return Alignment.model_validate(dict(zip(names, values, strict=True)))


_GROUP_FIELDS: Final = (
    "alignment.method",
    "alignment.group",
    "micro_batch",
    "gradient_accumulation",
    "parallel.tensor",
    "count",
)


def _step_sequences(micro_batch: int, accumulation: int, tensor: int, count: int) -> int:
    """Return the sequences that all replicas train in one optimizer step."""
    return micro_batch * accumulation * max(count // tensor, 1)


def _steps_of_whole_groups(group: int, micro_batch: int, _accumulation: int, tensor: int, count: int) -> int:
    """Return the fewest accumulation steps with which whole groups of completions make a step."""
    together = _step_sequences(micro_batch, 1, tensor, count)
    return lcm(group, together) // together


def micro_batch_of_whole_groups(workload: "Training", count: int) -> int:
    """Return the micro-batch whose multiples make whole groups of completions (GRPO) without further accumulation."""
    if workload.alignment.method != "grpo":
        return 1
    group = workload.alignment.group
    return group // gcd(group, _step_sequences(1, workload.gradient_accumulation, workload.parallel.tensor, count))


def in_whole_groups(workload: "Training", count: int) -> "Training":
    """Return `workload` on `count` cards with as many accumulation steps as make whole groups of completions (GRPO)."""
    group = workload.alignment.group
    sizes = (workload.micro_batch, workload.gradient_accumulation, workload.parallel.tensor, count)
    if workload.alignment.method != "grpo" or _step_sequences(*sizes) % group == 0:
        return workload
    return workload.evolve(gradient_accumulation=_steps_of_whole_groups(group, *sizes))


TRAINING_RULES: Final = RuleSet(
    WorkloadRule(
        ("alignment.method", "profile"),
        lambda objective, profile: objective == "none" or training_support(profile).aligns,
        lambda objective, profile: (
            f"{objective.upper()} in {SOFTWARE[profile].title_for('training')} is not estimated: choose hf, liger, "
            "unsloth or deepspeed, on which TRL, verl and OpenRLHF build"
        ),
        narrows=("alignment.method",),
        remedies=({"alignment.method": "none"}, {"profile": RESET, "loss": None}),
    ),
    WorkloadRule(
        ("loss", "alignment.method"),
        lambda loss, objective: not (loss == "chunked" and objective == "ppo"),
        "PPO computes log-probabilities from all logits, or fused with the output head",
        hint="Choose full-logits.",
        narrows=("loss",),
        remedies=({"loss": None}, {"alignment.method": "none"}),
    ),
    WorkloadRule(
        ("alignment.method", *_MODEL_PARALLEL[1:], "parallel.expert"),
        lambda objective, *degrees: objective == "none" or set(degrees) == {1},
        "splits of layers, contexts or experts are not estimated in preference tuning and reinforcement learning",
        hint="Share by --zero or --tp.",
        narrows=("alignment.method",),
        remedies=({"alignment.method": "none"}, _RESET_PARALLELISM),
    ),
    WorkloadRule(
        ("alignment.reference", "method"),
        lambda reference, method: reference != "adapter-off" or _trains_adapters(method),
        "a reference with its adapters off needs adapters",
        hint="Choose --method lora, or keep a copy with --reference kept.",
        narrows=("alignment.reference",),
        remedies=({"alignment.reference": None}, {"method": "lora"}),
    ),
    WorkloadRule(
        ("alignment.reference", "alignment.method"),
        lambda reference, objective: reference != "precomputed" or objective == "dpo",
        "only DPO can compute the reference before training: PPO and GRPO generate new completions in each step",
        hint="Choose --reference kept, or leave it out for the usual one.",
        narrows=("alignment.reference",),
        remedies=({"alignment.reference": None},),
    ),
    WorkloadRule(
        ("alignment.engine", "alignment.method"),
        lambda engine, objective: engine == "none" or objective in ("ppo", "grpo"),
        "only PPO and GRPO generate completions: DPO and supervised training need no engine",
        hint="Leave out --rollout, or choose --align grpo.",
        narrows=("alignment.engine",),
        remedies=({"alignment.engine": "none"},),
    ),
    WorkloadRule(
        ("images", "profile"),
        lambda images, profile: not images or "images" in training_support(profile).inputs,
        lambda _, profile: f"images in training with {SOFTWARE[profile].title_for('training')} are not estimated",
        hint="Choose the profile hf or deepspeed.",
        remedies=({"images": None}, {"profile": RESET, "loss": None}),
    ),
    WorkloadRule(
        ("images", "alignment.method"),
        lambda images, objective: not images or objective == "none",
        "images are not estimated in preference tuning and reinforcement learning",
        hint="Leave out the images.",
        remedies=({"images": None}, {"alignment.method": "none"}),
    ),
    WorkloadRule(
        ("images", *_MODEL_PARALLEL, "parallel.expert"),
        lambda images, *degrees: not images or set(degrees) == {1},
        "images are not estimated where GPUs share tensors, layers, contexts or experts",
        hint="Share by --zero.",
        remedies=({"images": None}, _RESET_PARALLELISM),
    ),
    WorkloadRule(
        ("lora", "method"),
        lambda lora, method: lora is None or _trains_adapters(method),
        "adapters need the method lora or qlora, not full",
        remedies=({"lora": None}, {"method": "lora"}),
    ),
    WorkloadRule(
        ("trainable", "method"),
        lambda patterns, method: not (patterns and _trains_adapters(method)),
        lambda _, method: f"{method} trains only its adapters: leave out trainable, or choose the method full",
        remedies=({"trainable": ()}, {"method": "full", "lora": None}),
    ),
    WorkloadRule(
        ("compute", "method"),
        lambda compute, method: not (compute == "fp8" and _trains_adapters(method)),
        "fp8 and adapters both replace the linear layers: choose amp-bf16",
        narrows=("compute",),
        remedies=({"compute": "amp-bf16"}, {"method": "full", "lora": None}),
    ),
    WorkloadRule(
        ("compute", "profile"),
        lambda compute, profile: compute in training_support(profile).compute,
        lambda _, profile: (
            f"fp8 comes from torchao, but {SOFTWARE[profile].title_for('training')} has its own linear layers: "
            "choose bf16 or amp-bf16"
        ),
        narrows=("compute",),
        remedies=({"compute": "amp-bf16"}, {"profile": RESET}),
    ),
    WorkloadRule(
        ("method", "compute", "profile"),
        lambda method, compute, profile: method != "qlora" or compute in training_support(profile).quantised_compute,
        lambda _, compute, profile: (
            f"qlora cannot compute in {compute} here: choose {' or '.join(training_support(profile).quantised_compute)}"
        ),
        narrows=("compute",),
        remedies=(_compute_for_quantized_weights,),
    ),
    WorkloadRule(
        ("weights", "method", "compute", "profile"),
        lambda weights, method, compute, profile: weights in (None, *formats_for(method, compute, profile)),
        _weight_format_message,
        narrows=("weights",),
        remedies=({"weights": None}, _compute_for_format),
    ),
    WorkloadRule(
        ("lora.adapter_dtype", "compute"),
        lambda adapters, compute: not (adapters == "bf16" and compute in ("fp16", "amp-fp16")),
        lambda _, compute: f"adapters in bf16 cannot be combined with {compute}; keep them in fp32",
        narrows=("lora.adapter_dtype",),
        remedies=({"lora.adapter_dtype": "fp32"}, {"compute": "amp-bf16"}),
    ),
    WorkloadRule(
        ("optimizer_step", "optimizer"),
        lambda step, optimizer: step in (None, *OPTIMIZERS[optimizer].steps),
        lambda step, optimizer: (
            f"{OPTIMIZERS[optimizer].title} has no {step} step; choose {' or '.join(OPTIMIZERS[optimizer].steps)}"
        ),
        narrows=("optimizer_step",),
        remedies=({"optimizer_step": None},),
    ),
    WorkloadRule(
        ("checkpoint_every", "activation_checkpointing"),
        lambda every, kind: every == 1 or kind == "full",
        "checkpoint_every needs activation_checkpointing full",
        remedies=({"checkpoint_every": 1}, {"activation_checkpointing": "full"}),
    ),
    WorkloadRule(
        ("activation_checkpointing", "profile"),
        lambda kind, profile: kind in training_support(profile).checkpointing,
        lambda _, profile: f"{profile}'s selective checkpointing covers every k-th layer only: choose full or none",
        narrows=("activation_checkpointing",),
        remedies=({"activation_checkpointing": "full"}, {"profile": RESET}),
    ),
    WorkloadRule(
        ("activation_checkpointing", "lora.dora"),
        lambda kind, dora: not (kind == "selective" and dora),
        "selective checkpointing would also save DoRA's weight products: choose full or none",
        narrows=("activation_checkpointing",),
        remedies=({"activation_checkpointing": "full"}, {"lora.dora": False}),
    ),
    WorkloadRule(
        ("optimizer", "method", "weights", "compute"),
        lambda optimizer, method, weights, compute: (
            not OPTIMIZERS[optimizer].fp32_only or _trains_adapters(method) or not _trains_in_16_bits(weights, compute)
        ),
        _fp32_only_message,
        remedies=({"weights": None, "compute": "amp-bf16"}, {"optimizer": RESET}),
    ),
    WorkloadRule(
        ("optimizer", "lora.adapter_dtype"),
        lambda optimizer, adapters: not (OPTIMIZERS[optimizer].fp32_only and adapters == "bf16"),
        _fp32_only_message,
        narrows=("lora.adapter_dtype",),
        remedies=({"lora.adapter_dtype": "fp32"}, {"optimizer": RESET}),
    ),
    task="training",
)
"""Rules of training workloads that need neither the model nor the number of cards."""

INFERENCE_RULES: Final = RuleSet(
    WorkloadRule(
        ("engine", "profile"),
        lambda engine, profile: not _foreign_setting_names(engine, profile),
        _foreign_setting_message,
        remedies=(
            lambda engine, profile: {f"engine.{name}": None for name in _foreign_setting_names(engine, profile)},
        ),
    ),
    *(
        WorkloadRule(
            (name, "profile"),
            lambda value, profile, name=name: (
                value is None or profile is None or name in serving_support(profile).own_fields
            ),
            lambda _, profile, name=name, title=owner.title: (
                f"{name} is a setting of {title}, but the profile is {SOFTWARE[profile].title}"
            ),
            remedies=({name: None},),
        )
        for owner in SERVERS.values()
        for name in serving_support(owner.name).own_fields
    ),
    WorkloadRule(
        ("engine.n_cpu_moe", "engine.cpu_moe_layers"),
        lambda first, layers: not (first and layers),
        "n_cpu_moe takes the first layers, and cpu_moe_layers names the layers: set one of them",
        remedies=({"engine.cpu_moe_layers": ()}, {"engine.n_cpu_moe": None}),
    ),
    WorkloadRule(
        ("speculation.method", "profile"),
        lambda method, profile: None in (method, profile) or method in serving_support(profile).drafts,
        lambda method, profile: (
            f"{SOFTWARE[profile].title} has no draft of the kind {method}"
            + (f"; choose {' or '.join(own)}" if (own := serving_support(profile).drafts) else "")
        ),
        hint="Engines with drafts: --profile vllm, sglang, tensorrt-llm or llama.cpp.",
        narrows=("speculation.method",),
        remedies=({"speculation.method": None, "speculation.model": None},),
    ),
    WorkloadRule(
        ("speculation.model", "speculation.method"),
        lambda model, method: method in ("eagle", "eagle3") or (model is not None) == (method == "model"),
        lambda model, method: (
            f"a draft of the kind {method} has no checkpoint of its own" if model else "no model that drafts is named"
        ),
        hint=lambda model, _: (
            "Leave out --draft-model." if model else "Name a smaller model of the same family with --draft-model."
        ),
        remedies=({"speculation.model": None}, {"speculation.method": "model"}, {"speculation.method": None}),
    ),
    WorkloadRule(
        ("adapters.slots", "profile"),
        lambda slots, profile: not slots or profile is None or serving_support(profile).adapters,
        lambda _, profile: f"the slots of {SOFTWARE[profile].title} for LoRA adapters are not estimated",
        hint="Engines with slots: --profile vllm, sglang or llama.cpp.",
        remedies=({"adapters.slots": 0},),
    ),
    WorkloadRule(
        ("adapters.rank", "adapters.slots", "profile"),
        lambda rank, slots, profile: not slots or rank <= _highest_rank(profile),
        lambda rank, _slots, profile: (
            f"{SOFTWARE[profile].title} serves adapters up to rank {_highest_rank(profile):,}, not {rank:,}"
        ),
        hint="Choose a lower rank.",
        remedies=(lambda _rank, _slots, profile: {"adapters.rank": _highest_rank(profile)}, {"adapters.slots": 0}),
    ),
    WorkloadRule(
        ("common_prefix", "cache_in_ram_bytes", "profile"),
        lambda prefix, ram, profile: not (prefix or ram) or profile is None or serving_support(profile).caches_prefixes,
        lambda _prefix, _ram, profile: f"a prefix cache of {SOFTWARE[profile].title} is not estimated",
        hint="Engines with one: --profile vllm, sglang or tensorrt-llm.",
        remedies=({"common_prefix": 0, "cache_in_ram_bytes": 0},),
    ),
    WorkloadRule(
        ("kv_cache", "profile"),
        lambda cache, profile: profile is None or cache in serving_support(profile).cache_formats,
        lambda cache, profile: (
            f"{SOFTWARE[profile].title} has no {cache} KV cache; "
            f"choose {' or '.join(serving_support(profile).cache_formats)}"
        ),
        narrows=("kv_cache",),
        remedies=({"kv_cache": RESET},),
    ),
    WorkloadRule(
        ("kv_cache", "attention", "profile"),
        lambda cache, attention, profile: (
            profile is None or "q" not in cache or attention in serving_support(profile).quantised_cache_attention
        ),
        lambda _cache, _attention, profile: (
            f"{SOFTWARE[profile].title} quantizes cached values only with flash attention"
        ),
        remedies=({"attention": "sdpa"}, {"kv_cache": RESET}),
    ),
    task="inference",
)
"""Rules of inference workloads that need neither the model nor the number of cards."""

WEIGHT_FILE_RULES: Final = RuleSet(
    WorkloadRule(
        ("weights", "profile", "engine", "model", *EXCLUSIVE_FIELDS),
        lambda *values: not _weight_file_conflict(*values).reason,
        lambda *values: _weight_file_conflict(*values).reason,
        hint=lambda *values: _weight_file_conflict(*values).hint,
        remedies=(
            {"weights": None},
            {"weights": DEFAULT_GGUF},
            {"profile": None, **dict.fromkeys((*EXCLUSIVE_FIELDS, *_ENGINE_SETTINGS))},
        ),
    ),
    task="inference",
)
"""Rules on the model's weight files."""

LENGTH_RULES: Final = RuleSet(
    WorkloadRule(
        ("prompt_length", "context_length", "model"),
        lambda prompt, context, model: (
            None in (prompt, context, model) or prompt <= context or model.kind == "encoder-decoder"
        ),
        lambda prompt, context, _: (
            f"{prompt:,} tokens exceed the context of {context:,} tokens, which includes prompt and answer"
        ),
        hint="Shorten the prompt, or raise the context length.",
        remedies=({"prompt_length": None},),
    ),
    WorkloadRule(
        ("common_prefix", "prompt_length", "context_length"),
        lambda prefix, prompt, context: prefix <= _longest_prompt(prompt, context),
        lambda prefix, prompt, context: (
            f"a shared prefix of {prefix:,} tokens is longer than prompts of {_longest_prompt(prompt, context):,}"
        ),
        hint="Shorten the prefix, or raise the length of the prompt or context.",
        remedies=({"common_prefix": 0},),
    ),
    task="inference",
)
"""Rules on the lengths that a person gives, which an encoder-decoder model has in different networks.

The window and the command line check them; in estimates, a context holds at least its prompt.
"""

USED_RULES: Final = RuleSet(
    *(
        WorkloadRule(
            (f"speculation.{name}", "speculation.method"),
            lambda value, method: value is None or method is not None,
            "it has no effect without a draft",
            hint="Name what drafts with --draft, or leave it out.",
            remedies=({f"speculation.{name}": None},),
        )
        for name in ("tokens", "acceptance")
    ),
    *(
        WorkloadRule(
            (f"adapters.{name}", "adapters.slots"),
            lambda value, slots, usual=usual: slots or value == usual,
            "it has no effect without slots for adapters",
            hint="Reserve some with --lora-slots, or leave it out.",
            remedies=({f"adapters.{name}": RESET},),
        )
        for name, usual in (("rank", SERVED_RANK), ("targets", "all-linear"))
    ),
    WorkloadRule(
        ("engine.n_cpu_moe", "engine.cpu_moe_layers", "model"),
        lambda first, layers, model: not (first or layers) or model is None or bool(model.expert_layers),
        "the model has no routed experts that could be in RAM",
        hint="Leave it out, or put whole layers into RAM with --gpu-layers.",
        remedies=({"engine.n_cpu_moe": None, "engine.cpu_moe_layers": ()},),
    ),
    WorkloadRule(
        ("adapters.targets", "model"),
        lambda targets, model: model is None or not _unknown_targets(targets, model),
        lambda targets, model: f"no layer of the model is named {_unknown_targets(targets, model)[0]!r}",
        hint=lambda _targets, model: f"Available names: {', '.join(model.adaptable_names)}.",
        remedies=({"adapters.targets": RESET},),
    ),
    task="inference",
)
"""Rules on settings that a person gives and that would have no effect; estimates ignore such settings."""

ALIGNED_USED_RULES: Final = RuleSet(
    *(
        WorkloadRule(
            (f"alignment.{name}", *_OBJECTIVE_FIELDS),
            lambda value, *objective, name=name: (
                value == getattr(Alignment(), name) or name not in _objective(*objective).unused
            ),
            lambda _, method, *_others, needs=needs: (
                "it has no effect without an objective" if method == "none" else f"it has no effect here: {needs}"
            ),
            hint=lambda _, method, *_others: (
                "Name one with --align, or leave it out." if method == "none" else "Leave it out."
            ),
            remedies=({f"alignment.{name}": RESET},),
        )
        for name, needs in _USED_BY.items()
    ),
    task="training",
)
"""The same for settings of an objective."""

ALIGNED_LENGTH_RULES: Final = RuleSet(
    WorkloadRule(
        ("alignment.completion_length", "sequence_length"),
        lambda completion, length: None in (completion, length) or completion < length,
        lambda completion, length: f"a completion of {completion:,} tokens leaves no prompt in sequences of {length:,}",
        hint="Shorten the completion, or raise the sequence length.",
        remedies=({"alignment.completion_length": None}, {"sequence_length": None}),
    ),
    task="training",
)
"""Rules on the lengths that a person gives; in estimates, a sequence leaves at least one token to its prompt."""


def check_given(workload: object, model: Architecture | None) -> None:
    """Check lengths that a person gives for a `workload` of `model`, and that what is given has an effect.

    Raises:
        SpecError: If they do not go together, or a setting has no effect.
    """
    is_inference = field_reader(workload)("task") == "inference"
    for rules in (LENGTH_RULES, USED_RULES) if is_inference else (ALIGNED_LENGTH_RULES, ALIGNED_USED_RULES):
        rules.check(workload, model=model)


_PIPELINE_LIMITS: Final[tuple[tuple[str, tuple[object, ...], str], ...]] = (
    ("profile", (DEFAULT,), f"image pipelines are trained by diffusers only, which the profile {DEFAULT} stands for"),
    ("alignment.method", ("none",), "a pipeline makes images, and preference tuning of these is not estimated"),
    ("trainable", ((),), "a denoiser is trained as a whole or by adapters"),
    ("compute", (*_PRECISIONS, "tf32"), "fp8 training of a denoiser is not estimated: choose amp-bf16"),
    ("weights", (None, *BASE_FORMATS["full"]), "a denoiser with quantized weights is not estimated in training"),
    ("method", ("full", "lora"), "QLoRA of a denoiser is not estimated: choose lora with checkpointing"),
    ("lora.dora", (False, None), "DoRA of a denoiser is not estimated: choose plain LoRA"),
    ("activation_checkpointing", ("none", "full"), "diffusers checkpoints whole blocks: choose full or none"),
    ("checkpoint_every", (1,), "diffusers checkpoints every block"),
    ("attention", ("sdpa", "flash"), "diffusers trains with fused attention: choose sdpa or flash"),
    ("loss", (None,), "the loss of a denoiser compares latent images and has no logits"),
    ("parallel.zero", (0,), "sharded training of a pipeline is not estimated: each GPU holds a replica"),
    ("parallel.offload", ("none",), "offloading in training of a pipeline is not estimated"),
)
"""Fields of a training workload with the values that a pipeline's denoiser can be trained with, and the reason."""


def _is_pipeline(model: Architecture | None) -> bool:
    return model is not None and model.kind == "diffusion"


PIPELINE_RULES: Final = RuleSet(
    *(
        WorkloadRule(
            (name, "model"),
            lambda value, model, allowed=allowed: value in allowed or not _is_pipeline(model),
            reason,
            narrows=(name,),
            remedies=({name: RESET},),
        )
        for name, allowed, reason in _PIPELINE_LIMITS
    ),
    WorkloadRule(
        ("precomputed", "model"),
        lambda value, model: value is None or model is None or _is_pipeline(model),
        "only image pipelines have prompts and latent images that can be computed beforehand",
        hint="Leave out --precompute.",
        remedies=({"precomputed": None},),
    ),
    task="training",
)
"""Rules on the training of image pipelines."""

STAGE_RULES: Final = RuleSet(
    WorkloadRule(
        ("parallel.pipeline_layers", "parallel.pipeline"),
        lambda layers, stages: not layers or len(layers) == stages,
        lambda layers, stages: f"pipeline_layers names {len(layers):,} stages, but pipeline is {stages:,}",
        remedies=({"parallel.pipeline_layers": ()},),
    ),
    WorkloadRule(
        ("parallel.interleave", "parallel.pipeline"),
        lambda groups, stages: groups == 1 or stages > 1,
        "interleave needs a pipeline of at least 2 stages",
        remedies=({"parallel.interleave": 1},),
    ),
    WorkloadRule(
        ("parallel.interleave", "parallel.pipeline_layers"),
        lambda groups, layers: groups == 1 or not layers,
        "interleaved stages all have the same size: leave out pipeline_layers",
        remedies=({"parallel.interleave": 1}, {"parallel.pipeline_layers": ()}),
    ),
)
"""Rules on pipeline stages that need neither the model nor the number of cards."""

COUNT_RULES: Final = RuleSet(
    WorkloadRule(
        ("profile", "count"),
        lambda profile, count: count <= (training_support(profile).most_cards or count),
        lambda profile, _: f"{SOFTWARE[profile].title} cannot be estimated on several GPUs",
        hint=f"Choose the profile {DEFAULT}.",
        task="training",
        narrows=("profile",),
        remedies=({"profile": RESET},),
    ),
    WorkloadRule(
        ("parallel.data", *_MODEL_PARALLEL, "count"),
        lambda data, *sizes: data is None or prod(sizes[:-1]) > 1 or data == sizes[-1],
        lambda data, *sizes: f"data parallelism of {data:,} needs as many GPUs, not {sizes[-1]:,}",
        hint="Leave out the data parallelism, or change the number of GPUs.",
        remedies=({"parallel.data": None},),
    ),
    WorkloadRule(
        ("parallel.data", *_MODEL_PARALLEL, "count"),
        lambda data, *sizes: data is None or data * prod(sizes[:-1]) == sizes[-1],
        lambda data, *sizes: (
            f"{_degrees_text(data, *sizes[:-1])} needs {data * prod(sizes[:-1]):,} GPUs, not {sizes[-1]:,}"
        ),
        hint=COUNT_HINT,
        blames="parallel",
        remedies=({"parallel.data": None},),
    ),
    WorkloadRule(
        (*_MODEL_PARALLEL, "count"),
        lambda *sizes: sizes[-1] % prod(sizes[:-1]) == 0,
        lambda *sizes: (
            f"{'1 GPU is' if sizes[-1] == 1 else f'{sizes[-1]:,} GPUs are'} not a multiple of "
            f"{_degrees_text(None, *sizes[:-1])}"
        ),
        hint=COUNT_HINT,
        blames="parallel",
        remedies=(_RESET_PARALLELISM,),
        yields_to=("count",),
    ),
)
"""Rules on the number of cards."""

GROUP_RULES: Final = RuleSet(
    WorkloadRule(
        _GROUP_FIELDS,
        lambda objective, group, *sizes: objective != "grpo" or _step_sequences(*sizes) % group == 0,
        lambda _, group, *sizes: (
            f"a step trains {_step_sequences(*sizes):,} completion{'s' * (_step_sequences(*sizes) > 1)}, "
            f"which is not a multiple of the group size {group:,}"
        ),
        hint=lambda _, group, *sizes: (
            f"Accumulate {_steps_of_whole_groups(group, *sizes):,} steps (--accumulate), or change the group size."
        ),
        blames="alignment.group",
        remedies=(
            lambda _, group, *sizes: {"gradient_accumulation": _steps_of_whole_groups(group, *sizes)},
            {"alignment.group": 1},
        ),
    ),
    task="training",
)
"""Rules on the groups of completions (GRPO) that a step trains."""

REPLICA_RULES: Final = RuleSet(
    WorkloadRule(
        ("optimizer", "parallel.zero"),
        lambda optimizer, zero: not (zero and OPTIMIZERS[optimizer].whole_matrices),
        lambda optimizer, _: f"{OPTIMIZERS[optimizer].title} preconditions whole matrices, and ZeRO splits matrices",
        hint="Set zero to 0, or choose another optimizer.",
        narrows=("parallel.zero",),
        remedies=({"parallel.zero": 0}, {"optimizer": RESET}),
    ),
    WorkloadRule(
        ("optimizer", "profile", "count"),
        lambda optimizer, profile, count: count == 1 or optimizer not in training_support(profile).refused_optimizers,
        lambda optimizer, profile, _: (
            f"{OPTIMIZERS[optimizer].title} preconditions whole matrices, and {SOFTWARE[profile].title} hands an "
            "optimizer flat shares of them"
        ),
        hint=f"Choose another optimizer, or the profile {DEFAULT}.",
        narrows=("profile",),
        remedies=({"optimizer": RESET}, {"profile": RESET}),
    ),
    task="training",
)
"""Rules on the training optimizer that depend on the number of cards."""

PARALLEL_RULES: Final = RuleSet(
    WorkloadRule(
        ("parallel.interleave", "parallel.pipeline", "model"),
        lambda groups, stages, model: groups == 1 or stages == 1 or model.depth % (stages * groups) == 0,
        lambda groups, stages, model: f"{model.depth:,} layers cannot be divided into {stages * groups:,} equal groups",
        narrows=("parallel.interleave",),
        remedies=({"parallel.interleave": 1},),
    ),
    WorkloadRule(
        ("parallel.context", "attention"),
        lambda cards, attention: cards == 1 or attention != "eager",
        "context parallelism needs ring attention with flash kernels, not eager attention",
        hint="Choose sdpa or flash.",
        remedies=({"attention": "sdpa"}, {"parallel.context": 1}),
    ),
)
"""Rules for models that are split across cards or offloaded."""

PARALLEL_TRAINING_RULES: Final = RuleSet(
    WorkloadRule(
        ("parallel.offload", "parallel.zero"),
        lambda offload, zero: offload != "optimizer" or zero > 0,
        "offloading optimizer states needs ZeRO stage 1 or higher",
        hint="Set zero to 1, 2 or 3.",
        remedies=({"parallel.offload": "none"}, {"parallel.zero": 2}),
    ),
    WorkloadRule(
        ("parallel.offload", "parallel.zero"),
        lambda offload, zero: offload not in ("parameters", "nvme") or zero == _PARAMETER_SHARDING_STAGE,
        "offloading parameters needs ZeRO-3 or FSDP",
        hint="Set zero to 3.",
        remedies=(
            lambda _, zero: {"parallel.offload": "optimizer" if zero else "none"},
            {"parallel.zero": _PARAMETER_SHARDING_STAGE},
        ),
    ),
    WorkloadRule(
        ("parallel.zero", "profile", "parallel.pipeline"),
        lambda zero, profile, stages: zero <= _max_zero_stage(profile, stages),
        _zero_stage_message,
        hint="Choose a lower ZeRO stage.",
        narrows=("parallel.zero",),
        remedies=(lambda _, profile, stages: {"parallel.zero": _max_zero_stage(profile, stages)},),
    ),
    WorkloadRule(
        ("parallel.offload", "profile", "parallel.pipeline"),
        lambda offload, profile, stages: offload in _supported_offloads(profile, stages),
        lambda _, profile, stages: (
            f"{SOFTWARE[profile].title} can only offload {' or '.join(_supported_offloads(profile, stages)[1:])}"
        ),
        hint="Choose another value of offload.",
        narrows=("parallel.offload",),
        remedies=({"parallel.offload": "parameters"}, {"parallel.offload": "optimizer"}),
    ),
    task="training",
)
"""Further rules of training that is split across cards or offloaded."""

PARALLEL_INFERENCE_RULES: Final = RuleSet(
    WorkloadRule(
        ("parallel.zero",),
        lambda zero: zero == 0,
        "ZeRO shards training states, which inference does not have",
        hint="Use pipeline or tensor parallelism.",
        narrows=("parallel.zero",),
        remedies=({"parallel.zero": 0},),
    ),
    WorkloadRule(
        ("parallel.offload",),
        lambda offload: offload in ("none", "parameters"),
        lambda offload: f"offload {offload} is for training only",
        hint="Try parameters.",
        narrows=("parallel.offload",),
        remedies=({"parallel.offload": "none"},),
    ),
    WorkloadRule(
        ("parallel.offload", "profile"),
        lambda offload, profile: offload in serving_support(profile).offloads,
        lambda _, profile: f"{profile} does not use this setting",
        hint="For llama.cpp, set gpu_layers instead.",
        narrows=("parallel.offload",),
        remedies=({"parallel.offload": "none"},),
    ),
    WorkloadRule(
        ("parallel.sequence",),
        lambda sequence: not sequence,
        "sequence parallelism is for training only",
        narrows=("parallel.sequence",),
        remedies=({"parallel.sequence": False},),
    ),
    task="inference",
)
"""Further rules of inference that is split across cards or offloaded."""

EDITING_RULES: Final = RuleSet(
    WorkloadRule(
        ("parallel.sharing", *_DEGREES),
        lambda sharing, *degrees: sharing != "auto" or set(degrees) <= {None, 0, 1},
        after=("parallel.sharing",),
        remedies=({**dict.fromkeys((*_DEGREES, "parallel.sequence"), RESET), **_RESET_STAGES},),
    ),
    WorkloadRule(
        ("parallel.sharing", "parallel.zero", "count"),
        lambda sharing, zero, count: sharing == "auto" or zero > 0 or count > 1,
        remedies=({"parallel.sharing": RESET},),
    ),
    WorkloadRule(
        (*_MODEL_PARALLEL, "parallel.expert", "count"),
        lambda *sizes: sizes[-1] > 1 or prod(sizes[:-1]) == 1,
        remedies=(_RESET_PARALLELISM,),
    ),
    WorkloadRule(
        ("parallel.zero", "parallel.offload", "count"),
        lambda zero, offload, count: zero == 0 or count > 1 or offload != "none",
        remedies=({"parallel.zero": 0},),
    ),
    WorkloadRule(
        ("profile", "engine", *EXCLUSIVE_FIELDS),
        lambda profile, engine, *own: (
            profile is not None or (not _explicit_setting_names(engine) and set(own) <= {None})
        ),
        task="inference",
        remedies=(dict.fromkeys((*EXCLUSIVE_FIELDS, *_ENGINE_SETTINGS)),),
        after=("profile",),
    ),
    WorkloadRule(
        ("parallel.sequence", "parallel.tensor"),
        lambda sequence, tensor: not sequence or tensor > 1,
        remedies=({"parallel.sequence": False},),
    ),
)
"""Rules that only editing applies: they reset hidden values and values that would override the edit."""

_RULE_SETS: Final = (
    EDITING_RULES,
    TRAINING_RULES,
    INFERENCE_RULES,
    WEIGHT_FILE_RULES,
    LENGTH_RULES,
    USED_RULES,
    ALIGNED_LENGTH_RULES,
    ALIGNED_USED_RULES,
    PIPELINE_RULES,
    STAGE_RULES,
    COUNT_RULES,
    GROUP_RULES,
    REPLICA_RULES,
    PARALLEL_RULES,
    PARALLEL_TRAINING_RULES,
    PARALLEL_INFERENCE_RULES,
)
ALL_RULES: Final = tuple(rule for book in _RULE_SETS for rule in book.rules)
"""All rules, in the order in which editing applies them."""
