"""Scheduling of each program: what a step holds, and what a request needs to be admitted, looked up by workload."""

from typing import Final

from planner.hardware.gpu import Gpu
from planner.models.architecture import Architecture
from planner.serving.scheduling import Scheduler, Scheduling
from planner.workload.software.registry import DEFAULT, SOFTWARE, program_behavior
from planner.workload.workload import Inference

_ONE_BATCH_AFTER_THE_OTHER: Final = Scheduler()


def scheduling_of(workload: Inference, architecture: Architecture, gpu: Gpu, *, prefix_cache: bool) -> Scheduling:
    """Return the scheduling of the engine that serves `workload`, whose defaults are filled in, on `gpu`.

    `prefix_cache` is whether engines that can use the cache of earlier requests again do so.
    """
    scheduler: Scheduler | None = program_behavior(__name__, SOFTWARE[workload.profile or DEFAULT].module, "SCHEDULER")
    found = (scheduler or _ONE_BATCH_AFTER_THE_OTHER).scheduling(workload, architecture, gpu)
    return found if prefix_cache else found.without_prefixes()
