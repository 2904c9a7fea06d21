"""Scheduling of each program: what a step holds, and what a request needs to be admitted, looked up by workload."""

from planner.hardware.gpu import Gpu
from planner.models.architecture import Architecture
from planner.serving.scheduling import Scheduler, Scheduling
from planner.workload.software.registry import DEFAULT, SOFTWARE, find_behavior
from planner.workload.workload import Inference


def scheduling_of(workload: Inference, architecture: Architecture, gpu: Gpu, *, prefix_cache: bool) -> Scheduling:
    """Return the scheduling of the engine that serves `workload`, whose defaults are filled in, on `gpu`.

    `prefix_cache` is whether engines that can use the cache of earlier requests again do so. A program without a module
    answers one batch after the other.
    """
    module = find_behavior(__name__, SOFTWARE[workload.profile or DEFAULT].module)
    scheduler: Scheduler = Scheduler() if module is None else module.SCHEDULER
    found = scheduler.scheduling(workload, architecture, gpu)
    return found if prefix_cache else found.without_prefixes()
