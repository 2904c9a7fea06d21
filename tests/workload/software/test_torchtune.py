"""What torchtune can train."""

import pytest
from small_models import small_llama

from planner.errors import SpecError
from planner.workload.defaults import with_defaults
from planner.workload.training import Training


def test_selective_checkpointing_is_refused() -> None:
    with pytest.raises(SpecError, match="torchtune"):
        Training(profile="torchtune", activation_checkpointing="selective")


def test_states_are_offloaded_to_ram_only() -> None:
    with pytest.raises(SpecError, match="torchtune can only offload"):
        with_defaults(Training(profile="torchtune", parallel={"zero": 3, "offload": "nvme"}), small_llama(), 2)
