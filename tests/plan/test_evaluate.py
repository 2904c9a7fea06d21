"""The answer to a plan, on the bundled catalog."""

import pytest
from small_models import small_llama

from planner.base import Spec
from planner.cost.terms import DEFAULT_JOBS, CostTerms
from planner.errors import SpecError
from planner.performance.setting import TimeSetting
from planner.plan.evaluate import architecture_of, evaluate, find_fits, fits_by_gpu
from planner.plan.plan import ModelChoice, Plan
from planner.workload.workload import Inference, Parallel, Training

LLAMA_8B = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"))
DRAFTED_BY_NOBODY = Inference(profile="vllm", speculation={"method": "model", "model": "nobody/nothing"})
PLANS = {
    "inference": LLAMA_8B,
    "training on 2": Plan(
        model=ModelChoice(id="openai-community/gpt2"), workload=Training(optimizer="adamw-8bit"), count=2
    ),
    "quantised": Plan(model=ModelChoice(id="openai/gpt-oss-20b"), workload=Inference(batch=4)),
    "beside others": Plan(
        model=ModelChoice(id="openai/whisper-tiny"), workload=Inference(other_processes_bytes=10**9, weights="fp8")
    ),
}


@pytest.fixture(params=PLANS.values(), ids=PLANS)
def plan(request):
    return request.param


def test_a_plan_with_a_card_gets_a_verdict(catalog):
    result = evaluate(LLAMA_8B.evolve(gpu="rtx-4090"), catalog)
    assert result.memory.verdict == "fits"
    assert result.gpu is catalog.hardware.gpu("rtx-4090")
    assert result.memory.capacity_bytes == catalog.hardware.usable_memory(result.gpu).bytes
    assert result.smallest_fits == ()
    assert result.parameters == result.active_parameters == catalog.models.record(LLAMA_8B.model.id).parameters


def test_results_and_defaults_made_without_validation_are_what_validation_makes(catalog, plan):
    evaluation = evaluate(plan.evolve(gpu="rtx-4090"), catalog)
    for made in (evaluation, evaluation.memory, CostTerms(), TimeSetting(), Inference(), *DEFAULT_JOBS.values()):
        fields = {name: getattr(made, name) for name in type(made).model_fields}
        assert type(made).model_validate(fields, strict=True) == made
        for value in fields.values():
            if isinstance(value, Spec):
                assert type(value).model_validate(value.model_dump()) == value


def test_a_plan_that_is_too_large_does_not_fit(catalog):
    plan = LLAMA_8B.evolve(workload=Training(), gpu="rtx-4090")
    memory = evaluate(plan, catalog).memory
    assert memory.verdict == "does-not-fit"
    assert memory.free_bytes < 0


def test_every_default_is_echoed(catalog):
    workload = evaluate(LLAMA_8B.evolve(count=3), catalog).workload
    assert (workload.weights, workload.context_length, workload.prompt_length) == ("bf16", 4096, 4096)
    assert workload.parallel.data == 3


def test_a_plan_without_a_card_names_the_smallest_that_fit(catalog):
    result = evaluate(LLAMA_8B, catalog)
    assert result.memory.verdict is None
    assert result.memory.capacity_bytes is None
    assert result.gpu is None
    assert result.smallest_fits == tuple(fit.gpu_id for fit in find_fits(LLAMA_8B, catalog)[:5])
    assert len(result.smallest_fits) == 5


def test_nothing_fits_what_is_too_large_for_every_card(catalog):
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), workload=Training(micro_batch=1_000_000))
    assert evaluate(plan, catalog).smallest_fits == ()


def test_a_card_that_cannot_run_it_gets_a_reason_and_no_verdict(catalog):
    memory = evaluate(LLAMA_8B.evolve(gpu="tpu-v5e"), catalog).memory
    assert memory.verdict is None
    assert any("TPU" in reason for reason in memory.unsupported)


def test_an_architecture_of_ones_own_travels_with_the_plan(catalog):
    own = small_llama()
    plan = Plan(model=ModelChoice(id="my/own", architecture=own), gpu="rtx-4090")
    assert architecture_of(plan, catalog) is plan.model.architecture
    result = evaluate(Plan.model_validate_json(plan.model_dump_json()), catalog)
    assert result.parameters == own.parameters
    assert result.memory.verdict == "fits"


def test_a_card_changes_only_what_depends_on_it(catalog):
    with_card, without = evaluate(LLAMA_8B.evolve(gpu="rtx-4090"), catalog), evaluate(LLAMA_8B, catalog)
    assert with_card.workload == without.workload
    assert with_card.memory.term("weights") == without.memory.term("weights")


def test_what_is_written_holds_no_catalog_record(catalog):
    written = evaluate(LLAMA_8B.evolve(gpu="rtx-4090"), catalog).model_dump()
    assert set(written) == {
        *("plan", "workload", "memory", "sharing", "time", "parameters", "active_parameters", "smallest_fits")
    }


