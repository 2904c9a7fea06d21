"""Recordings made by hand, and a tracer's child that does what a test tells it."""

from collections.abc import Callable
from threading import Event
from typing import ClassVar

from planner.errors import TraceError
from planner.gui.memory.tab import MemoryTab
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.workspace import Workspace
from planner.trace.messages import TraceProgress
from planner.trace.recording import CATEGORIES, Allocations, Environment, ModuleInfo, RecordedPhase, TraceRecording
from planner.trace.request import Input, Target, TensorInput, TraceRequest, requested_batch_size
from planner.units import MIB

NET = '''
from torch import nn


class Net(nn.Module):
    """A small network."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return self.linear(x).relu()


def example():
    import torch

    return Net(), (torch.zeros(4, 8),)
'''


def request(place: str = "net.py", batch: int = 4) -> TraceRequest:
    return TraceRequest(
        target=Target(kind="file", place=place, name="Net"),
        inputs=(Input(name="x", value=TensorInput(shape=(batch, 8))),),
        task="training",
    )


def recording(asked: TraceRequest) -> TraceRecording:
    """Parameters, then activations that grow with the batch, then a gradient, over two steps."""
    rows: list[tuple[int, int, int, str]] = [(100 * MIB, 0, -1, "parameters")]
    spans = [RecordedPhase(name="load", step=0, start=0, end=1)]
    time = 1
    for step in range(2):
        activations = (requested_batch_size(asked) or 1) * 50 * MIB
        rows.append((activations, time, time + 2, "activations"))
        rows.append((100 * MIB, time + 1, time + 3, "gradients"))
        spans.append(RecordedPhase(name="forward", step=step, start=time, end=time + 1))
        spans.append(RecordedPhase(name="backward", step=step, start=time + 1, end=time + 3))
        spans.append(RecordedPhase(name="step", step=step, start=time + 3, end=time + 4))
        time += 4
    sizes, made, freed, categories = zip(*rows, strict=True)
    return TraceRecording(
        request=asked,
        environment=Environment(planner="0", python="3.11.7", torch="2.13.0", transformers=None, tested=True),
        modules=(
            ModuleInfo(path="", class_name="Net", parameters=0, trainable=0),
            ModuleInfo(path="linear", class_name="Linear", parameters=72, trainable=72),
        ),
        parameters=72,
        trainable_parameters=72,
        allocations=Allocations(
            bytes=sizes,
            made=made,
            freed=freed,
            category=tuple(CATEGORIES.index(name) for name in categories),
            operator=(0, 1, 2, 1, 2),
            module=(1,) * 5,
            line=(0,) * 5,
            shape=(0,) * 5,
        ),
        operators=("aten.empty", "aten.addmm", "aten.mm"),
        module_paths=("", "linear"),
        lines=("/home/me/net.py:13",),
        shapes=("[8, 8] float32",),
        spans=tuple(spans),
    )


class FakeTrace:
    """Ends when it is told to, or cancelled."""

    def __init__(self, asked: TraceRequest, on_progress: Callable[[TraceProgress], None]) -> None:
        self.request, self.on_progress = asked, on_progress
        self.ended, self.cancelled = Event(), False
        self.error: TraceError | None = None

    def cancel(self) -> None:
        self.cancelled = True
        self.ended.set()

    def end(self, error: TraceError | None = None) -> None:
        self.error = error
        self.ended.set()

    def result(self) -> TraceRecording:
        self.ended.wait(30)
        if self.cancelled:
            raise TraceError("cancelled", "the trace was cancelled")
        if self.error is not None:
            raise self.error
        return recording(self.request)


class FakeStart:
    """Notes every trace that was started."""

    def __init__(self) -> None:
        self.traces: list[FakeTrace] = []

    def __call__(self, asked: TraceRequest, on_progress: Callable[[TraceProgress], None]) -> FakeTrace:
        self.traces.append(FakeTrace(asked, on_progress))
        return self.traces[-1]

    @property
    def last(self) -> FakeTrace:
        return self.traces[-1]


class TracedTab(MemoryTab):
    """The memory tab around a start that runs nothing."""

    start: ClassVar[FakeStart]

    def __init__(self, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> None:
        type(self).start = FakeStart()
        super().__init__(workspace, theme, tasks, self.start)
