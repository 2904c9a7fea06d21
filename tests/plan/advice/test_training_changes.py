"""Memory-saving changes of training workloads."""

import pytest

from planner.plan.advice.advise import CHANGES, advise
from planner.plan.advice.search import apply_change
from planner.plan.advice.training_changes import TRAINING_CHANGES
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
