"""Each mnemonic of the Memory tab is unique, also beside the menus."""

import re

import pytest
from each_record import for_each
from PySide6.QtWidgets import QAbstractButton, QLabel
from recordings import training, two_steps

from planner.gui.memory.tab import MemoryTab
from planner.gui.widgets.section import Section
from planner.plan.plan import ModelChoice
from planner.trace.analysis.memory import facts_of
from planner.units import GIB
from planner.workload.parallel import CardCount, Parallel
from planner.workload.workload import Inference, Training

pytestmark = pytest.mark.usefixtures("explored_tab")

MENUS = "fevpcih"
PLANS = {
    "full": (Training(), 1),
    "lora": (Training(method="lora"), 1),
    "pipeline": (Training(parallel=Parallel(tensor=2, pipeline=2)), 8),
    "hf": (Inference(), 1),
    "vllm": (Inference(profile="vllm"), 1),
    "llama.cpp": (Inference(profile="llama.cpp"), 1),
    "images": (Inference(), 1),
    "denoiser": (Training(method="lora"), 1),
    "vision": (Inference(), 1),
    "unequal": (Inference(gpus=(CardCount(id="rtx-4090"), CardCount(id="rtx-3090"))), 2),
}
SDXL = "stabilityai/stable-diffusion-xl-base-1.0"
MODELS = {"images": SDXL, "denoiser": SDXL, "vision": "Qwen/Qwen2-VL-7B-Instruct"}


def mnemonics(tab: MemoryTab) -> dict[str, list[str]]:
    """Return the texts of what is visible, by the letter that is underlined in them."""
    found: dict[str, list[str]] = {}
    for made in [*tab.findChildren(QLabel), *tab.findChildren(QAbstractButton)]:
        letter = re.search(r"&(\w)", made.text())
        if letter and made.isVisibleTo(tab) and (not isinstance(made, QLabel) or made.buddy()):
            found.setdefault(letter[1].lower(), []).append(made.text())
    return found


@for_each("name", PLANS)
def test_each_key_leads_to_one_place(tab: MemoryTab, name):
    workload, count = PLANS[name]
    model = ModelChoice(id=MODELS.get(name, "meta-llama/Llama-3.1-8B"))
    gpu = None if workload.gpus else "h100-sxm5-80gb"
    tab.workspace.apply(name, model=model, workload=workload, gpu=gpu, count=count)
    for section in tab.controls.findChildren(Section):
        section.set_open(True)
    found = mnemonics(tab)
    assert {letter: texts for letter, texts in found.items() if len(texts) > 1} == {}
    assert {letter: found[letter] for letter in MENUS if letter in found} == {}


def test_each_key_leads_to_one_place_about_a_traced_module(tab: MemoryTab):
    tab.workspace.apply("traced", model=ModelChoice.of_trace(facts_of(two_steps(GIB, training()))))
    for section in tab.controls.findChildren(Section):
        section.set_open(True)
    found = mnemonics(tab)
    assert {letter: texts for letter, texts in found.items() if len(texts) > 1} == {}
    assert {letter: found[letter] for letter in MENUS if letter in found} == {}


def test_what_decides_most_has_a_key(tab: MemoryTab):
    tab.workspace.apply("lora", workload=Training(method="lora"))
    assert set("mtdrgblz") <= mnemonics(tab).keys()


def test_each_key_leads_to_one_place_beside_a_pinned_plan(tab: MemoryTab):
    tab.workspace.pin.put(tab.workspace.plan)
    found = mnemonics(tab)
    assert {letter: texts for letter, texts in found.items() if len(texts) > 1} == {}
