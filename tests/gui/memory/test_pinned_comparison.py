"""The comparison of the plan with the pinned plan."""

import json

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog

from planner.gui.memory.tab import MemoryTab
from planner.gui.workspace import SAMPLE_PLAN
from planner.plan.comparison import versus
from planner.plan.files import save_plan
from planner.plan.plan import ModelChoice
from planner.plan.recipes import load_presets
from planner.workload.workload import Training

OTHER = SAMPLE_PLAN.evolve(workload=SAMPLE_PLAN.workload.evolve(batch=8))


@pytest.fixture
def panel(tab: MemoryTab):
    tab.workspace.pin.put(OTHER)
    return tab.versus


def test_the_panel_is_shown_while_a_plan_is_pinned(tab: MemoryTab, panel, qtbot):
    assert panel.isVisible()
    assert not tab.bar.isVisible()
    assert panel.view.settings == ("Batch size: 1 instead of 8",)
    assert panel.answer.text() == panel.view.other.headline
    qtbot.mouseClick(panel.pin_buttons.unpin, Qt.MouseButton.LeftButton)
    assert not panel.isVisible()
    assert tab.bar.isVisible()


def test_both_bars_have_one_scale(panel):
    here, there = (bar.picture.layout for bar in panel.bars)
    assert here.edge == there.edge < here.width
    weights = [next(piece for piece in one.pieces if piece.segment.name == "weights") for one in (here, there)]
    assert weights[0].right == weights[1].right
    assert here.high < there.high <= there.width


def test_the_comparison_follows_the_plan(tab: MemoryTab, panel):
    assert " per GPU than the pinned plan: " in panel.sentence.text()
    tab.workspace.answer("batch", {"workload.batch": 8})
    assert "Now change a setting on the left" in panel.sentence.text()
    assert not panel.pin_buttons.swap.isEnabled()
    tab.workspace.apply("card", gpu="tpu-v4")
    assert not panel.table.isVisible()
    assert not panel.bars[0].isVisible()
    assert panel.bars[1].isVisible()


def test_a_swap_can_be_undone(tab: MemoryTab, panel, qtbot):
    qtbot.mouseClick(panel.pin_buttons.swap, Qt.MouseButton.LeftButton)
    assert tab.workspace.plan == OTHER
    assert panel.view.settings == ("Batch size: 8 instead of 1",)
    tab.workspace.undo_stack.undo()
    assert panel.view.settings == ("Batch size: 1 instead of 8",)


def test_a_part_of_the_bar_opens_its_term(tab: MemoryTab, panel):
    panel.bars[0].activated.emit("kv_cache")
    assert tab.breakdown.detail("kv_cache") is not None


def test_the_comparison_is_copied_and_saved(tab: MemoryTab, panel, catalog, tmp_path):
    panel.menu.actions()[0].trigger()
    assert QGuiApplication.clipboard().text() == panel.view.as_text()
    for ending in ("csv", "json", "png"):
        panel.menu.save_to(tmp_path / f"comparison.{ending}")
    assert (tmp_path / "comparison.csv").read_text().startswith("kind,name,bytes,other_bytes,difference_bytes\n")
    found = json.loads((tmp_path / "comparison.json").read_text())
    assert found == versus(tab.workspace.plan, OTHER, catalog).model_dump(mode="json")
    assert (tmp_path / "comparison.png").stat().st_size > 1000
    assert panel.pin_buttons.swap.isVisible()


def test_the_rows_of_the_table_are_copied_with_the_keyboard(panel, qtbot):
    panel.table.setFocus()
    panel.table.selectAll()
    qtbot.keyClick(panel.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = QGuiApplication.clipboard().text().splitlines()
    assert lines[0].split("\t")[0] == "Part"
    assert len(lines) == len(panel.view.rows) + 1


@pytest.mark.parametrize(
    ("picked", "key", "changes"),
    [
        ("cards", "tesla-t4", {"gpu": "tesla-t4"}),
        ("models", "openai-community/gpt2", {"model": ModelChoice(id="openai-community/gpt2")}),
    ],
)
def test_another_card_or_model_is_pinned(tab: MemoryTab, picked, key, changes):
    getattr(tab.controls.compare, picked).chosen.emit(key)
    assert tab.workspace.pin.plan == SAMPLE_PLAN.evolve(**changes)
    assert tab.versus.isVisible()


def test_a_recipe_is_pinned_for_the_plans_model(tab: MemoryTab):
    preset = next(one for one in load_presets() if one.model is None and one.config is None)
    tab.controls.compare.recipes.chosen.emit(preset.id)
    assert tab.workspace.pin.plan.workload == preset.workload
    assert tab.workspace.pin.plan.model == SAMPLE_PLAN.model


def test_the_lists_are_offered_from_the_menu(tab: MemoryTab):
    button = tab.controls.compare
    for words, popover in (
        ("Another GPU…", button.cards),
        ("Another model…", button.models),
        ("A recipe…", button.recipes),
    ):
        entry(button, words).trigger()
        assert popover.isVisible()
        popover.close()


def test_the_present_plan_and_a_file_are_pinned(tab: MemoryTab, monkeypatch, tmp_path, qtbot):
    entry(tab.controls.compare, "This plan as it is now").trigger()
    assert tab.workspace.pin.plan == SAMPLE_PLAN
    file = tmp_path / "other.json"
    save_plan(file, OTHER)
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(file), ""))
    entry(tab.controls.compare, "A saved plan…").trigger()
    assert tab.workspace.pin.plan == OTHER
    file.write_text("no plan")
    with qtbot.waitSignal(tab.workspace.failed):
        entry(tab.controls.compare, "A saved plan…").trigger()
    assert tab.workspace.pin.plan == OTHER


def test_a_log_is_asked_for(tab: MemoryTab, qtbot):
    with qtbot.waitSignal(tab.workspace.navigator.log_requested):
        entry(tab.controls.compare, "Log of a run…").trigger()


def test_nothing_is_cut_off_at_the_smallest_size(tab: MemoryTab, panel):
    tab.workspace.apply("training", workload=Training(method="lora"))
    assert tab.results.widget().minimumSizeHint().width() <= tab.results.viewport().width()


def entry(button, words):
    return next(action for action in button.menu().actions() if action.text().replace("&", "") == words)
