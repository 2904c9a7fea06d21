"""Questions about a training run."""

from itertools import groupby

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QLineEdit, QRadioButton, QToolButton

from planner.gui.memory.inputs import linear_names
from planner.gui.memory.tab import MemoryTab
from planner.gui.widgets.inputs.choice_field import ChoiceField
from planner.gui.widgets.inputs.field import Field
from planner.gui.widgets.section import Section
from planner.plan.plan import ModelChoice
from planner.workload.optimizers import OPTIMIZERS, optimizer_titles
from planner.workload.software.registry import TRAINERS
from planner.workload.training import Lora
from planner.workload.workload import Training


@pytest.fixture
def training(tab: MemoryTab) -> MemoryTab:
    """The tab with the questions about training."""
    tab.workspace.apply("training", workload=Training())
    tab.workspace.end_gesture()
    return tab


def field(tab: MemoryTab, name: str) -> Field:
    return tab.controls.questions["training"].field(name)


def answer(tab: MemoryTab, name: str, value: object) -> None:
    field(tab, name).edited.emit(value)
    field(tab, name).finished.emit()


def workload(tab: MemoryTab) -> Training:
    asked = tab.workspace.plan.workload
    assert isinstance(asked, Training)
    return asked


def choices(tab: MemoryTab, name: str) -> list[str]:
    made = field(tab, name)
    assert isinstance(made, ChoiceField)
    box = made.focusProxy()
    return [box.itemText(index) for index in range(box.count())]


def headings(tab: MemoryTab) -> dict[str, str]:
    """Return the summaries of the sections that are there, by their titles."""
    made = [section for section in tab.controls.questions["training"].findChildren(Section) if section.isVisible()]
    return {section._button.text(): section._summary.text() for section in made}


def want(tab: MemoryTab, qtbot, words: str) -> None:
    button = next(made for made in tab.controls.subject.task.findChildren(QRadioButton) if made.text() == words)
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


def asked(tab: MemoryTab) -> set[str]:
    questions = tab.controls.questions["training"]
    lora = [f"lora.{name}" for name in Lora.model_fields]
    names = ["method", *lora, "trainable", "optimizer", "optimizer_step", "gradient_clipping", "checkpoint_every"]
    names += ["loss", "loss_chunks"]
    made = {name: questions._inputs.get(name) for name in names}
    return {name for name, one in made.items() if one is not None and not one.isHidden()}


ALWAYS = {"optimizer", "gradient_clipping", "loss"}


def test_each_method_has_questions_of_its_own(training: MemoryTab):
    assert asked(training) == ALWAYS | {"method", "trainable", "optimizer_step"}
    answer(training, "method", "lora")
    adapters = {"lora.rank", "lora.targets", "lora.adapter_dtype", "lora.dropout", "lora.dora"}
    assert asked(training) == ALWAYS | {"method", "optimizer_step"} | adapters
    answer(training, "optimizer", "adamw-8bit")
    answer(training, "activation_checkpointing", "full")
    answer(training, "loss", "chunked")
    assert asked(training) == ALWAYS | {"method", "checkpoint_every", "loss_chunks"} | adapters


def test_sections_without_a_question_are_left_out_and_the_others_say_their_value(training: MemoryTab):
    assert headings(training) == {
        "Precision": "Weights in FP32, BF16 autocast",
        "Partial training": "all parameters",
        "Optimizer step": "Fused",
        "Objective": "Next token",
        "Activation checkpointing": "None",
        "Software": "Hugging Face, SDPA, Full logits",
    }
    answer(training, "method", "qlora")
    answer(training, "lora.dropout", 0.05)
    answer(training, "lora.dora", True)
    answer(training, "gradient_accumulation", 8)
    answer(training, "gradient_clipping", True)
    answer(training, "activation_checkpointing", "full")
    answer(training, "checkpoint_every", 2)
    answer(training, "profile", "torchtune")
    said = headings(training)
    assert "Partial training" not in said
    assert said["Adapters"].replace("\u2009", " ") == "FP32, LoRA dropout 5 %, DoRA"
    assert said["Precision"] == "Weights in NF4, BF16 autocast"
    assert said["Optimizer step"] == "Fused, gradient clipping, 8 accumulation steps"
    assert said["Activation checkpointing"] == "Full, every 2 layers"
    assert said["Software"] == "torchtune, SDPA, Chunked"


def test_a_method_moves_what_it_makes_impossible_as_one_step(training: MemoryTab):
    answer(training, "compute", "bf16")
    answer(training, "weights", "bf16")
    steps = training.workspace.undo_stack.count()
    answer(training, "method", "qlora")
    assert workload(training) == Training(
        method="qlora", compute="amp-bf16", weights=None, activation_checkpointing="full"
    )
    assert training.workspace.undo_stack.count() == steps + 1
    assert choices(training, "compute") == ["BF16 autocast", "FP16 autocast"]
    assert choices(training, "weights") == ["Default (NF4)", "NF4", "NF4 with double quantization"]
    training.workspace.undo_stack.undo()
    assert workload(training) == Training(compute="bf16", weights="bf16")


