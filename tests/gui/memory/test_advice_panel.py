"""Suggestions to reduce memory: computed in the background, applied as one undo step."""

from collections.abc import Callable, Iterator
from threading import Event

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QToolButton

from planner.errors import SpecError
from planner.gui.memory.tab import MemoryTab
from planner.plan.advice import advise as module
from planner.plan.advice.advise import Advice, advise, advise_in_rounds
from planner.plan.catalog import Catalog
from planner.plan.plan import ModelChoice, Plan
from planner.workload.workload import Inference, Training

SMALL = ModelChoice(id="meta-llama/Llama-3.2-1B")


@pytest.fixture(scope="module", autouse=True)
def searched_once(catalog: Catalog) -> Iterator[None]:
    """Search for the advice for equal plans once: most tests start with the same one."""
    rounds: dict[str, list[tuple[Advice, ...]]] = {}

    def kept(plan: Plan, asked: Catalog, stop: Callable[[], bool]) -> Iterator[tuple[Advice, ...]]:
        if asked is catalog and repr(plan) in rounds:
            yield from rounds[repr(plan)]
            return
        seen = []
        for found in advise_in_rounds(plan, asked, stop=stop):
            seen.append(found)
            yield found
        if asked is catalog and not stop():
            rounds[repr(plan)] = seen

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "advise_in_rounds", kept)
        yield


@pytest.fixture
def panel(tab: MemoryTab):
    tab.advice._rest.setInterval(0)
    return tab.advice


@pytest.fixture
def needy(tab: MemoryTab, panel, qtbot):
    """The tab with a plan that does not fit, advised."""
    with qtbot.waitSignal(panel.updated):
        tab.workspace.apply("plan", model=SMALL, workload=Training(micro_batch=8))
    return tab


def test_a_plan_that_fits_is_not_advised_until_asked(tab: MemoryTab, panel, qtbot):
    assert panel.isVisible()
    assert not panel.section.is_open
    assert panel.lines == ()
    with qtbot.waitSignal(panel.updated):
        qtbot.mouseClick(panel.section.findChild(QToolButton), Qt.MouseButton.LeftButton)
    assert panel.lines[0].text.partition(":")[0] == "Q4_K_M in llama.cpp"


def test_a_plan_that_does_not_fit_opens_the_section(needy, panel):
    assert panel.section.is_open
    assert len(panel.lines) == 4
    assert "Fits, " in panel.lines[0].text
    assert panel.lines[0].apply.accessibleName().startswith("Apply: ")
    assert "Source: " in panel.lines[0].toolTip()


def test_applying_is_one_step_with_the_promised_result(needy, panel, qtbot):
    workspace = needy.workspace
    steps = workspace.undo_stack.count()
    advice = panel.lines[0]._advice
    with qtbot.waitSignal(needy.exploration.updated):
        qtbot.mouseClick(advice_button(panel, 0), Qt.MouseButton.LeftButton)
    assert workspace.plan == advice.plan
    assert workspace.evaluation.memory.total_bytes == advice.total_bytes
    assert workspace.evaluation.memory.verdict == advice.verdict == "fits"
    assert workspace.undo_stack.count() == steps + 1
    assert workspace.undo_stack.undoText() == advice.name
    assert not panel.section.is_open
    with qtbot.waitSignal(needy.exploration.updated):
        workspace.undo_stack.undo()
    assert workspace.plan.workload == Training(micro_batch=8)
    assert panel.section.is_open


def advice_button(panel, number):
    return panel.lines[number].apply


def test_a_suggestion_is_applied_with_the_keyboard(needy, panel, qtbot):
    button = advice_button(panel, 1)
    expected = panel.lines[1]._advice.plan
    button.setFocus()
    with qtbot.waitSignal(needy.exploration.updated):
        qtbot.keyClick(button, Qt.Key.Key_Space)
    assert needy.workspace.plan == expected


def test_further_suggestions_are_shown_with_a_click(needy, panel, qtbot):
    count = len(advise(needy.workspace.plan, needy.workspace.catalog))
    assert panel.more.text() == f"Show {count - 4} more"
    qtbot.mouseClick(panel.more, Qt.MouseButton.LeftButton)
    assert len(panel.lines) == count
    assert not panel.more.isVisible()


def test_advice_for_another_plan_cannot_be_applied(needy, panel, qtbot):
    with qtbot.waitSignal(panel.updated):
        needy.workspace.answer("batch", {"workload.micro_batch": 16})
        assert not any(line.apply.isEnabled() for line in panel.lines)
    assert all(line.apply.isEnabled() for line in panel.lines)
    assert panel.lines[0]._advice.saved_bytes > 0


