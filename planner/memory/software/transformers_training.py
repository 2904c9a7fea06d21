"""Training with Hugging Face Transformers and PEFT: plain PyTorch."""

from planner.memory.software.pytorch import TRAINING

__all__ = ["TRAINING"]
