"""Scheduling of each program: what a step holds, and what a request needs to be admitted, looked up by workload."""

from functools import cache
from importlib import import_module
from importlib.util import find_spec

from planner.hardware.gpu import Gpu
from planner.models.architecture import Architecture
from planner.serving.scheduling import Scheduler, Scheduling
from planner.workload.software.registry import DEFAULT, SOFTWARE
from planner.workload.workload import Inference


def scheduling_of(workload: Inference, architecture: Architecture, gpu: Gpu, *, prefix_cache: bool) -> Scheduling:
    """Return the scheduling of the engine that serves `workload`, whose defaults are filled in, on `gpu`.

    `prefix_cache` is whether engines that can use the cache of earlier requests again do so.
    """
    found = _scheduler(SOFTWARE[workload.profile or DEFAULT].module).scheduling(workload, architecture, gpu)
    return found if prefix_cache else found.without_prefixes()


@cache
def _scheduler(program: str) -> Scheduler:
    """Return the scheduler of the program in the module `program`: its own, or else one batch after the other."""
    name = f"{__name__}.{program}"
    found: Scheduler = import_module(name).SCHEDULER if find_spec(name) else Scheduler()
    return found
