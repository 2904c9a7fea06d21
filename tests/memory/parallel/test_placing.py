"""Which card gets which stage and layers, and the notes about sharing."""

import pytest
from deep_networks import cards, training
from small_models import bundled, llama, small_llama

from planner.memory.estimate import estimate_memory, estimate_on
from planner.memory.parallel.placing import CardGroup, layers_by_free_memory, least_shards
from planner.memory.software import serving_memory
from planner.units import GIB
from planner.workload.parallel import Parallel
from planner.workload.workload import Inference, Training

DEEP = small_llama(num_hidden_layers=8)


def test_equal_cards_are_one_row():
    (row,) = estimate_on(DEEP, training(zero=3), cards(("h100-sxm5-80gb", 8))).per_gpu
    assert (row.count, row.stage, row.layers) == (8, None, None)


def test_layers_follow_the_free_memory_of_unequal_cards():
    workload = Inference(weights="F16", parallel=Parallel(pipeline=3))
    result = estimate_on(llama(), workload, cards(("rtx-4090", 1), ("rtx-3060-12-gb", 2)))
    assert [row.gpu for row in result.per_gpu] == ["rtx-4090", "rtx-3060-12-gb", "rtx-3060-12-gb"]
    first, *others = [row.layers for row in result.per_gpu]
    assert first > max(others)
    assert first + sum(others) == 32


def test_named_layers_are_not_split_by_memory():
    workload = Inference(parallel=Parallel(pipeline=2, pipeline_layers=(4, 28)))
    result = estimate_on(llama(), workload, cards(("rtx-4090", 1), ("rtx-3060-12-gb", 1)))
    assert [row.layers for row in result.per_gpu] == [4, 28]
    assert result.fullest == 1


def test_cards_of_unknown_memory_share_evenly():
    named = cards(("rtx-4090", 1), ("rtx-3060-12-gb", 1))
    unknown = tuple(one._replace(usable=None) for one in named)
    result = estimate_on(llama(), Inference(parallel=Parallel(pipeline=2)), unknown)
    assert [row.layers for row in result.per_gpu] == [16, 16]
    one = Inference(parallel=Parallel(pipeline=1))
    assert layers_by_free_memory(llama(), one, serving_memory("hf"), list(named), 1) == ()


def test_a_stage_of_several_unequal_cards_is_a_row_each():
    named = cards(("rtx-4090", 1), ("rtx-3060-12-gb", 1), ("rtx-4090", 2))
    result = estimate_on(llama(), Inference(profile="vllm", parallel=Parallel(pipeline=2, tensor=2)), named)
    rows = [(row.gpu, row.count, row.stage) for row in result.per_gpu]
    assert rows == [("rtx-4090", 1, 0), ("rtx-3060-12-gb", 1, 0), ("rtx-4090", 2, 1)]
    assert result.fullest == 1


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        (Inference(weights="F16", parallel=Parallel(pipeline=2)), "llama.cpp splits the layers in proportion"),
        (Inference(parallel=Parallel(pipeline=2)), "device_map auto"),
        (Inference(profile="vllm", parallel=Parallel(pipeline=2)), "vLLM splits the layers evenly"),
        (Training(parallel=Parallel(pipeline=2)), "Pipeline stages get equal numbers of layers"),
    ],
)
def test_the_note_names_what_splits(workload, said):
    result = estimate_on(llama(), workload, cards(("rtx-4090", 1), ("rtx-3060-12-gb", 1)))
    assert any(said in note for note in result.notes)


def test_unequal_cards_that_hold_the_same_are_decided_by_the_smallest():
    result = estimate_on(llama(), training(zero=3), cards(("h100-sxm5-80gb", 4), ("rtx-3060-12-gb", 4)))
    assert result.fullest == 1
    assert any("the GPU with the least memory decides" in note for note in result.notes)


@pytest.mark.parametrize(
    ("workload", "shards"),
    [(training(zero=3, data=8), 8), (training(zero=2, data=8, tensor=2), 2), (training(pipeline=4), 4)],
)
def test_what_is_divided_at_least(workload, shards):
    assert least_shards(workload) == shards


def test_other_processes_take_layers_away():
    hardware = bundled().hardware
    gpu = hardware.gpu("rtx-4090")
    full, small = (
        CardGroup(hardware.gpu(name), hardware.usable_memory(gpu)._replace(bytes=size * GIB))
        for name, size in (("rtx-4090", 24), ("rtx-3090", 12))
    )
    splits = [
        [
            row.layers
            for row in estimate_on(
                llama(),
                Inference(weights="F16", parallel=Parallel(pipeline=2), other_processes_bytes=taken),
                (full, small),
            ).per_gpu
        ]
        for taken in (0, 8 * GIB)
    ]
    assert splits[1][1] < splits[0][1]


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        (
            training(),
            "Replicas as implemented by DistributedDataParallel of PyTorch 2.13, over 4 GPUs: two copies of",
        ),
        (training(gradient_as_bucket_view=True), "over 4 GPUs: one copy of the gradients, in buckets."),
        (training(zero=3), "ZeRO-3 as implemented by FSDP2 of PyTorch 2.13, over 4 GPUs: each holds a shard"),
        (training(zero=1, tensor=2), "ZeRO-1 as implemented by DeepSpeed 0.19, over 2 GPUs: 16-bit parameters"),
        (
            training(tensor=4).evolve(profile="megatron"),
            "Replicas as implemented by Megatron-LM 0.20, over 1 GPU: 16-bit",
        ),
        (training().evolve(profile="megatron"), "Replicas as implemented by Megatron-LM 0.20, over 4 GPUs: 16-bit"),
    ],
)
def test_the_note_names_what_shares_and_what_it_keeps(workload, said):
    assert any(said in note for note in estimate_memory(DEEP, workload, count=4).notes)


def test_cards_that_share_matrices_alone_have_no_replicas():
    assert not any("Replicas" in note for note in estimate_memory(DEEP, training(tensor=4), count=4).notes)
