"""Time behaviour of each program: launch times, and the shares of a card's bandwidth and rates that kernels reach."""

from functools import cache
from importlib import import_module
from importlib.util import find_spec

from planner.performance.setting import TimeSetting
from planner.performance.software.engine import Engine, TrainingPace
from planner.workload.software.registry import DEFAULT, SOFTWARE
from planner.workload.workload import Inference, Training


def engine_of(workload: Inference, setting: TimeSetting) -> Engine:
    """Return the engine that serves `workload`, in its variant for `setting`."""
    # A plan uses one program: the others are not imported.
    engine: Engine = import_module(f"{__name__}.{SOFTWARE[workload.profile or DEFAULT].module}").ENGINE
    return engine.in_setting(setting)


def training_pace(workload: Training) -> TrainingPace:
    """Return the time behaviour of the program that trains `workload`: its own, or that of transformers' layers."""
    return _pace(SOFTWARE[workload.profile].module)


@cache
def _pace(program: str) -> TrainingPace:
    name = f"{__name__}.{program}"
    found: TrainingPace = import_module(name).PACE if find_spec(name) else TrainingPace()
    return found
