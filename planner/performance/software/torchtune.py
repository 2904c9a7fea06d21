"""Speed of torchtune, whose layers resemble transformers'."""

from typing import Final

from planner.performance.software.engine import TrainingPace

PACE: Final = TrainingPace()
