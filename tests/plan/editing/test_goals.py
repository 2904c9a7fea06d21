"""What a goal starts with: full training, or the adapter that fits."""

import pytest

from planner.cost.terms import DEFAULT_JOBS, CostTerms, Run
from planner.errors import SpecError
from planner.plan.editing.conflicts import resolve_conflicts
from planner.plan.editing.goals import TASK_OF_GOAL, goal_fields, goal_terms
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.workload.parallel import CardCount
from planner.workload.workload import Inference, Training

LLAMA = ModelChoice(id="meta-llama/Llama-3.1-8B")
LARGE = ModelChoice(id="meta-llama/Llama-3.1-70B")
SMALL = ModelChoice(id="openai-community/gpt2")


def started(plan, goal, catalog):
    """Return the plan with which the goal starts."""
    return resolve_conflicts(plan, goal_fields(plan, goal, catalog), catalog).plan


def fine_tuned(catalog, model=LLAMA, gpu="rtx-4090", count=1, workload=None):
    return started(Plan(model=model, gpu=gpu, count=count, workload=workload or Training()), "fine-tune", catalog)


def test_running_a_model_changes_nothing(catalog):
    assert goal_fields(Plan(model=LLAMA, workload=Inference(), gpu="rtx-4090"), "run", catalog) == {}


def test_training_starts_with_all_parameters(catalog):
    plan = Plan(model=SMALL, workload=Training(method="qlora"), gpu="rtx-4090")
    assert started(plan, "train", catalog).workload == Training()


@pytest.mark.parametrize(
    ("model", "gpu", "count", "method", "checkpointing", "micro_batch"),
    [
        (SMALL, "rtx-4090", 1, "lora", "none", 4),
        (LLAMA, "rtx-4090", 1, "lora", "full", 1),
        (LLAMA, "rtx-a4500", 1, "qlora", "full", 1),
        (LARGE, "h100-sxm5-80gb", 1, "qlora", "full", 2),
    ],
)
def test_fine_tuning_starts_with_the_first_adapter_that_fits(
    catalog, model, gpu, count, method, checkpointing, micro_batch
):
    plan = fine_tuned(catalog, model, gpu, count)
    workload = plan.workload
    assert (workload.method, workload.activation_checkpointing, workload.micro_batch) == (
        method,
        checkpointing,
        micro_batch,
    )
    assert evaluate(plan, catalog).memory.verdict == "fits"


def test_a_change_to_qlora_by_hand_turns_checkpointing_on(catalog):
    started_plan = fine_tuned(catalog, SMALL)
    resolved = resolve_conflicts(started_plan, {"workload.method": "qlora"}, catalog)
    assert resolved.adjustments == ("activation_checkpointing",)


def test_several_cards_share_what_is_fine_tuned(catalog):
    plan = fine_tuned(catalog, LARGE, "rtx-4090", 8)
    assert evaluate(plan, catalog).memory.verdict == "fits"


def test_where_nothing_fits_the_smallest_adapter_says_so(catalog):
    plan = fine_tuned(catalog, LARGE)
    assert (plan.workload.method, plan.workload.micro_batch) == ("qlora", 1)
    assert plan.workload.activation_checkpointing == "full"
    assert evaluate(plan, catalog).memory.verdict == "does-not-fit"


def test_without_a_card_it_is_plain_lora(catalog):
    assert fine_tuned(catalog, LARGE, gpu=None).workload == Training(method="lora")


def test_cards_of_several_kinds_count_as_cards(catalog):
    kinds = (CardCount(id="rtx-4090"), CardCount(id="rtx-3090"))
    plan = fine_tuned(catalog, gpu=None, count=2, workload=Training(gpus=kinds))
    assert plan.workload.gpus == kinds
    assert evaluate(plan, catalog).memory.verdict == "fits"


@pytest.mark.parametrize(
    "workload",
    [
        Training(method="qlora", micro_batch=2, sequence_length=512, activation_checkpointing="full"),
        Training(trainable=("*norm*",), compute="bf16", activation_checkpointing="full"),
    ],
)
def test_what_trains_a_part_and_fits_stays(catalog, workload):
    assert fine_tuned(catalog, workload=workload).workload == workload


def test_an_adapter_that_does_not_fit_gives_way_to_one_that_does(catalog):
    plan = fine_tuned(catalog, workload=Training(method="lora", micro_batch=16, sequence_length=512))
    assert evaluate(plan, catalog).memory.verdict == "fits"
    assert plan.workload.sequence_length == 512


def test_all_parameters_give_way_to_an_adapter(catalog):
    workload = Training(weights="fp32", trainable=(), sequence_length=1024)
    plan = fine_tuned(catalog, SMALL, workload=workload)
    assert (plan.workload.method, plan.workload.weights, plan.workload.sequence_length) == ("lora", None, 1024)


def test_a_model_that_cannot_be_trained_is_refused(catalog):
    pipeline = ModelChoice(id="stabilityai/stable-diffusion-xl-base-1.0")
    with pytest.raises(SpecError, match="train"):
        fine_tuned(catalog, pipeline)


def test_every_goal_has_a_task():
    assert TASK_OF_GOAL == {"run": "inference", "fine-tune": "training", "train": "training"}


def test_training_is_paid_as_a_run_and_the_own_job_stays():
    terms, own = CostTerms(), CostTerms(job=Run(amount=3, unit="epochs", dataset_samples=9))
    assert goal_terms(terms, "run") == terms
    assert goal_terms(terms, "train").job == DEFAULT_JOBS["run"]
    assert goal_terms(goal_terms(terms, "fine-tune"), "run") == terms
    assert goal_terms(own, "train") == goal_terms(own, "run") == own
