"""Every trainer estimates a step on the base of plain PyTorch."""

import pytest
from small_models import llama

from planner.memory.software import training_memory
from planner.memory.software.pytorch import TrainingMemory
from planner.workload.defaults import with_defaults
from planner.workload.software.registry import TRAINERS
from planner.workload.training import Training


@pytest.mark.parametrize("name", TRAINERS)
def test_every_trainer_has_a_behavior(name: str):
    program = training_memory(name)
    assert isinstance(program, TrainingMemory)
    assert program is training_memory(name)
    filled = with_defaults(Training(profile=name, compute="bf16"), llama(), 1)
    assert program.timeline(llama(), filled).peak().total > 2 * llama().parameters