@pytest.mark.parametrize(
    ("changes", "field", "named"),
    [
        ({"model": ModelChoice(id="nobody/nothing")}, "model", "nobody/nothing"),
        ({"gpu": "rtx-9999"}, "gpu", "rtx-9999"),
        ({"workload": DRAFTED_BY_NOBODY}, "speculation.model", "nobody/nothing"),
        ({"workload": Inference(parallel=Parallel(data=4)), "count": 2}, "parallel.data", "data parallelism of 4"),
    ],
)
def test_what_the_catalog_does_not_have_is_named(catalog, changes, field, named):
    with pytest.raises(SpecError, match=named) as caught:
        evaluate(LLAMA_8B.evolve(**changes), catalog)
    assert caught.value.field == field


def test_every_card_has_an_entry(catalog, plan):
    assert tuple(fits_by_gpu(plan, catalog)) == tuple(gpu.id for gpu in catalog.hardware.gpus)


def test_cards_that_surely_fit_come_first_then_cards_before_computers_then_the_least_memory(catalog, plan):
    fits = find_fits(plan, catalog)
    computers = {gpu.id for gpu in catalog.hardware.gpus if gpu.is_whole_computer}
    announced = {gpu.id for gpu in catalog.hardware.gpus if gpu.preliminary}
    places = [
        (fit.verdict == "tight", fit.gpu_id in computers, fit.gpu_id in announced, fit.capacity_bytes) for fit in fits
    ]
    assert places == sorted(places)
    assert places[0][:2] == (False, False)
    assert {fit.gpu_id for fit in fits} == {
        gpu_id
        for gpu_id, fit in fits_by_gpu(plan, catalog).items()
        if fit.verdict == "fits" or (fit.verdict == "tight" and fit.free_bytes >= 0)
    }


def test_the_list_says_the_same_as_the_evaluation_of_each_card(catalog, plan):
    fits = fits_by_gpu(plan, catalog)
    for gpu in catalog.hardware.gpus[::6]:
        memory = evaluate(plan.evolve(gpu=gpu.id), catalog).memory
        least_free = None
        if memory.capacity_low_bytes is not None and not memory.unsupported:
            least_free = memory.capacity_low_bytes - memory.other_processes_bytes - memory.high_bytes
        assert fits[gpu.id] == (
            gpu.id,
            memory.verdict,
            memory.total_bytes,
            memory.capacity_bytes,
            memory.free_bytes,
            memory.unsupported,
            memory.fit_probability,
            least_free,
            None if memory.cache_pool is None else memory.cache_pool.sequences,
        )


def test_the_list_is_computed_once_whatever_card_is_chosen(catalog, plan):
    fits, others = fits_by_gpu(plan, catalog), fits_by_gpu(plan.evolve(gpu="rtx-4090"), catalog)
    assert all(fit is others[gpu_id] for gpu_id, fit in fits.items())


def test_the_list_follows_the_workload_and_the_number_of_cards(catalog):
    larger = LLAMA_8B.evolve(workload=Inference(batch=64))
    assert fits_by_gpu(larger, catalog)["rtx-4090"].total_bytes > fits_by_gpu(LLAMA_8B, catalog)["rtx-4090"].total_bytes
    training = LLAMA_8B.evolve(workload=Training())
    assert fits_by_gpu(training.evolve(count=2), catalog) != fits_by_gpu(training, catalog)


def test_of_unequal_cards_the_fullest_is_answered_for(catalog):
    workload = Inference.model_validate(
        {"gpus": [{"id": "rtx-4090", "count": 1}, {"id": "rtx-3060-12-gb", "count": 1}], "parallel": {"pipeline": 2}}
    )
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), workload=workload)
    evaluation = evaluate(plan, catalog)
    assert plan.count == 2
    assert evaluation.gpu is not None
    assert evaluation.gpu.id == "rtx-3060-12-gb"
    assert [share.gpu for share in evaluation.memory.per_gpu] == ["rtx-4090", "rtx-3060-12-gb"]


def test_a_count_beside_unequal_cards_must_be_theirs():
    cards = {"gpus": [{"id": "rtx-4090", "count": 1}, {"id": "rtx-3090", "count": 1}]}
    model = ModelChoice(id="meta-llama/Llama-3.1-8B")
    with pytest.raises(SpecError, match=r"count is 3, but workload\.gpus names 2 GPUs"):
        Plan(model=model, workload=Inference.model_validate(cards), count=3)


@pytest.mark.sweep
@pytest.mark.parametrize("weights", [None, "Q4_K_M"])
def test_the_smallest_cards_that_fit_hold_the_plan_by_its_verdict(catalog, weights):
    for record in catalog.models.records[::16]:
        if record.kind != "decoder":
            continue
        plan = Plan(model=ModelChoice(id=record.id), workload=Inference(weights=weights))
        for gpu_id in evaluate(plan, catalog).smallest_fits:
            assert evaluate(plan.evolve(gpu=gpu_id), catalog).memory.verdict == "fits", (record.id, gpu_id)
