"""Steps whose states, gradients or parameters replicas share."""

import pytest
from sharded_runs import CARDS, run
from small_models import MIXTRAL, llama, other

from planner.errors import SpecError
from planner.memory.estimate import estimate_memory
from planner.memory.parallel.sharding import SharedStep, _sixteen_bit_fields, per_card_workload
from planner.memory.parallel.shares import PersistentBuffers, sharded_counts
from planner.memory.software import sharding_strategy_of, training_memory
from planner.workload.defaults import with_defaults
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


@pytest.mark.parametrize(
    ("profile", "parallel", "sharder"),
    [
        ("hf", {"data": 8}, "ddp"),
        ("hf", {"zero": 1}, "deepspeed"),
        ("hf", {"zero": 2}, "deepspeed"),
        ("hf", {"zero": 3}, "fsdp"),
        ("torchtune", {"zero": 3, "offload": "parameters"}, "fsdp"),
        ("hf", {"zero": 3, "offload": "nvme"}, "deepspeed"),
        ("deepspeed", {"zero": 3}, "deepspeed"),
        ("deepspeed", {"data": 2}, "deepspeed"),
        ("deepspeed", {}, "ddp"),
        ("megatron", {"data": 2}, "megatron"),
    ],
)
def test_who_spreads_training(profile, parallel, sharder):
    assert sharding_strategy_of(Training(profile=profile, parallel=Parallel(**parallel))).name == sharder


@pytest.mark.parametrize("parallel", [{"tensor": 2, "zero": 1}, {"pipeline": 2, "zero": 1}, {"tensor": 4, "zero": 1}])
def test_states_are_divided_by_replicas_only(parallel):
    # Tools that divide by all cards would give 12 P / 8 of a network that is divided already.
    model = llama()
    shards = parallel.get("tensor", 1) * parallel.get("pipeline", 1)
    found = run(model, parallel=parallel, profile="megatron", compute="bf16")
    own = found["weights"] // 2
    states = found["master_weights"] + found["optimizer_states"]
    assert states == pytest.approx(12 * own * shards / CARDS, rel=1e-3)


def test_cards_that_share_a_sequence_share_the_states_too():
    found = run(llama(), parallel={"context": 4, "zero": 1, "data": 2}, profile="megatron", compute="bf16")
    assert found["optimizer_states"] == pytest.approx(8 * llama().parameters / 8, rel=1e-3)


def test_states_of_experts_are_divided_by_the_replicas_that_hold_the_same():
    mixtral = other("mixtral", MIXTRAL, num_hidden_layers=4)
    counts = sharded_counts(mixtral, 8, 8 // 4)
    routed = sum(t.parameters for t in mixtral.main.groups[0].layer.tensors if t.role == "expert") * 4
    rest = mixtral.parameters - routed
    assert counts.share == pytest.approx(routed / 2 + rest / 8, rel=1e-3)


def test_plain_replicas_hold_what_one_card_does():
    workload = with_defaults(Training(), llama(), 1)
    program = training_memory("hf")
    shared = SharedStep(
        llama(), workload, workload, program, program.step(llama(), workload), persistent_buffers=PersistentBuffers()
    )
    alone, found = program.timeline(llama(), workload), sharding_strategy_of(workload).timeline(shared)
    assert [one.total for one in found.snapshots] == [one.total for one in alone.snapshots]
    assert found.need() == alone.need()


@pytest.mark.parametrize(("compute", "expected"), [("fp8", ("fp8", "bf16")), ("amp-fp16", ("fp16", "fp16"))])
def test_parameters_in_16_bits_take_the_place_of_autocast(compute: str, expected: tuple[str, str]) -> None:
    workload = with_defaults(Training(compute=compute, weights="fp32"), llama(), 1)
    fields = _sixteen_bit_fields(workload)
    assert (fields["compute"], fields["weights"]) == expected
