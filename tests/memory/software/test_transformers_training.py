"""Training with transformers is plain PyTorch."""

from small_models import small_llama

from planner.memory.estimate import estimate_memory
from planner.workload.training import Training


def test_transformers_itself_has_no_note_of_a_profile() -> None:
    assert not any("Modeled on" in note for note in estimate_memory(small_llama(), Training()).notes)
