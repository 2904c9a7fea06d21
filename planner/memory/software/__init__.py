"""Memory behavior of the programs that run models, one module per program, looked up by workload."""

from typing import TYPE_CHECKING, Any

from planner.memory.software.base import ServingMemory, SoftwareMemory
from planner.models.architecture import Architecture
from planner.workload.software.registry import DEFAULT, SOFTWARE, program_behavior
from planner.workload.training import Training
from planner.workload.workload import Inference

if TYPE_CHECKING:
    from planner.memory.parallel.sharding import ShardingStrategy
    from planner.memory.software.pytorch import TrainingMemory

_PIPELINES = "diffusers"
"""Module of the library (diffusers) that runs image pipelines if a workload names transformers."""


def memory_of(architecture: Architecture, workload: Training | Inference) -> SoftwareMemory[Any]:
    """Return the memory behavior of the program that runs `workload` (defaults filled in)."""
    if isinstance(workload, Training):
        return training_memory(workload.profile, architecture)
    return serving_memory(workload.profile, architecture)


def serving_memory(name: str | None, architecture: Architecture | None = None) -> ServingMemory:
    """Return the memory behavior of the program `name` when it serves a model; None is the default program."""
    module = _PIPELINES if architecture and architecture.kind == "diffusion" else SOFTWARE[name or DEFAULT].module
    program: ServingMemory = program_behavior(__name__, module, "SERVING")
    return program


def training_memory(name: str, architecture: Architecture | None = None) -> "TrainingMemory":
    """Return the memory behavior of the program `name` when it trains a model; of a pipeline that of diffusers.

    A program that also serves has a separate module for it, since the formulas of training take long to
    import. One without a module trains as plain PyTorch does.
    """
    software = SOFTWARE[name]
    module = _PIPELINES if architecture and architecture.kind == "diffusion" else software.module
    module = f"{module}_training" if software.serving else module
    program: TrainingMemory | None = program_behavior(__name__, module, "TRAINING")
    return program or program_behavior(__name__, "pytorch", "TRAINING")


def sharding_strategy_of(workload: Training) -> "ShardingStrategy":
    """Return the software (DDP, FSDP, DeepSpeed) that shards the training `workload` over its replicas."""
    return training_memory(workload.profile).sharding_strategy(workload)
