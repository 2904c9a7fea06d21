"""Programs of training name the version that they are modeled on."""

import pytest
from small_models import small_llama

from planner.memory.estimate import estimate_memory
from planner.workload.training import Training


@pytest.mark.parametrize(
    ("profile", "version"), [("liger", "Liger-Kernel 0.8.2"), ("unsloth", "2026.8.19"), ("torchtune", "torchtune 0.7")]
)
def test_a_profile_names_the_version_it_was_read_in(profile: str, version: str) -> None:
    notes = estimate_memory(small_llama(), Training.model_validate({"profile": profile})).notes
    assert any(version in note for note in notes)
