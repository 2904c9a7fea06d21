"""What DeepSpeed, FSDP and Megatron-LM keep on a card, by the bytes per parameter that they are known for."""

import pytest
from small_models import MIXTRAL, llama, other, small_llama

from planner.memory.estimate import estimate_memory, fullest_timeline
from planner.memory.parallel.shares import sharded_counts
from planner.memory.result import MemoryResult
from planner.memory.software import sharding_strategy_of
from planner.models.architecture import Tensor
from planner.workload.defaults import with_defaults
from planner.workload.parallel import Parallel
from planner.workload.workload import Training

SHORT = {"sequence_length": 128}
CARDS = 8


def held(result: MemoryResult, phase: str) -> dict[str, int]:
    found = next(one for one in result.phases if one.name == phase)
    return {share.name: share.bytes for share in found.shares}


def run(model, count: int = CARDS, phase: str = "step", parallel=None, **changes) -> dict[str, int]:
    workload = Training(**SHORT | changes, parallel=Parallel(**(parallel or {})))
    return held(estimate_memory(model, workload, count=count), phase)


def parts(model, phase: str, parallel=None, **changes) -> dict[str, int]:
    """Return the buffers that cards exchange through when most is alive in `phase`."""
    workload = Training(**SHORT | changes, parallel=Parallel(**(parallel or {})))
    snapshots = fullest_timeline(model, with_defaults(workload, model, CARDS)).snapshots
    most = max((snapshot for snapshot in snapshots if snapshot.name == phase), key=lambda snapshot: snapshot.total)
    term = next(term for term in most.written() if term.name == "communication")
    return {part.name: part.bytes for part in term.parts}


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


def test_zero_1_shares_the_states():
    model = llama()
    found = run(model, parallel={"zero": 1}, profile="deepspeed")
    assert found["weights"] == found["gradients"] == 2 * model.parameters
    assert found["master_weights"] + found["optimizer_states"] == pytest.approx(12 * model.parameters / CARDS, rel=1e-4)


def test_zero_2_shares_the_gradients_too():
    model = llama()
    found = run(model, parallel={"zero": 2}, profile="deepspeed")
    assert found["weights"] == 2 * model.parameters
    kept = found["gradients"] + found["master_weights"] + found["optimizer_states"]
    assert kept == pytest.approx(14 * model.parameters / CARDS, rel=1e-4)


def test_zero_3_shares_everything():
    model = llama()
    found = run(model, parallel={"zero": 3}, profile="deepspeed")
    kept = found["weights"] + found["gradients"] + found["master_weights"] + found["optimizer_states"]
    assert kept == pytest.approx(16 * model.parameters / CARDS, rel=1e-4)


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_gradients_are_in_fp32_for_the_optimizer(stage):
    # 2P + 18P/N in ZeRO-2: Rajbhandari's 14P/N, and 4P/N of gradients in fp32 while the optimizer steps.
    model = llama()
    deepspeed, shared = run(model, parallel={"zero": stage}, profile="deepspeed"), 688 * 10**6
    norms, bucket = (2 * model.main.layer_count + 1) * 4096 * 2, 10**9
    more = deepspeed["communication"] - shared - (norms + bucket if stage == 3 else 0)
    assert more == pytest.approx(4 * min(model.parameters / CARDS, 10**9), rel=1e-4)


def test_buckets_hold_half_a_billion_elements_whatever_the_network():
    found = parts(small_llama(num_hidden_layers=2), "backward", parallel={"zero": 2}, profile="deepspeed")
    assert found["bucket of gradients to reduce"] == 10**9


def test_a_small_network_needs_more_with_zero_3_than_with_zero_2():
    model = small_llama()
    by_stage = [
        estimate_memory(model, Training(profile="deepspeed", parallel=Parallel(zero=stage)), count=CARDS).total_bytes
        for stage in (2, 3)
    ]
    assert by_stage[1] > by_stage[0]


def test_parameters_of_a_billion_elements_stay_whole_in_zero_3():
    found = parts(llama(), "backward", parallel={"zero": 3}, profile="deepspeed")
    assert found["parameters gathered or prefetched"] == 2 * (10**9 + 5 * 10**7)
    layer = llama().main.groups[0].layer.parameters
    assert found["gradients of a layer, not yet in the bucket"] == 2 * layer


@pytest.mark.parametrize(
    ("parallel", "on_card", "beside"),
    [
        ({"zero": 1, "offload": "optimizer"}, {"weights", "gradients"}, 12 + 2),
        ({"zero": 2, "offload": "optimizer"}, {"weights"}, 12 + 2 + 4),
        ({"zero": 3, "offload": "optimizer"}, {"weights"}, 12 + 4),
        ({"zero": 3, "offload": "nvme"}, set(), 12 + 4 + 2),
    ],
)
def test_what_is_offloaded_is_in_ram_or_on_disk(parallel, on_card, beside):
    model = llama()
    workload = Training(**SHORT, profile="deepspeed", parallel=Parallel(**parallel))
    result = estimate_memory(model, workload, count=CARDS)
    found = held(result, "step")
    waits = "the parameters are offloaded to host memory or to disk"
    assert result.phases[0].explanation == (waits if not on_card else "the parameters are on the card")
    assert {name for name in found if name in ("weights", "gradients", "master_weights", "optimizer_states")} == on_card
    # Each card keeps its share; the figure is that of all of them.
    found = (result.host_bytes, result.disk_bytes)
    kept, nothing = found if parallel["offload"] == "optimizer" else found[::-1]
    assert kept == pytest.approx(beside * model.parameters, rel=1e-3)
    assert nothing is None


