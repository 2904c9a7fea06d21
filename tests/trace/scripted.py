"""Scripts written in a test: traced in this process, or run for real with the peak of their tensors."""

import gc
import io
from contextlib import redirect_stdout
from itertools import accumulate
from pathlib import Path

from torch.profiler import ProfilerActivity, profile

from planner.trace.analysis.live_memory import live_memory, peak_moment
from planner.trace.recording import TraceRecording
from planner.trace.request import Target, TraceRequest
from planner.trace.worker.job import record_trace
from planner.trace.worker.script.run import run_for_real

NET = """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 8))
"""
LOOP = (
    NET
    + """
optimizer = torch.optim.Adam(net.parameters())
for number in range(1000):
    loss = net(torch.randn(32, 64)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", number)
"""
)


def script(
    folder: Path, source: str, *arguments: str, launcher: tuple[str, ...] = (), **fields: object
) -> TraceRequest:
    """Return the request for a script with this source."""
    file = folder / "train.py"
    file.write_text(source)
    target = Target(kind="script", place=str(file), command_arguments=arguments, launcher=launcher)
    return TraceRequest.model_validate({"target": target, "task": "training", "device": "cpu"} | fields)


def traced(request: TraceRequest) -> TraceRecording:
    """Trace the script in this process."""
    return record_trace(request, lambda *_: None)


def peak_bytes(recording: TraceRecording) -> int:
    """Return the traced peak."""
    return peak_moment(recording, live_memory(recording.allocations)).bytes


def real_peak_bytes(request: TraceRequest) -> int:
    """Run the script for real, and return the most bytes that its tensors had at once."""
    gc.collect()  # what runs before this one left would be freed within it
    gc.freeze()  # the next search need not look at all of PyTorch again
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler, redirect_stdout(io.StringIO()):
        run_for_real(request)
    events = [event for event in profiler.profiler.kineto_results.events() if event.name() == "[memory]"]
    return max(accumulate(event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())))


def phases(recording: TraceRecording) -> list[tuple[str, int]]:
    """Return the phases in order, neighbours of one name once."""
    found = [(span.name, span.step) for span in recording.spans]
    return [one for index, one in enumerate(found) if not index or found[index - 1] != one]