def test_answers_about_adapters_leave_the_others(training: MemoryTab):
    answer(training, "method", "lora")
    answer(training, "lora.rank", 64)
    answer(training, "lora.targets", ("q_proj", "v_proj"))
    answer(training, "lora.adapter_dtype", "bf16")
    assert workload(training).lora == Lora(rank=64, targets=("q_proj", "v_proj"), adapter_dtype="bf16")
    assert training.workspace.evaluation.memory.total_bytes > 0


def test_targets_are_those_of_the_network_and_can_be_typed(training: MemoryTab, qtbot, catalog):
    answer(training, "method", "lora")
    targets = field(training, "lora.targets")
    qtbot.keyClick(targets.focusProxy(), Qt.Key.Key_Down)
    search = targets.findChild(QLineEdit)
    qtbot.keyClicks(search, "k_proj, down_proj")
    qtbot.keyClick(search, Qt.Key.Key_Return)
    assert workload(training).lora == Lora(targets=("k_proj", "down_proj"))
    assert linear_names(catalog.models.model("openai-community/gpt2")) == ("c_attn", "c_proj", "c_fc")
    training.controls.subject.model.edited.emit("openai-community/gpt2")
    assert workload(training).lora == Lora()


def test_every_optimizer_and_every_software_can_be_chosen(training: MemoryTab, catalog):
    listed = list(optimizer_titles())
    assert sorted(listed) == sorted(OPTIMIZERS)
    groups = [library for library, _ in groupby(listed, key=lambda name: OPTIMIZERS[name].library)]
    assert len(groups) == len(set(groups))
    for name in listed:
        answer(training, "optimizer", name)
        assert workload(training).optimizer == name
    for name in TRAINERS:
        answer(training, "profile", name)
        assert workload(training).profile == name


def test_only_some_parts_are_trained(training: MemoryTab, qtbot):
    before = training.workspace.evaluation.memory.total_bytes
    made = field(training, "trainable")
    line = made.findChild(QLineEdit)
    training.controls.questions["training"].findChildren(Section)[2].set_open(True)
    line.setFocus()
    qtbot.keyClicks(line, "lm_head, layers.31")
    assert workload(training).trainable == ()
    qtbot.keyClick(line, Qt.Key.Key_Return)
    assert workload(training).trainable == ("lm_head", "layers.31")
    assert training.workspace.evaluation.memory.total_bytes < before / 2
    assert headings(training)["Partial training"] == "lm_head, layers.31"


def test_a_pattern_that_matches_nothing_is_said_beside_the_field(training: MemoryTab):
    answer(training, "trainable", ("nose",))
    assert workload(training).trainable == ()
    words = [label.text() for label in field(training, "trainable").findChildren(QLabel)]
    assert any("matches 'nose'" in text for text in words)


def test_what_is_wanted_chooses_task_and_method(tab: MemoryTab, qtbot):
    want(tab, qtbot, "Train")
    assert workload(tab) == Training()
    assert not {"method", "trainable"} & asked(tab)
    want(tab, qtbot, "Fine-tune")
    assert workload(tab).method == "lora"
    assert not field(tab, "method").isHidden()
    answer(tab, "method", "full")
    assert tab.controls.subject.goal == "fine-tune"
    assert not field(tab, "method").isHidden()
    want(tab, qtbot, "Train")
    assert field(tab, "method").isHidden()
    want(tab, qtbot, "Run")
    assert tab.workspace.plan.workload.task == "inference"


def test_fine_tuning_starts_with_an_adapter_that_fits(tab: MemoryTab, qtbot):
    want(tab, qtbot, "Fine-tune")
    assert workload(tab).method == "lora"
    assert tab.workspace.evaluation.memory.verdict == "fits"


def test_adapters_from_elsewhere_are_fine_tuning(tab: MemoryTab, qtbot):
    want(tab, qtbot, "Train")
    tab.workspace.apply("from a file", workload=Training(method="qlora"), model=ModelChoice(id="openai-community/gpt2"))
    assert tab.controls.subject.goal == "fine-tune"
    assert tab.controls.subject.task.value == "fine-tune"


def test_a_changed_adapter_is_bold_and_resets_alone(training: MemoryTab, qtbot):
    answer(training, "method", "lora")
    answer(training, "lora.rank", 64)
    label = next(made for made in training.controls.findChildren(QLabel) if made.text() == "Lo&RA rank")
    assert label.font().bold()
    buttons = {made.accessibleName(): made for made in training.controls.findChildren(QToolButton)}
    qtbot.mouseClick(buttons["Reset “LoRA rank”"], Qt.MouseButton.LeftButton)
    assert not label.font().bold()
    assert workload(training).lora == Lora()
