"""A small network and the memory of its loss, for tests."""

from typing import Any

from small_models import small_llama

from planner.memory.precision import training_precision
from planner.memory.software import training_memory
from planner.memory.training.losses import LossMemory
from planner.workload.defaults import with_defaults
from planner.workload.training import Training

V, H, T = 4_000, 128, 600


NETWORK = small_llama(vocab_size=V, hidden_size=H, intermediate_size=256, max_position_embeddings=1024)


def losses(**how: Any) -> LossMemory:
    workload = with_defaults(Training.model_validate({"sequence_length": T, "compute": "bf16"} | how), NETWORK, 1)
    assert isinstance(workload, Training)
    return training_memory(workload.profile).loss_memory(NETWORK, workload, training_precision(workload))
