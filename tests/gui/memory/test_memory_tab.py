"""The Memory tab: questions, answer, reset, copy and save."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication, QPixmap, QWheelEvent
from PySide6.QtWidgets import QLabel, QLineEdit, QPushButton, QRadioButton, QSlider, QToolButton, QWidget

from planner.cli.main import main
from planner.gui.memory.tab import MemoryTab
from planner.gui.widgets.popover import search_choices
from planner.plan.evaluate import evaluate
from planner.plan.files import save_plan
from planner.plan.plan import ModelChoice
from planner.units import GIB
from planner.workload.workload import Inference, Training


def field(tab, name):
    return tab.controls.questions[tab.workspace.plan.workload.task].field(name)


def edit_of(tab, name):
    return field(tab, name).findChild(QLineEdit)


def type_into(qtbot, edit, text):
    edit.setFocus()
    edit.selectAll()
    qtbot.keyClicks(edit, text)


def button(widget, text):
    return next(made for made in widget.findChildren(QPushButton) if made.text().replace("&", "") == text)


def test_typing_a_batch_changes_the_plan_and_the_answer(tab: MemoryTab, qtbot):
    before = tab.answer.headline
    type_into(qtbot, edit_of(tab, "batch"), "16")
    assert tab.workspace.plan.workload.batch == 16
    assert tab.answer.headline != before
    assert "Does not fit" in tab.answer.headline


def test_a_long_context_offers_the_prompt_that_fills_it(tab: MemoryTab, qtbot):
    tab.workspace.answer("prompt", {"workload.prompt_length": None})
    assert tab.answer.assumed == ""
    type_into(qtbot, edit_of(tab, "context_length"), "32k")
    assert tab.answer.headline.startswith("Fits")
    assert "would fit only tightly" in tab.answer.assumed
    tab.answer.fill_prompt.click()
    assert tab.workspace.plan.workload.prompt_length == 32_768
    assert tab.answer.headline.startswith("Tight")
    assert tab.answer.assumed == ""


def test_without_a_card_the_cheapest_that_fits_is_named(tab: MemoryTab, qtbot):
    assert tab.answer.suggestions == ""
    tab.workspace.apply("card", gpu=None)
    qtbot.waitUntil(lambda: "The cheapest GPU that fits: " in tab.answer.suggestions)
    tab.workspace.apply("card", gpu="rtx-4090")
    assert tab.answer.suggestions == ""


def test_a_batch_on_several_replicas_is_told_in_all(tab: MemoryTab, qtbot):
    tab.workspace.apply("cards", count=2)
    assert field(tab, "batch").note == "1 per replica, 2 in all"
    type_into(qtbot, edit_of(tab, "batch"), "4")
    assert field(tab, "batch").note == "4 per replica, 8 in all"
    assert "batch 4 per replica, 8 in all" in tab.answer.facts
    tab.workspace.apply("cards", count=1)
    assert field(tab, "batch").note == ""


def test_a_search_for_4_bit_finds_every_family_and_names_the_usual_choice(tab: MemoryTab):
    weights = field(tab, "weights")
    found = {choice.key: choice for choice in search_choices(weights._choices(), "4 bit")}
    assert {"nf4", "awq4-128", "gptq4-128", "Q4_K_M"} <= found.keys()
    assert "Q8_0" not in found
    assert found["awq4-128"].detail.endswith("the usual choice")
    assert not found["awq4-64"].detail.endswith("the usual choice")


def test_wrong_input_stays_with_its_message_and_leaves_the_plan(tab: MemoryTab, qtbot):
    plan = tab.workspace.plan
    edit = edit_of(tab, "batch")
    type_into(qtbot, edit, "1x")
    assert tab.workspace.plan == plan
    assert edit.text() == "1x"
    assert "whole number" in edit.accessibleDescription()


def test_a_value_that_the_estimator_rejects_is_reported_below_its_field(tab: MemoryTab, qtbot):
    plan = tab.workspace.plan
    weights = field(tab, "weights")
    weights.edited.emit("papyrus")
    assert tab.workspace.plan == plan
    assert "papyrus" in weights.focusProxy().accessibleDescription()


def test_undo_restores_the_field_as_one_step_a_gesture(tab: MemoryTab, qtbot):
    type_into(qtbot, edit_of(tab, "batch"), "12")
    assert tab.workspace.undo_stack.count() == 1
    assert tab.workspace.undo_stack.undoText() == "batch size"
    tab.workspace.undo_stack.undo()
    assert edit_of(tab, "batch").text() == "1"
    tab.workspace.undo_stack.redo()
    assert edit_of(tab, "batch").text() == "12"


def test_an_open_length_shows_what_applies(tab: MemoryTab, qtbot):
    edit = edit_of(tab, "context_length")
    assert (edit.text(), edit.placeholderText()) == ("", "4,096")
    slider = field(tab, "context_length").findChild(QSlider)
    qtbot.keyClick(slider, Qt.Key.Key_Right)
    assert tab.workspace.plan.workload.context_length == 8192


def test_only_the_changed_field_is_marked_and_resets_alone(tab: MemoryTab, qtbot):
    type_into(qtbot, edit_of(tab, "batch"), "3")
    type_into(qtbot, edit_of(tab, "context_length"), "512")
    buttons = tab.controls.findChildren(QToolButton)
    reset = next(made for made in buttons if made.accessibleName() == "Reset “Context length”")
    assert reset.isVisible()
    qtbot.mouseClick(reset, Qt.MouseButton.LeftButton)
    assert tab.workspace.plan.workload == Inference(batch=3)
    assert not reset.isVisible()


def test_training_asks_other_questions(tab: MemoryTab, qtbot):
    train = next(made for made in tab.controls.subject.task.findChildren(QRadioButton) if made.text() == "Train")
    qtbot.mouseClick(train, Qt.MouseButton.LeftButton)
    assert isinstance(tab.workspace.plan.workload, Training)
    assert edit_of(tab, "micro_batch").isVisible()
    assert not tab.controls.questions["inference"].isVisible()
    assert edit_of(tab, "sequence_length").placeholderText() == "2,048"
    optimizer = field(tab, "optimizer")
    before = tab.workspace.evaluation.memory.total_bytes
    qtbot.keyClick(optimizer.focusProxy(), Qt.Key.Key_Down)
    search = optimizer.findChild(QLineEdit)
    qtbot.keyClicks(search, "adamw 8-bit")
    qtbot.keyClick(search, Qt.Key.Key_Return)
    assert tab.workspace.plan.workload.optimizer == "adamw-8bit"
    assert tab.workspace.evaluation.memory.total_bytes < before


def test_a_folded_section_says_its_value_and_remembers_that_it_was_opened(tab: MemoryTab, qtbot):
    heading = next(made for made in tab.controls.cards.findChildren(QToolButton) if made.text() == "GPUs")
    assert "collapsed, 1 × GeForce RTX 4090" in heading.accessibleName()
    assert not tab.controls.cards.count.isVisible()
    heading.setFocus()
    qtbot.keyClick(heading, Qt.Key.Key_Space)
    assert tab.controls.cards.count.isVisible()
    assert tab.workspace.settings.current.open_sections == ("GPUs",)


def test_cards_and_what_others_hold_are_part_of_the_plan(tab: MemoryTab, qtbot):
    cards = tab.controls.cards
    type_into(qtbot, cards.count.findChild(QLineEdit), "4")
    type_into(qtbot, cards.others.findChild(QLineEdit), "2")
    cards.card.edited.emit("h100-sxm5-80gb")
    plan = tab.workspace.plan
    assert (plan.count, plan.workload.other_processes_bytes, plan.gpu) == (4, 2 * GIB, "h100-sxm5-80gb")
    assert "4 × " in tab.answer.facts
    assert "Used by other programs 2.00" in tab.bar.accessibleDescription()


def test_reset_is_one_step_and_copy_gives_the_whole_answer(tab: MemoryTab, qtbot):
    tab.workspace.answer("batch", {"workload.batch": 3, "workload.kv_cache": "fp8"})
    qtbot.mouseClick(button(tab.controls, "Reset"), Qt.MouseButton.LeftButton)
    assert tab.workspace.plan.workload == Inference()
    tab.workspace.undo_stack.undo()
    assert tab.workspace.plan.workload.batch == 3
    tab.controls.copy.menu().actions()[0].trigger()
    assert QGuiApplication.clipboard().text() == tab.copy_result()
    assert tab.answer.accessibleName().partition(":")[0] in tab.copy_result()


def test_the_answer_is_saved_as_every_format(tab: MemoryTab, tmp_path, capsys):
    tab.workspace.answer("batch", {"workload.batch": 3})
    for ending in ("txt", "csv", "json", "png"):
        tab.copy_menu.save_to(tmp_path / f"memory.{ending}")
    save_plan(tmp_path / "plan.json", tab.workspace.plan)
    assert main(["fit", str(tmp_path / "plan.json"), "--json"]) == 0
    assert (tmp_path / "memory.json").read_text(encoding="utf-8") == capsys.readouterr().out.removesuffix("\n")
    rows = (tmp_path / "memory.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0].startswith("term,bytes,")
    assert sum(int(row.split(",")[1]) for row in rows[1:]) == tab.workspace.evaluation.memory.total_bytes
    assert (tmp_path / "memory.txt").read_text(encoding="utf-8") == tab.copy_result()
    picture = QPixmap(str(tmp_path / "memory.png"))
    assert picture.width() > tab.evidence.width()
    assert picture.height() < 2 * tab.results.widget().height()


def test_the_rows_sum_to_the_total(tab: MemoryTab, workspace):
    memory = workspace.evaluation.memory
    assert sum(term.bytes for term in memory.terms) == memory.total_bytes
    for term in memory.terms:
        tab.breakdown.open_term(term.name)
        assert f"{term.bytes:,}" in tab.breakdown.detail(term.name).text()


def test_a_click_on_the_bar_opens_the_row(tab: MemoryTab):
    tab.bar.activated.emit("weights")
    assert tab.breakdown.detail("weights") is not None


def test_a_card_that_cannot_run_it_gives_the_reason_and_no_numbers(tab: MemoryTab):
    tab.workspace.apply("card", gpu="tpu-v4")
    assert tab.answer.headline.startswith("Not supported on")
    assert not any(part.isVisible() for part in (tab.bar, tab.evidence, tab.exploration))
    tab.workspace.undo_stack.undo()
    assert all(part.isVisible() for part in (tab.bar, tab.evidence, tab.exploration))


def test_without_a_card_the_need_is_said(tab: MemoryTab):
    tab.workspace.apply("card", gpu=None)
    assert tab.answer.headline.startswith("Needs ")
    assert tab.controls.cards.card.text == "No GPU"


def test_an_encoder_is_not_asked_about_generating(tab: MemoryTab, catalog):
    record = next(record for record in catalog.models.records if record.kind == "encoder")
    tab.controls.subject.model.edited.emit(record.id)
    assert tab.workspace.plan.model == ModelChoice(id=record.id)
    assert field(tab, "prompt_length").isHidden()
    assert field(tab, "kv_cache").isHidden()
    assert not field(tab, "batch").isHidden()


def test_the_model_says_its_size_and_a_file_can_be_asked_for(tab: MemoryTab, qtbot):
    words = [label.text().replace("\u2009", " ") for label in tab.controls.subject.findChildren(QLabel)]
    assert "8.03 B parameters · up to 131,072 tokens of context" in words
    with qtbot.waitSignal(tab.workspace.navigator.model_file_requested):
        qtbot.mouseClick(button(tab.controls.subject, "Open file…"), Qt.MouseButton.LeftButton)


def test_searching_opens_the_list_of_models(tab: MemoryTab, qtbot):
    tab.focus_search()
    search = tab.controls.subject.model.findChild(QLineEdit)
    qtbot.keyClicks(search, "qwen2.5-0.5b")
    qtbot.keyClick(search, Qt.Key.Key_Return)
    assert tab.workspace.plan.model.id == "Qwen/Qwen2.5-0.5B"


@pytest.mark.usefixtures("explored_tab")
@pytest.mark.parametrize("task", ["inference", "training"])
def test_nothing_is_cut_off_at_the_smallest_size(tab: MemoryTab, task):
    tab.workspace.answer("task", {"workload.task": task})
    for area in (tab.controls, tab.results):
        assert area.widget().minimumSizeHint().width() <= area.viewport().width()
    assert tab.results.widget().height() <= tab.results.viewport().height()


def test_a_hidden_tab_draws_when_it_is_shown_again(tab: MemoryTab, qtbot):
    tab.hide()
    tab.workspace.answer("batch", {"workload.batch": 16})
    with qtbot.waitSignal(tab.exploration.updated):
        tab.show()
    assert "Does not fit" in tab.answer.headline
    assert tab.exploration.curve.data.current.value == 16


def test_the_answer_is_that_of_the_evaluation(tab: MemoryTab, catalog):
    assert tab.workspace.evaluation.memory == evaluate(tab.workspace.plan, catalog).memory


@pytest.mark.usefixtures("explored_tab")
@pytest.mark.parametrize("task", ["inference", "training"])
def test_every_focusable_widget_has_a_name(tab: MemoryTab, task):
    tab.workspace.answer("task", {"workload.task": task})
    reached = [made for made in tab.findChildren(QWidget) if made.focusPolicy() & Qt.FocusPolicy.TabFocus]
    nameless = [made for made in reached if not (made.accessibleName() or getattr(made, "text", str)())]
    assert [type(made).__name__ for made in nameless if made.isVisible()] == []


def test_the_wheel_scrolls_and_changes_nothing(tab: MemoryTab, qapp):
    plan = tab.workspace.plan
    for made in tab.controls.findChildren(QSlider):
        at = made.rect().center().toPointF()
        no = (Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False)
        qapp.sendEvent(made, QWheelEvent(at, at, QPoint(), QPoint(0, 120), *no))
    assert tab.workspace.plan == plan
