"""Steps, phases and modules of scripts, seen from outside."""

import pytest
from scripted import LOOP, NET, peak_bytes, phases, real_peak_bytes, script, traced

from planner.trace.facts import CATEGORIES

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
