"""Forms, command line and sentences are generated from the declared workload fields."""

from typing import Annotated

import pytest
from each_record import for_each
from pydantic import Field
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from planner.cli.options import add_workload_options, workload_from_arguments
from planner.cli.parser import Parser
from planner.gui.memory.inputs import field_context_of, label_of, tooltip_of
from planner.gui.memory.questions import Questions
from planner.gui.memory.tab import MemoryTab
from planner.gui.widgets.section import Section
from planner.gui.workspace import Workspace
from planner.plan.plan import ModelChoice, Plan
from planner.present.format import capitalized
from planner.present.plan.settings import adjustments_sentence, field_value_text, setting_title, title_in_sentence
from planner.workload import fields
from planner.workload.fields import all_fields, fields_of
from planner.workload.parallel import Parallel
from planner.workload.presentation import GROUPS, Presentation, command_line_only
from planner.workload.workload import Inference, Training

LLAMA, MIXTRAL = "meta-llama/Llama-3.1-8B", "mistralai/Mixtral-8x7B-v0.1"
SDXL, SEEING = "stabilityai/stable-diffusion-xl-base-1.0", "Qwen/Qwen2-VL-7B-Instruct"
GROUPED = {"method": "grpo", "reward": "model"}
PLANS = {
    "full": (LLAMA, Training(activation_checkpointing="full", loss="chunked"), 1),
    "lora": (LLAMA, Training(method="lora"), 1),
    "groups": (LLAMA, Training(micro_batch=8, alignment={**GROUPED, "engine": "same-cards"}), 1),
    "rewards": (LLAMA, Training(method="lora", alignment={"method": "ppo", "engine": "other-cards"}), 1),
    "pipeline": (MIXTRAL, Training(parallel=Parallel(tensor=2, pipeline=2)), 8),
    "fsdp": (LLAMA, Training(parallel=Parallel(zero=3)), 8),
    "hf": (LLAMA, Inference(), 2),
    "vllm": (LLAMA, Inference(profile="vllm"), 1),
    "drafts": (LLAMA, Inference(profile="vllm", speculation={"method": "eagle3"}, adapters={"slots": 2}), 1),
    "sglang": (LLAMA, Inference(profile="sglang"), 1),
    "tensorrt-llm": (LLAMA, Inference(profile="tensorrt-llm"), 1),
    "llama.cpp": (LLAMA, Inference(profile="llama.cpp"), 1),
    "experts": (MIXTRAL, Inference(profile="llama.cpp"), 2),
    "litgpt": (LLAMA, Inference(profile="litgpt"), 1),
    "autoawq": (LLAMA, Inference(profile="autoawq"), 1),
    "gpt-fast": (LLAMA, Inference(profile="gpt-fast"), 1),
    "images": (SDXL, Inference(), 1),
    "denoiser": (SDXL, Training(method="lora"), 1),
    "seeing": (SEEING, Inference(), 1),
    "learning to see": (SEEING, Training(images=1, frozen_vision="tower"), 1),
    "image encoder": ("google/vit-base-patch16-224", Training(), 1),
}
APART = ("gpus", "other_processes_bytes")
"""What the section about cards asks for, in each plan."""


def show(tab: MemoryTab, name: str) -> None:
    model, workload, count = PLANS[name]
    plan = Plan(model=ModelChoice(id=model), workload=workload, gpu="h100-sxm5-80gb", count=count)
    tab.workspace.apply(name, model=plan.model, workload=workload, gpu=plan.gpu, count=count)
    tab.workspace.end_gesture()


def asked(tab: MemoryTab) -> set[str]:
    task = tab.workspace.plan.workload.task
    forms: tuple[Questions, ...] = (tab.controls.questions[task], tab.controls.sharing[task])
    made = {field.name: [form._inputs.get(field.name) for form in forms] for field in all_fields()}
    return {name for name, inputs in made.items() if any(one is not None and not one.isHidden() for one in inputs)}


