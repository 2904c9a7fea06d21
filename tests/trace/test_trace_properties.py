"""What holds of every trace of a feed-forward network, whatever its widths."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.trace.analysis.live_memory import live_memory
from planner.trace.analysis.memory import facts_of
from planner.trace.recording import TraceRecording
from planner.trace.replay import replay
from planner.trace.request import Argument, Input, Target, TensorInput, TraceRequest
from planner.trace.worker.job import record_trace

FILE = """
from torch import nn

def Net(widths, convolution):
    pairs = list(zip(widths, widths[1:]))
    if convolution:
        body = [nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU()) for a, b in pairs]
        return nn.Sequential(*body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], 10))
    body = [nn.Sequential(nn.Linear(a, b), nn.LayerNorm(b), nn.GELU()) for a, b in pairs]
    return nn.Sequential(*body, nn.Linear(widths[-1], 10))
"""


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("nets") / "feed_forward_net.py"
    path.write_text(FILE, encoding="utf-8")
    return path


def traced(net: Path, widths: list[int], batch: int, *, convolution: bool, task: str, device: str) -> TraceRecording:
    image = (8, 8) if convolution else ()
    request = TraceRequest(
        target=Target(kind="file", place=str(net), name="Net"),
        arguments=(Argument(name="widths", value=tuple(widths)), Argument(name="convolution", value=convolution)),
        inputs=(Input(value=TensorInput(shape=(batch, widths[0], *image))),),
        task=task,
        device=device,
    )
    return record_trace(request, lambda *_: None)


@settings(max_examples=8)
@given(
    widths=st.lists(st.integers(1, 64), min_size=2, max_size=4),
    batches=st.tuples(st.integers(2, 32), st.integers(2, 32)),
    convolution=st.booleans(),
    task=st.sampled_from(("training", "inference")),
    device=st.sampled_from(("cpu", "cuda")),
)
def test_the_peak_never_falls_as_the_batch_grows(
    net: Path, widths: list[int], batches: tuple[int, int], convolution: bool, task: str, device: str
) -> None:
    few, many = (
        traced(net, widths, batch, convolution=convolution, task=task, device=device) for batch in sorted(batches)
    )
    assert facts_of(few).allocated_bytes <= facts_of(many).allocated_bytes
    assert few.parameters == many.parameters


@settings(max_examples=6)
@given(widths=st.lists(st.integers(1, 64), min_size=2, max_size=4), batch=st.integers(2, 32), convolution=st.booleans())
def test_reserved_memory_is_never_below_live_memory(
    net: Path, widths: list[int], batch: int, convolution: bool
) -> None:
    recording = traced(net, widths, batch, convolution=convolution, task="training", device="cuda")
    replayed = replay(recording.allocations)
    assert replayed.reserved_bytes >= replayed.peak_allocated_bytes >= facts_of(recording).allocated_bytes


def test_the_same_request_gives_the_same_recording(net: Path) -> None:
    first, again = (
        traced(net, [16, 32], 4, convolution=True, task="training", device="cuda").evolve(seconds=0.0) for _ in range(2)
    )
    assert first == again
    assert live_memory(first.allocations) == live_memory(again.allocations)
