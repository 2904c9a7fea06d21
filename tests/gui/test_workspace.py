"""The workspace: changes, undo steps, opening and saving of the plan."""

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QTimer

from planner.errors import PlanFileError, SpecError
from planner.gui.workspace import SAMPLE_PLAN, Workspace
from planner.models.catalog import ModelCatalog
from planner.plan.catalog import Catalog
from planner.plan.evaluate import evaluate
from planner.plan.files import load_plan
from planner.plan.plan import ModelChoice
from planner.workload.parallel import CardCount, Parallel
from planner.workload.workload import Inference, Training


@pytest.fixture
def seen(workspace: Workspace):
    """The changes that were announced, as pairs of plans."""
    pairs = []
    workspace.changed.connect(lambda old, new: pairs.append((old, new)))
    return pairs


def test_it_starts_with_the_sample_plan_evaluated(workspace: Workspace):
    assert workspace.plan == SAMPLE_PLAN
    assert workspace.evaluation.memory.total_bytes > 0
    assert not workspace.modified


def test_a_change_is_validated_evaluated_and_announced(workspace: Workspace, seen):
    before = workspace.evaluation
    workspace.apply("number of cards", count=2)
    assert workspace.plan.count == 2
    assert workspace.evaluation is not before
    assert seen == [(SAMPLE_PLAN, workspace.plan)]
    assert workspace.modified


@pytest.mark.parametrize(
    ("changes", "field"), [({"count": 0}, "count"), ({"colour": 1}, "colour"), ({"gpu": "gtx-0"}, "gpu")]
)
def test_an_invalid_change_leaves_the_plan_unchanged(workspace: Workspace, seen, changes, field):
    with pytest.raises(SpecError) as caught:
        workspace.apply("something", **changes)
    assert caught.value.field == field
    assert workspace.plan == SAMPLE_PLAN
    assert seen == []
    assert not workspace.undo_stack.canUndo()


def test_a_wrong_workload_names_its_field(workspace: Workspace):
    with pytest.raises(SpecError) as caught:
        workspace.answer("batch", {"workload.batch": 0})
    assert caught.value.field == "workload.batch"


def test_undo_and_redo_have_names(workspace: Workspace):
    workspace.answer("batch", {"workload.batch": 4})
    assert workspace.undo_stack.undoText() == "batch"
    workspace.undo_stack.undo()
    assert workspace.plan == SAMPLE_PLAN
    assert not workspace.modified
    workspace.undo_stack.redo()
    assert workspace.plan.workload.batch == 4


def test_one_gesture_is_one_step(workspace: Workspace):
    for batch in range(2, 50):
        workspace.answer("batch", {"workload.batch": batch})
    assert workspace.undo_stack.count() == 1
    workspace.undo_stack.undo()
    assert workspace.plan == SAMPLE_PLAN


def test_the_end_of_a_gesture_starts_a_new_step(workspace: Workspace):
    workspace.answer("batch", {"workload.batch": 2})
    workspace.end_gesture()
    workspace.answer("batch", {"workload.batch": 3})
    assert workspace.undo_stack.count() == 2


def test_an_idle_second_ends_a_gesture(workspace: Workspace, qtbot):
    idle = next(timer for timer in workspace.findChildren(QTimer))
    workspace.answer("batch", {"workload.batch": 2})
    assert idle.isActive()
    qtbot.waitUntil(lambda: not idle.isActive())
    workspace.answer("batch", {"workload.batch": 3})
    assert workspace.undo_stack.count() == 2


def test_other_labels_do_not_merge(workspace: Workspace):
    workspace.answer("batch", {"workload.batch": 2})
    workspace.apply("number of cards", count=2)
    assert workspace.undo_stack.count() == 2


def test_a_gesture_back_to_the_start_leaves_no_step(workspace: Workspace):
    workspace.answer("batch", {"workload.batch": 2})
    workspace.answer("batch", {"workload.batch": 1})
    assert workspace.undo_stack.count() == 0
    assert not workspace.modified


