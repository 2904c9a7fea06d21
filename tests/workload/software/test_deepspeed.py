"""What DeepSpeed can train."""

import pytest
from small_models import small_llama

from planner.errors import SpecError
from planner.workload.defaults import with_defaults
from planner.workload.software.registry import training_support
from planner.workload.training import Training

SUPPORT = training_support("deepspeed")


def test_pipelines_shard_no_more_than_optimizer_states() -> None:
    assert (SUPPORT.zero_limit, SUPPORT.zero_limit_in_pipeline) == (3, 1)


def test_soap_is_refused_on_several_cards() -> None:
    with pytest.raises(SpecError, match="SOAP"):
        with_defaults(Training(profile="deepspeed", optimizer="soap"), small_llama(), 2)
