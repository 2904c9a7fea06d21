"""Activations of the micro-batches in flight on a pipeline stage."""

from small_models import llama

from planner.memory.estimate import estimate_memory
from planner.workload.parallel import Parallel
from planner.workload.workload import Training


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
