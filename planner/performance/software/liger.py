"""The speed of Liger's kernels on transformers."""

from typing import Final

from planner.performance.software.engine import TrainingPace

PACE: Final = TrainingPace(fused=True)
