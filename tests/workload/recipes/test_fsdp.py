"""FSDP sections of accelerate, transformers and axolotl."""

import pytest
from training_files import FSDP_2, read, reason, workload_of

from planner.errors import RecipeError


@pytest.mark.parametrize(
    ("strategy", "zero", "reshards"),
    [("FULL_SHARD", 3, True), ("SHARD_GRAD_OP", 3, False), ("NO_SHARD", 0, True), (1, 3, True), ("3", 0, True)],
)
def test_strategies_by_name_or_number(strategy: object, zero: int, reshards: bool) -> None:
    found = workload_of(FSDP_2, fsdp_config={"fsdp_sharding_strategy": strategy}).parallel
    assert (found.zero, found.reshard_after_forward) == (zero, reshards)


def test_a_missing_strategy_is_assumed_to_shard_fully() -> None:
    recipe = read(FSDP_2, fsdp_config={"fsdp_offload_params": True})
    assert (recipe.workload.parallel.zero, recipe.workload.parallel.offload) == (3, "parameters")
    assert "fsdp_config.sharding_strategy" in {entry.key for entry in recipe.assumed}


def test_hybrid_strategies_are_noted_and_unknown_ones_refused() -> None:
    hybrid = read(FSDP_2, fsdp_config={"fsdp_sharding_strategy": "HYBRID_SHARD"})
    assert "one group is assumed" in reason(hybrid, "fsdp_config.sharding_strategy")
    with pytest.raises(RecipeError, match="must be one of"):
        read(FSDP_2, fsdp_config={"fsdp_sharding_strategy": "SHARD_SOME"})
