"""Memory of a card under ZeRO, by the bytes per parameter that each stage is known for."""

import pytest
from sharded_runs import CARDS, SHORT, held, parts, run
from small_models import llama, small_llama

from planner.memory.estimate import estimate_memory
from planner.workload.parallel import Parallel
from planner.workload.workload import Training


def test_without_zero_bf16_accumulates_in_fp32_and_shares_the_states():
    model = llama()
    found = run(model, parallel={"zero": 0}, profile="deepspeed")
    assert (found["weights"], found["gradients"]) == (2 * model.parameters, 4 * model.parameters)
    assert found["master_weights"] + found["optimizer_states"] == pytest.approx(12 * model.parameters / CARDS, rel=1e-4)
    assert found["communication"] == 688 * 10**6


@pytest.mark.parametrize(("compute", "each"), [("amp-fp16", (2, 2, 12, 4)), ("fp32", (4, 4, 8, 0))])
def test_without_zero_other_formats_keep_everything_on_each_card(compute, each):
    model = llama()
    found = run(model, parallel={"zero": 0}, profile="deepspeed", compute=compute)
    states = found.get("master_weights", 0) + found["optimizer_states"]
    sent = found["communication"] - 688 * 10**6
    assert (found["weights"], found["gradients"], states, sent) == tuple(size * model.parameters for size in each)


@pytest.mark.parametrize("compute", ["amp-bf16", "amp-fp16", "fp32"])
def test_no_stage_up_to_2_needs_more_than_the_one_before(compute):
    runs = [Training(profile="deepspeed", compute=compute, parallel=Parallel(zero=stage)) for stage in (0, 1, 2)]
    found = [estimate_memory(llama(), one, count=CARDS).total_bytes for one in runs]
    assert found == sorted(found, reverse=True)


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


@pytest.mark.parametrize(("stage", "is_held"), [(2, False), (3, True)])
def test_only_zero_3_holds_its_bucket_outside_the_backward_pass(stage, is_held):
    model = small_llama(num_hidden_layers=2)
    for phase in ("forward", "step"):
        found = parts(model, phase, parallel={"zero": stage}, profile="deepspeed")
        assert ("bucket of gradients to reduce" in found) == is_held


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
    assert result.phases[0].explanation == (waits if not on_card else "the parameters are on the GPU")
    assert {name for name in found if name in ("weights", "gradients", "master_weights", "optimizer_states")} == on_card
    # Each card keeps its share; the figure is that of all of them.
    found = (result.host_bytes, result.disk_bytes)
    kept, nothing = found if parallel["offload"] == "optimizer" else found[::-1]
    assert kept == pytest.approx(beside * model.parameters, rel=1e-3)
    assert nothing is None


def test_offloaded_adapters_are_on_disk():
    workload = Training(**SHORT, method="lora", compute="bf16", profile="deepspeed")
    result = estimate_memory(llama(), workload.evolve(parallel=Parallel(zero=3, offload="nvme")), count=CARDS)
    assert result.disk_bytes is not None
    assert result.disk_bytes > 2 * llama().parameters
