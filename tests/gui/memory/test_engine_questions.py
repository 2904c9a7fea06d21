"""Questions about the inference engine and its settings."""

import pytest
from PySide6.QtWidgets import QLineEdit

from planner.gui.memory.inputs import draft_choices
from planner.gui.memory.tab import MemoryTab
from planner.gui.widgets.inputs.choice_field import ChoiceField
from planner.gui.widgets.inputs.field import Field
from planner.gui.widgets.section import Section
from planner.plan.plan import ModelChoice
from planner.workload.software.llama_cpp import LlamaCppSettings
from planner.workload.software.registry import setting_names
from planner.workload.software.vllm import VllmSettings
from planner.workload.workload import Inference


def field(tab: MemoryTab, name: str) -> Field:
    return tab.controls.questions["inference"].field(name)


def workload(tab: MemoryTab) -> Inference:
    asked = tab.workspace.plan.workload
    assert isinstance(asked, Inference)
    return asked


def shown(tab: MemoryTab) -> set[str]:
    names = (*(f"engine.{name}" for name in setting_names()), "gpu_layers")
    questions = tab.controls.questions["inference"]
    asked = {name: questions._inputs.get(name) for name in names}
    return {name.removeprefix("engine.") for name, made in asked.items() if made and not made.isHidden()}


def placeholder(tab: MemoryTab, name: str) -> str:
    return field(tab, name).findChild(QLineEdit).placeholderText()


def test_each_engine_has_questions_of_its_own(tab: MemoryTab):
    assert shown(tab) == set()
    field(tab, "profile").edited.emit("vllm")
    assert shown(tab) == set(VllmSettings.model_fields)
    field(tab, "profile").edited.emit("llama.cpp")
    experts = {"n_cpu_moe", "cpu_moe_layers"}
    assert shown(tab) == {"gpu_layers", *LlamaCppSettings.model_fields} - experts
    tab.workspace.apply("model", model=ModelChoice(id="openai/gpt-oss-20b"))
    assert shown(tab) == {"gpu_layers", *LlamaCppSettings.model_fields} - {"cpu_moe_layers"}
    tab.workspace.apply("cards", gpu="rtx-3090", count=2)
    assert shown(tab) == {"gpu_layers", *LlamaCppSettings.model_fields}


def test_open_settings_show_what_applies_on_this_card(tab: MemoryTab):
    field(tab, "profile").edited.emit("vllm")
    tab.workspace.apply("card", gpu="rtx-4090")
    assert placeholder(tab, "engine.max_num_seqs") == "256"
    tab.workspace.apply("card", gpu="h100-sxm5-80gb")
    assert placeholder(tab, "engine.max_num_seqs") == "1,024"
    field(tab, "profile").edited.emit("llama.cpp")
    assert placeholder(tab, "engine.slots") == "4"


def test_an_answer_changes_one_setting_and_leaves_the_others(tab: MemoryTab):
    field(tab, "profile").edited.emit("llama.cpp")
    field(tab, "engine.slots").edited.emit(2)
    field(tab, "engine.swa_full").edited.emit(True)
    field(tab, "gpu_layers").edited.emit(10)
    assert workload(tab).engine == LlamaCppSettings(slots=2, swa_full=True)
    assert workload(tab).gpu_layers == 10
    assert tab.workspace.evaluation.memory.host_bytes


def test_another_engine_starts_with_its_own_settings_and_a_cache_that_it_has(tab: MemoryTab):
    field(tab, "profile").edited.emit("llama.cpp")
    field(tab, "kv_cache").edited.emit("q8_0")
    field(tab, "engine.slots").edited.emit(2)
    field(tab, "profile").edited.emit("vllm")
    assert (workload(tab).engine, workload(tab).kv_cache) == (VllmSettings(), "bf16")
    field(tab, "kv_cache").edited.emit("fp8")
    field(tab, "profile").edited.emit(None)
    assert (workload(tab).profile, workload(tab).kv_cache) == (None, "fp8")


