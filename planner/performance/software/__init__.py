"""Time behaviour of each program: launch times, and the shares of a card's bandwidth and rates that kernels reach."""

from typing import Final

from planner.performance.setting import TimeSetting
from planner.performance.software.engine import Engine, TrainingPace
from planner.workload.software.registry import DEFAULT, SOFTWARE, find_behavior
from planner.workload.workload import Inference, Training


def engine_of(workload: Inference, setting: TimeSetting) -> Engine:
    """Return the engine that serves `workload`, in its variant for `setting`."""
    module = find_behavior(__name__, SOFTWARE[workload.profile or DEFAULT].module)
    assert module is not None  # each program that serves has one
    engine: Engine = module.ENGINE
    return engine.in_setting(setting)


def training_pace(workload: Training) -> TrainingPace:
    """Return the time behaviour of the program that trains `workload`: its own, or that of transformers' layers."""
    module = find_behavior(__name__, SOFTWARE[workload.profile].module)
    pace: TrainingPace = _PLAIN if module is None else module.PACE
    return pace


_PLAIN: Final = TrainingPace()
