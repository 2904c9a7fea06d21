"""Memory behavior of training with LitGPT 0.3 to 0.4 (2024): its own model code, with bitsandbytes 0.42."""

from typing import Final

from planner.memory.software.litgpt.setup import litgpt_setup
from planner.memory.software.pytorch import TrainingMemory
from planner.memory.training.setup import TrainingSetup
from planner.models.architecture import Architecture
from planner.workload.training import Training


class LitGpt(TrainingMemory):
    """Training with LitGPT on one card."""

    def setup(self, architecture: Architecture, workload: Training) -> TrainingSetup:
        """Return the memory inputs of a training step in LitGPT's own blocks."""
        return litgpt_setup(architecture, workload)


TRAINING: Final = LitGpt()
