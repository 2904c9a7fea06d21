"""Memory behavior of training with DeepSpeed: plain PyTorch with DeepSpeed's ZeRO engine."""

from typing import Final

from planner.memory.parallel.deepspeed import DEEPSPEED_ZERO
from planner.memory.parallel.sharding import REPLICAS, ShardingStrategy
from planner.memory.software.pytorch import TrainingMemory
from planner.workload.training import Training


class DeepSpeed(TrainingMemory):
    """Training with DeepSpeed, whose engine also runs plain replicas."""

    def sharding_strategy(self, workload: Training) -> ShardingStrategy:
        """Return DeepSpeed's ZeRO engine if several replicas train, else a plain single card."""
        parallel = workload.parallel
        return DEEPSPEED_ZERO if parallel.zero or parallel.state_shards > 1 else REPLICAS


TRAINING: Final = DeepSpeed()
