"""Scripts run unchanged, as `__main__`, until their last step."""

import sys

import pytest
from scripted import LOOP, NET, peak_bytes, phases, real_peak_bytes, script, traced

from planner.errors import TraceError
from planner.trace.request import Target, TraceRequest


def test_a_loop_has_the_peak_of_its_real_run(tmp_path):
    request = script(tmp_path, LOOP)
    recording = traced(request)
    assert abs(peak_bytes(recording) - real_peak_bytes(request)) <= 64
    assert phases(recording) == [
        ("load", 0),
        *[(name, step) for step in (0, 1) for name in ("forward", "loss", "backward", "step")],
    ]
    assert recording.parameters == 64 * 128 + 128 + 128 * 8 + 8
    assert any("ended after 2 optimizer steps" in note for note in recording.notes)


def test_a_script_sees_its_own_name_command_line_and_folder(tmp_path):
    (tmp_path / "nearby.py").write_text("WIDTH = 24\n")
    before = sys.modules["__main__"], [*sys.path], [*sys.argv]
    source = """
import sys, torch
from nearby import WIDTH
assert __name__ == "__main__"
assert sys.argv[1:] == ["--lr", "0.1"]
assert sys.modules["__main__"].WIDTH == WIDTH
kept = torch.ones(WIDTH)
"""
    recording = traced(script(tmp_path, source, "--lr", "0.1"))
    assert peak_bytes(recording) == 24 * 4
    assert (sys.modules["__main__"], sys.path, sys.argv) == before
    del sys.modules["nearby"]


def test_a_module_of_a_package_runs_as_with_python_m(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "trainings").mkdir()
    (tmp_path / "trainings" / "__init__.py").write_text("")
    (tmp_path / "trainings" / "first.py").write_text(LOOP)
    target = Target(kind="program", place="trainings.first")
    assert traced(TraceRequest(target=target, task="training", device="cpu")).spans[-1].name == "step"


@pytest.mark.parametrize("swallow", ["except Exception", "except"])
def test_an_end_within_a_try_is_an_end(tmp_path, swallow):
    body = LOOP.partition("for number")[2].replace("\n", "\n        ")
    source = f"{LOOP.partition('for number')[0]}\nfor attempt in range(3):\n    try:\n        for number{body}pass\n"
    source += f"    {swallow}:\n        torch.ones(10**9)\n"
    assert peak_bytes(traced(script(tmp_path, source))) < 10**6


def test_a_script_without_steps_is_inference(tmp_path):
    recording = traced(script(tmp_path, NET + "with torch.no_grad():\n    out = net(torch.randn(4, 64))\n"))
    assert ("forward", 0) in phases(recording)
    assert any("No optimizer step" in note for note in recording.notes)


def test_a_script_may_end_itself_before_its_last_step(tmp_path):
    recording = traced(script(tmp_path, LOOP + "    raise SystemExit\n"))
    assert recording.spans[-1].step == 0
    assert any("took 1 step" in note for note in recording.notes)


def test_an_error_of_its_own_is_its_own(tmp_path):
    with pytest.raises(ZeroDivisionError):
        traced(script(tmp_path, NET + "1 / 0\n"))
    with pytest.raises(TraceError, match=r"sys\.exit") as caught:
        traced(script(tmp_path, "import sys\nsys.exit(2)\n"))
    assert "follow --" in caught.value.hint


def test_a_script_without_tensors_names_what_can_be_traced(tmp_path):
    with pytest.raises(TraceError, match=r"train.py makes no tensor") as caught:
        traced(script(tmp_path, "from torch import nn\nclass Net(nn.Module):\n    pass\n"))
    assert "train.py:Net" in caught.value.hint
    target = Target(kind="program", place="this")
    with pytest.raises(TraceError, match="makes no tensor"):
        traced(TraceRequest(target=target, task="training", device="cpu"))


def test_a_script_that_uses_no_card_says_so(tmp_path):
    with pytest.raises(TraceError, match="moves nothing to a card") as caught:
        traced(script(tmp_path, LOOP, device="cuda"))
    assert "--device cpu" in caught.value.hint


def test_a_module_that_is_not_there_is_told_from_what_it_lacks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(TraceError, match="there is no module nowhere") as caught:
        traced(TraceRequest(target=Target(kind="program", place="nowhere.train"), task="training"))
    assert str(tmp_path) in caught.value.hint
    (tmp_path / "lacking.py").write_text("import nowhere")
    with pytest.raises(ModuleNotFoundError):
        traced(TraceRequest(target=Target(kind="program", place="lacking"), task="training"))