def test_no_change_is_no_step(workspace: Workspace, seen):
    workspace.apply("card", gpu=SAMPLE_PLAN.gpu)
    assert seen == []
    assert workspace.undo_stack.count() == 0


def test_each_task_remembers_its_workload(workspace: Workspace):
    workspace.answer("batch", {"workload.batch": 8})
    workspace.answer("task", {"workload.task": "training"})
    assert workspace.plan.workload == Training()
    workspace.answer("micro batch", {"workload.micro_batch": 4})
    workspace.answer("task", {"workload.task": "inference"})
    assert workspace.plan.workload == SAMPLE_PLAN.workload.evolve(batch=8)
    workspace.answer("task", {"workload.task": "training", "workload.sequence_length": 512})
    assert workspace.plan.workload == Training(micro_batch=4, sequence_length=512)


def test_fine_tuning_starts_with_what_fits_and_keeps_it(workspace: Workspace):
    workspace.set_goal("fine-tune")
    assert workspace.plan.workload.method == "lora"
    assert workspace.evaluation.memory.verdict == "fits"
    workspace.end_gesture()
    workspace.answer("rank", {"workload.lora.rank": 8})
    workspace.end_gesture()
    workspace.set_goal("run")
    assert workspace.plan.workload == SAMPLE_PLAN.workload
    workspace.end_gesture()
    workspace.set_goal("fine-tune")
    assert workspace.plan.workload.lora.rank == 8
    workspace.end_gesture()
    workspace.set_goal("train")
    assert workspace.plan.workload.method == "full"


def test_a_plan_is_a_sample_until_another_is_opened_or_taken(workspace: Workspace, tmp_path: Path):
    assert workspace.is_sample
    workspace.begin("run", SAMPLE_PLAN.model, SAMPLE_PLAN.gpu, 1)
    assert workspace.plan == SAMPLE_PLAN.evolve(workload=Inference(), cost=workspace.plan.cost)
    assert not workspace.is_sample
    workspace.show_sample()
    assert workspace.is_sample
    workspace.begin("train", SAMPLE_PLAN.model, "rtx-3090", 2)
    assert (workspace.plan.workload, workspace.plan.gpu, workspace.plan.count) == (Training(), "rtx-3090", 2)
    workspace.new_plan()
    assert workspace.is_sample
    workspace.save_plan(tmp_path / "plan.json")
    assert not workspace.is_sample


def test_an_unknown_task_is_refused(workspace: Workspace):
    with pytest.raises(SpecError, match="not a task"):
        workspace.answer("task", {"workload.task": "dreaming"})


def test_a_plan_is_saved_and_opened(workspace: Workspace, tmp_path, qtbot):
    workspace.answer("batch", {"workload.batch": 8})
    with qtbot.waitSignal(workspace.file_changed):
        workspace.save_plan(tmp_path / "mine.plan.json")
    assert not workspace.modified
    assert load_plan(tmp_path / "mine.plan.json") == workspace.plan
    saved = workspace.plan
    workspace.new_plan()
    assert workspace.path is None
    workspace.replace(load_plan(tmp_path / "mine.plan.json"), tmp_path / "mine.plan.json")
    assert workspace.plan == saved
    assert workspace.path == tmp_path / "mine.plan.json"
    assert not workspace.undo_stack.canUndo()
    assert workspace.settings.current.recent == (str(tmp_path / "mine.plan.json"),)


def test_saving_again_goes_to_the_same_file(workspace: Workspace, tmp_path):
    workspace.save_plan(tmp_path / "a.json")
    workspace.apply("number of cards", count=3)
    assert workspace.modified
    workspace.save_plan()
    assert load_plan(tmp_path / "a.json").count == 3
    assert not workspace.modified


def test_a_file_that_is_no_plan_leaves_the_plan_alone(workspace: Workspace, tmp_path):
    (tmp_path / "x.json").write_text("[]")
    workspace.apply("number of cards", count=3)
    with pytest.raises(PlanFileError):
        workspace.replace(load_plan(tmp_path / "x.json"), tmp_path / "x.json")
    assert workspace.plan.count == 3
    assert workspace.undo_stack.canUndo()


