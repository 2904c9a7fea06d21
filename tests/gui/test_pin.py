"""Pinning, swapping and unpinning a plan."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from planner.errors import SpecError
from planner.gui.workspace import SAMPLE_PLAN, Workspace
from planner.hardware.gpu import Gpu
from planner.models.catalog import ModelCatalog
from planner.plan.catalog import Catalog
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice
from planner.workload.workload import Inference, Training

OTHER = SAMPLE_PLAN.evolve(workload=Inference(batch=8), count=2)


def with_gpus(catalog: Catalog, change: Callable[[Gpu], Gpu | None]) -> Catalog:
    """The catalog with what `change` makes of each card, without those it drops."""
    gpus = tuple(gpu for gpu in map(change, catalog.hardware.gpus) if gpu is not None)
    return replace(catalog, hardware=replace(catalog.hardware, gpus=gpus))


@pytest.fixture
def announced(workspace: Workspace):
    seen = []
    workspace.pin.changed.connect(lambda: seen.append(workspace.pin.plan))
    return seen


def test_what_is_pinned_stays_while_the_plan_changes(workspace: Workspace, announced):
    assert workspace.pin.plan is None
    workspace.pin.put(workspace.plan)
    workspace.answer("batch", {"workload.batch": 4})
    assert workspace.pin.plan == SAMPLE_PLAN
    assert workspace.pin.evaluation.memory.total_bytes < workspace.evaluation.memory.total_bytes
    workspace.new_plan()
    workspace.pin.put(None)
    assert announced == [SAMPLE_PLAN, None]


def test_a_plan_that_cannot_be_evaluated_is_not_pinned(workspace: Workspace, announced):
    workspace.pin.put(OTHER)
    with pytest.raises(SpecError):
        workspace.pin.put(OTHER.evolve(model=ModelChoice(id="nobody/nothing")))
    assert workspace.pin.plan == OTHER
    assert announced == [OTHER]


def test_a_swap_is_one_step_back_and_forth(workspace: Workspace):
    workspace.pin.put(OTHER)
    workspace.pin.swap()
    assert (workspace.plan, workspace.pin.plan) == (OTHER, SAMPLE_PLAN)
    assert workspace.undo_stack.count() == 1
    workspace.undo_stack.undo()
    assert (workspace.plan, workspace.pin.plan) == (SAMPLE_PLAN, OTHER)
    workspace.undo_stack.redo()
    assert (workspace.plan, workspace.pin.plan) == (OTHER, SAMPLE_PLAN)


def test_a_swap_takes_the_whole_plan_over(workspace: Workspace):
    wanted = OTHER.evolve(model=ModelChoice(id="openai-community/gpt2"), workload=Training(), gpu=None, count=1)
    workspace.pin.put(wanted)
    workspace.pin.swap()
    assert workspace.plan == wanted


def test_there_is_nothing_to_swap_with_nothing_or_the_same(workspace: Workspace):
    workspace.pin.swap()
    workspace.pin.put(workspace.plan)
    workspace.pin.swap()
    assert not workspace.undo_stack.canUndo()


def test_a_step_after_a_swap_leaves_the_pin_alone(workspace: Workspace):
    workspace.pin.put(OTHER)
    workspace.pin.swap()
    workspace.apply("number of cards", count=4)
    workspace.pin.put(None)
    workspace.undo_stack.undo()
    assert (workspace.plan, workspace.pin.plan) == (OTHER, None)


def test_the_pinned_plan_is_evaluated_with_the_current_catalog(workspace: Workspace, catalog):
    workspace.pin.put(OTHER)
    changed = with_gpus(catalog, lambda gpu: gpu.evolve(memory_bytes=2 * (gpu.memory_bytes or 0) or None))
    workspace.set_catalog(changed)
    assert workspace.pin.evaluation == evaluate(OTHER, changed)
    assert workspace.pin.evaluation.gpu == changed.hardware.gpu("rtx-4090")
    workspace.pin.swap()
    workspace.set_catalog(catalog)
    workspace.undo_stack.undo()
    assert workspace.evaluation == evaluate(SAMPLE_PLAN, catalog)
    assert workspace.pin.evaluation == evaluate(OTHER, catalog)


def test_another_catalog_announces_no_pin_where_there_is_none(workspace: Workspace, catalog, announced):
    workspace.set_catalog(with_gpus(catalog, lambda gpu: gpu))
    assert announced == []


def test_a_pinned_plan_whose_card_is_deleted_is_unpinned_with_an_error(workspace: Workspace, catalog, qtbot):
    workspace.pin.put(OTHER.evolve(gpu="rtx-3090"))
    with qtbot.waitSignal(workspace.failed) as told:
        workspace.set_catalog(with_gpus(catalog, lambda gpu: None if gpu.id == "rtx-3090" else gpu))
    assert "was unpinned because it can no longer be shown: gpu: no GPU has the id 'rtx-3090'" in told.args[0].message
    assert (workspace.plan, workspace.pin.plan) == (SAMPLE_PLAN, None)
    workspace.pin.swap()
    workspace.apply("number of cards", count=3)
    workspace.end_gesture()
    workspace.apply("number of cards", count=4)
    assert workspace.undo_stack.count() == 2


def test_a_failed_undo_of_a_swap_changes_neither_plan(workspace: Workspace, catalog, qtbot):
    gpt2 = SAMPLE_PLAN.evolve(model=ModelChoice(id="openai-community/gpt2"))
    workspace.apply("model", model=gpt2.model)
    workspace.pin.put(SAMPLE_PLAN)
    workspace.pin.swap()
    workspace.pin.put(OTHER)
    records = tuple(record for record in catalog.models.records if record.id != gpt2.model.id)
    workspace.set_catalog(replace(catalog, models=ModelCatalog(records)))
    with qtbot.waitSignal(workspace.failed):
        workspace.undo_stack.undo()
    assert (workspace.plan, workspace.pin.plan) == (SAMPLE_PLAN, OTHER)
    assert workspace.undo_stack.undoText() == "model"


def test_the_menu_pins_swaps_and_unpins(window):
    actions, workspace = window.commands, window.workspace
    assert not actions["plan.swap-pinned"].isEnabled()
    actions["plan.pin"].trigger()
    workspace.answer("batch", {"workload.batch": 4})
    actions["plan.swap-pinned"].trigger()
    assert (workspace.plan, workspace.pin.plan.workload.batch) == (SAMPLE_PLAN, 4)
    actions["plan.unpin"].trigger()
    assert workspace.pin.plan is None
    assert not actions["plan.unpin"].isEnabled()
