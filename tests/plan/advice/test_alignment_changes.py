"""What makes preference tuning and reinforcement learning fit."""

import pytest

from planner.plan.advice.alignment_changes import ALIGNMENT_CHANGES, alignment_sequences
from planner.plan.advice.search import apply_change
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.workload.training import Training

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