@pytest.mark.parametrize("name", PLANS)
def test_a_form_asks_for_each_field_that_has_a_meaning(tab: MemoryTab, name: str):
    show(tab, name)
    context = field_context_of(tab.workspace.evaluation)
    assert context is not None
    declared = fields_of(tab.workspace.plan.workload.task).values()
    wanted = {field.name: field for field in declared if field.name not in APART and field.is_shown(context)}
    assert asked(tab) == wanted.keys()
    labels = {label.text(): label.toolTip() for label in tab.controls.findChildren(QLabel)}
    for field in wanted.values():
        assert labels[label_of(field)] == tooltip_of(field)
        assert tooltip_of(field).startswith(capitalized(field.help.partition(": ")[0]))


def test_a_tooltip_leaves_the_values_of_plan_files_to_the_list_of_titles():
    fields = fields_of("inference")
    assert tooltip_of(fields["attention"]).startswith("Attention implementation.")
    assert "second pass" in tooltip_of(fields["diffusion.guidance"])


def test_each_field_is_asked_for_somewhere(tab: MemoryTab):
    found = set()
    for name in PLANS:
        show(tab, name)
        found |= asked(tab)
    declared = {field.name for field in all_fields() if field.option.shown_when is not command_line_only}
    assert declared - found == set(APART)
    assert "Used by other programs" in {label.text() for label in tab.controls.cards.findChildren(QLabel)}


def help_of_fit() -> str:
    parser = Parser("gpu-planner fit", "", "")
    add_workload_options(parser)
    return parser.format_help()


def test_the_command_line_has_each_field():
    lines = help_of_fit().splitlines()
    starts = [f"  {field.option.flag or field.name} " for field in all_fields()]
    assert [start for start in starts if not any(line.startswith(start) for line in lines)] == []


@for_each("field", all_fields())
def test_sentences_speak_of_each_field_by_its_title(field):
    workload = fields.TASKS[field.tasks[0]]()
    assert setting_title(field.name) in {one.title for one in all_fields() if one.name == field.name}
    assert f" {title_in_sentence(setting_title(field.name))} to " in adjustments_sentence((field.name,), workload)
    for value, words in field.choices(None).items():
        assert field_value_text(field, value) == words


def test_every_section_has_fields():
    assert {field.group for field in all_fields()} == set(GROUPS)


def test_a_new_option_is_one_declaration(tab: MemoryTab, workspace: Workspace, monkeypatch):
    class Wider(Training):
        echoes: Annotated[
            int,
            Field(ge=0, le=9, title="Echo count", description="times that each batch is read again"),
            Presentation("--echoes", "main", explanation="It changes nothing."),
        ] = 0

    monkeypatch.setitem(fields.TASKS, "training", Wider)
    caches = (all_fields, fields_of)
    for cache in caches:
        cache.cache_clear()
    try:
        assert "times that each batch is read again [0]" in " ".join(help_of_fit().split())
        parser = Parser("gpu-planner fit", "", "")
        add_workload_options(parser)
        made = workload_from_arguments(parser.parse_args(["--task", "training", "--echoes", "3"]))
        assert made == Wider(echoes=3)
        workspace.apply("wider", workload=made)
        form = Questions(workspace, tab.controls.questions["inference"].theme, "training", ("main",))
        form.refresh(workspace.evaluation)
        assert form.field("echoes").value == 3
        form.field("echoes").edited.emit(5)
        assert workspace.plan.workload == Wider(echoes=5)
        assert workspace.undo_stack.undoText() == "echo count"
        assert adjustments_sentence(("echoes",), workspace.plan.workload) == "Also changed: echo count to 5."
    finally:
        monkeypatch.undo()
        for cache in caches:
            cache.cache_clear()


def test_a_setting_can_be_asked_for_by_name(tab: MemoryTab, qtbot: QtBot):
    show(tab, "full")
    tab.show()
    tab.activateWindow()
    questions = tab.controls.questions["training"]
    name, section = next(
        (name, section)
        for name in sorted(asked(tab))
        for section in tab.controls.findChildren(Section)
        if not section.is_open and section.isAncestorOf(questions._inputs.get(name) or tab)
    )
    tab.workspace.navigator.setting_requested.emit(name)
    assert section.is_open
    qtbot.waitUntil(questions.field(name).focusProxy().hasFocus)
