"""Training speed of transformers with Liger's fused kernels."""

from typing import Final

from planner.performance.software.engine import TrainingPace

PACE: Final = TrainingPace(fused=True)
