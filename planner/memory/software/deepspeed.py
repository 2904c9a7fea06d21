"""Memory behavior of DeepSpeed: plain PyTorch with DeepSpeed's engine for replicas."""

from typing import Final

from planner.memory.parallel.deepspeed import DEEPSPEED_ZERO
from planner.memory.parallel.sharding import REPLICAS, ShardingStrategy
from planner.memory.software.pytorch import TrainingMemory
from planner.workload.training import Training


class DeepSpeed(TrainingMemory):
    """DeepSpeed, whose engine runs even plain replicas."""

    def sharding_strategy(self, workload: Training) -> ShardingStrategy:
        """Return DeepSpeed's engine if replicas exchange or share anything."""
        parallel = workload.parallel
        return DEEPSPEED_ZERO if parallel.zero or parallel.state_shards > 1 else REPLICAS


TRAINING: Final = DeepSpeed()
