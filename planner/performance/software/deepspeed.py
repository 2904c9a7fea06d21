"""Speed of DeepSpeed, whose layers are transformers' own."""

from typing import Final

from planner.performance.software.engine import TrainingPace

PACE: Final = TrainingPace()
