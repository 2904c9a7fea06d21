"""The button that starts a plan from a recipe."""

from each_record import for_each
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit
from recordings import training, two_steps

from planner import load_presets
from planner.gui.memory.tab import MemoryTab
from planner.plan.plan import ModelChoice
from planner.trace.analysis.memory import facts_of
from planner.units import GIB


def choose(tab: MemoryTab, qtbot, words: str) -> None:
    button = tab.controls.subject.presets
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    search = button.popover.findChild(QLineEdit)
    qtbot.keyClicks(search, words)
    qtbot.keyClick(search, Qt.Key.Key_Return)


def test_a_recipe_becomes_the_plan_in_one_step_and_says_where_it_stands(tab: MemoryTab, qtbot):
    before = tab.workspace.plan
    with qtbot.waitSignal(tab.workspace.noticed) as noticed:
        choose(tab, qtbot, "zephyr")
    plan = tab.workspace.plan
    assert (plan.model.id, plan.gpu, plan.count) == ("mistralai/Mistral-7B-v0.1", "a100-sxm4-80gb", 8)
    assert "Zephyr" in noticed.args[0]
    assert "https://github.com/huggingface/alignment-handbook" in noticed.args[1]
    assert tab.workspace.undo_stack.undoText() == "Zephyr 7B with DeepSpeed"
    tab.workspace.undo_stack.undo()
    assert tab.workspace.plan == before


def test_a_recipe_for_any_model_keeps_the_plans_model(tab: MemoryTab, qtbot):
    before = tab.workspace.plan
    choose(tab, qtbot, "llama-server")
    assert (tab.workspace.plan.model, tab.workspace.plan.gpu) == (before.model, before.gpu)
    assert tab.workspace.evaluation.workload.profile == "llama.cpp"


@for_each("preset", load_presets())
def test_the_questions_show_every_recipe(tab: MemoryTab, preset):
    tab.controls.subject.presets._apply_preset(preset)
    assert tab.workspace.plan.workload == preset.workload
    assert tab.answer.headline


def test_the_command_opens_the_list_of_recipes(tab: MemoryTab):
    tab.workspace.navigator.preset_requested.emit()
    assert tab.controls.subject.presets.popover.isVisible()
    tab.controls.subject.presets.popover.close()


def test_a_traced_module_needs_a_recipe_with_a_model(tab: MemoryTab, qtbot):
    facts = facts_of(two_steps(GIB, training()))
    tab.workspace.apply("traced", model=ModelChoice.of_trace(facts))
    with qtbot.waitSignal(tab.workspace.failed):
        tab.controls.subject.presets._apply_preset(next(one for one in load_presets() if one.id == "trl-sft"))
    assert tab.workspace.plan.model.trace is not None
