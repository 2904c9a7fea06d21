"""Scheduling of TensorRT-LLM: all of a request's cache is reserved."""

from small_models import bundled

from planner.serving.software.tensorrt_llm import SCHEDULER
from planner.workload.workload import Inference


def test_in_flight_batching_without_eviction():
    architecture, gpu = bundled().models.model("meta-llama/Llama-3.1-8B"), bundled().hardware.gpu("l40s")
    found = SCHEDULER.scheduling(Inference(), architecture, gpu)
    assert (found.step_tokens, found.sequences, found.block_tokens) == (8_192, 2_048, 32)
    assert found.reservation == "whole"
    assert found.mixes_prefill
    assert not found.chunks_prompts
