"""LitGPT's training is a program of its own beside its generation."""

from small_models import small_llama

from planner.memory.estimate import estimate_memory
from planner.memory.software import serving_memory, training_memory
from planner.memory.software.litgpt_training import TRAINING
from planner.workload.training import Training


def test_it_trains_with_modules_of_its_own():
    assert training_memory("litgpt") is TRAINING
    assert serving_memory("litgpt", small_llama()) is not TRAINING
    result = estimate_memory(small_llama(), Training(profile="litgpt", compute="bf16", sequence_length=256))
    assert any("LitGPT" in note for note in result.notes)
