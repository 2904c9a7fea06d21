"""Inference speed of vLLM."""

import pytest
from known_engines import ENGINES
from small_models import bundled
from timed_requests import served

from planner.performance.inference.machine import card_speed
from planner.performance.inference.request import decoding_step_time


def test_version_0_waits_for_its_host_between_passes() -> None:
    old, new = (
        decoding_step_time(served(gpu="a100-sxm4-80gb", engine=name, weights="bf16"), 1, 10)
        for name in ("vllm-v0", "vllm")
    )
    assert old.host - new.host == pytest.approx(1.3e-3 + 0.106e-3)


def test_a_lower_clock_starts_kernels_of_a_graph_more_slowly() -> None:
    slow, quick = (
        card_speed(bundled().hardware.gpu(name), ENGINES["vllm"], "bf16")
        for name in ("a100-sxm4-80gb", "h100-sxm5-80gb")
    )
    assert slow is not None
    assert quick is not None
    assert (slow.layer_seconds, quick.layer_seconds) == (pytest.approx(60e-6 * 1.98 / 1.41), 60e-6)


def test_fp8_weights_are_multiplied_as_stored_where_the_card_can() -> None:
    vllm = ENGINES["vllm"]
    assert vllm.product_format(bundled().hardware.gpu("h100-sxm5-80gb"), "fp8", "bf16") == "fp8"
    assert vllm.product_format(bundled().hardware.gpu("a100-sxm4-80gb"), "fp8", "bf16") == "fp16"
