"""The speed of torchtune, whose layers are as transformers'."""

from typing import Final

from planner.performance.software.engine import TrainingPace

PACE: Final = TrainingPace()
