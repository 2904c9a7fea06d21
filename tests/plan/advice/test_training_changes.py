"""Memory-saving changes of training workloads."""

import pytest

from planner.plan.advice.advise import CHANGES, advise
from planner.plan.advice.search import apply_change
from planner.plan.advice.training_changes import ALIGNMENT_CHANGES, TRAINING_CHANGES, alignment_sequences
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.workload.workload import Training


def names(found):
    return [advice.name for advice in found]


def test_zero_stages_do_not_apply_to_one_card():
    sharing = [change for change in CHANGES if change.shares_states]
    assert {change.name for change in sharing} == {"ZeRO-1", "ZeRO-2", "ZeRO-3"}
    assert not any(change.applies_to(Training(), None) for change in sharing)


def test_cards_without_bf16_are_advised_fp16(catalog):
    plan = Plan(model=ModelChoice(id="openai-community/gpt2"), workload=Training(compute="fp32"), gpu="tesla-t4")
    checkpointed = Training(compute="fp32", micro_batch=14, activation_checkpointing="full")
    assert "FP16 autocast" in names(advise(plan.evolve(workload=checkpointed), catalog))
    assert not any("bf16" in name for name in names(advise(plan, catalog)))


@pytest.mark.parametrize(
    ("before", "name", "bytes_per_parameter"),
    [("adamw", "SGD with momentum", 4), ("sgd-momentum", "plain SGD", 0)],
)
def test_sgd_keeps_one_moment_or_none(catalog, before, name, bytes_per_parameter):
    plan = Plan(model=ModelChoice(id="openai-community/gpt2"), workload=Training(optimizer=before))
    (change,) = [change for change in TRAINING_CHANGES if change.name == name]
    evaluation = evaluate(apply_change(plan, change), catalog)
    states = sum(term.bytes for term in evaluation.memory.terms if term.name == "optimizer_states")
    assert states == bytes_per_parameter * evaluation.architecture.parameters


GPT2 = ModelChoice(id="openai-community/gpt2")


def plan(objective, tuning="lora", **alignment):
    alignment |= {"method": objective}
    workload = Training(method=tuning, micro_batch=8, sequence_length=512, alignment=alignment)
    return Plan(model=GPT2, workload=workload, gpu="rtx-4090")


@pytest.mark.parametrize(
    ("start", "name", "saves"),
    [
        (plan("grpo", engine="same-cards"), "vLLM asleep while training", True),
        (plan("grpo", engine="same-cards"), "generation by the trainer", True),
        (plan("grpo", reference="kept"), "no reference model", True),
        (plan("dpo", reference="kept"), "a reference computed before training", True),
        (plan("dpo", reference="kept"), "the model with adapters off as reference", True),
        (plan("dpo"), "no reference model", False),
        (plan("grpo", "full", reference="kept"), "the model with adapters off as reference", False),
    ],
)
def test_each_change_frees_memory_where_it_applies(catalog, start, name, saves):
    (change,) = (change for change in ALIGNMENT_CHANGES if change.name == name)
    before = evaluate(start, catalog)
    assert change.applies_to(before.workload, before.architecture) is saves
    if saves:
        assert evaluate(apply_change(start, change), catalog).memory.total_bytes < before.memory.total_bytes


@pytest.mark.parametrize(
    ("objective", "alignment", "levers"),
    [
        ("none", {}, {}),
        ("dpo", {}, {}),
        ("grpo", {}, {"scored": [4, 2, 1]}),
        (
            "grpo",
            {"engine": "same-cards", "engine_memory": 0.35},
            {"engine share": [30, 20, 10], "scored": [4, 2, 1]},
        ),
    ],
)
def test_an_engine_takes_a_smaller_share_and_fewer_sequences_are_scored(catalog, objective, alignment, levers):
    evaluation = evaluate(plan(objective, **alignment), catalog)
    found = {sequence.lever: sequence for sequence in alignment_sequences(evaluation.workload)}
    assert {lever: list(sequence.values) for lever, sequence in found.items()} == levers
    for lever, sequence in found.items():
        changed = apply_change(evaluation.plan, sequence.change(levers[lever][-1])).workload.alignment
        assert (changed.engine_memory, changed.score_batch) == (
            (0.1, None) if lever == "engine share" else (evaluation.workload.alignment.engine_memory, 1)
        )
