"""Training speed of DeepSpeed, which runs the layers of transformers."""

from typing import Final

from planner.performance.software.engine import TrainingPace

PACE: Final = TrainingPace()