def test_fsdp_shares_fp32_and_computes_in_16_bits():
    model = llama()
    found = run(model, parallel={"zero": 3})
    assert found["weights"] == pytest.approx(4 * model.parameters / CARDS, rel=1e-4)
    assert found["optimizer_states"] == pytest.approx(8 * model.parameters / CARDS, rel=1e-4)
    assert found["gradients"] == pytest.approx(4 * model.parameters / CARDS, rel=1e-4)


def test_fsdp_offloads_to_ram():
    model = llama()
    workload = Training(**SHORT, parallel=Parallel(zero=3, offload="parameters"))
    result = estimate_memory(model, workload, count=CARDS)
    assert not {"weights", "gradients", "optimizer_states"} & set(held(result, "step"))
    assert "are offloaded to host memory" in result.phases[0].explanation
    assert result.host_bytes == pytest.approx(16 * model.parameters, rel=1e-4)


def test_layers_that_are_not_freed_stay_whole():
    freed, kept = (
        parts(llama(), "forward", parallel={"zero": 3, "reshard_after_forward": freed}) for freed in (True, False)
    )
    assert "layers that stay unsharded until their backward pass" not in freed
    layer = llama().main.groups[0].layer.parameters
    assert kept["layers that stay unsharded until their backward pass"] >= 31 * 2 * layer


def test_gradients_that_are_accumulated_stay():
    once, often = (
        run(llama(), phase="forward", parallel={"zero": 3}, gradient_accumulation=number) for number in (1, 4)
    )
    assert "gradients" not in once
    assert often["gradients"] == pytest.approx(4 * llama().parameters / CARDS, rel=1e-4)
    deepspeed = run(
        llama(), phase="backward", parallel={"zero": 1}, profile="deepspeed", gradient_accumulation=4, compute="bf16"
    )
    assert deepspeed["gradients"] == 2 * llama().parameters


@pytest.mark.parametrize("zero", [0, 1])
def test_megatron_keeps_18_bytes_or_6_and_a_share_of_12(zero):
    model = llama()
    found = run(model, parallel={"zero": zero}, profile="megatron", compute="bf16")
    padded = model.parameters  # 32,000 rows are a multiple of 128
    assert found["weights"] == 2 * padded
    assert found["gradients"] == 4 * padded
    states = found["master_weights"] + found["optimizer_states"]
    assert states == pytest.approx(12 * padded / (CARDS if zero else 1), rel=1e-4)


def test_megatron_keeps_its_gradients_from_the_first_pass_on():
    assert run(llama(), phase="forward", profile="megatron")["gradients"] == 4 * llama().parameters


def test_megatron_in_fp32_has_no_second_parameters():
    found = run(llama(), profile="megatron", compute="fp32")
    assert "master_weights" not in found
    assert found["weights"] == 4 * llama().parameters


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


def test_what_is_filled_up_is_gathered_and_reduced_but_no_gradient():
    # Four experts over 8 cards: each card has one or none, and as many bytes as if there were eight.
    few = other("mixtral", MIXTRAL, num_hidden_layers=2, num_local_experts=4)
    counts = sharded_counts(few, 8, 8)
    expert = 3 * 4096 * 14_336
    assert counts.layer - counts.own_layer == pytest.approx(4 * expert, rel=1e-3)
    assert counts.own_edges == counts.edges


def test_adapters_are_shared_with_the_frozen_network():
    workload = Training(**SHORT, method="lora", compute="bf16", parallel=Parallel(zero=3))
    for profile in ("hf", "deepspeed"):
        result = estimate_memory(llama(), workload.evolve(profile=profile), count=CARDS)
        found = held(result, "step")
        assert found["weights"] == pytest.approx(2 * llama().parameters / CARDS, rel=1e-3)
        assert 0 < found["adapters"] < found["weights"] / 10


def test_offloaded_adapters_are_on_disk():
    workload = Training(**SHORT, method="lora", compute="bf16", profile="deepspeed")
    result = estimate_memory(llama(), workload.evolve(parallel=Parallel(zero=3, offload="nvme")), count=CARDS)
    assert result.disk_bytes is not None
    assert result.disk_bytes > 2 * llama().parameters


def test_one_layer_has_no_other_to_gather_ahead():
    result = estimate_memory(small_llama(num_hidden_layers=1), Training(parallel=Parallel(zero=3)), count=2)
    deep = estimate_memory(small_llama(num_hidden_layers=2), Training(parallel=Parallel(zero=3)), count=2)
    assert result.total_bytes < deep.total_bytes
    assert sum(term.bytes for term in result.terms) == result.total_bytes


def test_a_scalar_is_a_row_that_every_card_holds():
    plain = llama()
    scaled = plain.evolve(head=(*plain.head, Tensor(name="logit_scale", shape=(), role="other")))
    counts, without = sharded_counts(scaled, CARDS, CARDS), sharded_counts(plain, CARDS, CARDS)
    assert (counts.share - without.share, counts.own_edges - without.own_edges) == (1, 1)
