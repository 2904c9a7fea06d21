"""Training speed of Megatron-LM with Transformer Engine's kernels."""

from typing import Final

from planner.memory.training.saved import SavedPerToken
from planner.performance.software.engine import TrainingPace
from planner.workload.formats import product_format
from planner.workload.training import Training


class _Megatron(TrainingPace):
    def exchanged_format(self, workload: Training, _trained: str) -> str:
        """Return the 16-bit compute format, with or without sharding."""
        return product_format(workload.compute)

    def hides_tensor_exchange(self) -> bool:
        """Return True: Megatron-LM splits products so that the all-reduces overlap with them."""
        return True

    def moved_activations(self, ledger: SavedPerToken) -> SavedPerToken:
        """Return `ledger` without attention scores, which Transformer Engine's fused kernels do not write to memory."""
        return ledger._replace(scores=0)


PACE: Final = _Megatron()
