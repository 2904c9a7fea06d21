"""Running what was built: training, answering, or a forward pass."""

from contextlib import AbstractContextManager
from typing import Any

import torch

from planner.trace.request import TraceRequest
from planner.trace.worker.answering import answer, answers
from planner.trace.worker.build import Built
from planner.trace.worker.hugging_face import as_in_a_real_run
from planner.trace.worker.own_steps import run_own_steps
from planner.trace.worker.training import train
from planner.trace.worker.watcher import Watcher


def run(built: Built, request: TraceRequest, watcher: Watcher) -> None:
    """Run `built` as `request` says, and tell `watcher` of each phase.

    Raises:
        TraceError: If the request cannot be run.
    """
    with as_in_a_real_run():
        if request.task == "training":
            (train if built.step is None else run_own_steps)(built, request, watcher, autocast(request))
            return
        with torch.no_grad():
            if built.step is not None:
                run_own_steps(built, request, watcher, autocast(request))
            elif answers(built, request):
                answer(built, request, watcher, autocast(request))
            else:
                _forward(built, watcher, autocast(request))


def autocast(request: TraceRequest) -> AbstractContextManager[Any]:
    """Return the autocast that `request` asks for; it can be entered again and again."""
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16, None: None}[request.autocast]
    return torch.autocast("cpu", dtype=dtype or torch.bfloat16, enabled=dtype is not None)


def _forward(built: Built, watcher: Watcher, autocast: AbstractContextManager[Any]) -> None:
    watcher.phase("forward", 0)
    call = built.call
    with autocast:
        built.module(*call.args, **call.kwargs)
