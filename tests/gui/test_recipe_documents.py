"""Training files of other programs are opened in the window."""

from pytestqt.qtbot import QtBot

from planner.gui.window import MainWindow
from planner.gui.workspace import SAMPLE_PLAN

RECIPE = "base_model: Qwen/Qwen2.5-0.5B\nmicro_batch_size: 2\nsequence_len: 1024\ntorch_compile: true\n"


def test_a_training_file_is_one_undo_step_with_a_notice(window: MainWindow, tmp_path, qtbot: QtBot):
    file = tmp_path / "full.yml"
    file.write_text(RECIPE)
    window.documents.open(file)
    qtbot.waitUntil(window.banner.isVisible)
    plan = window.workspace.plan
    assert (plan.model.id, plan.workload.task, plan.workload.micro_batch) == ("Qwen/Qwen2.5-0.5B", "training", 2)
    assert "Read from full.yml (axolotl): base_model Qwen/Qwen2.5-0.5B" in window.banner.text
    window.workspace.undo_stack.undo()
    assert window.workspace.plan == SAMPLE_PLAN
    assert not window.workspace.undo_stack.canUndo()


def test_a_file_without_a_model_keeps_the_plans_own(window: MainWindow, tmp_path, qtbot: QtBot):
    file = tmp_path / "ddp.yaml"
    file.write_text("distributed_type: MULTI_GPU\nnum_processes: 2\nmixed_precision: bf16\n")
    window.documents.open(file)
    qtbot.waitUntil(window.banner.isVisible)
    assert window.workspace.plan.model == SAMPLE_PLAN.model
    assert (window.workspace.plan.count, window.workspace.plan.workload.task) == (2, "training")


def test_a_broken_training_file_is_reported_and_the_plan_stays(window: MainWindow, tmp_path, qtbot: QtBot):
    file = tmp_path / "broken.yml"
    file.write_text("base_model: [")
    window.documents.open(file)
    qtbot.waitUntil(window.banner.isVisible)
    assert "broken.yml: is not YAML" in window.banner.text
    assert window.workspace.plan == SAMPLE_PLAN
