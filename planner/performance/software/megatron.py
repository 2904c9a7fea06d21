"""The speed of Megatron-LM, with Transformer Engine's kernels."""

from typing import Final

from planner.memory.training.saved import SavedPerToken
from planner.performance.software.engine import TrainingPace
from planner.workload.formats import arithmetic
from planner.workload.training import Training


class _Megatron(TrainingPace):
    def exchanged_format(self, workload: Training, _trained: str) -> str:
        """Return 16 bits, whatever is shared."""
        return arithmetic(workload.compute)

    def hides_tensor_exchange(self) -> bool:
        """Return that sums go on beside products, which are cut in pieces for it."""
        return True

    def kept(self, ledger: SavedPerToken) -> SavedPerToken:
        """Return `ledger` without scores: the kernels take what transformers computes step by step."""
        return ledger._replace(scores=0)


PACE: Final = _Megatron(fused=True)
