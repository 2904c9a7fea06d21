"""Recipes to start a plan from: each loads, says where it stands, and is estimated."""

import json

import pytest
from recordings import training, two_steps

from planner import load_presets, plan_of_preset, with_preset
from planner.errors import CatalogError, SpecError
from planner.plan.evaluate import evaluate
from planner.plan.files import load_plan, save_plan
from planner.plan.plan import ModelChoice, Plan
from planner.plan.recipes.preset import Preset, find_preset
from planner.present.plan.starting_points import preset_detail, preset_notes
from planner.trace.analysis.memory import facts_of
from planner.units import GIB
from planner.workload.parallel import CardCount
from planner.workload.workload import Inference, Training

PRESETS = load_presets()
OWN = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), gpu="rtx-4090")


def plan_of(preset: Preset) -> Plan:
    return plan_of_preset(preset) if preset.own_model else with_preset(OWN, preset)


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.id)
def test_every_preset_is_estimated_on_its_model(preset, catalog):
    plan = plan_of(preset)
    evaluation = evaluate(plan, catalog)
    assert evaluation.memory.total_bytes > 0
    assert sum(term.bytes for term in evaluation.memory.terms) == evaluation.memory.total_bytes
    if plan.gpu is not None and preset.id != "trl-sft":
        assert (evaluation.memory.fit_probability or 0) >= 0.05, "its source says that it runs there"


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.id)
def test_every_preset_has_dated_sources(preset, catalog):
    assert all(source.startswith("https://") for source in preset.sources)
    assert preset.summary.endswith(".")
    assert preset.as_of in ("2026-11-21",)
    assert preset_detail(preset, catalog.hardware)
    assert preset_notes(preset)[0].startswith(preset.title)


def test_the_model_of_a_preset_is_saved_with_a_plan(tmp_path):
    plan = plan_of_preset(find_preset(PRESETS, "megatron-gpt3-175b"))
    save_plan(tmp_path / "plan.json", plan)
    assert load_plan(tmp_path / "plan.json") == plan
    assert plan.model.architecture is not None
    assert 174e9 < plan.model.architecture.parameters < 176e9


def test_training_presets_come_first():
    tasks = [preset.workload.task for preset in PRESETS]
    assert tasks == sorted(tasks, reverse=True)
    assert {"training", "inference"} == set(tasks)


def test_a_preset_is_found_by_its_id_in_any_case():
    assert find_preset(PRESETS, " Vicuna-7B ").id == "vicuna-7b"
    with pytest.raises(SpecError) as caught:
        find_preset(PRESETS, "llama-3")
    assert "axolotl-llama-3-qlora" in caught.value.hint
    with pytest.raises(SpecError) as caught:
        find_preset(PRESETS, "")
    assert "--list-presets" in caught.value.hint


def test_a_preset_for_any_model_needs_a_model():
    with pytest.raises(SpecError, match="for any model"):
        plan_of_preset(find_preset(PRESETS, "llama-server"))


def test_a_preset_keeps_the_plans_model_and_other_programs():
    held = OWN.evolve(workload=Inference(other_processes_bytes=5))
    plan = with_preset(held, find_preset(PRESETS, "zephyr-7b-sft"))
    assert (plan.model, plan.gpu, plan.count) == (OWN.model, "a100-sxm4-80gb", 8)
    assert isinstance(plan.workload, Training)
    assert plan.workload.other_processes_bytes == 5


def test_a_preset_for_any_model_keeps_batch_and_lengths_that_it_does_not_state():
    asked = OWN.evolve(workload=Inference(batch=50, context_length=8_192, prompt_length=6_000))
    served = with_preset(asked, find_preset(PRESETS, "vllm-serve")).workload
    assert (served.profile, served.batch, served.context_length, served.prompt_length) == ("vllm", 50, 8_192, 6_000)
    tuned = OWN.evolve(workload=Training(micro_batch=3, sequence_length=512))
    assert with_preset(tuned, find_preset(PRESETS, "trl-sft")).workload.micro_batch == 8
    assert with_preset(tuned, find_preset(PRESETS, "vllm-serve")).workload.batch == 1


def test_a_preset_without_cards_keeps_unequal_cards():
    cards = (CardCount(id="rtx-4090"), CardCount(id="rtx-3090"))
    unequal = Plan(model=OWN.model, workload=Inference(gpus=cards))
    assert with_preset(unequal, find_preset(PRESETS, "trl-sft")).workload.gpus == cards
    assert with_preset(unequal, find_preset(PRESETS, "alpaca-lora-7b")).workload.gpus == ()


def test_a_preset_is_refused_for_a_traced_module():
    traced = Plan(model=ModelChoice.of_trace(facts_of(two_steps(GIB, training()))))
    with pytest.raises(SpecError, match="traced"):
        with_preset(traced, PRESETS[0])


def test_two_presets_with_one_id_are_an_error(tmp_path):
    record = json.loads(PRESETS[0].model_dump_json(exclude_unset=True))
    (tmp_path / "twice.json").write_text(json.dumps([record, record]), encoding="utf-8")
    with pytest.raises(CatalogError, match="another record has this id"):
        load_presets(tmp_path)
    assert len({hash(preset) for preset in PRESETS}) == len(PRESETS)
