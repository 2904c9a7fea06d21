"""Memory behavior of training with torchtune: plain PyTorch with a chunked loss."""

from typing import Final

from planner.memory.software.pytorch import TrainingMemory
from planner.models.architecture import Architecture


class Torchtune(TrainingMemory):
    """Training with torchtune, which computes its loss in chunks."""

    def differences_from_transformers(self, _architecture: Architecture) -> tuple[str, ...]:
        """Return notes on how torchtune's memory use differs from transformers."""
        return (
            "Modeled on torchtune 0.7: layers save the same activations as in transformers, and the loss saves "
            "log-probabilities, one chunk of tokens at a time.",
        )


TRAINING: Final = Torchtune()
