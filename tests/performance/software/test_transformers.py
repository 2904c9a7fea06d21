"""Speed of Hugging Face Transformers, eager and compiled."""

import pytest
from timed_requests import gpu, served

from planner.performance.inference.gpu_speed import gpu_speed
from planner.performance.inference.request import decoding_step_time
from planner.performance.kernels.times import launch_seconds
from planner.performance.setting import TimeSetting
from planner.performance.software import engine_of
from planner.performance.software.transformers import ENGINE
from planner.workload.workload import Inference


def test_only_transformers_is_timed_as_a_compiled_network():
    workload = Inference(profile="hf")
    assert engine_of(workload, TimeSetting(compiled=True)).name == "compiled"
    assert engine_of(workload, TimeSetting()).name == "hf"
    assert engine_of(Inference(profile="vllm"), TimeSetting(compiled=True)).name == "vllm"


def test_launches_from_python_count_only_where_they_take_longer_than_the_card():
    small = decoding_step_time(served(engine="hf", weights="bf16", gpu="h100-sxm5-80gb"), 1, 10)
    assert small.seconds == pytest.approx(32 * 610e-6)
    slow = decoding_step_time(served(engine="hf", weights="bf16", gpu="rtx-4090"), 64, 2000)
    # The card waits between the kernels that it was given, 46 in each of 32 layers.
    gap = launch_seconds(gpu("rtx-4090"), "hf")
    assert slow.host == pytest.approx(32 * 46 * gap)
    assert 1e-6 < gap < 5e-6
    graphs = decoding_step_time(served(engine="vllm", weights="bf16", gpu="rtx-4090"), 64, 2000)
    assert graphs.host == pytest.approx(32 * 60e-6 * 1.98 / 2.52)


def test_awq_multiplies_in_kernels_of_triton():
    assert gpu_speed(gpu("h100-sxm5-80gb"), ENGINE, "awq4-128").layer_seconds == pytest.approx(610e-6 + 7 * 49e-6)


def test_transformers_copies_the_cache_for_each_query_that_shares_it():
    lean = decoding_step_time(served(engine="compiled", weights="bf16"), 1, 4000)
    copied = decoding_step_time(served(engine="hf", weights="bf16"), 1, 4000)
    assert copied.cache_read == pytest.approx(lean.cache_read * (1 + 2 + 4 * 4))
