"""Each rule where it is used: refused, obeyed by editing, and kept to by what forms offer."""

import pytest
from pydantic import ValidationError

from planner.errors import SpecError
from planner.plan.editing import WorkloadDraft, resolve_conflicts
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.present.plan.settings import offered_choices
from planner.workload.defaults import with_defaults
from planner.workload.fields import fields_of
from planner.workload.presentation import FieldContext
from planner.workload.rules import (
    ALIGNED_LENGTH_RULES,
    ALIGNED_USED_RULES,
    ALL_RULES,
    EDITING_RULES,
    LENGTH_RULES,
    USED_RULES,
    RuleSet,
    WorkloadRule,
    field_reader,
    is_offered,
)
from planner.workload.workload import Inference, Training

LLAMA = "meta-llama/Llama-3.2-1B"
PIPELINE = "stable-diffusion-v1-5/stable-diffusion-v1-5"
OF_PIPELINES = [
    ({"task": "training", "profile": "liger", "loss": "full-logits"}, {"micro_batch": 2}),
    ({"task": "training", "alignment": {"method": "dpo"}}, {"micro_batch": 2}),
    ({"task": "training", "trainable": ["*norm*"]}, {"micro_batch": 2}),
    ({"task": "training", "compute": "fp8"}, {"micro_batch": 2}),
    ({"task": "training", "method": "lora", "weights": "int8"}, {"micro_batch": 2}),
    ({"task": "training", "method": "qlora"}, {"micro_batch": 2}),
    ({"task": "training", "method": "lora", "lora": {"dora": True}}, {"micro_batch": 2}),
    ({"task": "training", "activation_checkpointing": "selective"}, {"micro_batch": 2}),
    ({"task": "training", "activation_checkpointing": "full", "checkpoint_every": 2}, {"micro_batch": 2}),
    ({"task": "training", "attention": "eager"}, {"micro_batch": 2}),
    ({"task": "training", "loss": "chunked"}, {"micro_batch": 2}),
    ({"task": "training", "parallel": {"zero": 3}}, {"micro_batch": 2}),
    ({"task": "training", "parallel": {"zero": 3, "offload": "parameters"}}, {"micro_batch": 2}),
]
"""Training workloads that pipelines do not have, each with an edit of another field."""
MIXTURE = "openai/gpt-oss-20b"

