"""The Start page: its doors by keyboard and mouse, its questions, and what each door leads to."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from planner.gui.start_page import StartPage
from planner.gui.workspace import SAMPLE_PLAN
from planner.monitor.readings.inventory import Device
from planner.plan.plan import ModelChoice
from planner.workload.workload import Inference, Training

LLAMA = "meta-llama/Llama-3.1-8B"
CARD = Device("GPU-1", "NVIDIA GeForce RTX 4090", 0)
TWO = (CARD, Device("GPU-2", "NVIDIA GeForce RTX 4090", 1))


def press(qtbot: QtBot, *keys: Qt.Key) -> None:
    for key in keys:
        qtbot.keyClick(QApplication.focusWidget(), key)


def link(page: StartPage, text: str) -> QPushButton:
    return next(button for button in page.findChildren(QPushButton) if button.text() == text)


def emitted(signal) -> list:
    """Return the list to which the arguments of each emission are added."""
    seen: list = []
    signal.connect(lambda *arguments: seen.append(arguments))
    return seen


def test_the_doors_are_reached_by_arrow_keys_and_entered_with_return(page: StartPage, qtbot: QtBot):
    qtbot.waitUntil(page.doors["run"].hasFocus)
    press(qtbot, Qt.Key.Key_Right)
    assert page.doors.key == "fine-tune"
    assert page.doors["fine-tune"].hasFocus()
    press(qtbot, Qt.Key.Key_Right)
    assert page.doors.key == "choose"
    assert page.job.isVisible()
    assert not page.own_cards.isVisible()
    press(qtbot, Qt.Key.Key_Right)
    assert page.doors.key == "watch"
    assert page.watch.isVisible()
    assert not page.model.isVisible()
    press(qtbot, Qt.Key.Key_Return)
    assert page.watch.hasFocus()


def test_a_click_on_a_door_continues_with_the_model(page: StartPage, qtbot: QtBot):
    qtbot.mouseClick(page.doors["fine-tune"], Qt.MouseButton.LeftButton)
    assert page.doors.key == "fine-tune"
    assert page.model.focusProxy().hasFocus()


def test_tab_visits_the_doors_the_questions_and_the_links_once(page: StartPage, qtbot: QtBot):
    qtbot.waitUntil(page.doors["run"].hasFocus)
    names = []
    for _ in range(20):
        press(qtbot, Qt.Key.Key_Tab)
        focused = QApplication.focusWidget()
        if focused is page.doors["run"]:
            break
        names.append(focused.accessibleName() or focused.text())
    assert names == [
        *("Model", "&Open a file…", "or a folde&r…", "My GPU", "Show &me", "A published recipe…"),
        *("The sample plan", "The Monitor's demo", "The catalog of GPUs"),
    ]


def test_running_a_model_shows_its_memory_on_the_own_card(page: StartPage, qtbot: QtBot):
    tabs = emitted(page.workspace.navigator.tab_requested)
    page.model.choose("openai-community/gpt2")
    qtbot.waitUntil(lambda: page.own_cards.focusProxy().hasFocus())
    page.own_cards.choose("rtx-3090")
    qtbot.waitUntil(page.show_me.hasFocus)
    press(qtbot, Qt.Key.Key_Return)
    plan = page.workspace.plan
    assert (plan.model.id, plan.gpu, plan.count) == ("openai-community/gpt2", "rtx-3090", 1)
    assert plan.workload == Inference()
    qtbot.waitUntil(lambda: tabs == [("memory",)])
    page.workspace.undo_stack.undo()
    assert page.workspace.plan == SAMPLE_PLAN


def test_fine_tuning_starts_with_an_adapter_that_fits_in_one_undo_step(page: StartPage):
    page.doors.choose("fine-tune")
    page.model.choose(LLAMA)
    page.own_cards.choose("rtx-4090")
    page.show_result()
    assert page.workspace.plan.workload.method == "lora"
    assert page.workspace.evaluation.memory.verdict == "fits"
    assert page.workspace.undo_stack.undoText() == "fine-tune Llama-3.1-8B"
    page.workspace.undo_stack.undo()
    assert page.workspace.plan == SAMPLE_PLAN


@pytest.mark.parametrize(
    ("job", "workload"), [("run", Inference()), ("fine-tune", Training(method="lora")), ("train", Training())]
)
def test_choosing_hardware_needs_a_job_and_no_gpu(page: StartPage, job: str, workload):
    asked = emitted(page.workspace.navigator.hardware_choice_requested)
    page.doors.choose("choose")
    page.model.choose(LLAMA)
    page.job.choose(job)
    page.show_result()
    assert (page.workspace.plan.gpu, page.workspace.plan.workload) == (None, workload)
    assert asked == [()]


def test_watching_leads_to_the_monitor_or_its_demo(page: StartPage, qtbot: QtBot):
    tabs = emitted(page.workspace.navigator.tab_requested)
    demos = emitted(page.workspace.navigator.demo_requested)
    page.doors.choose("watch")
    qtbot.mouseClick(page.watch, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(page.demo, Qt.MouseButton.LeftButton)
    assert (tabs, demos) == ([("monitor",)], [()])


def test_without_a_model_it_is_asked_for(page: StartPage):
    tabs = emitted(page.workspace.navigator.tab_requested)
    page.run_primary_action()
    assert page.model.problem == "Choose a model first."
    assert tabs == []
    page.model.choose(LLAMA)
    assert page.model.problem == ""


def test_a_model_that_cannot_be_planned_is_refused_at_the_field(page: StartPage):
    page.doors.choose("fine-tune")
    page.model.choose("resnet-50")
    page.show_result()
    assert "No model has the id" in page.model.problem
    assert page.workspace.plan == SAMPLE_PLAN


def test_a_hub_model_is_read_and_then_the_answer(page: StartPage):
    asked = emitted(page.workspace.navigator.hub_model_requested)
    page.model.choose("hf:owner/name")
    assert asked == [("hf:owner/name",)]
    assert page.model.text == "name"
    assert not page.own_cards.focusProxy().hasFocus()
    page.show_result()
    assert asked == [("hf:owner/name",)] * 2
    assert page.workspace.plan == SAMPLE_PLAN
    page.workspace.answer("model", {"model": ModelChoice(id="openai-community/gpt2")})
    assert page.model.text == "gpt2"
    assert page.own_cards.focusProxy().hasFocus()


def test_found_cards_are_named_and_chosen(page: StartPage):
    assert "Looking for GPUs" in page.doors["watch"].description
    page.workspace.note_devices(TWO)
    assert "2\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}GeForce RTX 4090 found" in page.doors["watch"].description
    assert page.own_cards.text == "2 × GeForce RTX 4090 (this machine)"
    assert page.own_cards.cards == ("rtx-4090", 2)


def test_a_card_that_was_picked_stays_when_others_are_found(page: StartPage):
    page.own_cards.choose("rtx-3090")
    page.workspace.note_devices((CARD,))
    assert page.own_cards.cards == ("rtx-3090", 1)
    assert page.own_cards.text == "GeForce RTX 3090"


def test_several_cards_can_be_typed(page: StartPage, qtbot: QtBot):
    page.own_cards.open()
    qtbot.keyClicks(QApplication.focusWidget(), "4 x 3090")
    press(qtbot, Qt.Key.Key_Return)
    assert page.own_cards.text == "GeForce RTX 3090"
    assert page.own_cards.count.value == 4
    assert page.own_cards.cards == ("rtx-3090", 4)


def test_a_card_that_the_catalog_lacks_is_named_but_not_chosen(page: StartPage):
    page.workspace.note_devices((Device("GPU-1", "NVIDIA Unheard Of", 0),))
    assert "NVIDIA Unheard Of found" in page.doors["watch"].description
    assert page.own_cards.cards == (None, 1)


@pytest.mark.parametrize(("ended", "says"), [("done", "No GPU found"), ("failed", "The GPUs could not be read")])
def test_without_a_found_gpu_the_demo_is_offered(page: StartPage, ended, says: str):
    page.workspace.end_detection(ended)
    assert says in page.doors["watch"].description
    assert page.own_cards.cards == (None, 1)
    assert page.demo.property("role") == "primary"


def test_recent_plans_are_opened(page: StartPage, qtbot: QtBot):
    opened = emitted(page.workspace.navigator.file_requested)
    page.hide()
    page.workspace.settings.add_recent_plan(Path("/plans/lora-70b.json"))
    page.show()
    button = link(page, "lora-70b.json")
    assert button.toolTip() == "/plans/lora-70b.json"
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert opened == [(Path("/plans/lora-70b.json"),)]


def test_the_links_lead_to_recipes_the_demo_and_the_catalog(page: StartPage, qtbot: QtBot):
    navigator = page.workspace.navigator
    recipes, demos = emitted(navigator.preset_requested), emitted(navigator.demo_requested)
    tabs = emitted(navigator.tab_requested)
    for text in ("A published recipe…", "The Monitor's demo", "The catalog of GPUs"):
        qtbot.mouseClick(link(page, text), Qt.MouseButton.LeftButton)
    assert (recipes, demos, tabs) == ([()], [()], [("memory",), ("catalog",)])


def test_the_sample_can_be_shown_again_and_undone(page: StartPage, qtbot: QtBot):
    page.hide()
    page.workspace.apply("number of cards", count=4)
    page.show()
    qtbot.mouseClick(link(page, "The sample plan"), Qt.MouseButton.LeftButton)
    assert page.workspace.plan == SAMPLE_PLAN
    page.workspace.undo_stack.undo()
    assert page.workspace.plan.count == 4


def test_a_plan_of_ones_own_is_the_answer_already(page: StartPage):
    page.hide()
    page.workspace.apply("a plan", model=ModelChoice(id="openai-community/gpt2"), gpu="rtx-3090", count=2)
    page.show()
    assert page.model.text == "gpt2"
    assert page.own_cards.cards == ("rtx-3090", 2)


@pytest.mark.parametrize("door", ["run", "choose"])
def test_nobody_owns_the_cards_of_a_plan_without_any(page: StartPage, door: str):
    page.doors.choose(door)
    page.model.choose(LLAMA)
    page.show_result()
    assert page.workspace.plan.gpu is None
    assert not page.workspace.plan.cost.buy.owned


@pytest.mark.parametrize(
    ("cards", "is_owned"),
    [("rtx-3090", True), ("rtx-3090@2", False), ("h100-pcie-80gb", False), ("h100-sxm5-80gb@8", False)],
)
def test_picked_cards_cost_what_they_cost_unless_the_person_has_them(page: StartPage, cards: str, is_owned: bool):
    assert not page.ownership.isVisible()
    page.model.choose("openai-community/gpt2")
    page.own_cards.choose(cards)
    assert page.ownership.isVisible()
    assert page.ownership.value is is_owned
    page.show_result()
    assert page.workspace.plan.cost.buy.owned is is_owned


def test_found_cards_are_the_persons_own(page: StartPage):
    page.workspace.note_devices(TWO)
    assert page.ownership.value is True
    page.ownership.choose(False)
    page.own_cards.choose("rtx-3090")
    assert page.ownership.value is False


def test_the_number_of_cards_is_a_field(page: StartPage):
    page.own_cards.choose("rtx-3090")
    assert page.own_cards.count.isVisible()
    page.own_cards.count.choose(4)
    assert page.own_cards.cards == ("rtx-3090", 4)
    page.own_cards.choose("")
    assert not page.own_cards.count.isVisible()
    assert page.own_cards.cards == (None, 1)


def test_hardware_is_priced_without_a_model(page: StartPage):
    tabs = emitted(page.workspace.navigator.tab_requested)
    notices = emitted(page.workspace.noticed)
    page.doors.choose("choose")
    page.show_result()
    assert page.job.value == "price"
    assert page.priced_cards.problem == "Choose a GPU first."
    page.priced_cards.choose("h100-sxm5-80gb@8")
    page.hours_per_day.choose(12.0)
    page.show_result()
    plan = page.workspace.plan
    assert (plan.model, plan.gpu, plan.count) == (SAMPLE_PLAN.model, "h100-sxm5-80gb", 8)
    assert (plan.cost.job.hours_per_day, plan.cost.job.days_per_week, plan.cost.horizon_years) == (12, 7, 3)
    assert not plan.cost.buy.owned
    assert tabs == [("cost",)]
    assert "the sample model Llama-3.1-8B stands in" in notices[0][0]


def test_a_small_card_is_priced_with_a_model_that_fits_it(page: StartPage):
    page.doors.choose("choose")
    page.job.choose("price")
    page.priced_cards.choose("rtx-3060-8-gb")
    page.show_result()
    assert page.workspace.plan.gpu == "rtx-3060-8-gb"
    assert page.workspace.evaluation.memory.verdict == "fits"
