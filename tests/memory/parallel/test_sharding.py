"""Steps whose states, gradients or parameters replicas share."""

import pytest
from small_models import llama

from planner.errors import SpecError
from planner.memory.estimate import estimate_memory
from planner.memory.parallel.sharding import per_card_workload
from planner.memory.software import sharding_strategy_of
from planner.workload.parallel import Parallel
from planner.workload.training import Training


def states(workload: Training) -> int:
    """Return the bytes of the optimizer's states on one of two cards."""
    term = estimate_memory(llama(), workload, count=2).term("optimizer_states")
    assert term is not None
    return term.bytes


@pytest.mark.parametrize(("profile", "zero"), [("hf", 1), ("hf", 3), ("megatron", 1), ("deepspeed", 0)])
def test_soap_is_refused_where_replicas_divide_matrices(profile: str, zero: int) -> None:
    workload = Training(profile=profile, optimizer="soap", parallel=Parallel(zero=zero))
    with pytest.raises(SpecError, match="SOAP preconditions whole matrices"):
        estimate_memory(llama(), workload, count=2)


def test_soap_keeps_whole_preconditioners_beside_megatrons_fp32_copies() -> None:
    assert states(Training(profile="megatron", optimizer="soap")) > states(Training(profile="megatron"))


def test_a_card_computes_its_share_in_16_bits_though_the_optimizer_needs_fp32() -> None:
    workload = Training(profile="megatron", optimizer="soap", weights="fp32", sequence_length=64)
    own = per_card_workload(workload, sharding_strategy_of(workload))
    assert isinstance(own, Training)
    assert (own.weights, own.compute, own.optimizer) == ("bf16", "bf16", "soap")
    assert hash(own) != hash(workload)
