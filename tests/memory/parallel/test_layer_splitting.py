"""How the layers are split over cards by each program, by its own rule."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_models import llama, small_llama

from planner.memory.parallel.layer_splitting import stage_layers
from planner.memory.parallel.ranks import layers_of_stages
from planner.memory.software import memory_of
from planner.memory.software.llama_cpp import layers_by_memory
from planner.memory.software.transformers import layers_by_device_map
from planner.memory.software.vllm import even_layers
from planner.workload.parallel import Parallel
from planner.workload.workload import Inference, Training

GIB, GB = 2**30, 10**9


SIZES = st.integers(1, 128).flatmap(lambda layers: st.tuples(st.just(layers), st.integers(1, layers)))


@pytest.mark.parametrize(
    ("layers", "stages", "held"),
    [
        (32, 4, (8, 8, 8, 8)),
        (8, 3, (3, 3, 2)),  # with embedding and head 4, 3 and 3
        (10, 4, (2, 3, 3, 2)),
        (7, 2, (4, 3)),
        (5, 4, (1, 1, 2, 1)),
        (3, 3, (1, 1, 1)),
    ],
)
def test_stages_of_training_are_as_even_as_it_goes(layers, stages, held):
    assert stage_layers(layers, stages) == held


@pytest.mark.parametrize(
    ("layers", "stages", "held"),
    # The cases of vLLM's own tests/distributed/test_pipeline_partition.py.
    [(2, 2, (1, 1)), (3, 2, (2, 1)), (3, 3, (1, 1, 1)), (4, 3, (1, 2, 1)), (5, 3, (2, 2, 1))],
)
def test_stages_of_vllm_have_what_is_left_before_the_last(layers, stages, held):
    assert even_layers(layers, stages) == held


@given(SIZES)
def test_every_layer_is_on_one_card_and_no_card_is_empty(sizes):
    layers, stages = sizes
    for held in (
        stage_layers(layers, stages),
        even_layers(layers, stages),
        layers_by_memory(layers, (1,) * stages),
        layers_by_device_map(small_llama(num_hidden_layers=layers), "bf16", stages),
    ):
        assert sum(held) == layers
        assert len(held) == stages
        assert min(held) >= 1


@given(st.lists(st.integers(1, 80 * GIB), min_size=1, max_size=8), st.integers(8, 100))
def test_layers_follow_free_memory_in_llama_cpp(free, layers):
    held = layers_by_memory(layers, tuple(free))
    assert sum(held) == layers
    assert min(held) >= 1
    # The last card has the output, too, and a layer is not divided.
    assert held[free.index(max(free))] >= held[free.index(min(free))] - 2


def test_layers_are_split_as_llama_cpp_splits_them():
    # upper_bound over 24 / 40 and 40 / 40: layer i of 33 is on the first card while i / 33 < 0.6.
    assert layers_by_memory(32, (24 * GIB, 16 * GIB)) == (20, 12)
    assert layers_by_memory(32, (16 * GIB, 24 * GIB)) == (14, 18)
    assert layers_by_memory(2, (80 * GIB, GIB)) == (1, 1)
    assert layers_by_memory(32, (1, 1)) == (17, 15)  # the output is the sixteenth of the second


def workload(profile, **parallel):
    return Inference(profile=profile, parallel=Parallel(**parallel))


def split(asked, free):
    return layers_of_stages(llama(), asked, memory_of(llama(), asked), free)


def test_each_program_splits_in_its_own_way():
    free = (24 * GB, 12 * GB)
    named = {"pipeline": 2, "pipeline_layers": (31, 1)}
    assert split(workload("hf", **named), free) == (31, 1)
    assert split(workload("hf"), ()) == (32,)
    assert split(workload("llama.cpp", pipeline=2), free) == (22, 10)
    assert split(workload("vllm", pipeline=2), free) == (16, 16)
    assert split(workload("hf", pipeline=2), (8 * GB, 24 * GB)) == (16, 16)
    assert split(Inference(parallel=Parallel(pipeline=2)), free) == split(workload("hf", pipeline=2), free)
    assert split(Training(parallel=Parallel(pipeline=2)), free) == (16, 16)