# For each rule: a workload that is allowed, an answer with which the rule does not hold, the number of cards.
BROKEN = [
    ({"task": "training", "images": 1}, {"profile": "unsloth"}, 1),
    ({"task": "training", "images": 1}, {"alignment.method": "dpo"}, 1),
    ({"task": "training", "images": 1}, {"parallel.tensor": 2}, 2),
    ({"task": "training", "method": "lora", "lora": {"rank": 8}}, {"method": "full"}, 1),
    ({"task": "training", "precomputed": "all"}, {"micro_batch": 2}, 1),
    ({"task": "inference", "profile": "vllm", "common_prefix": 512}, {"profile": "hf"}, 1),
    (
        {"task": "inference", "profile": "vllm", "common_prefix": 512, "context_length": 1024},
        {"context_length": 256},
        1,
    ),
    ({"task": "inference", "profile": "vllm", "adapters": {"slots": 2}}, {"profile": "tensorrt-llm"}, 1),
    ({"task": "inference", "profile": "vllm", "speculation": {"method": "ngram"}}, {"profile": "hf"}, 1),
    *(
        (
            {"task": "inference", "profile": "vllm", "speculation": {"method": "ngram", **own}},
            {"speculation.method": None},
            1,
        )
        for own in ({"tokens": 4}, {"acceptance": 0.5})
    ),
    *(
        ({"task": "inference", "profile": "vllm", "adapters": {"slots": 2, **own}}, {"adapters.slots": 0}, 1)
        for own in ({"rank": 64}, {"targets": ["q_proj"]})
    ),
    ({"task": "inference", "profile": "sglang", "adapters": {"slots": 2, "rank": 700}}, {"profile": "vllm"}, 1),
    ({"task": "inference", "profile": "vllm", "adapters": {"slots": 2, "targets": ["qkv"]}}, {"batch": 2}, 1),
    ({"task": "inference", "profile": "llama.cpp", "engine": {"n_cpu_moe": 2}}, {"batch": 2}, 1),
    (
        {"task": "inference", "profile": "vllm", "speculation": {"method": "eagle3", "model": "head"}},
        {"speculation.method": "ngram"},
        1,
    ),
    ({"task": "training", "trainable": ["lm_head"]}, {"method": "lora"}, 1),
    ({"task": "training", "method": "lora"}, {"compute": "fp8"}, 1),
    ({"task": "training", "compute": "fp8"}, {"profile": "unsloth"}, 1),
    ({"task": "training", "compute": "bf16"}, {"method": "qlora"}, 1),
    ({"task": "training", "weights": "bf16"}, {"compute": "fp16"}, 1),
    ({"task": "training", "method": "lora", "lora": {"adapter_dtype": "bf16"}}, {"compute": "fp16"}, 1),
    ({"task": "training", "optimizer_step": "foreach"}, {"optimizer": "adamw-8bit"}, 1),
    (
        {"task": "training", "activation_checkpointing": "full", "checkpoint_every": 2},
        {"activation_checkpointing": "none"},
        1,
    ),
    ({"task": "training", "activation_checkpointing": "selective"}, {"profile": "torchtune"}, 1),
    ({"task": "training", "method": "lora", "lora": {"dora": True}}, {"activation_checkpointing": "selective"}, 1),
    ({"task": "training", "compute": "bf16"}, {"optimizer": "soap"}, 1),
    ({"task": "training", "method": "lora", "lora": {"adapter_dtype": "bf16"}}, {"optimizer": "soap"}, 1),
    ({"task": "training", "alignment": {"method": "dpo"}}, {"profile": "torchtune"}, 1),
    ({"task": "training", "loss": "chunked"}, {"alignment.method": "ppo"}, 1),
    ({"task": "training", "alignment": {"method": "dpo"}}, {"parallel.pipeline": 2}, 2),
    (
        {"task": "training", "method": "lora", "alignment": {"method": "dpo", "reference": "adapter-off"}},
        {"method": "full"},
        1,
    ),
    (
        {"task": "training", "alignment": {"method": "dpo", "reference": "precomputed"}},
        {"alignment.method": "ppo"},
        1,
    ),
    ({"task": "training", "alignment": {"method": "ppo", "engine": "same-cards"}}, {"alignment.method": "dpo"}, 1),
    ({"task": "training", "gradient_accumulation": 3}, {"alignment.method": "grpo"}, 1),
    ({"task": "training", "alignment": {"method": "grpo", "group": 1}}, {"alignment.method": "dpo"}, 1),
    *(
        ({"task": "training", "alignment": {"method": "ppo", name: value}}, {"alignment.method": "none"}, 1)
        for name, value in (
            ("completion_length", 64),
            ("reference", "kept"),
            ("reward", "model"),
            ("value", "full"),
            ("score_batch", 2),
        )
    ),
    (
        {"task": "training", "alignment": {"method": "ppo", "reward": "model", "reward_parameters": 10**9}},
        {"alignment.reward": "function"},
        1,
    ),
    *(
        ({"task": "training", "alignment": {"method": "ppo", **own}}, {"alignment.engine": "none"}, 1)
        for own in ({"engine": "same-cards", "engine_memory": 0.5}, {"engine": "other-cards", "engine_cards": 2})
    ),
    (
        {"task": "training", "alignment": {"method": "dpo", "completion_length": 512}, "sequence_length": 1024},
        {"sequence_length": 256},
        1,
    ),
    ({"task": "inference", "engine": {"slots": 2}}, {"profile": "vllm"}, 1),
    ({"task": "inference", "gpu_layers": 2}, {"profile": "vllm"}, 1),
    ({"task": "inference", "kv_cache": "q8_0"}, {"profile": "vllm"}, 1),
    ({"task": "inference", "profile": "llama.cpp", "kv_cache": "q8_0"}, {"attention": "eager"}, 1),
    ({"task": "inference", "weights": "nf4"}, {"profile": "llama.cpp"}, 1),
    ({"task": "inference", "prompt_length": 4096}, {"context_length": 2048}, 1),
    ({"task": "training", "parallel": {"pipeline": 2, "pipeline_layers": [6, 10]}}, {"parallel.pipeline": 4}, 8),
    ({"task": "training", "parallel": {"pipeline": 2, "interleave": 2}}, {"parallel.pipeline": 1}, 8),
    ({"task": "training", "parallel": {"pipeline": 2, "interleave": 2}}, {"parallel.pipeline_layers": (6, 10)}, 8),
    ({"task": "training", "profile": "litgpt"}, {"count": 8}, 1),
    ({"task": "training", "optimizer": "soap"}, {"profile": "deepspeed"}, 8),
    ({"task": "training", "parallel": {"data": 8}}, {"count": 4}, 8),
    ({"task": "training", "parallel": {"data": 4, "tensor": 2}}, {"parallel.tensor": 4}, 8),
    ({"task": "training", "parallel": {"tensor": 2}}, {"micro_batch": 2}, 3),
    ({"task": "training", "parallel": {"pipeline": 2, "interleave": 4}}, {"parallel.pipeline": 3}, 6),
    ({"task": "training", "parallel": {"context": 2}}, {"attention": "eager"}, 8),
    ({"task": "training", "parallel": {"zero": 1, "offload": "optimizer"}}, {"parallel.zero": 0}, 8),
    ({"task": "training", "parallel": {"zero": 3, "offload": "parameters"}}, {"parallel.zero": 1}, 8),
    ({"task": "training", "parallel": {"zero": 3}}, {"profile": "megatron"}, 8),
    ({"task": "training", "profile": "deepspeed", "parallel": {"zero": 2}}, {"parallel.pipeline": 2}, 8),
    ({"task": "training", "parallel": {"zero": 3, "offload": "nvme"}}, {"profile": "torchtune"}, 8),
    ({"task": "training", "parallel": {"zero": 2}}, {"optimizer": "soap"}, 8),
    ({"task": "inference", "parallel": {"zero": 1}}, {"batch": 2}, 8),
    ({"task": "inference", "parallel": {"offload": "nvme"}}, {"batch": 2}, 8),
    ({"task": "inference", "profile": "hf", "parallel": {"offload": "parameters"}}, {"profile": "vllm"}, 8),
    ({"task": "inference", "parallel": {"tensor": 2, "sequence": True}}, {"batch": 2}, 8),
    ({"task": "training", "parallel": {"tensor": 2, "pipeline": 2}}, {"count": 1}, 8),
    ({"task": "training", "parallel": {"zero": 3}}, {"count": 1}, 8),
    ({"task": "inference", "profile": "vllm", "engine": {"max_num_seqs": 8}}, {"profile": None}, 1),
    ({"task": "training", "parallel": {"tensor": 2, "sequence": True}}, {"parallel.tensor": 1}, 8),
    ({"task": "training", "parallel": {"tensor": 2, "zero": 1}}, {"parallel.sharing": "auto"}, 8),
    (
        {"task": "inference", "profile": "llama.cpp", "weights": "Q4_K_M", "engine": {"cpu_moe_layers": (1, 2)}},
        {"engine.n_cpu_moe": 3},
        1,
    ),
]


