"""Memory behavior of torchtune: plain PyTorch with a chunked loss."""

from typing import Final

from planner.memory.software.pytorch import TrainingMemory
from planner.models.architecture import Architecture


class Torchtune(TrainingMemory):
    """torchtune, which chunks its loss."""

    def differences(self, _architecture: Architecture) -> tuple[str, ...]:
        """Return torchtune's differences."""
        return (
            "Modeled on torchtune 0.7: layers save the same activations as in transformers, and the loss saves "
            "log-probabilities, one chunk of tokens at a time.",
        )


TRAINING: Final = Torchtune()
