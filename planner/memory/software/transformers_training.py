"""Memory behavior of training with Hugging Face Transformers and PEFT: that of plain PyTorch."""

from planner.memory.software.pytorch import TRAINING

__all__ = ["TRAINING"]
