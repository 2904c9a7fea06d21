"""The Memory tab for a traced module."""

import pytest
from pytestqt.qtbot import QtBot

from planner.gui.memory.tab import MemoryTab
from planner.gui.plan_bar import PartButton, PlanBar
from planner.plan.plan import ModelChoice
from planner.trace.recording import CategoryShare, TracedFacts, TracedPhase
from planner.trace.request import Input, Target, TensorInput, TraceRequest
from planner.units import GIB

FACTS = TracedFacts(
    request=TraceRequest(
        target=Target(kind="file", place="resnet.py", name="ResNet50"),
        inputs=(Input(name="x", value=TensorInput(shape=(32, 3, 224, 224))),),
        task="training",
    ),
    torch="2.13.0",
    tested=True,
    parameters=25_600_000,
    trainable_parameters=25_600_000,
    phases=(
        TracedPhase(
            name="backward",
            explanation="reached in step 2 by aten.convolution_backward",
            shares=(CategoryShare(category="activations", bytes=3 * GIB, count=120),),
        ),
    ),
    reserved_bytes=4 * GIB,
    least_reserved_bytes=3 * GIB,
    largest_tensor_bytes=GIB,
    digest="0" * 64,
)


@pytest.fixture
def traced(tab: MemoryTab) -> MemoryTab:
    tab.workspace.apply("trace", model=ModelChoice.of_trace(FACTS))
    return tab


def test_the_answer_is_shown_and_nothing_is_asked_or_explored(traced: MemoryTab):
    assert traced.answer.headline.startswith("Fits: 4.4")
    assert traced.bar.isVisible()
    assert not traced.exploration.isVisible()
    assert not any(questions.isVisible() for questions in traced.controls.questions.values())
    assert not traced.controls.subject.task.isVisible()


def test_questions_and_curve_return_with_a_catalog_model(traced: MemoryTab):
    traced.workspace.apply("model", model=ModelChoice(id="meta-llama/Llama-3.1-8B"))
    assert traced.exploration.isVisible()
    assert traced.controls.questions["inference"].isVisible()
    assert traced.controls.subject.task.isVisible()


def test_the_plan_bar_says_what_was_traced_and_asks_in_the_tab(qtbot: QtBot, traced: MemoryTab):
    bar = PlanBar(traced.workspace, traced.theme, traced.tasks)
    qtbot.addWidget(bar)
    assert "Traced training, AdamW, 32 × 3 × 224 × 224" in [part.full_text for part in bar.findChildren(PartButton)]
    with qtbot.waitSignal(bar._workspace.navigator.tab_requested) as asked:
        bar.edit_workload()
    assert asked.args == ["memory"]
