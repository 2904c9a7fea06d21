"""Runs that depend on unknown values lie, run for real, within the bounds of their trace."""

from itertools import accumulate
from pathlib import Path

import pytest
import torch
from torch.profiler import ProfilerActivity, profile
from watched import file_target

from planner.trace.analysis.live_memory import live_memory
from planner.trace.recording import TraceRecording
from planner.trace.request import AssumedValue, TraceRequest
from planner.trace.run import trace
from planner.trace.worker import job
from planner.trace.worker.build import build_run
from planner.trace.worker.job import record_trace
from planner.trace.worker.observer import RunObserver
from planner.trace.worker.running import run

SOURCE = """
from pathlib import Path
from torch.nn import functional

class Experts(nn.Module):
    def __init__(self, width=32, count=4):
        super().__init__()
        self.gate = nn.Linear(width, count)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(count)
        )
    def forward(self, x):
        weights, chosen = self.gate(x).softmax(-1).topk(2)
        result = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows, places = torch.where(chosen == number)
            result.index_add_(0, rows, weights[rows, places, None] * expert(x[rows]))
        return result

def experts():
    return Experts(), torch.randn(256, 32)

class Masking(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(32, 64), nn.Linear(64, 64)
    def forward(self, x):
        hidden = self.inner(x)
        kept = (hidden.mean(-1) > 0).nonzero().squeeze(-1)
        return self.outer(hidden.index_select(0, kept)).pow(2).sum()

def masking():
    return Masking(), torch.randn(512, 32)

class Once(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(32, 64)
    def forward(self, x):
        mark = Path(__file__).with_name("ran")
        mark.touch(exist_ok=False)
        kept = (x.mean(-1) > 0).nonzero().squeeze(-1)
        return self.inner(x.index_select(0, kept)).pow(2).sum()

def once():
    return Once(), torch.randn(64, 32)

def solver():
    derivative = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 16))
    return derivative, torch.randn(64, 16), solve

def solve(derivative, state, optimizer):
    time, width, tolerance = 0.0, 0.5, 1e-3
    while time < 1.0:
        width = min(width, 1.0 - time)
        first = derivative(state)
        second = derivative(state + width * first)
        third = derivative(state + width * (first + second) / 4)
        error = (width * (first + second - 2 * third) / 3).norm() / state.norm()
        if error <= tolerance:
            state, time = state + width * (first + 4 * third + second) / 6, time + width
        width *= min(2.0, max(0.2, 0.9 * (tolerance / (error.item() + 1e-12)) ** (1 / 3)))
    state.sum().backward()
    optimizer.step()
    optimizer.zero_grad()

def fitting():
    network = nn.Sequential(nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 1))
    inputs, wanted = torch.randn(32, 64), torch.randn(32, 1)
    optimizer = torch.optim.LBFGS(network.parameters(), lr=0.1)
    def step(network, inputs):
        def closure():
            optimizer.zero_grad()
            loss = functional.mse_loss(network(inputs), wanted)
            loss.backward()
            return loss
        optimizer.step(closure)
    return network, inputs, step

def logging():
    return nn.Linear(32, 8), torch.randn(16, 32), log

def log(network, inputs, optimizer):
    loss = network(inputs).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"{loss.item():.3f}")

def deciding():
    return nn.Linear(32, 8), torch.randn(16, 32), decide

def decide(network, inputs, optimizer):
    loss = network(inputs).pow(2).mean()
    loss.backward()
    if loss > 3:
        print("a large loss")
    optimizer.step()
    optimizer.zero_grad()
"""
BOUNDED = "values that depend on the data"
pytestmark = pytest.mark.usefixtures("traces_in_this_process")


def request(folder: Path, name: str, **changes: object) -> TraceRequest:
    target = file_target(folder, SOURCE, name, f"unknown_{folder.name}.py")
    return TraceRequest.model_validate({"target": target, "task": "training", "device": "cpu", **changes})


def recorded(request: TraceRequest) -> TraceRecording:
    return record_trace(request, lambda *_: None)


def peak_bytes(recording: TraceRecording) -> int:
    return max(live_memory(recording.allocations).totals)