def test_a_suggested_card_is_put_into_the_plan(needy, panel, qtbot):
    with qtbot.waitSignal(panel.updated):
        needy.workspace.apply("large", model=ModelChoice(id="meta-llama/Llama-3.1-70B"), workload=Inference())
    panel.more.click()
    line = next(line for line in panel.lines if " instead" in line.text)
    with qtbot.waitSignal(needy.exploration.updated):
        line.apply.click()
    assert needy.workspace.plan.gpu != "rtx-4090"
    assert needy.workspace.evaluation.memory.verdict == "fits"


def test_what_a_card_cannot_run_is_advised_too(tab: MemoryTab, panel, qtbot):
    with qtbot.waitSignal(panel.updated):
        tab.workspace.apply("card", gpu="tpu-v5e")
    assert panel.isVisible()
    assert " instead" in panel.lines[0].text


def test_where_nothing_makes_it_fit_the_nearest_are_said(tab: MemoryTab, panel, qtbot):
    with qtbot.waitSignal(panel.updated):
        large = ModelChoice(id="deepseek-ai/DeepSeek-V3")
        tab.workspace.apply("plan", model=large, workload=Training(), gpu="gtx-1080")
    assert any("Does not fit" in line.text for line in panel.lines)


def test_a_hidden_panel_computes_nothing(tab: MemoryTab, panel, qtbot):
    tab.hide()
    tab.workspace.apply("plan", model=SMALL, workload=Training(micro_batch=8))
    assert not panel._rest.isActive()
    with qtbot.waitSignal(panel.updated):
        tab.show()
    assert panel.lines


def test_a_new_scheme_restyles_the_marks(needy, panel, theme):
    before = panel.lines[0]._mark.pixmap().toImage()
    theme.apply("dark")
    after = panel.lines[0]._mark.pixmap().toImage()
    theme.apply("light")
    assert before != after


def test_an_error_of_the_computation_is_reported(tab: MemoryTab, qtbot):
    with qtbot.waitSignal(tab.workspace.failed) as failed:
        tab.workspace.report(SpecError("gpu", "is gone"))
    assert failed.args[0].field == "gpu"
    with pytest.raises(ZeroDivisionError):
        tab.workspace.report(ZeroDivisionError())


def test_the_first_suggestions_are_shown_while_the_search_goes_on(tab: MemoryTab, panel, qtbot, monkeypatch):
    gate = Event()

    def slow_rounds(plan, catalog, *, stop):
        *_, last = advise_in_rounds(plan, catalog, stop=stop)
        yield last[:1]
        gate.wait(30)
        yield last

    monkeypatch.setattr("planner.plan.advice.advise.advise_in_rounds", slow_rounds)
    tab.workspace.apply("plan", model=SMALL, workload=Training(micro_batch=8))
    heading = panel.section.findChild(QToolButton)
    assert heading.text() == "What would help · looking…"
    assert panel._message.text() == "Looking…"
    heading.click()
    assert heading.text() == "What would help"
    heading.click()
    qtbot.waitUntil(lambda: len(panel.lines) == 1)
    assert panel.lines[0].apply.isEnabled()
    assert heading.text() == "What would help · looking…"
    with qtbot.waitSignal(panel.updated):
        gate.set()
    assert len(panel.lines) == 4
    assert heading.text() == "What would help"


def assert_ready(panel):
    assert panel.lines
    assert all(line.isEnabled() and line.apply.isEnabled() for line in panel.lines)
    assert "looking" not in panel.section.findChild(QToolButton).text()


def test_an_undone_suggestion_can_be_applied_again(needy, panel, qtbot):
    """The suggestion makes the plan fit, which closes the section and leaves the lines disabled."""
    stack = needy.workspace.undo_stack
    advice_button(panel, 0).click()
    qtbot.waitUntil(lambda: not panel.section.is_open)
    with qtbot.waitSignal(panel.updated):
        stack.undo()
    assert_ready(panel)
    stack.redo()
    qtbot.waitUntil(lambda: not panel.section.is_open)
    with qtbot.waitSignal(panel.updated):
        stack.undo()
    assert_ready(panel)


def test_an_undo_during_the_search_brings_the_suggestions_back(needy, panel, qtbot):
    workspace = needy.workspace
    workspace.answer("batch", {"workload.micro_batch": 16})
    qtbot.waitUntil(lambda: panel._tasks.busy)
    with qtbot.waitSignal(panel.updated):
        workspace.undo_stack.undo()
    assert_ready(panel)
    with qtbot.waitSignal(panel.updated):
        workspace.undo_stack.redo()
        workspace.undo_stack.undo()
    assert_ready(panel)


def test_the_focus_stays_near_a_button_that_is_no_longer_there(needy, panel, qtbot):
    panel.more.setFocus()
    qtbot.keyClick(panel.more, Qt.Key.Key_Space)
    assert panel.lines[4].apply.hasFocus()
    qtbot.keyClick(panel.lines[4].apply, Qt.Key.Key_Space)
    qtbot.waitUntil(panel.section.findChild(QToolButton).hasFocus)