def test_a_plan_for_an_unknown_card_leaves_the_plan_alone(workspace: Workspace):
    with pytest.raises(SpecError):
        workspace.replace(SAMPLE_PLAN.evolve(gpu="gtx-0"), None)
    assert workspace.plan == SAMPLE_PLAN


def test_errors_inside_reporting_reach_the_banner(workspace: Workspace, qtbot):
    with qtbot.waitSignal(workspace.failed) as failed, workspace.reporting():
        workspace.apply("card", gpu="gtx-0")
    assert isinstance(failed.args[0], SpecError)


def test_a_plan_without_a_file_cannot_be_saved_without_one(workspace: Workspace):
    with pytest.raises(ValueError, match="no file"):
        workspace.save_plan()


def test_an_answer_adjusts_conflicting_fields_in_one_step(workspace: Workspace, qtbot):
    workspace.apply("training", workload=Training(compute="bf16", weights="bf16"))
    workspace.end_gesture()
    with qtbot.waitSignal(workspace.adjusted) as told:
        workspace.answer("method", {"workload.method": "qlora"})
    assert told.args == [
        "Also changed: activation checkpointing to Full (every layer), compute precision to BF16 autocast, "
        "weight format to default."
    ]
    assert workspace.plan.workload == Training(method="qlora", weights=None, activation_checkpointing="full")
    workspace.undo_stack.undo()
    assert workspace.plan.workload == Training(compute="bf16", weights="bf16")


def test_a_number_on_the_way_to_another_loses_nothing(workspace: Workspace):
    shared = Training(parallel=Parallel(zero=3, tensor=4))
    workspace.apply("eight", workload=shared, gpu="h100-sxm5-80gb", count=8)
    workspace.end_gesture()
    workspace.answer("number of cards", {"count": 1})
    assert workspace.plan.workload.parallel == Parallel()
    workspace.answer("number of cards", {"count": 16})
    assert (workspace.plan.workload, workspace.plan.count) == (shared, 16)
    assert workspace.undo_stack.count() == 2


def test_the_cards_and_what_others_hold_stay_with_another_task(workspace: Workspace):
    cards = (CardCount(id="rtx-4090"), CardCount(id="rtx-3090"))
    held = Inference(gpus=cards, other_processes_bytes=7, batch=3)
    workspace.apply("unequal", workload=held, gpu=None, count=2)
    workspace.answer("task", {"workload.task": "training"})
    assert workspace.plan.workload == Training(gpus=cards, other_processes_bytes=7)
    workspace.end_gesture()
    workspace.answer("card", {"gpu": "rtx-4090"})
    workspace.end_gesture()
    workspace.answer("task", {"workload.task": "inference"})
    assert workspace.plan.workload == Inference(gpus=(), other_processes_bytes=7, batch=3)
    with pytest.raises(SpecError):
        workspace.answer("task", {"workload.task": "guess"})


def with_gpu(catalog: Catalog, gpu_id: str, **changes: object) -> Catalog:
    """The catalog with another record of the same card."""
    hardware = catalog.hardware
    gpus = tuple(gpu.evolve(**changes) if gpu.id == gpu_id else gpu for gpu in hardware.gpus)
    return replace(catalog, hardware=replace(hardware, gpus=gpus))


def without_model(catalog: Catalog, model_id: str) -> Catalog:
    """The catalog without one of its models."""
    return replace(catalog, models=ModelCatalog(tuple(r for r in catalog.models.records if r.id != model_id)))


