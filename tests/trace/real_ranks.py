"""Two real ranks on the CPU, for the peak of one: run as a program, it prints the bytes."""

import os
import sys

import torch
import torch.distributed as dist
from torch import multiprocessing

from planner.trace.request import TraceRequest
from planner.trace.worker.build import build_run
from planner.trace.worker.observer import RunObserver
from planner.trace.worker.running import run

PORT = 29_517


def rank(number: int, text: str) -> None:
    """Be one rank of a run that replicates the module of the request."""
    request = TraceRequest.model_validate_json(text)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(PORT))
    dist.init_process_group("gloo", rank=number, world_size=request.parallel.ranks)
    with torch.profiler.profile(profile_memory=True, activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        built = build_run(request, RunObserver())
        built.modules = {
            name: torch.nn.parallel.DistributedDataParallel(module) for name, module in built.modules.items()
        }
        run(built, request, RunObserver())
    if number == 0:
        sys.stdout.write(f"{_peak(profile)}\n")
    dist.destroy_process_group()


def _peak(profile: torch.profiler.profile) -> int:
    events = [event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"]
    alive = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        alive += event.nbytes()
        peak = max(peak, alive)
    return peak


if __name__ == "__main__":
    multiprocessing.start_processes(rank, args=(sys.stdin.read(),), nprocs=2, start_method="fork")
