"""What torchtune does to memory: plain PyTorch, with a loss in parts."""

from typing import Final

from planner.memory.software.pytorch import TrainingMemory
from planner.models.architecture import Architecture


class Torchtune(TrainingMemory):
    """torchtune, whose loss is the chunked one."""

    def described(self, _architecture: Architecture) -> tuple[str, ...]:
        """Say what torchtune keeps."""
        return (
            "As torchtune 0.7 does: layers keep what those of transformers do, and the loss keeps "
            "log-probabilities of one part of the tokens after the other.",
        )


TRAINING: Final = Torchtune()
