"""Live bytes of a few lines of PyTorch after each allocation and free: of a real run, and traced."""

from collections.abc import Callable
from itertools import accumulate

import torch
from torch.profiler import ProfilerActivity, profile

from planner.trace.recording import NEVER_FREED
from planner.trace.worker.call_sites import CallSites
from planner.trace.worker.cpu.kernels import hidden_bytes
from planner.trace.worker.fake_tensors.assumptions import Assumptions
from planner.trace.worker.fake_tensors.eager_behavior import eager_behavior
from planner.trace.worker.fake_tensors.values import KnownValues
from planner.trace.worker.ledger import AllocationLedger, FlopCounter


def real_levels(work: Callable[[], object]) -> list[int]:
    """Return the live bytes after each allocation and free of a real run."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as profiler:
        work()
    changes = [e for e in profiler.profiler.kineto_results.events() if e.name() == "[memory]"]
    return list(accumulate(e.nbytes() for e in sorted(changes, key=lambda e: e.start_ns())))


def traced_levels(work: Callable[[], object]) -> list[int]:
    """Return the live bytes after each event of the same run, traced."""
    ledger = AllocationLedger(KnownValues(Assumptions(lambda text: None)), CallSites(), FlopCounter(), hidden_bytes)
    ledger.begin_phase("forward", 0)
    with ledger, eager_behavior():
        ledger.observe_use_counts()
        work()
    book = ledger.allocations()
    changes = [*zip(book.made, book.bytes, strict=True)]
    changes += [(time, -size) for time, size in zip(book.freed, book.bytes, strict=True) if time != NEVER_FREED]
    return list(accumulate(size for _, size in sorted(changes)))


def hidden_state() -> torch.Tensor:
    """Return a tensor that is not a leaf of the graph of gradients."""
    return torch.randn(64, 256, requires_grad=True) * 1.0