RULES_OF_THE_SHELLS = tuple(
    rule
    for rules in (EDITING_RULES, LENGTH_RULES, USED_RULES, ALIGNED_LENGTH_RULES, ALIGNED_USED_RULES)
    for rule in rules.rules
)


def made(fields):
    return (Training if fields["task"] == "training" else Inference).model_validate(fields)


def changed(fields, answer):
    found = {name: dict(value) if isinstance(value, dict) else value for name, value in fields.items()}
    for name, value in answer.items():
        outer, _, inner = name.partition(".")
        if inner:
            found.setdefault(outer, {})[inner] = value
        elif name != "count":
            found[outer] = value
    return found


def draft_of(before, answer, count, architecture):
    """Return the fields after the answer, which need not be allowed together."""
    cards = answer.get("count", count)
    asked = {name: value for name, value in answer.items() if name != "count"}
    return WorkloadDraft(made(before), asked, {"count": cards, "model": architecture}, plan_fields=answer)


def broken_rules(before, answer, count, architecture):
    read = draft_of(before, answer, count, architecture).value
    rules = (rule for rule in ALL_RULES if rule.concerns(before["task"]))
    return [rule for rule in rules if not rule.holds(*rule.values(read))]


@pytest.fixture(scope="module")
def architecture(catalog):
    return catalog.models.model(LLAMA)


