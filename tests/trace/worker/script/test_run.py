"""Scripts run unchanged, as `__main__`, until their last step."""

import sys

import pytest
from scripted import LOOP, NET, peak_bytes, phases, real_peak_bytes, script, traced

from planner.errors import TraceError
from planner.trace.recording import CATEGORIES
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
    with pytest.raises(TraceError, match="moves nothing to a GPU") as caught:
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


GAN = """
import torch
from torch import nn
class Maker(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(16, 64)
    def forward(self, x):
        return self.inner(x)
class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(64, 1)
    def forward(self, x):
        return self.inner(x)
maker, judge = Maker(), Judge()
for_judge = torch.optim.Adam(judge.parameters())
for_maker = torch.optim.Adam(maker.parameters())
for number in range(100):
    for inner in range(JUDGED):
        for_judge.zero_grad()
        judge(maker(torch.randn(8, 16)).detach()).mean().backward()
        for_judge.step()
    for_maker.zero_grad()
    judge(maker(torch.randn(8, 16))).mean().backward()
    for_maker.step()
"""


@pytest.mark.parametrize("judged", [1, 5])
def test_a_step_of_a_gan_is_one_of_each_optimizer(tmp_path, judged):
    request = script(tmp_path, GAN.replace("JUDGED", str(judged)))
    recording = traced(request)
    assert sum(1 for name, _ in phases(recording) if name == "step") == 2 * (judged + 1)
    assert abs(peak_bytes(recording) - real_peak_bytes(request)) <= 64
    assert {"Maker", "Judge", "Judge.inner"} <= {module.path for module in recording.modules}


def test_an_optimizer_that_never_steps_does_not_hold_the_end_back(tmp_path):
    unused = "unused = torch.optim.SGD([torch.zeros(3, requires_grad=True)], lr=1)\n"
    recording = traced(script(tmp_path, LOOP.replace("for number", unused + "for number")))
    assert sum(1 for span in recording.spans if span.name == "step") == 32


def test_steps_are_as_many_as_asked_for(tmp_path):
    recording = traced(script(tmp_path, LOOP, steps=3))
    assert {span.step for span in recording.spans} == {0, 1, 2}


def test_a_closure_has_its_own_passes(tmp_path):
    source = (
        NET
        + """
optimizer = torch.optim.Adam(net.parameters())
def closure():
    optimizer.zero_grad()
    loss = net(torch.randn(32, 64)).square().mean()
    loss.backward()
    return loss
while True:
    optimizer.step(closure)
"""
    )
    request = script(tmp_path, source)
    recording = traced(request)
    names = [name for name, step in phases(recording) if step == 0]
    assert names[-4:] == ["forward", "loss", "backward", "step"]
    assert abs(peak_bytes(recording) - real_peak_bytes(request)) <= 64


def test_a_method_of_a_module_counts_for_the_whole_module(tmp_path):
    source = (
        NET
        + """
class Task(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = net
    def training_step(self, x):
        return self.net(x).square().mean()
task = Task()
optimizer = torch.optim.SGD(task.parameters(), lr=0.1)
while True:
    task.training_step(torch.randn(4, 64)).backward()
    optimizer.step()
"""
    )
    recording = traced(script(tmp_path, source))
    assert [module.path for module in recording.modules][:2] == ["Task", "Task.net"]


def test_a_checkpointed_module_runs_in_the_backward_pass(tmp_path):
    source = LOOP.replace("net(torch.randn(32, 64))", "checkpoint(net, torch.randn(32, 64), use_reentrant=False)")
    recording = traced(script(tmp_path, "from torch.utils.checkpoint import checkpoint\n" + source))
    assert [name for name, step in phases(recording) if step == 1] == ["forward", "loss", "backward", "step"]


def test_two_networks_of_one_class_have_two_names(tmp_path):
    source = (
        NET
        + "other = nn.Sequential(nn.Linear(64, 4))\nfirst, second = net(torch.ones(1, 64)), other(torch.ones(1, 64))\n"
    )
    paths = [module.path for module in traced(script(tmp_path, source)).modules]
    assert {"Sequential", "Sequential 2", "Sequential 2.0"} <= set(paths)


def test_tensors_are_named_by_what_they_are(tmp_path):
    source = LOOP.replace("torch.randn(32, 64)", "next(batches)[0]").replace(
        "for number",
        "data = torch.utils.data.TensorDataset(torch.randn(320, 64))\n"
        "batches = iter(torch.utils.data.DataLoader(data, batch_size=32))\nfor number",
    )
    columns = traced(script(tmp_path, source)).allocations
    held = dict.fromkeys(CATEGORIES, 0)
    for size, category, freed in zip(columns.bytes, columns.category, columns.freed, strict=True):
        held[CATEGORIES[category]] += size if freed < 0 else 0
    weights = 4 * (64 * 128 + 128 + 128 * 8 + 8)
    assert held["parameters"] == held["gradients"] == weights
    assert held["optimizer_states"] == 2 * weights + 4 * 4
    assert (
        sum(
            size
            for size, category in zip(columns.bytes, columns.category, strict=True)
            if CATEGORIES[category] == "inputs"
        )
        == 2 * 32 * 64 * 4
    )


def test_a_script_that_changes_its_weights_by_hand_ends_too(tmp_path):
    by_hand = """
while True:
    net(torch.randn(32, 64)).square().mean().backward()
    for weight in net.parameters():
        weight.data.add_(weight.grad, alpha=-0.1)
        weight.grad = None
"""
    recording = traced(script(tmp_path, NET + by_hand))
    assert any("No optimizer of PyTorch was made: the script was traced over 32 backward passes" in note
               for note in recording.notes)  # fmt: skip


def test_a_progress_bar_learns_the_size_of_the_terminal(tmp_path):
    asked = "import os\nrows, columns = map(int, os.popen('stty size', 'r').read().split())\n"
    recording = traced(script(tmp_path, asked + "assert columns == os.get_terminal_size().columns" + LOOP))
    assert recording.parameters


def test_an_exported_notebook_runs_without_its_commands(tmp_path):
    commands = "get_ipython().system('pip install -q torch')\nget_ipython().run_line_magic('matplotlib', 'inline')\n"
    recording = traced(script(tmp_path, commands + LOOP))
    assert "A command of the notebook is left out: pip install -q torch." in recording.notes
    with pytest.raises(NameError, match="get_ipython"):
        traced(script(tmp_path, "print(get_ipython)\n" + LOOP))


def test_a_module_of_which_a_comparison_makes_another_is_told_apart(tmp_path):
    metric = """
class Metric(nn.Module):
    def __init__(self, *parts):
        super().__init__()
        self.total, self.parts = nn.Parameter(torch.zeros(3)), nn.ModuleList(parts)
    def __hash__(self):
        return 7
    def __eq__(self, other):
        return Metric(self, other)
    def forward(self, x):
        return x + self.total.sum()
first, second = Metric(), Metric()
optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()])
for number in range(2):
    (first(torch.ones(3)) + second(torch.ones(3))).sum().backward()
    optimizer.step()
"""
    recording = traced(script(tmp_path, NET + metric))
    assert {module.path for module in recording.modules} >= {"Metric", "Metric 2"}
