"""Training speed of torchtune, whose layers are timed like those of transformers."""

from typing import Final

from planner.performance.software.engine import TrainingPace

PACE: Final = TrainingPace()
