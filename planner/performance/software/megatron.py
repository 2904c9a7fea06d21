"""Speed of Megatron-LM with Transformer Engine's kernels."""

from typing import Final

from planner.memory.training.saved import SavedPerToken
from planner.performance.software.engine import TrainingPace
from planner.workload.formats import product_format
from planner.workload.training import Training


class _Megatron(TrainingPace):
    def exchanged_format(self, workload: Training, _trained: str) -> str:
        """Return the 16-bit format, whatever is sharded."""
        return product_format(workload.compute)

    def hides_tensor_exchange(self) -> bool:
        """Return True: all-reduces overlap with products, which are split for that."""
        return True

    def moved_activations(self, ledger: SavedPerToken) -> SavedPerToken:
        """Return `ledger` without scores: its kernels fuse what transformers computes step by step."""
        return ledger._replace(scores=0)


PACE: Final = _Megatron(fused=True)
