"""Memory of a card under FSDP2, by the bytes of its shares and gathered layers."""

import pytest
from sharded_runs import CARDS, SHORT, held, parts, run
from small_models import MIXTRAL, llama, other, small_llama

from planner.memory.estimate import estimate_memory, fullest_timeline
from planner.memory.parallel.shares import sharded_counts
from planner.workload.defaults import with_defaults
from planner.workload.parallel import Parallel
from planner.workload.workload import Training


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


def test_one_layer_has_no_other_to_gather_ahead():
    result = estimate_memory(small_llama(num_hidden_layers=1), Training(parallel=Parallel(zero=3)), count=2)
    deep = estimate_memory(small_llama(num_hidden_layers=2), Training(parallel=Parallel(zero=3)), count=2)
    assert result.total_bytes < deep.total_bytes
    assert sum(term.bytes for term in result.terms) == result.total_bytes


def exchanged(reshard: bool) -> dict[str, list[dict[str, int]]]:
    """Return the buffers of each snapshot, in order, of three layers of which each is gathered by itself."""
    model, parallel = small_llama(num_hidden_layers=3), Parallel(zero=3, reshard_after_forward=reshard)
    found: dict[str, list[dict[str, int]]] = {}
    for snapshot in fullest_timeline(model, with_defaults(Training(parallel=parallel), model, 2)).snapshots:
        parts = [part for term in snapshot.written() if term.name == "communication" for part in term.parts]
        found.setdefault(snapshot.name, []).append({part.name: part.bytes for part in parts})
    return found


def test_the_backward_pass_gathers_a_layer_ahead_unless_all_stayed_whole():
    running, ahead, own = (
        "unsharded parameters of the running layer",
        "prefetched parameters of the next layer",
        "gradients of the running layer, not reduced yet",
    )
    at_the_head, in_the_last, *_ = exchanged(reshard=True)["backward"]
    assert {running, ahead, own} & set(at_the_head) == {ahead}
    assert {running, ahead, own} & set(in_the_last) == {running, ahead, own}
    at_the_head, in_the_last, *_ = exchanged(reshard=False)["backward"]
    assert {running, ahead, own} & set(at_the_head) == set()
    assert {running, ahead, own} & set(in_the_last) == {own}


def test_the_last_of_three_layers_is_gathered_beside_the_two_that_stayed_whole():
    gathering = exchanged(reshard=False)["forward"][0]
    kept = gathering["layers that stay unsharded until their backward pass"]
    assert kept == 2 * gathering["unsharded parameters of the last layer"]
