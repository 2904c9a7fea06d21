"""Questions about image pipelines, and about text models that read images."""

import pytest
from PySide6.QtWidgets import QComboBox

from planner.gui.memory.tab import MemoryTab
from planner.gui.widgets.inputs.field import Field
from planner.gui.widgets.layout import focus_stops
from planner.gui.widgets.section import Section
from planner.plan.plan import ModelChoice
from planner.workload.workload import Inference

SDXL = ModelChoice(id="stabilityai/stable-diffusion-xl-base-1.0")
TEXT = ModelChoice(id="meta-llama/Llama-3.1-8B")
ALL = ("image_size", "diffusion.offload", "diffusion.guidance", "diffusion.vae_tiling", "diffusion.text_weights")
OF_TEXT = ("context_length", "prompt_length", "kv_cache", "profile", "attention", "prompt_logits")


def field(tab: MemoryTab, name: str) -> Field:
    return tab.controls.questions["inference"].field(name)


def is_asked(tab: MemoryTab, name: str) -> bool:
    made = tab.controls.questions["inference"]._inputs.get(name)
    return made is not None and not made.isHidden()


def words(tab: MemoryTab, name: str) -> str:
    return field(tab, name).findChild(QComboBox).currentText()


def workload(tab: MemoryTab) -> Inference:
    asked = tab.workspace.plan.workload
    assert isinstance(asked, Inference)
    return asked


@pytest.fixture
def pipeline(tab: MemoryTab) -> MemoryTab:
    """The tab with a pipeline in the plan."""
    tab.workspace.apply("model", model=SDXL, workload=Inference())
    return tab


def test_a_model_of_text_is_asked_nothing_about_images(tab: MemoryTab):
    tab.workspace.apply("task", workload=Inference())
    assert not any(is_asked(tab, name) for name in ALL)
    assert not field(tab, "context_length").isHidden()


def test_a_pipeline_is_asked_about_images_and_not_about_text(pipeline: MemoryTab):
    assert all(is_asked(pipeline, name) for name in (*ALL, "batch", "weights", "compute"))
    assert not any(is_asked(pipeline, name) for name in OF_TEXT)
    assert words(pipeline, "image_size") == "Default (1,024 × 1,024)"
    assert field(pipeline, "weights").text == "Default (BF16)"


@pytest.mark.parametrize(
    ("model", "asked"),
    [
        ("Qwen/Qwen2-VL-7B-Instruct", {"images", "image_size"}),
        ("google/vit-base-patch16-224", {"image_size"}),
        ("meta-llama/Llama-3.2-11B-Vision", set()),
    ],
)
def test_a_model_that_reads_images_is_asked_about_images(tab: MemoryTab, model: str, asked: set[str]):
    tab.workspace.apply("model", model=ModelChoice(id=model), workload=Inference())
    assert {name for name in (*ALL, "images") if is_asked(tab, name)} == asked


def test_a_question_is_made_when_it_first_matters_and_takes_its_place(tab: MemoryTab):
    questions = tab.controls.questions["inference"]
    assert questions._inputs.get("image_size") is None
    tab.workspace.apply("model", model=SDXL, workload=Inference())
    made = questions._inputs.get("image_size")
    assert made is not None
    for section in questions.findChildren(Section):
        section.set_open(True)
    stops = list(focus_stops(tab.controls))
    before, after = field(tab, "weights"), field(tab, "diffusion.guidance")
    places = [next(stops.index(stop) for stop in stops if one.isAncestorOf(stop)) for one in (before, made, after)]
    assert places == sorted(places)
    tab.workspace.apply("model", model=TEXT, workload=Inference())
    assert made.isHidden()
    assert questions._inputs.get("image_size") is made


def test_answers_change_the_plan_and_the_answer(pipeline: MemoryTab):
    before = pipeline.workspace.evaluation.memory.total_bytes
    field(pipeline, "diffusion.offload").edited.emit("model")
    field(pipeline, "diffusion.vae_slicing").edited.emit(True)
    field(pipeline, "image_size").edited.emit((512, 512))
    assert workload(pipeline).image_size == (512, 512)
    assert (workload(pipeline).diffusion.offload, workload(pipeline).diffusion.vae_slicing) == ("model", True)
    assert pipeline.workspace.evaluation.memory.total_bytes < before
    assert {phase.name for phase in pipeline.workspace.evaluation.memory.phases} >= {"denoise", "decode-image"}


def test_a_value_set_elsewhere_is_offered(pipeline: MemoryTab):
    asked = Inference(image_size=(640, 960), diffusion={"text_weights": "mxfp4", "guidance": False, "vae_tiling": True})
    pipeline.workspace.apply("workload", workload=asked)
    assert words(pipeline, "image_size") == "640 × 960"
    assert words(pipeline, "diffusion.text_weights") == "mxfp4"


def test_the_answer_can_be_copied(pipeline: MemoryTab):
    assert "Decode image" in pipeline.copy_result()
