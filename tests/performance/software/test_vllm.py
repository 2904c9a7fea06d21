"""Inference speed of vLLM."""

import pytest
from known_engines import ENGINES
from small_models import bundled
from timed_requests import served

from planner.performance.inference.gpu_speed import gpu_speed
from planner.performance.inference.request import decoding_step_time


def test_version_0_waits_for_its_host_between_passes() -> None:
    old, new = (
        decoding_step_time(served(gpu="a100-sxm4-80gb", engine=name, weights="bf16"), 1, 10)
        for name in ("vllm-v0", "vllm")
    )
    assert old.host - new.host == pytest.approx(1.3e-3 + 0.106e-3)


def test_a_lower_clock_starts_kernels_of_a_graph_more_slowly() -> None:
    slow, quick = (
        gpu_speed(bundled().hardware.gpu(name), ENGINES["vllm"], "bf16")
        for name in ("a100-sxm4-80gb", "h100-sxm5-80gb")
    )
    assert slow is not None
    assert quick is not None
    assert (slow.layer_seconds, quick.layer_seconds) == (pytest.approx(60e-6 * 1.98 / 1.41), 60e-6)


def test_fp8_weights_are_multiplied_as_stored_where_the_card_can() -> None:
    vllm = ENGINES["vllm"]
    assert vllm.product_format(bundled().hardware.gpu("h100-sxm5-80gb"), "fp8", "bf16") == "fp8"
    assert vllm.product_format(bundled().hardware.gpu("a100-sxm4-80gb"), "fp8", "bf16") == "fp16"


def test_routing_to_experts_takes_half_as_many_kernels_as_a_layer_unless_their_kernels_do_it():
    cards = [bundled().hardware.gpu(name) for name in ("h100-sxm5-80gb", "b200-sxm-180gb")]
    added = [ENGINES["vllm"].expert_seconds(card, weights) for card in cards for weights in ("fp8", "nvfp4")]
    assert added == pytest.approx([30e-6, 30e-6, 30e-6 * 1.98 / 1.965, 0.0])


def test_experts_in_4_bit_floats_are_read_faster_than_a_row_is_multiplied():
    for gpu, read, experts in (("b200-sxm-180gb", 0.45, 0.75), ("rtx-pro-6000-blackwell-server", 0.50, 0.70)):
        speed = gpu_speed(bundled().hardware.gpu(gpu), ENGINES["vllm"], "nvfp4")
        assert speed is not None
        assert (speed.read.fraction, speed.expert_read.fraction) == (read, experts)
    speed = gpu_speed(bundled().hardware.gpu("h100-sxm5-80gb"), ENGINES["vllm"], "nvfp4")
    assert speed is not None
    assert speed.expert_read == speed.read
