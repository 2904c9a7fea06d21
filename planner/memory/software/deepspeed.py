"""What DeepSpeed does to memory: plain PyTorch, with an engine of its own for replicas."""

from typing import Final

from planner.memory.parallel.deepspeed import DEEPSPEED_ZERO
from planner.memory.parallel.sharding import REPLICAS, Sharder
from planner.memory.software.pytorch import TrainingMemory
from planner.workload.training import Training


class DeepSpeed(TrainingMemory):
    """DeepSpeed, which runs plain replicas in its engine, too."""

    def sharder(self, workload: Training) -> Sharder:
        """Return DeepSpeed's engine wherever there is something to exchange or to share."""
        parallel = workload.parallel
        return DEEPSPEED_ZERO if parallel.zero or parallel.state_shards > 1 else REPLICAS


TRAINING: Final = DeepSpeed()
