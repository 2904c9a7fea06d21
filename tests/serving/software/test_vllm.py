"""Scheduling of vLLM: its limits by card and version, and the rows of its CUDA graphs."""

from small_models import bundled

from planner.serving.scheduling import same_rows
from planner.serving.software.vllm import SCHEDULER, graph_rows
from planner.workload.workload import Inference


def scheduling(gpu="l40s", **engine):
    workload = Inference(profile="vllm", context_length=2_048, engine=engine)
    return SCHEDULER.scheduling(
        workload, bundled().models.model("meta-llama/Llama-3.1-8B"), bundled().hardware.gpu(gpu)
    )


def test_limits_are_those_of_the_server():
    assert (scheduling().step_tokens, scheduling().sequences) == (2_048, 256)
    assert (scheduling("h100-sxm5-80gb").step_tokens, scheduling("h100-sxm5-80gb").sequences) == (8_192, 1_024)
    own = scheduling(max_num_seqs=100, max_num_batched_tokens=64, block_size=32)
    assert (own.step_tokens, own.sequences, own.block_tokens) == (100, 100, 32)


def test_it_schedules_ahead_since_0_14():
    assert scheduling().schedules_ahead
    assert not scheduling(version="0.11").schedules_ahead


def test_a_step_has_the_rows_of_a_captured_graph():
    assert [graph_rows(number) for number in (1, 3, 5, 9, 100, 256, 257, 500, 513)] == [
        1,
        4,
        8,
        16,
        104,
        256,
        272,
        512,
        513,
    ]
    assert scheduling().padded_rows is graph_rows
    assert scheduling(enforce_eager=True).padded_rows is same_rows
