"""The plan bar: its texts, its pickers, and the plan's time and cost."""

import re

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QComboBox, QLabel, QLineEdit, QPushButton
from pytestqt.qtbot import QtBot

from planner.cost.terms import CostTerms, Run
from planner.gui.plan_bar import PartButton, PlanBar
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.widgets.labels import verdict_icon
from planner.gui.workspace import SAMPLE_PLAN, Workspace
from planner.present.cost.time import pace_phrase
from planner.present.memory.verdict import verdict_phrase
from planner.workload.parallel import Parallel
from planner.workload.training import Training


@pytest.fixture
def bar(qtbot: QtBot, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> PlanBar:
    made = PlanBar(workspace, theme, tasks)
    qtbot.addWidget(made)
    made.resize(1280, 44)
    made.show()
    return made


def parts(bar: PlanBar) -> list[str]:
    return [part.full_text for part in bar.findChildren(PartButton)]


def popup_edit(nth: int = 0) -> QLineEdit:
    return QApplication.activePopupWidget().findChildren(QLineEdit)[nth]


def click(bar: PlanBar, qtbot: QtBot, position: int) -> None:
    qtbot.mouseClick(bar.findChildren(PartButton)[position], Qt.MouseButton.LeftButton)


def test_the_bar_reads_like_a_sentence(bar: PlanBar, workspace: Workspace):
    model, workload, cards, verdict, *_ = parts(bar)
    assert model == "Llama-3.1-8B"
    assert workload.startswith("Inference, 1 × 4,096 tokens")
    assert cards == "1 × GeForce RTX 4090"
    assert verdict == verdict_phrase(workspace.evaluation.memory)


def test_a_plan_that_cannot_run_is_marked_so(bar: PlanBar, workspace: Workspace):
    workspace.apply("card", gpu="tpu-v4")
    verdict = bar.findChildren(PartButton)[3]
    assert (verdict.full_text, verdict._icon) == ("Not supported", verdict_icon("does-not-fit"))


def test_the_bar_marks_the_sample_until_something_is_chosen(bar: PlanBar, workspace: Workspace):
    (mark,) = [label for label in bar.findChildren(QLabel) if label.text() == "Sample plan:"]
    assert mark.isVisible()
    workspace.apply("number of cards", count=2)
    assert not mark.isVisible()
    workspace.undo_stack.undo()
    assert mark.isVisible()
    workspace.begin("run", SAMPLE_PLAN.model, SAMPLE_PLAN.gpu)
    assert not mark.isVisible()


def test_the_bar_follows_the_plan(bar: PlanBar, workspace: Workspace):
    workspace.apply("number of cards", count=8)
    assert parts(bar)[2].startswith("8 × ")
    workspace.apply("card", gpu=None)
    assert parts(bar)[2] == "Choose a GPU"
    assert parts(bar)[3].startswith("Needs ")


def test_all_texts_fit_at_1280(bar: PlanBar):
    assert [part.text() for part in bar.findChildren(PartButton)] == parts(bar)


def test_a_narrow_bar_shortens_its_words_but_says_them(bar: PlanBar):
    bar.resize(480, 44)
    QApplication.processEvents()
    assert any("…" in part.text() for part in bar.findChildren(PartButton))
    assert bar.findChildren(PartButton)[0].accessibleName() == "Model: Llama-3.1-8B"


def test_a_card_is_picked_by_typing(bar: PlanBar, workspace: Workspace, qtbot: QtBot):
    click(bar, qtbot, 2)
    search = popup_edit(1)
    qtbot.keyClicks(search, "a100 pcie 40")
    qtbot.keyClick(search, Qt.Key.Key_Return)
    assert workspace.plan.gpu.startswith("a100-pcie")
    assert workspace.undo_stack.undoText() == "GPU"


def test_each_card_shows_its_verdict(bar: PlanBar, qtbot: QtBot):
    click(bar, qtbot, 2)
    marks = {choice.mark[0] for choice in QApplication.activePopupWidget().list.matches if choice.mark}
    assert {"fits", "does-not-fit"} <= marks
    QApplication.activePopupWidget().close()


def test_the_number_of_cards_is_typed(bar: PlanBar, workspace: Workspace, qtbot: QtBot):
    click(bar, qtbot, 2)
    count = popup_edit(0)
    count.selectAll()
    qtbot.keyClicks(count, "16")
    assert workspace.plan.count == 16
    QApplication.activePopupWidget().close()


def test_a_model_is_picked_by_typing(bar: PlanBar, workspace: Workspace, qtbot: QtBot):
    other = next(r.id for r in workspace.catalog.models.records if r.id != SAMPLE_PLAN.model.id)
    click(bar, qtbot, 0)
    qtbot.keyClicks(popup_edit(), other.rpartition("/")[2])
    qtbot.keyClick(popup_edit(), Qt.Key.Key_Return)
    assert workspace.plan.model.id.rpartition("/")[2] == other.rpartition("/")[2]


def test_the_workload_is_changed_in_its_popover(bar: PlanBar, workspace: Workspace, qtbot: QtBot):
    click(bar, qtbot, 1)
    popup = QApplication.activePopupWidget()
    sequences, length = popup.findChildren(QLineEdit)
    assert length.placeholderText() == "4,096 by default"
    sequences.selectAll()
    qtbot.keyClicks(sequences, "8")
    qtbot.keyClicks(length, "1024")
    assert workspace.plan.workload.batch == 8
    assert workspace.plan.workload.context_length == 1024
    qtbot.keyClick(popup.findChild(QComboBox), Qt.Key.Key_Down)
    assert workspace.plan.workload.task == "training"
    assert [edit.accessibleName() for edit in (sequences, length)] == ["Micro-batch size", "Sequence length"]
    sequences.selectAll()
    qtbot.keyClicks(sequences, "2")
    qtbot.keyClicks(length, "512")
    assert (workspace.plan.workload.micro_batch, workspace.plan.workload.sequence_length) == (2, 512)
    popup.close()


def test_the_rest_of_the_workload_is_on_its_tab(bar: PlanBar, qtbot: QtBot):
    click(bar, qtbot, 1)
    popup = QApplication.activePopupWidget()
    with qtbot.waitSignal(bar._workspace.navigator.tab_requested) as wanted:
        popup.findChild(QPushButton).click()
    assert wanted.args == ["memory"]
    assert popup.isHidden()


@pytest.mark.parametrize(("position", "tab"), [(0, "memory"), (1, "memory"), (2, "catalog")])
def test_a_second_click_leads_to_the_tab(bar: PlanBar, qtbot: QtBot, position: int, tab: str):
    click(bar, qtbot, position)
    popup, part = QApplication.activePopupWidget(), bar.findChildren(PartButton)[position]
    at = popup.mapFromGlobal(part.mapToGlobal(part.rect().center()))
    with qtbot.waitSignal(bar._workspace.navigator.tab_requested) as wanted:
        qtbot.mousePress(popup, Qt.MouseButton.LeftButton, pos=at)
    assert wanted.args == [tab]


def test_the_verdict_leads_to_its_reasons(bar: PlanBar, qtbot: QtBot):
    with qtbot.waitSignal(bar._workspace.navigator.tab_requested) as wanted:
        click(bar, qtbot, 3)
    assert wanted.args == ["memory"]


def test_time_is_shown_at_once_and_cost_after_a_delay(bar: PlanBar, workspace: Workspace, qtbot: QtBot):
    pace, money = bar.findChildren(PartButton)[4:]
    assert pace.full_text == pace_phrase(workspace.evaluation.time)
    qtbot.waitUntil(money.isVisible)
    assert money.full_text.startswith("$")
    assert money.full_text.endswith(("rented", "owned"))


def test_a_narrow_bar_leaves_out_words_before_it_cuts_names_and_numbers(
    bar: PlanBar, workspace: Workspace, qtbot: QtBot
):
    sharded = Training(activation_checkpointing="full", parallel=Parallel(zero=3))
    workspace.apply("work", workload=sharded, gpu="h100-sxm5-80gb", count=8)
    parts = bar.findChildren(PartButton)
    qtbot.waitUntil(parts[5].isVisible)
    bar.resize(2400, bar.height())
    qtbot.waitUntil(lambda: [part.text() for part in parts] == [part.full_text for part in parts])
    bar.resize(960, bar.height())
    qtbot.waitUntil(lambda: parts[5].text() != parts[5].full_text and "…" not in parts[5].text())
    others = (parts[0], *parts[2:])
    qtbot.waitUntil(lambda: not any("…" in part.text() for part in others))
    assert parts[1].text().startswith("1 × 2,048")
    for part in others:
        assert re.findall(r"[\d.,]+\d", part.text()) == re.findall(r"[\d.,]+\d", part.full_text)


def test_a_run_has_an_end(bar: PlanBar, workspace: Workspace, qtbot: QtBot):
    workspace.apply("job", cost=CostTerms(job=Run(amount=6, unit="hours")))
    pace, money = bar.findChildren(PartButton)[4:]
    qtbot.waitUntil(lambda: pace.full_text == "6.00\u202fh" or pace.full_text.replace("\u2009", " ") == "6.00 h")
    assert "per run" in money.full_text


def test_a_plan_that_does_not_fit_has_neither_time_nor_cost(bar: PlanBar, workspace: Workspace, qtbot: QtBot):
    workspace.apply("large", workload=Training(), gpu="rtx-4090")
    assert workspace.evaluation.memory.verdict == "does-not-fit"
    assert not bar._rest.isActive()
    assert not bar._time.isVisible()
    assert not bar._cost.isVisible()


def test_a_plan_that_loses_its_card_has_no_price(bar: PlanBar, workspace: Workspace, qtbot: QtBot):
    with qtbot.waitSignal(bar.priced):
        bar.find_cost()
    with qtbot.waitSignal(bar.unpriced):
        workspace.apply("card", gpu=None)


def test_without_a_card_there_is_neither_time_nor_cost(bar: PlanBar, workspace: Workspace, qtbot: QtBot):
    qtbot.waitUntil(bar.findChildren(PartButton)[5].isVisible)
    workspace.apply("card", gpu=None)
    assert not any(part.isVisible() for part in bar.findChildren(PartButton)[4:])


@pytest.mark.parametrize("position", [4, 5])
def test_time_and_cost_lead_to_their_tab(bar: PlanBar, qtbot: QtBot, position: int):
    qtbot.waitUntil(bar.findChildren(PartButton)[5].isVisible)
    with qtbot.waitSignal(bar._workspace.navigator.tab_requested) as wanted:
        click(bar, qtbot, position)
    assert wanted.args == ["cost"]


def test_the_cost_of_the_previous_plan_is_not_shown(bar: PlanBar, workspace: Workspace, qtbot: QtBot):
    qtbot.waitUntil(bar.findChildren(PartButton)[5].isVisible)
    workspace.apply("number of cards", count=2)
    assert not bar.findChildren(PartButton)[5].isVisible()
