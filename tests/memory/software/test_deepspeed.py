"""DeepSpeed's engine runs its own replicas, under its own names."""

import pytest

from planner.memory.software import sharding_strategy_of
from planner.workload.parallel import Parallel
from planner.workload.training import Training


@pytest.mark.parametrize(
    ("profile", "zero", "called"),
    [("hf", 3, "FSDP"), ("hf", 2, "ZeRO-2"), ("deepspeed", 3, "ZeRO-3"), ("megatron", 1, "distributed optimizer")],
)
def test_what_spreads_a_step_has_a_name(profile: str, zero: int, called: str):
    workload = Training(profile=profile, parallel=Parallel(zero=zero, data=8))
    assert sharding_strategy_of(workload).stage_name(zero) == called
    plain = sharding_strategy_of(Training(parallel=Parallel(data=8)))
    assert (plain.stage_name(0), plain.shares_states) == ("DDP", False)
