"""Achievable shares of a card's bandwidth and rates."""

import pytest
from small_models import bundled

from planner.dtypes import AS_STORED
from planner.performance.inference.machine import memory_class, reachable_bandwidth
from planner.performance.reach import kernel_width, product_ceiling, share_within_power_limit


def gpu(name):
    return bundled().hardware.gpu(name)


def test_a_card_that_lacks_multiprocessors_cannot_ask_for_all_its_bandwidth():
    assert reachable_bandwidth(gpu("h20-96gb")) == 3.35e12 * 78 / 132
    assert reachable_bandwidth(gpu("rtx-4090")) == 1008e9
    assert reachable_bandwidth(gpu("rtx-4090").evolve(bandwidth_bytes_per_s=None)) is None


def test_a_card_of_two_devices_gives_half_to_each():
    assert reachable_bandwidth(gpu("instinct-mi250x")) == 3276.8e9 / 2


@pytest.mark.parametrize(
    ("name", "expected"), [("rtx-4090", "GDDR"), ("h100-sxm5-80gb", "HBM"), ("apple-m3-max", "unified")]
)
def test_kinds_of_memory(name, expected):
    assert memory_class(gpu(name)) == expected


@pytest.mark.parametrize(
    ("weights", "expected"),
    [("bf16", "16"), ("Q8_0", "8"), ("fp8", "8"), ("Q4_K_M", "4"), ("nvfp4", "float4"), (AS_STORED, "4")],
)
def test_kernels_by_width(weights, expected):
    assert kernel_width(weights) == expected


def test_units_at_half_their_rate_are_kept_busy_more_easily():
    assert product_ceiling(gpu("rtx-4090"), "fp16") == 0.85
    assert product_ceiling(gpu("rtx-6000-ada"), "fp16") == 0.66
    assert product_ceiling(gpu("rtx-4090"), "fp8") == 0.46
    assert product_ceiling(gpu("apple-m3-max"), "fp16") == 0.75


def test_a_t4_sustains_24_of_its_65_teraflops() -> None:
    t4 = bundled().hardware.gpu("tesla-t4")
    assert share_within_power_limit(t4, 0.6) == pytest.approx(24 / 65)
    assert share_within_power_limit(t4, 0.2) == 0.2


def test_other_cards_keep_their_share() -> None:
    assert share_within_power_limit(bundled().hardware.gpu("rtx-4090"), 0.6) == 0.6
