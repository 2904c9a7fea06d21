"""Time behaviour of each program: launch times, and the shares of a card's bandwidth and rates that kernels reach."""

from functools import cache
from importlib import import_module
from types import ModuleType
from typing import cast

from planner.performance.setting import TimeSetting
from planner.performance.software.engine import Engine, TrainingPace
from planner.workload.software.registry import DEFAULT, SOFTWARE
from planner.workload.workload import Inference, Training


def engine_of(workload: Inference, setting: TimeSetting) -> Engine:
    """Return the engine that serves `workload`, in its variant for `setting`."""
    return cast("Engine", _program_module(workload.profile or DEFAULT).ENGINE).in_setting(setting)


def training_pace(workload: Training) -> TrainingPace:
    """Return the time behaviour of the program that trains `workload`."""
    return cast("TrainingPace", _program_module(workload.profile).PACE)


@cache
def _program_module(name: str) -> ModuleType:
    # A plan uses one of nine programs: the others are not imported.
    return import_module(f"planner.performance.software.{SOFTWARE[name].module}")
