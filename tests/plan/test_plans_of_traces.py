"""A plan about a traced module: it travels, is judged on every card, and has nothing to vary."""

import json
from pathlib import Path

import pytest
from recordings import training, two_steps

from planner.errors import PlanFileError, SpecError
from planner.plan.catalog import Catalog
from planner.plan.evaluate import evaluate, find_fits, fits_by_gpu
from planner.plan.files import load_plan, save_plan
from planner.plan.memory_curve import memory_curve
from planner.plan.plan import ModelChoice, Plan
from planner.plan.solve import largest_that_fits
from planner.present.memory.view import evaluation_view
from planner.present.plan.phrase import plan_phrase
from planner.trace.analysis.memory import facts_of, traced_memory
from planner.trace.request import Input, ListInput, PlainInput, Target, TensorInput
from planner.units import GIB
from planner.workload.workload import Inference

IMAGES = Input(name="x", value=TensorInput(shape=(32, 3, 224, 224)))
FACTS = facts_of(
    two_steps(
        GIB, training(target=Target(kind="file", place="/home/me/nets/resnet.py", name="ResNet50"), inputs=(IMAGES,))
    )
)
PLAN = Plan(model=ModelChoice.of_trace(FACTS), gpu="rtx-4090")


def test_the_memory_of_a_traced_plan_is_the_traced_memory(catalog: Catalog):
    evaluation = evaluate(PLAN, catalog)
    gpu = catalog.hardware.gpu("rtx-4090")
    assert evaluation.memory == traced_memory(FACTS, gpu, catalog.hardware.usable_memory(gpu))
    assert evaluation.memory.verdict == "fits"
    assert (evaluation.traced, evaluation.architecture, evaluation.max_context) == (FACTS, None, None)
    assert (evaluation.parameters, evaluation.active_parameters) == (FACTS.parameters, FACTS.parameters)
    assert evaluation.smallest_fits == ()


def test_other_processes_reduce_the_free_memory(catalog: Catalog):
    busy = PLAN.evolve(workload=Inference(other_processes_bytes=15 * GIB))
    assert evaluate(busy, catalog).memory.verdict == "does-not-fit"
    assert fits_by_gpu(busy, catalog)["rtx-4090"].verdict == "does-not-fit"


def test_without_a_card_the_smallest_fitting_cards_are_listed(catalog: Catalog):
    plan = PLAN.evolve(gpu=None)
    evaluation = evaluate(plan, catalog)
    fits = find_fits(plan, catalog)
    assert evaluation.smallest_fits == tuple(fit.gpu_id for fit in fits[:5])
    assert "The smallest GPUs that fit" in evaluation_view(evaluation, catalog).answer


def test_verdicts_on_all_cards_equal_those_of_single_evaluations(catalog: Catalog):
    fits = fits_by_gpu(PLAN, catalog)
    assert len(fits) == len(catalog.hardware.gpus)
    for gpu in catalog.hardware.gpus:
        memory = evaluate(PLAN.evolve(gpu=gpu.id), catalog).memory
        assert (fits[gpu.id].verdict, fits[gpu.id].total_bytes) == (memory.verdict, memory.total_bytes)


def test_a_traced_plan_is_saved_and_loaded(tmp_path: Path, catalog: Catalog):
    save_plan(tmp_path / "plan.json", PLAN)
    assert load_plan(tmp_path / "plan.json") == PLAN
    written = json.loads(evaluate(PLAN, catalog).model_dump_json())
    assert written["plan"]["model"]["trace"]["digest"] == FACTS.digest
    assert Plan.model_validate(written["plan"]) == PLAN


def test_plans_older_than_traces_still_load(tmp_path: Path):
    (tmp_path / "old.json").write_text('{"schema_version": 1, "model": {"id": "gpt2"}}', encoding="utf-8")
    assert load_plan(tmp_path / "old.json").model.trace is None


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("reserved_bytes", 1, "model.trace: the bytes reserved are fewer than needed"),
        ("phases", [], "model.trace.phases: "),
        ("parameters", -1, "model.trace.parameters: "),
    ],
)
def test_inconsistent_traced_facts_in_a_file_are_refused(tmp_path: Path, field: str, value: object, said: str):
    data = json.loads(PLAN.model_dump_json())
    data["model"]["trace"][field] = value
    (tmp_path / "plan.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(PlanFileError, match=said):
        load_plan(tmp_path / "plan.json")


@pytest.mark.parametrize("ask", [largest_that_fits, lambda *about: memory_curve(*about, (1, 2))])
def test_a_traced_plan_has_no_settings_to_vary(catalog: Catalog, ask):
    with pytest.raises(SpecError, match="has no memory formula in which settings could be varied") as caught:
        ask(PLAN, catalog, "batch")
    assert caught.value.hint == "Trace it again with other settings."


@pytest.mark.parametrize(
    ("inputs", "phrase"),
    [
        ((IMAGES,), "resnet.py:ResNet50 · traced training, AdamW, 32 × 3 × 224 × 224 · 1 × GeForce RTX 4090"),
        ((), "resnet.py:ResNet50 · traced training, AdamW · 1 × GeForce RTX 4090"),
        (
            (Input(value=PlainInput(value=3)), Input(value=ListInput(kind="tuple", items=())), IMAGES),
            "resnet.py:ResNet50 · traced training, AdamW, 32 × 3 × 224 × 224 · 1 × GeForce RTX 4090",
        ),
    ],
)
def test_the_phrase_of_a_traced_plan_states_the_run(catalog: Catalog, inputs, phrase: str):
    facts = FACTS.evolve(request=FACTS.request.evolve(inputs=inputs))
    assert plan_phrase(evaluate(PLAN.evolve(model=ModelChoice.of_trace(facts)), catalog), catalog) == phrase
