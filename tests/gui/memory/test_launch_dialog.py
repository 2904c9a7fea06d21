"""The dialog that shows the files by which another program runs the plan."""

import pytest
from PySide6.QtGui import QGuiApplication

from planner.gui.memory.launch_dialog import LaunchDialog
from planner.plan.plan import ModelChoice
from planner.workload.workload import Inference


@pytest.fixture
def dialog(window):
    workspace = window.workspace
    model = ModelChoice(id="meta-llama/Llama-3.2-1B")
    workspace.apply("run", model=model, workload=Inference(profile="vllm"), gpu="l40s", count=1)
    found = LaunchDialog(workspace, window.theme, window)
    found.show()
    yield found
    found.close()


def test_the_plans_own_program_comes_first_with_its_files(dialog):
    assert dialog.program.currentText() == "vLLM"
    assert "vllm serve meta-llama/Llama-3.2-1B" in dialog.preview.toPlainText()
    assert "GPU (L40S)" in dialog.unsaid.text()
    dialog.copy.click()
    assert QGuiApplication.clipboard().text() == dialog.preview.toPlainText()


def test_another_place_has_other_files_and_another_program_says_why_there_are_none(dialog):
    dialog.place.setCurrentIndex(dialog.place.findData("kubernetes"))
    assert "kind: Deployment" in dialog.preview.toPlainText()
    dialog.program.setCurrentIndex(dialog.program.findData("ollama"))
    assert "which Ollama does not run" in dialog.problem.text()
    assert not dialog.save.isEnabled()
    assert not dialog.preview.isVisible()


def test_files_are_saved_and_not_replaced(dialog, tmp_path):
    (tmp_path / "run.sh").write_text("mine")
    dialog.save_to(tmp_path)
    assert "exists with another content" in dialog.problem.text()
    dialog.save_to(tmp_path / "new")
    assert (tmp_path / "new" / "run.sh").exists()
    assert not dialog.isVisible()


def test_the_menu_opens_it(window):
    window.commands["plan.launch"].trigger()
    (found,) = window.findChildren(LaunchDialog)
    assert found.isVisible()
    found.close()