def test_a_step_shows_what_the_plan_comes_to_with_the_present_catalog(workspace: Workspace):
    workspace.apply("card", gpu="rtx-3090")
    workspace.end_gesture()
    workspace.apply("cards", count=2)
    card = workspace.catalog.hardware.gpu("rtx-4090")
    changed = with_gpu(workspace.catalog, "rtx-4090", memory_bytes=2 * card.memory_bytes, power_limit_watts=200)
    workspace.set_catalog(changed)
    workspace.undo_stack.undo()
    workspace.undo_stack.undo()
    assert workspace.evaluation.gpu.memory_bytes == 2 * card.memory_bytes
    assert workspace.evaluation.gpu.drawn_watts == 200
    assert workspace.evaluation == evaluate(SAMPLE_PLAN, changed)
    assert not workspace.modified
    workspace.set_catalog(with_gpu(changed, "rtx-3090", memory_bytes=card.memory_bytes * 3))
    workspace.undo_stack.redo()
    assert workspace.evaluation.gpu.memory_bytes == 3 * card.memory_bytes


def test_a_step_within_one_catalog_is_not_evaluated_again(workspace: Workspace):
    before = workspace.evaluation
    workspace.apply("number of cards", count=2)
    workspace.undo_stack.undo()
    assert workspace.evaluation is before


@pytest.fixture
def three_models(workspace: Workspace) -> Workspace:
    """Three plans in the history, of which the one in the middle cannot be evaluated any more."""
    for label, model in (("small", "openai-community/gpt2"), ("other", "Qwen/Qwen2.5-7B")):
        workspace.apply(label, model=ModelChoice(id=model))
        workspace.end_gesture()
    workspace.set_catalog(without_model(workspace.catalog, "openai-community/gpt2"))
    return workspace


def test_an_undo_that_cannot_be_shown_is_reported_and_removed(three_models: Workspace, seen, qtbot):
    plan, stack = three_models.plan, three_models.undo_stack
    with qtbot.waitSignal(three_models.failed) as told:
        stack.undo()
    assert "can no longer be shown: model: no model has the id" in told.args[0].message
    assert (three_models.plan, seen, three_models.modified) == (plan, [], True)
    assert (stack.count(), stack.undoText(), stack.canRedo()) == (1, "small", False)
    stack.undo()
    assert three_models.plan == SAMPLE_PLAN


def test_a_redo_that_cannot_be_shown_is_reported_and_removed(workspace: Workspace, qtbot):
    workspace.apply("small", model=ModelChoice(id="openai-community/gpt2"))
    workspace.undo_stack.undo()
    workspace.set_catalog(without_model(workspace.catalog, "openai-community/gpt2"))
    with qtbot.waitSignal(workspace.failed):
        workspace.undo_stack.redo()
    assert (workspace.plan, workspace.modified) == (SAMPLE_PLAN, False)
    assert workspace.undo_stack.count() == 0


@pytest.mark.parametrize("saved_first", [True, False])
def test_a_plan_that_stays_where_a_step_fails_is_as_saved_as_it_was(workspace: Workspace, tmp_path, saved_first):
    workspace.apply("small", model=ModelChoice(id="openai-community/gpt2"))
    workspace.end_gesture()
    if saved_first:
        workspace.save_plan(tmp_path / "plan.json")
    workspace.apply("other", model=ModelChoice(id="Qwen/Qwen2.5-7B"))
    if not saved_first:
        workspace.save_plan(tmp_path / "plan.json")
    workspace.set_catalog(without_model(workspace.catalog, "openai-community/gpt2"))
    workspace.undo_stack.undo()
    assert workspace.modified


def test_the_cost_of_a_plan_begun_with_a_card_is_that_of_owning_it(workspace: Workspace):
    workspace.begin("run", SAMPLE_PLAN.model, "rtx-3090", 1, is_owned=True)
    assert workspace.plan.cost.buy.owned
    workspace.begin("fine-tune", SAMPLE_PLAN.model, None, 1)
    assert not workspace.plan.cost.buy.owned
    assert workspace.plan.cost.job.kind == "run"


def test_training_is_a_run_and_running_again_a_number_of_hours_a_day(workspace: Workspace):
    workspace.set_goal("fine-tune")
    assert workspace.plan.cost.job.kind == "run"
    workspace.end_gesture()
    workspace.set_goal("run")
    assert workspace.plan.cost == SAMPLE_PLAN.cost