@pytest.mark.parametrize(("before", "answer"), OF_PIPELINES, ids=[str(before) for before, _ in OF_PIPELINES])
def test_what_pipelines_cannot_be_trained_with_is_refused_and_reset(catalog, before, answer):
    model = catalog.models.model(PIPELINE)
    with pytest.raises(SpecError):
        with_defaults(made(before), model, 8)
    plan = Plan(model=ModelChoice(id=LLAMA), workload=made(before), gpu="h100-sxm5-80gb", count=8)
    moved = resolve_conflicts(plan, {"model": ModelChoice(id=PIPELINE)}, catalog)
    assert isinstance(with_defaults(moved.plan.workload, model, 8), Training)
    assert moved.adjustments


@pytest.mark.parametrize(("before", "answer", "count"), BROKEN, ids=[str(answer) for _, answer, _ in BROKEN])
def test_a_rule_is_refused_and_obeyed(catalog, before, answer, count):
    model = MIXTURE if "cpu_moe_layers" in before.get("engine", {}) else LLAMA
    architecture = catalog.models.model(model)
    broken = broken_rules(before, answer, count, architecture)
    assert broken
    plan = Plan(model=ModelChoice(id=model), workload=made(before), gpu="h100-sxm5-80gb", count=count)
    if not all(rule in RULES_OF_THE_SHELLS for rule in broken):
        with pytest.raises((ValidationError, SpecError)) as refused:
            evaluate(plan.evolve(workload=made(changed(before, answer)), count=answer.get("count", count)), catalog)
        read = draft_of(before, answer, count, architecture).value
        reasons = [rule.refusal(*rule.values(read)).reason for rule in broken if rule not in EDITING_RULES.rules]
        assert any(reason in str(refused.value) for reason in reasons)
    asked = {name if name == "count" else f"workload.{name}": value for name, value in answer.items()}
    resolved = resolve_conflicts(plan, asked, catalog)
    # Adapters are left out with their method: that is no news.
    assert resolved.adjustments or answer == {"method": "full"}
    assert evaluate(resolved.plan, catalog)
    for name, value in answer.items():
        assert (resolved.plan.count if name == "count" else field_reader(resolved.plan.workload)(name)) == value


def test_every_rule_is_tried(architecture, catalog):
    tried = [rule for before, answer, count in BROKEN for rule in broken_rules(before, answer, count, architecture)]
    pipeline = catalog.models.model(PIPELINE)
    tried += [rule for before, answer in OF_PIPELINES for rule in broken_rules(before, answer, 8, pipeline)]
    assert [rule.fields for rule in ALL_RULES if rule not in tried] == []


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"weights": "int8"}, "LLM.int8.*choose the method qlora or lora"),
        ({"method": "qlora", "weights": "bf16"}, "qlora keeps the base model in nf4 or nf4-dq, not in bf16"),
        ({"method": "lora", "weights": "int8", "compute": "fp32"}, "a base model in int8 cannot compute in fp32"),
        ({"weights": "fp16", "compute": "bf16"}, "parameters in fp16 cannot be trained in bf16; choose bf16"),
    ],
)
def test_formats_are_refused_with_what_would_do(fields, sentence):
    with pytest.raises(ValidationError, match=sentence):
        Training.model_validate(fields)


