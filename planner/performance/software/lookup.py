"""From a workload to the speeds of the program that runs it."""

from functools import cache
from importlib import import_module
from types import ModuleType
from typing import cast

from planner.performance.setting import TimeSetting
from planner.performance.software.engine import Engine, TrainingPace
from planner.workload.software.registry import DEFAULT, SOFTWARE
from planner.workload.workload import Inference, Training


def engine_of(workload: Inference, setting: TimeSetting) -> Engine:
    """Return how the program of `workload` answers in a setting."""
    return cast("Engine", _module_of(workload.profile or DEFAULT).ENGINE).in_setting(setting)


def pace_of(workload: Training) -> TrainingPace:
    """Return how the program of `workload` trains."""
    return cast("TrainingPace", _module_of(workload.profile).PACE)


@cache
def _module_of(name: str) -> ModuleType:
    # Of nine programs a plan runs one: the others are not imported.
    return import_module(f"planner.performance.software.{SOFTWARE[name].module}")
