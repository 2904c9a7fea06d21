"""A small network in preference tuning and reinforcement learning, and its memory by phase."""

from typing import Any

from small_models import llama

from planner.hardware.usable import UsableMemory
from planner.memory.estimate import estimate_memory
from planner.memory.result import MemoryResult
from planner.units import GIB
from planner.workload.training import Training

NETWORK = llama(num_hidden_layers=4)
WEIGHTS = NETWORK.parameters


def asked(**fields: Any) -> Training:
    plain = {"compute": "bf16", "sequence_length": 1024, "activation_checkpointing": "full"}
    return Training.model_validate(plain | fields)


def grpo(**alignment: Any) -> dict[str, Any]:
    return {"gradient_accumulation": 4, "alignment": {"method": "grpo", "group": 4} | alignment}


def estimated(count: int = 1, **fields: Any) -> MemoryResult:
    return estimate_memory(NETWORK, asked(**fields), count=count)


def bytes_of(memory: MemoryResult, phase: str, *names: str) -> int:
    found = next(one for one in memory.phases if one.name == phase)
    return sum(share.bytes for share in found.shares if not names or share.name in names)


def usable(gib: int) -> UsableMemory:
    size = gib * GIB
    return UsableMemory(
        bytes=size, low_bytes=size, high_bytes=size, certainty="measured", source="test", explanation="test"
    )
