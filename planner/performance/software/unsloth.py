"""Training speed of Unsloth."""

from typing import Final

from planner.performance.software.engine import TrainingPace

PACE: Final = TrainingPace(fused=True)
