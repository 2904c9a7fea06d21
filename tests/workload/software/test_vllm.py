"""Settings of vLLM."""

import pytest
from pydantic import ValidationError

from planner.errors import SpecError
from planner.workload.software.vllm import VllmSettings


def test_a_version_can_be_written_as_a_number() -> None:
    assert VllmSettings.model_validate({"version": 0.19}).version == "0.19"
    assert VllmSettings.model_validate({"version": "0.11"}).version == "0.11"
    with pytest.raises(ValidationError, match="version"):
        VllmSettings.model_validate({"version": 9.9})


def test_vllm_uses_no_more_than_the_whole_memory() -> None:
    with pytest.raises(SpecError, match="memory_utilization"):
        VllmSettings(memory_utilization=1.1)