def test_what_an_engine_does_not_have_is_said_beside_the_field(tab: MemoryTab):
    field(tab, "profile").edited.emit("vllm")
    field(tab, "kv_cache").edited.emit("q8_0")
    assert workload(tab).kv_cache == "bf16"
    assert "no q8_0 KV cache" in field(tab, "kv_cache").focusProxy().accessibleDescription()


@pytest.mark.parametrize("share", [0.9, 0.123])
def test_a_share_of_the_card_from_elsewhere_can_be_shown(tab: MemoryTab, share: float):
    tab.workspace.answer(
        "share", {"workload.profile": "vllm", "workload.engine": VllmSettings(memory_utilization=share)}
    )
    made = field(tab, "engine.memory_utilization")
    assert isinstance(made, ChoiceField)
    assert made.value == share


@pytest.mark.parametrize("version", ["0.33", "0.11"])
def test_every_setting_of_an_engine_can_be_answered(tab: MemoryTab, version: str):
    answers = {"version": version, "max_num_seqs": 64, "max_num_batched_tokens": 4096, "memory_utilization": 0.5}
    answers |= {"block_size": 32, "enforce_eager": True}
    field(tab, "profile").edited.emit("vllm")
    for name, value in answers.items():
        field(tab, f"engine.{name}").edited.emit(value)
        field(tab, f"engine.{name}").finished.emit()
    assert workload(tab).engine == VllmSettings.model_validate(answers)


def test_what_makes_no_difference_to_an_engine_is_not_asked(tab: MemoryTab):
    names = ("compute", "prompt_length", "prompt_logits", "attention")
    asked = {}
    for profile in ("hf", "vllm", "llama.cpp"):
        field(tab, "profile").edited.emit(profile)
        asked[profile] = {name for name in names if not field(tab, name).isHidden()}
    assert asked == {"hf": set(names), "vllm": {"compute"}, "llama.cpp": {"attention"}}


def test_folded_sections_say_what_is_set_and_are_marked(tab: MemoryTab):
    field(tab, "profile").edited.emit("llama.cpp")
    field(tab, "gpu_layers").edited.emit(20)
    field(tab, "engine.slots").edited.emit(2)
    sections = {made._button.text(): made for made in tab.controls.questions["inference"].findChildren(Section)}
    assert sections["Software"]._summary.text() == "llama.cpp, 20 layers on the GPU, slots 2"
    assert sections["Software"]._button.font().bold()
    assert sections["Attention and logits"]._summary.text() == "Flash attention"
    assert not sections["Precision"]._button.font().bold()


def test_the_heading_says_the_engine(tab: MemoryTab):
    tab.workspace.answer("weights", {"workload.weights": "Q4_K_M"})
    assert tab.workspace.evaluation.workload.profile == "llama.cpp"
    assert "llama.cpp" in " ".join(tab.workspace.evaluation.memory.notes)


def test_a_draft_is_chosen_among_smaller_models_with_the_same_vocabulary(tab: MemoryTab):
    tab.workspace.apply("model", model=ModelChoice(id="meta-llama/Llama-3.1-8B"))
    field(tab, "profile").edited.emit("vllm")
    field(tab, "speculation.method").edited.emit("eagle3")
    assert workload(tab).speculation.method == "eagle3"
    assert tab.workspace.evaluation.memory.term("draft").bytes > 0
    names = [choice.key for choice in draft_choices(tab.workspace)]
    assert "meta-llama/Llama-3.2-1B" in names
    assert "meta-llama/Llama-3.1-8B" not in names
    field(tab, "speculation.model").edited.emit("some/head")
    field(tab, "adapters.slots").edited.emit(4)
    field(tab, "common_prefix").edited.emit(512)
    assert (workload(tab).adapters.slots, workload(tab).common_prefix) == (4, 512)
    assert workload(tab).speculation.model == "some/head"
    field(tab, "profile").edited.emit("hf")
    assert (workload(tab).adapters.slots, workload(tab).speculation.method) == (0, None)
