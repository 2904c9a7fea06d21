"""Edits of a plan: drafts, conflicts and goals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cost.terms import DEFAULT_JOBS, CostTerms, Run
from planner.errors import SpecError
from planner.plan.advice.advise import advise
from planner.plan.editing import (
    TASK_OF_GOAL,
    WorkloadDraft,
    goal_fields,
    goal_terms,
    possible_counts,
    possible_degrees,
    resolve_conflicts,
)
from planner.plan.evaluate import evaluate
from planner.plan.memory_curve import plan_axes
from planner.plan.plan import ModelChoice, Plan
from planner.present.plan.settings import adjustments_sentence
from planner.workload.parallel import CardCount, Parallel
from planner.workload.software.llama_cpp import LlamaCppSettings
from planner.workload.software.registry import TRAINERS
from planner.workload.training import Lora
from planner.workload.workload import Inference, Training

CONTEXT = {"count": 1, "model": None}


def test_edited_fields_keep_their_values_and_others_are_reported():
    draft = WorkloadDraft(Training(), {"method": "lora"}, CONTEXT)
    draft.adjust_field("method", "full")
    draft.adjust_field("compute", "bf16")
    assert draft.value("method") == "lora"
    assert draft.adjustments == ("compute",)
    assert draft.build() == Training(method="lora", compute="bf16")


def test_a_rejected_field_is_reset_unless_it_was_edited():
    draft = WorkloadDraft(Inference(batch=8), {"kv_cache": "fp8"}, CONTEXT)
    draft.reset_rejected_field(SpecError("workload.batch", "too large"))
    assert draft.value("batch") == 1
    with pytest.raises(SpecError, match="not allowed"):
        draft.reset_rejected_field(SpecError("workload.kv_cache", "not allowed"))


MODEL = ModelChoice(id="meta-llama/Llama-3.2-1B")


def plan_of(workload, count=1, model=MODEL):
    return Plan(model=model, workload=workload, gpu="h100-sxm5-80gb", count=count)


CHECKPOINTED = {"activation_checkpointing": "full"}

CASES = [
    # what there was, the answer, what moved along with it
    (Training(compute="bf16"), {"method": "qlora"}, {"compute": "amp-bf16", **CHECKPOINTED}),
    (
        Training(compute="fp16", weights="fp16"),
        {"method": "qlora"},
        {"compute": "amp-fp16", "weights": None, **CHECKPOINTED},
    ),
    (Training(method="lora"), {"method": "qlora"}, CHECKPOINTED),
    (Training(activation_checkpointing="none"), {"method": "qlora"}, {}),
    (Training(method="qlora"), {"method": "qlora"}, {}),
    (Training(), {"method": "qlora", "activation_checkpointing": "none"}, {}),
    (Training(compute="tf32"), {"method": "qlora"}, {"compute": "amp-bf16", **CHECKPOINTED}),
    (Training(method="qlora", weights="nf4-dq"), {"method": "full"}, {"weights": None}),
    (Training(method="lora", weights="int8"), {"compute": "bf16"}, {"weights": None}),
    (Training(method="lora", compute="fp32"), {"weights": "int8"}, {"compute": "amp-bf16"}),
    (Training(compute="amp-fp16"), {"weights": "bf16"}, {"compute": "amp-bf16"}),
    (Training(compute="fp8"), {"method": "lora"}, {"compute": "amp-bf16"}),
    (Training(compute="fp8"), {"profile": "unsloth"}, {"compute": "amp-bf16"}),
    (Training(method="lora", lora=Lora(rank=8)), {"compute": "fp8"}, {"method": "full"}),
    (Training(profile="megatron"), {"compute": "fp8"}, {"profile": "hf"}),
    (Training(trainable=("lm_head", "*norm*")), {"method": "lora"}, {"trainable": ()}),
    (
        Training(method="lora", lora=Lora(adapter_dtype="bf16")),
        {"compute": "amp-fp16"},
        {"lora.adapter_dtype": "fp32"},
    ),
    (Training(method="lora", compute="amp-fp16"), {"lora.adapter_dtype": "bf16"}, {"compute": "amp-bf16"}),
    (Training(optimizer_step="foreach"), {"optimizer": "adamw-8bit"}, {"optimizer_step": None}),
    (
        Training(activation_checkpointing="full", checkpoint_every=4),
        {"activation_checkpointing": "none"},
        {"checkpoint_every": 1},
    ),
    (Training(), {"checkpoint_every": 2}, {"activation_checkpointing": "full"}),
    (Training(parallel=Parallel(zero=3)), {"profile": "megatron"}, {"parallel.zero": 1}),
    (
        Training(parallel=Parallel(zero=3, offload="parameters")),
        {"profile": "megatron"},
        {"parallel.zero": 1, "parallel.offload": "optimizer"},
    ),
    (Training(parallel=Parallel(zero=3, offload="nvme")), {"profile": "torchtune"}, {"parallel.offload": "parameters"}),
    (Training(parallel=Parallel(zero=2, offload="optimizer")), {"parallel.zero": 0}, {"parallel.offload": "none"}),
    (Training(), {"parallel.offload": "optimizer"}, {"parallel.zero": 2}),
    (Training(), {"parallel.offload": "parameters"}, {"parallel.zero": 3}),
    (Training(profile="deepspeed", parallel=Parallel(zero=3)), {"parallel.pipeline": 2}, {"parallel.zero": 1}),
    (
        Training(parallel=Parallel(tensor=2, sequence=True)),
        {"parallel.tensor": 1},
        {"parallel.sequence": False},
    ),
    (Training(parallel=Parallel(pipeline=2, interleave=2)), {"parallel.pipeline": 1}, {"parallel.interleave": 1}),
    (
        Training(parallel=Parallel(pipeline=2, interleave=2)),
        {"parallel.pipeline_layers": (6, 10)},
        {"parallel.interleave": 1},
    ),
    (
        Training(parallel=Parallel(pipeline=2, pipeline_layers=(6, 10))),
        {"parallel.pipeline": 4},
        {"parallel.pipeline_layers": ()},
    ),
    (Training(parallel=Parallel(data=4, tensor=2)), {"parallel.tensor": 4}, {"parallel.data": None}),
    (Training(parallel=Parallel(context=2)), {"attention": "eager"}, {"parallel.context": 1}),
    (Training(attention="eager"), {"parallel.context": 2}, {"attention": "sdpa"}),
    (
        Inference(profile="llama.cpp", kv_cache="q8_0", gpu_layers=4, engine=LlamaCppSettings(slots=2)),
        {"profile": "vllm"},
        {"kv_cache": "bf16", "gpu_layers": None, "engine.slots": None},
    ),
    (Inference(profile="llama.cpp", kv_cache="q8_0"), {"attention": "eager"}, {"kv_cache": "bf16"}),
    (Inference(profile="llama.cpp", attention="eager"), {"kv_cache": "q8_0"}, {"attention": "sdpa"}),
    (Inference(weights="Q4_K_M"), {"profile": "hf"}, {"weights": None}),
    (Inference(weights="nf4"), {"profile": "llama.cpp"}, {"weights": None}),
    (Inference(profile="hf"), {"weights": "Q4_K_M"}, {"profile": None}),
    (Inference(profile="llama.cpp"), {"weights": "nf4"}, {"profile": None}),
    (Inference(engine=LlamaCppSettings(slots=2)), {"weights": "nf4"}, {"engine.slots": None}),
    (Training(lora=None), {"method": "lora"}, {}),
    (Training(parallel=Parallel(pipeline=2, pipeline_layers=(6, 10))), {"micro_batch": 2}, {}),
    (Training(parallel=Parallel(zero=3)), {"parallel.offload": "optimizer"}, {}),
    (Training(attention="eager"), {"micro_batch": 2}, {}),
    (Training(parallel=Parallel(tensor=2)), {"parallel.data": 4}, {}),
    (Training(activation_checkpointing="selective"), {"profile": "torchtune"}, {"activation_checkpointing": "full"}),
    (Training(profile="torchtune"), {"activation_checkpointing": "selective"}, {"profile": "hf"}),
    (Training(), {"activation_checkpointing": "selective"}, {}),
    (Training(activation_checkpointing="selective"), {"micro_batch": 2}, {}),
    (
        Training(method="lora", lora=Lora(dora=True)),
        {"activation_checkpointing": "selective"},
        {"lora.dora": False},
    ),
]


@pytest.mark.parametrize(("before", "answer", "moved"), CASES, ids=[str(answer) for _, answer, _ in CASES])
def test_fields_that_conflict_with_an_edit_are_adjusted(catalog, before, answer, moved):
    plan = plan_of(before, count=8)
    resolved = resolve_conflicts(plan, {f"workload.{name}": value for name, value in answer.items()}, catalog)
    workload = resolved.plan.workload
    for name, value in (answer | moved).items():
        outer, _, inner = name.partition(".")
        held = getattr(workload, outer)
        assert (getattr(held, inner, None) if inner else held) == value, name
    assert set(resolved.adjustments) == set(moved)


@pytest.mark.parametrize(
    ("before", "answer", "field"),
    [
        (Training(), {"workload.micro_batch": 0}, "workload.micro_batch"),
        (Training(), {"workload.optimizer": "guess"}, "workload.optimizer"),
        (Training(optimizer="muon"), {"workload.optimizer_step": "fused"}, "workload"),
        (Training(), {"workload.parallel.tensor": 3}, "parallel"),
        (Training(), {"workload.parallel.expert": 2}, "parallel.expert"),
        (Training(parallel=Parallel(tensor=8)), {"count": 12}, "parallel"),
        (Training(method="lora"), {"workload.lora.targets": ("nose",)}, "lora.targets"),
        (Inference(profile="vllm"), {"workload.kv_cache": "q8_0"}, "workload"),
        (Training(), {"count": 0}, "count"),
        (Inference(), {"workload.gpus": (CardCount(id="t4"), CardCount(id="l4")), "count": 5}, "workload"),
        (Training(), {"gpu": "gtx-0"}, "gpu"),
        (Training(), {"model": ModelChoice(id="nobody/nothing")}, "model"),
    ],
)
def test_an_invalid_edit_is_refused(catalog, before, answer, field):
    with pytest.raises(SpecError) as caught:
        resolve_conflicts(plan_of(before, count=8), answer, catalog)
    assert caught.value.field == field


def test_parallelism_is_removed_for_one_card(catalog):
    workload = Training(parallel=Parallel(zero=3, tensor=2, sequence=True, pipeline=2, interleave=2))
    resolved = resolve_conflicts(plan_of(workload, count=8), {"count": 1}, catalog)
    assert resolved.plan.workload.parallel == Parallel()
    assert set(resolved.adjustments) == {
        f"parallel.{name}" for name in ("sharing", "zero", "tensor", "sequence", "pipeline", "interleave")
    }


def test_llama_cpp_replaces_the_format_of_a_quantized_checkpoint(catalog):
    awq = next(name for record in catalog.models.records for name, scheme in record.variants.items() if "awq" in scheme)
    resolved = resolve_conflicts(
        plan_of(Inference(), model=ModelChoice(id=awq)), {"workload.profile": "llama.cpp"}, catalog
    )
    assert resolved.plan.workload.weights == "Q4_K_M"
    assert resolved.adjustments == ("weights",)


def test_offloading_is_kept_on_one_card(catalog):
    workload = Training(parallel=Parallel(zero=2, offload="optimizer"))
    resolved = resolve_conflicts(plan_of(workload, count=4), {"count": 1}, catalog)
    assert resolved == (plan_of(workload), ())


def test_another_model_keeps_the_settings_that_it_supports(catalog):
    workload = Training(method="lora", lora=Lora(rank=8, targets=("q_proj",)), parallel=Parallel(tensor=8))
    resolved = resolve_conflicts(
        plan_of(workload, count=8), {"model": ModelChoice(id="openai-community/gpt2")}, catalog
    )
    assert resolved.plan.workload.lora == Lora(rank=8)
    assert set(resolved.adjustments) == {"parallel.tensor", "lora.targets"}


def test_a_replaced_workload_adjusts_the_number_of_cards(catalog):
    workload = Training(parallel=Parallel(tensor=4))
    resolved = resolve_conflicts(plan_of(workload, count=3), {"workload.micro_batch": 2}, catalog)
    assert resolved.plan.workload.parallel.tensor == 1
    assert resolved.adjustments == ("parallel.tensor",)


@st.composite
def workloads(draw):
    """Workloads that can be asked for, of either task."""
    if draw(st.booleans()):
        return Inference(profile=draw(st.sampled_from([None, "hf", "vllm", "llama.cpp"])))
    method = draw(st.sampled_from(["full", "lora", "qlora"]))
    compute = draw(st.sampled_from(["amp-bf16", "amp-fp16", *(("bf16", "fp32") if method != "qlora" else ())]))
    zero = draw(st.sampled_from([0, 1, 2, 3]))
    offload = draw(st.sampled_from(["none", *(["optimizer"] if zero else []), *(["nvme"] if zero == 3 else [])]))
    return Training(method=method, compute=compute, parallel=Parallel(zero=zero, offload=offload))


ANSWERS = st.one_of(
    *(
        st.tuples(st.just(name), st.sampled_from(values))
        for name, values in {
            "method": ["full", "lora", "qlora"],
            "compute": ["fp32", "tf32", "bf16", "fp16", "amp-bf16", "amp-fp16"],
            "weights": [None, "fp32", "bf16", "nf4", "int8", "Q4_K_M"],
            "profile": [*TRAINERS, "vllm", "llama.cpp"],
            "optimizer": ["adamw", "adamw-8bit", "muon", "adafactor"],
            "parallel.zero": [0, 1, 2, 3],
            "parallel.offload": ["none", "optimizer", "parameters", "nvme"],
            "parallel.tensor": [1, 2, 3],
            "parallel.pipeline": [1, 2, 4],
            "attention": ["sdpa", "eager", "flash"],
            "kv_cache": ["bf16", "fp8", "q8_0"],
            "activation_checkpointing": ["none", "full"],
        }.items()
    )
)


@given(before=workloads(), answers=st.lists(ANSWERS, min_size=1, max_size=5))
def test_any_valid_edit_is_kept_in_a_plan_that_can_be_evaluated(catalog, before, answers):
    plan = plan_of(before, count=4)
    for name, value in answers:
        try:
            plan = resolve_conflicts(plan, {f"workload.{name}": value}, catalog).plan
        except SpecError:
            continue
        assert evaluate(plan, catalog).plan == plan
        outer, _, inner = name.partition(".")
        held = getattr(plan.workload, outer)
        assert (getattr(held, inner, None) if inner else held) == value


@pytest.mark.parametrize(
    ("answer", "cards"),
    [({"gpu": "tesla-t4"}, ("tesla-t4", 3)), ({"count": 4}, ("rtx-4090", 4)), ({"gpu": None}, (None, 3))],
)
def test_choosing_one_card_removes_unequal_cards(catalog, answer, cards):
    gpus = (CardCount(id="rtx-4090"), CardCount(id="rtx-3090", count=2))
    resolved = resolve_conflicts(Plan(model=MODEL, workload=Inference(gpus=gpus)), answer, catalog)
    assert (resolved.plan.gpu, resolved.plan.count) == cards
    assert resolved.plan.workload.gpus == ()


def test_a_pipeline_is_trained_with_what_it_has(catalog):
    pipeline = ModelChoice(id="stable-diffusion-v1-5/stable-diffusion-v1-5")
    before = plan_of(Training(other_processes_bytes=5, method="qlora", loss="chunked"))
    resolved = resolve_conflicts(before, {"model": pipeline}, catalog)
    assert resolved.plan.workload == Training(other_processes_bytes=5)
    assert resolved.adjustments == ("method", "loss")
    sentence = adjustments_sentence(resolved.adjustments, resolved.plan.workload)
    assert sentence == "Also changed: method to Full fine-tuning, loss to default."
    with pytest.raises(SpecError, match="QLoRA of a denoiser is not estimated"):
        resolve_conflicts(plan_of(Training(), model=pipeline), {"workload.method": "qlora"}, catalog)


MIXTRAL = "mistralai/Mixtral-8x7B-v0.1"


def shared_plan_of(model="meta-llama/Llama-3.1-8B", count=8, **parallel):
    return Plan(model=ModelChoice(id=model), workload=Training(parallel=Parallel(**parallel)), count=count)


def test_degrees_divide_the_cards_and_the_model(catalog):
    assert possible_degrees(shared_plan_of(), "parallel.tensor", catalog) == (1, 2, 4, 8)
    assert possible_degrees(shared_plan_of(tensor=2), "parallel.pipeline", catalog) == (1, 2, 4)
    assert possible_degrees(shared_plan_of(count=12), "parallel.tensor", catalog) == (1, 2, 4)


def test_experts_are_spread_over_replicas(catalog):
    assert possible_degrees(shared_plan_of(), "parallel.expert", catalog) == (1,)
    assert possible_degrees(shared_plan_of(MIXTRAL), "parallel.expert", catalog) == (1, 2, 4, 8)


def test_card_counts_are_multiples_of_the_model_shards(catalog):
    assert possible_counts(shared_plan_of(tensor=4, pipeline=2), 12, catalog) == (8, 16)
    assert possible_counts(shared_plan_of(tensor=4, pipeline=2), 3, catalog) == (8,)


def test_the_users_own_stages_do_not_limit_the_degrees(catalog):
    staged = shared_plan_of(pipeline=2, pipeline_layers=(12, 20))
    assert plan_axes(evaluate(staged, catalog))
    served = staged.evolve(workload=Inference(parallel=staged.workload.parallel.evolve(data=None)))
    assert plan_axes(evaluate(served, catalog))
    advise(served.evolve(gpu="tesla-t4"), catalog)


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


def test_a_pipeline_is_fine_tuned_by_the_first_adapter_that_fits(catalog):
    model = ModelChoice(id="stabilityai/stable-diffusion-xl-base-1.0")
    sdxl = fine_tuned(catalog, model).workload
    assert (sdxl.method, sdxl.activation_checkpointing, sdxl.micro_batch) == ("lora", "none", 1)
    # FLUX does not fit this card: what is left is the adapter that needs least, since QLoRA is not estimated.
    flux = fine_tuned(catalog, ModelChoice(id="black-forest-labs/FLUX.1-dev")).workload
    assert (flux.method, flux.activation_checkpointing, flux.micro_batch) == ("lora", "full", 1)


def test_a_split_that_pipelines_do_not_have_fits_with_no_adapter(catalog):
    model = ModelChoice(id="stabilityai/stable-diffusion-xl-base-1.0")
    plan = Plan(model=model, workload=Training(parallel=Parallel(tensor=2)), gpu="rtx-4090", count=2)
    fields = goal_fields(plan, "fine-tune", catalog)
    assert (fields["workload.method"], fields["workload.micro_batch"]) == ("lora", 1)
    with pytest.raises(SpecError, match="cannot be split across GPUs"):
        resolve_conflicts(plan, fields, catalog)


def test_every_goal_has_a_task():
    assert TASK_OF_GOAL == {"run": "inference", "fine-tune": "training", "train": "training"}


def test_training_is_paid_as_a_run_and_the_own_job_stays():
    terms, own = CostTerms(), CostTerms(job=Run(amount=3, unit="epochs", dataset_samples=9))
    assert goal_terms(terms, "run") == terms
    assert goal_terms(terms, "train").job == DEFAULT_JOBS["run"]
    assert goal_terms(goal_terms(terms, "fine-tune"), "run") == terms
    assert goal_terms(own, "train") == goal_terms(own, "run") == own
