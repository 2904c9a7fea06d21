"""Traces with other values, made in the process of the test."""

from threading import Lock

import pytest

from planner.trace.recording import TraceRecording
from planner.trace.request import TraceRequest
from planner.trace.run import TraceLimits


@pytest.fixture
def traces_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trace with other values without a process for each, one at a time, as nothing here outlives a run."""
    from planner.trace.worker import job
    from planner.trace.worker.job import record_trace

    tracing = Lock()

    def trace_in_turn(request: TraceRequest, _limits: TraceLimits) -> TraceRecording:
        with tracing:
            return record_trace(request, lambda *_: None)

    monkeypatch.setattr(job, "trace", trace_in_turn)
