"""Time of networks from their counts."""

import pytest
from small_models import bundled

from planner.performance.estimate import estimate_time
from planner.performance.vision import OperationCounts, memory_passes, module_time, product_share
from planner.workload.defaults import with_defaults
from planner.workload.training import Training

RESNET_50 = OperationCounts(2 * 4.09e9, 11.1e6)


def gpu(name):
    return bundled().hardware.gpu(name)


def test_products_and_passes_over_memory_follow_each_other():
    time = module_time(RESNET_50, gpu("rtx-4090"), "fp16")
    assert time.products == pytest.approx(8.18e9 / (0.95 * 165.2e12))
    assert time.memory == pytest.approx(9 * 11.1e6 * 2 / 1008e9)
    assert time.host == 0


def test_stacked_memory_is_reached_less_and_8_bits_too():
    assert memory_passes(gpu("a100-sxm4-80gb"), "convolutions", compiled=False) == pytest.approx(9 * 1.35)
    assert memory_passes(gpu("tesla-v100-sxm2-32gb"), "convolutions", compiled=False) == 9
    assert product_share(gpu("h100-sxm5-80gb"), "fp8") == 0.65
    assert product_share(gpu("a100-sxm4-80gb"), "fp8") == product_share(gpu("a100-sxm4-80gb"), "fp16")


def test_products_reach_no_more_than_alone_but_on_cards_of_half_the_rate():
    assert product_share(gpu("a100-sxm4-80gb"), "fp16") == product_share(gpu("a100-sxm4-80gb"), "tf32") == 0.85
    assert product_share(gpu("l40s"), "fp16") == pytest.approx(0.66, rel=0.01)
    assert product_share(gpu("rtx-4090"), "fp16") == 0.95
    assert product_share(gpu("a10"), "tf32") == product_share(gpu("a10"), "fp16") < 0.75


def test_a_t4_is_held_by_its_power():
    t4, large = gpu("tesla-t4"), gpu("quadro-rtx-8000")
    assert product_share(t4, "fp16") == pytest.approx(24 / 65)
    assert product_share(t4, "fp32") == 0.95
    assert product_share(large, "fp16") == 0.6
    held = estimate_time(*trained(), ((t4, 1),))
    free = estimate_time(*trained(), ((large, 1),))
    spent, least = held.term("matrix_products").seconds, free.term("matrix_products").seconds
    assert spent > 2 * least


def trained():
    architecture = bundled().models.model("openai-community/gpt2")
    workload = Training(micro_batch=8, sequence_length=1024, compute="amp-fp16")
    return architecture, with_defaults(workload, architecture, 1)


def test_a_network_by_formats():
    fp32, tf32 = (module_time(RESNET_50, gpu("a100-sxm4-80gb"), kind) for kind in ("fp32", "tf32"))
    assert fp32.products * 0.95 == pytest.approx(8 * tf32.products * 0.85)
    assert fp32.memory == tf32.memory
    assert module_time(RESNET_50, gpu("rtx-4090").evolve(rates=()), "fp16") is None
