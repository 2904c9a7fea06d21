"""The micro-batches in flight on each stage of a pipeline, and their activations."""

import pytest
from small_models import llama

from planner.memory.estimate import estimate_memory
from planner.memory.parallel.micro_batches import micro_batches_in_flight
from planner.workload.parallel import Parallel
from planner.workload.training import Training


@pytest.mark.parametrize("micro_batches", [1, 2, 4, 16])
def test_a_stage_holds_the_micro_batches_of_those_behind_it(micro_batches):
    spread = Parallel(pipeline=4)
    held = [micro_batches_in_flight(spread, stage, micro_batches) for stage in range(4)]
    assert held == [min(4 - stage, micro_batches) for stage in range(4)]


@pytest.mark.parametrize("groups", [2, 3, 4])
def test_interleaved_stages_hold_more(groups):
    for stage in range(4):
        plain = micro_batches_in_flight(Parallel(pipeline=4), stage, 64)
        turns = micro_batches_in_flight(Parallel(pipeline=4, interleave=groups), stage, 64)
        assert turns / groups > plain
    # Narayanan et al. 2021: 1 + (p − 1) / (p · m) of the memory on the first stage.
    first = micro_batches_in_flight(Parallel(pipeline=4, interleave=groups), 0, 64)
    assert first / groups == pytest.approx(4 * (1 + 3 / (4 * groups)), abs=1 / groups)


def test_few_micro_batches_fill_no_interleaved_stage():
    assert micro_batches_in_flight(Parallel(pipeline=4, interleave=2), 0, 1) == 2


def test_the_first_stage_holds_the_most_micro_batches():
    often = Training(sequence_length=2048, gradient_accumulation=8, parallel=Parallel(pipeline=4))
    result = estimate_memory(llama(), often, count=4)
    kept = [row.total_bytes for row in result.per_gpu]
    assert kept[0] > kept[1] > kept[2]
    once = estimate_memory(llama(), often.evolve(gradient_accumulation=1), count=4)
    assert once.per_gpu[0].total_bytes < kept[0]


def test_interleaved_stages_hold_more_activations():
    plain, turns = (
        estimate_memory(
            llama(),
            Training(
                sequence_length=2048, gradient_accumulation=8, parallel=Parallel(pipeline=4, interleave=interleave)
            ),
            count=4,
        )
        for interleave in (1, 4)
    )
    assert turns.per_gpu[0].total_bytes > plain.per_gpu[0].total_bytes
