import pytest

from planner.errors import SpecError
from planner.gui.workspace import SAMPLE_PLAN, Workspace
from planner.plan.plan import ModelChoice
from planner.workload.workload import Inference, Training

OTHER = SAMPLE_PLAN.evolve(workload=Inference(batch=8), count=2)


@pytest.fixture
def announced(workspace: Workspace):
    seen = []
    workspace.pin.changed.connect(lambda: seen.append(workspace.pin.plan))
    return seen


def test_what_is_pinned_stays_while_the_plan_changes(workspace: Workspace, announced):
    assert workspace.pin.plan is None
    workspace.pin.put(workspace.plan)
    workspace.apply_workload("batch", batch=4)
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


def test_the_menu_pins_swaps_and_unpins(window):
    actions, workspace = window.commands, window.workspace
    assert not actions["plan.swap-pinned"].isEnabled()
    actions["plan.pin"].trigger()
    workspace.apply_workload("batch", batch=4)
    actions["plan.swap-pinned"].trigger()
    assert (workspace.plan, workspace.pin.plan.workload.batch) == (SAMPLE_PLAN, 4)
    actions["plan.unpin"].trigger()
    assert workspace.pin.plan is None
    assert not actions["plan.unpin"].isEnabled()
