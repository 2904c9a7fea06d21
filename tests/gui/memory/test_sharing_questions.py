"""Questions about several cards: parallelism, offloading and unequal cards."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QLineEdit, QToolButton

from planner.gui.memory.tab import MemoryTab
from planner.gui.widgets.inputs.choice_field import ChoiceField
from planner.gui.widgets.inputs.field import Field
from planner.gui.widgets.section import Section
from planner.plan.plan import ModelChoice
from planner.workload.parallel import CardCount, Parallel
from planner.workload.workload import Inference, Training

CARDS = (CardCount(id="rtx-4090"), CardCount(id="rtx-3090", count=2))


@pytest.fixture
def sharing(tab: MemoryTab) -> MemoryTab:
    """The tab with a training run on eight cards, whose sharing is set by hand."""
    tab.workspace.apply("eight", workload=Training(parallel=Parallel(sharing="manual")), gpu="h100-sxm5-80gb", count=8)
    tab.workspace.end_gesture()
    return tab


def field(tab: MemoryTab, name: str) -> Field:
    return tab.controls.sharing[tab.workspace.plan.workload.task].field(name)


def answer(tab: MemoryTab, name: str, value: object) -> None:
    field(tab, name).edited.emit(value)
    field(tab, name).finished.emit()


def asked(tab: MemoryTab) -> set[str]:
    questions = tab.controls.sharing[tab.workspace.plan.workload.task]
    made = {name: questions._inputs.get(name) for name in (f"parallel.{name}" for name in Parallel.model_fields)}
    return {name.removeprefix("parallel.") for name, one in made.items() if one is not None and not one.isHidden()}


def headings(tab: MemoryTab) -> dict[str, str]:
    sections = tab.controls.sharing[tab.workspace.plan.workload.task].findChildren(Section)
    return {made._button.text(): made._summary.text() for made in sections if made.isVisible()}


def said(made: Field) -> str:
    return " ".join(label.text() for label in made.findChildren(QLabel))


def words(made: Field) -> list[str]:
    assert isinstance(made, ChoiceField)
    box = made.focusProxy()
    return [box.itemText(index) for index in range(box.count())]


ALWAYS = {"sharing", "zero", "tensor", "pipeline", "context", "data", "offload"}


def test_one_card_has_no_parallelism_questions(tab: MemoryTab):
    tab.workspace.apply("one", workload=Training())
    assert asked(tab) == {"offload"}
    assert headings(tab) == {"Offload": "None"}


def test_each_way_to_share_has_questions_of_its_own(sharing: MemoryTab):
    assert asked(sharing) == ALWAYS | {"gradient_as_bucket_view"}
    answer(sharing, "parallel.zero", 3)
    assert asked(sharing) == ALWAYS | {"reshard_after_forward"}
    answer(sharing, "parallel.tensor", 2)
    answer(sharing, "parallel.pipeline", 2)
    assert asked(sharing) >= {"sequence", "interleave", "pipeline_layers"}
    answer(sharing, "parallel.interleave", 4)
    assert "pipeline_layers" not in asked(sharing)


def test_a_sharing_that_is_left_open_names_what_the_software_chose(sharing: MemoryTab):
    answer(sharing, "parallel.zero", 2)
    answer(sharing, "parallel.sharing", "auto")
    assert sharing.workspace.plan.workload.parallel == Parallel()
    assert asked(sharing) == {"sharing", "offload", "reshard_after_forward"}
    assert words(field(sharing, "parallel.sharing")) == ["By the software", "Set below"]
    assert headings(sharing)["Parallelism"] == "chosen: FSDP over 8 GPUs"
    assert "Assumed: FSDP over 8 GPUs" in " ".join(label.text() for label in sharing.answer.findChildren(QLabel))
    answer(sharing, "parallel.sharing", "manual")
    assert (asked(sharing) >= ALWAYS, headings(sharing)["Parallelism"]) == (True, "FSDP on 8 GPUs")
    assert sharing.workspace.plan.workload.parallel == Parallel(zero=3)


def test_only_networks_with_experts_are_asked_about_them(sharing: MemoryTab):
    assert "expert" not in asked(sharing)
    sharing.controls.subject.model.edited.emit("mistralai/Mixtral-8x7B-v0.1")
    assert "expert" in asked(sharing)
    answer(sharing, "parallel.expert", 8)
    assert sharing.workspace.plan.workload.parallel.expert == 8


def test_the_collapsed_section_summarizes_the_parallelism(sharing: MemoryTab):
    assert headings(sharing) == {"Parallelism": "DDP on 8 GPUs", "Offload": "None"}
    answer(sharing, "parallel.zero", 3)
    assert headings(sharing)["Parallelism"] == "FSDP on 8 GPUs"
    answer(sharing, "parallel.tensor", 4)
    assert headings(sharing)["Parallelism"] == "FSDP, tensor parallel 4 on 8 GPUs"


def test_an_invalid_degree_lists_the_valid_degrees(sharing: MemoryTab):
    answer(sharing, "parallel.pipeline", 2)
    answer(sharing, "parallel.tensor", 3)
    assert sharing.workspace.plan.workload.parallel == Parallel(pipeline=2)
    assert "Valid values: 1, 2 or 4." in said(field(sharing, "parallel.tensor"))
    sharing.controls.cards.count.edited.emit(7)
    assert sharing.workspace.plan.count == 8


def test_an_invalid_number_of_cards_lists_the_valid_numbers(sharing: MemoryTab, qtbot):
    answer(sharing, "parallel.tensor", 4)
    line = sharing.controls.cards.count.findChild(QLineEdit)
    sharing.controls.cards.findChildren(Section)[0].set_open(True)
    line.setFocus()
    line.selectAll()
    qtbot.keyClicks(line, "10")
    assert (sharing.workspace.plan.count, sharing.workspace.plan.workload.parallel.tensor) == (1, 1)
    assert "Valid values: 8 or 12." in said(sharing.controls.cards.count)
    line.selectAll()
    qtbot.keyClicks(line, "16")
    assert (sharing.workspace.plan.count, sharing.workspace.plan.workload.parallel.tensor) == (16, 4)


def test_replicas_are_implied_until_they_are_said(sharing: MemoryTab):
    answer(sharing, "parallel.tensor", 2)
    assert field(sharing, "parallel.data").findChild(QLineEdit).placeholderText() == "4"
    answer(sharing, "parallel.data", 3)
    assert "Valid values: 4." in said(field(sharing, "parallel.data"))


def test_stages_may_be_uneven(sharing: MemoryTab):
    answer(sharing, "parallel.pipeline", 2)
    assert words(field(sharing, "parallel.interleave"))[:3] == [
        "1F1B",
        "Interleaved, 2 groups",
        "Interleaved, 4 groups",
    ]
    answer(sharing, "parallel.pipeline_layers", (12, 20))
    assert sharing.workspace.plan.workload.parallel.pipeline_layers == (12, 20)
    answer(sharing, "parallel.pipeline_layers", (12, 21))
    assert "33 layers in total, but the model has 32" in said(field(sharing, "parallel.pipeline_layers"))


def test_the_software_decides_what_is_shared_and_offloaded(sharing: MemoryTab):
    assert len(words(field(sharing, "parallel.zero"))) == 4
    answer(sharing, "parallel.offload", "parameters")
    assert sharing.workspace.plan.workload.parallel == Parallel(zero=3, offload="parameters")
    sharing.controls.questions["training"].field("profile").edited.emit("megatron")
    assert sharing.workspace.plan.workload.parallel == Parallel(zero=1, offload="optimizer")
    assert words(field(sharing, "parallel.zero")) == ["None (DDP)", "Optimizer states (ZeRO-1)"]
    assert words(field(sharing, "parallel.offload")) == ["None", "Optimizer states"]


def test_inference_shares_matrices_and_layers(tab: MemoryTab):
    tab.workspace.apply("two", count=2, workload=Inference(parallel=Parallel(sharing="manual")))
    assert asked(tab) == {"sharing", "tensor", "pipeline", "data", "offload"}
    assert headings(tab)["Parallelism"] == "independent replicas"
    tab.controls.questions["inference"].field("profile").edited.emit("vllm")
    assert asked(tab) == {"sharing", "tensor", "pipeline", "data"}
    answer(tab, "parallel.tensor", 2)
    assert headings(tab)["Parallelism"] == "tensor parallel 2 on 2 GPUs"


def test_another_kind_of_card_is_added_searched_and_left_out(tab: MemoryTab, qtbot):
    cards = tab.controls.cards
    cards.findChildren(Section)[0].set_open(True)
    qtbot.mouseClick(cards.add, Qt.MouseButton.LeftButton)
    search = cards._card_popover.findChild(QLineEdit)
    qtbot.keyClicks(search, "rtx 3090")
    qtbot.keyClick(search, Qt.Key.Key_Return)
    assert tab.workspace.plan.workload.gpus == (CardCount(id="rtx-4090"), CardCount(id="rtx-3090"))
    assert (tab.workspace.plan.gpu, tab.workspace.plan.count) == (None, 2)
    assert cards.card.isHidden()
    cards.unequal.rows[1].number.edited.emit(2)
    assert tab.workspace.plan.workload.gpus == CARDS
    assert "1 × GeForce RTX 4090 + 2 × GeForce RTX 3090" in tab.answer.facts
    remove = cards.unequal.rows[0].findChild(QToolButton)
    remove.setFocus()
    qtbot.keyClick(remove, Qt.Key.Key_Space)
    assert tab.workspace.plan.workload.gpus == ()
    assert (tab.workspace.plan.gpu, tab.workspace.plan.count) == ("rtx-3090", 2)
    assert not cards.card.isHidden()


def test_a_card_that_is_there_already_counts_once_more(tab: MemoryTab):
    tab.workspace.apply("unequal", workload=Inference(gpus=CARDS), gpu=None, count=3)
    tab.controls.cards._add_card_kind("rtx-3090")
    assert tab.workspace.plan.workload.gpus[1].count == 3
    tab.controls.cards.unequal.rows[0].card.edited.emit("tesla-t4")
    assert tab.workspace.plan.workload.gpus[0].id == "tesla-t4"
    assert tab.workspace.plan.count == 4


def test_one_more_of_the_only_kind_is_no_other_kind(tab: MemoryTab):
    tab.controls.cards._add_card_kind("rtx-4090")
    assert (tab.workspace.plan.gpu, tab.workspace.plan.count) == ("rtx-4090", 2)


def test_unequal_cards_that_cannot_share_are_told_below_the_list(tab: MemoryTab):
    shared = Inference(gpus=CARDS, parallel=Parallel(pipeline=3))
    tab.workspace.apply("unequal", workload=shared, gpu=None, count=3)
    tab.controls.cards.unequal.rows[0].number.edited.emit(2)
    assert tab.workspace.plan.workload.gpus == CARDS
    assert "not a multiple of pipeline 3" in " ".join(
        label.text() for label in tab.controls.cards.unequal.findChildren(QLabel)
    )


def test_another_model_shares_as_it_can(sharing: MemoryTab):
    answer(sharing, "parallel.tensor", 8)
    sharing.controls.subject.model.edited.emit("openai-community/gpt2")
    assert sharing.workspace.plan.model == ModelChoice(id="openai-community/gpt2")
    assert sharing.workspace.plan.workload.parallel.tensor == 1


def test_the_networks_of_a_pipeline_are_not_shared(tab: MemoryTab):
    tab.workspace.apply("two", count=2, model=ModelChoice(id="stable-diffusion-v1-5/stable-diffusion-v1-5"))
    assert asked(tab) == set()
    assert headings(tab) == {}
