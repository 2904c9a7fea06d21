"""Time behavior of each program: launch times, and the shares of a GPU's bandwidth and rates that kernels reach."""

from typing import Final

from planner.performance.setting import TimeSetting
from planner.performance.software.engine import Engine, TrainingPace
from planner.workload.software.registry import DEFAULT, SOFTWARE, program_behavior
from planner.workload.workload import Inference, Training

_OF_TRANSFORMERS: Final = TrainingPace()


def engine_of(workload: Inference, setting: TimeSetting) -> Engine:
    """Return the engine that serves `workload`, in its variant for `setting`."""
    engine: Engine = program_behavior(__name__, SOFTWARE[workload.profile or DEFAULT].module, "ENGINE")
    return engine.in_setting(setting)


def training_pace(workload: Training) -> TrainingPace:
    """Return the time behavior of the program that trains `workload`: its own, or that of transformers' layers."""
    pace: TrainingPace | None = program_behavior(__name__, SOFTWARE[workload.profile].module, "PACE")
    return pace or _OF_TRANSFORMERS