def test_plain_formats_have_names_of_their_own_in_files(architecture):
    assert with_defaults(Inference(profile="hf", weights="F16"), architecture, 1).weights == "fp16"
    assert with_defaults(Inference(profile="llama.cpp", weights="fp16"), architecture, 1).weights == "F16"
    assert with_defaults(Inference(gpu_layers=3), architecture, 1).profile == "llama.cpp"


@pytest.mark.parametrize("task", ["training", "inference"])
def test_forms_offer_what_holds(architecture, task):
    """Every offered value is allowed beside the others, and every other value breaks a rule."""
    workloads = [
        made(before) for before, _, _ in BROKEN if before["task"] == task and before.get("profile") != "litgpt"
    ]
    for used in workloads:
        if used.profile is None:
            used = used.evolve(
                profile="hf" if not used.engine.explicit_names() and used.gpu_layers is None else "llama.cpp"
            )
        situation = FieldContext(used, architecture, 8)
        for field in fields_of(task).values():
            known = set(field.choices(situation))
            if field.kind != "choice" or not known:
                continue
            value = field_reader(used)(field.name)
            offered = set(offered_choices(field, situation, value)) - {None}
            assert offered <= known | {value}
            narrows = any(field.name in rule.narrows for rule in ALL_RULES)
            assert narrows or known <= offered


def test_what_narrows_is_one_of_the_fields():
    for rule in ALL_RULES:
        assert set(rule.narrows) <= set(rule.fields)
        assert rule.remedies
        assert bool(rule.message) == (rule not in EDITING_RULES.rules)


@pytest.mark.parametrize(
    ("name", "value", "workload", "offered"),
    [
        ("compute", "fp8", Training(method="lora"), False),
        ("compute", "fp8", Training(profile="megatron"), False),
        ("compute", "bf16", Training(method="qlora"), False),
        ("weights", "int8", Training(method="lora", compute="bf16"), False),
        ("optimizer_step", "fused", Training(optimizer="muon"), False),
        ("activation_checkpointing", "selective", Training(profile="torchtune"), False),
        ("activation_checkpointing", "selective", Training(method="lora", lora={"dora": True}), False),
        ("parallel.zero", 2, Training(profile="megatron"), False),
        ("parallel.zero", 2, Training(profile="deepspeed", parallel={"pipeline": 2}), False),
        ("parallel.offload", "nvme", Training(profile="torchtune"), False),
        ("parallel.offload", "parameters", Training(profile="megatron"), False),
        ("parallel.offload", "parameters", Training(), True),
        ("parallel.offload", "parameters", Inference(profile="vllm"), False),
        ("parallel.interleave", 3, Training(parallel={"pipeline": 2}), False),
        ("profile", "litgpt", Training(), False),
        ("kv_cache", "q8_0", Inference(profile="vllm"), False),
        ("kv_cache", "q8_0", Inference(profile="llama.cpp"), True),
    ],
)
def test_what_goes_with_the_rest_is_offered(architecture, name, value, workload, offered):
    read = field_reader(workload, count=8, model=architecture)
    assert is_offered(name, value, read, workload.task) is offered


def test_a_rule_of_ones_own_is_refused_with_its_hint_and_about_its_task_only():
    rule = WorkloadRule(
        ("batch", "prompt_logits"),
        lambda batch, logits: batch < 3 or logits == "last",
        lambda batch, _: f"{batch} prompts with all logits",
        hint="Ask for fewer.",
    )
    book = RuleSet(rule, task="inference")
    with pytest.raises(SpecError, match="batch: 4 prompts with all logits") as refused:
        book.check(Inference(batch=4, prompt_logits="all"))
    assert refused.value.hint == "Ask for fewer."
    with pytest.raises(ValueError, match=r"^4 prompts with all logits$"):
        book.validate(Inference(batch=4, prompt_logits="all"))
    book.check(Inference(batch=4))
    assert not book.rules[0].concerns("training")
