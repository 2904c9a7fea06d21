"""What Megatron-LM can train."""

import pytest
from small_models import small_llama

from planner.errors import SpecError
from planner.workload.defaults import with_defaults
from planner.workload.training import Training


def test_the_distributed_optimizer_shards_optimizer_states_only() -> None:
    with pytest.raises(SpecError, match="Megatron-LM supports ZeRO up to stage 1"):
        with_defaults(Training(profile="megatron", parallel={"zero": 2}), small_llama(), 2)


def test_fp8_is_refused() -> None:
    with pytest.raises(SpecError, match="fp8 comes from torchao, but Megatron-LM has its own linear layers"):
        Training(profile="megatron", compute="fp8")