def real_peak_bytes(request: TraceRequest, seed: int) -> int:
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as profiler:
        torch.manual_seed(seed)
        run(build_run(request, RunObserver()), request, RunObserver())
    changes = [event for event in profiler.profiler.kineto_results.events() if event.name() == "[memory]"]
    return max(accumulate(event.nbytes() for event in sorted(changes, key=lambda event: event.start_ns())))


@pytest.mark.parametrize(
    "name", ["masking", *(pytest.param(name, marks=pytest.mark.oracle) for name in ("experts", "solver", "fitting"))]
)
def test_the_real_peak_lies_within_the_bounds(tmp_path: Path, name: str) -> None:
    asked = request(tmp_path, name)
    recording = recorded(asked)
    (difference,) = (found for found in recording.differences if found.name == BOUNDED)
    lowest = peak_bytes(recording) - difference.bytes
    assert difference.high_bytes > 0
    for seed in (0, 1):
        assert lowest <= real_peak_bytes(asked, seed) <= lowest + difference.high_bytes


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["solver", "fitting"])
def test_a_small_network_decides_as_in_a_real_run(tmp_path: Path, name: str) -> None:
    asked = request(tmp_path, name)
    assert peak_bytes(recorded(asked)) == pytest.approx(real_peak_bytes(asked, 0), rel=0.005)


@pytest.mark.oracle
def test_what_is_given_of_a_loop_counts_more_than_drawn_numbers(tmp_path: Path) -> None:
    asked = request(tmp_path, "solver", unknown_values="typical", assume=(AssumedValue(name="condition", value=3),))
    assert peak_bytes(recorded(asked.evolve(unknown_values="bounded"))) == peak_bytes(recorded(asked))


@pytest.mark.parametrize("name", ["logging", "deciding"])
def test_an_assumption_that_changes_nothing_is_not_told(tmp_path: Path, name: str) -> None:
    assert recorded(request(tmp_path, name)).differences == ()


@pytest.mark.oracle
def test_it_is_said_if_no_trace_with_other_values_succeeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "trace", trace)
    recording = recorded(request(tmp_path, "once", steps=1))
    assert BOUNDED not in [difference.name for difference in recording.differences]
    assert "No trace with other values succeeded" in recording.notes[-1]
    assert "A mask that depends on the data" in recording.notes[-1]


def test_a_given_value_is_no_longer_assumed(tmp_path: Path) -> None:
    asked = request(tmp_path, "masking", assume=(AssumedValue(name="mask", value=0.5),))
    recording = recorded(asked)
    assert BOUNDED not in [difference.name for difference in recording.differences]
    line = next(
        place for place, text in enumerate(Path(asked.target.place).read_text().splitlines(), 1) if "> 0" in text
    )
    by_line = AssumedValue(name=f"{Path(asked.target.place).name}:{line}", value=0.5)
    assert peak_bytes(recorded(asked.evolve(assume=(by_line,)))) == peak_bytes(recording)
    assert abs(peak_bytes(recording) - real_peak_bytes(asked, 0)) < 0.1 * peak_bytes(recording)


PERIODS = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(16, 16)
    def forward(self, x):
        spectrum = torch.fft.rfft(self.layer(x)).abs().mean(0)
        spectrum[0] = 0
        return x.reshape(len(x), -1, 16 // int(spectrum.argmax())).sum() * self.layer(x).sum()
"""


@pytest.mark.usefixtures("traces_in_this_process")
def test_a_run_that_assumed_values_break_is_traced_with_drawn_ones(tmp_path: Path) -> None:
    inputs = ({"value": {"kind": "tensor", "shape": (4, 16)}},)
    fields = {"target": file_target(tmp_path, PERIODS, "Net", "periods.py"), "inputs": inputs, "task": "training"}
    recording = record_trace(TraceRequest.model_validate(fields), lambda *_: None)
    assert recording.request.unknown_values == "bounded"
    assert any("With assumed values the run fails" in note for note in recording.notes)
    with pytest.raises(ZeroDivisionError):
        record_trace(TraceRequest.model_validate(fields | {"unknown_values": "typical"}), lambda *_: None)
