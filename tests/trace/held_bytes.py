"""What a kernel of the CPU really holds within, measured with the profiler, beside what the formulas expect."""

from itertools import accumulate
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from planner.trace.worker.cpu.kernels import hidden_bytes


def held(func: Any, *args: Any, grad: bool = False) -> tuple[int, Any]:
    """Return the bytes that `func` really holds at most beside what it leaves, and what it returns."""
    with torch.set_grad_enabled(grad):
        func(*args)  # what is made once, such as code compiled on the fly, is there now
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as profiler:
            result = func(*args)
    events = profiler.profiler.kineto_results.events()
    levels = list(accumulate((event.nbytes() for event in events if event.name() == "[memory]"), initial=0))
    return max(levels) - max(levels[-1], 0), result


def agree(func: Any, *args: Any, within: int = 2048, grad: bool = False) -> None:
    """Check that the formulas expect what `func` really holds."""
    real, result = held(func, *args, grad=grad)
    with torch.set_grad_enabled(grad):
        assert hidden_bytes(func, args, {}, result) == pytest.approx(real, abs=within)
