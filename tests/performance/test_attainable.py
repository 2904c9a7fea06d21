"""Achievable shares of a card's bandwidth and rates."""

import pytest
from small_models import bundled

from planner.dtypes import AS_STORED
from planner.performance.attainable import (
    cut_down_share,
    dense_ops_per_s,
    kernel_width,
    limited_share,
    memory_class,
    product_ceiling,
    share_within_power_limit,
    usable_bandwidth,
)


def gpu(name):
    return bundled().hardware.gpu(name)


def test_a_card_that_lacks_multiprocessors_cannot_ask_for_all_its_bandwidth():
    assert usable_bandwidth(gpu("h20-96gb")) == 3.35e12 * 78 / 132
    assert usable_bandwidth(gpu("rtx-4090")) == 1008e9
    assert usable_bandwidth(gpu("rtx-4090").evolve(bandwidth_bytes_per_s=None)) is None


def test_products_reach_other_shares_on_cut_down_cards_only():
    assert [cut_down_share(gpu("h20-141gb"), dtype).fraction for dtype in ("fp16", "fp8")] == [0.80, 0.70]
    assert cut_down_share(gpu("h20-96gb"), "fp32") is None
    assert cut_down_share(gpu("h100-sxm5-80gb"), "fp16") is None


def test_a_card_of_two_devices_gives_half_to_each():
    assert usable_bandwidth(gpu("instinct-mi250x")) == 3276.8e9 / 2


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
    assert product_ceiling(gpu("rtx-4090"), "fp16") == 0.97
    assert product_ceiling(gpu("rtx-6000-ada"), "fp16") == 0.66
    assert product_ceiling(gpu("rtx-4090"), "fp8") == 0.46
    assert product_ceiling(gpu("apple-m3-max"), "fp16") == 0.75


def test_a_t4_sustains_24_of_its_65_teraflops() -> None:
    t4 = bundled().hardware.gpu("tesla-t4")
    assert share_within_power_limit(t4, 0.6) == pytest.approx(24 / 65)
    assert share_within_power_limit(t4, 0.2) == 0.2


def test_other_cards_keep_their_share() -> None:
    assert share_within_power_limit(bundled().hardware.gpu("rtx-4090"), 0.6) == 0.6


def test_16_bits_run_at_the_rate_of_fp32_where_that_is_higher() -> None:
    assert dense_ops_per_s(gpu("tesla-p40"), "fp16") == pytest.approx(11.76e12)
    assert dense_ops_per_s(gpu("tesla-p100-sxm2-16gb"), "fp16") == pytest.approx(21.2e12)
    assert dense_ops_per_s(gpu("tpu-v2"), "fp16") == 45e12 / 2
    assert dense_ops_per_s(gpu("tpu-v2"), "tf32") is None


def test_less_power_lowers_the_clock_as_its_cube_root() -> None:
    h100 = gpu("h100-sxm5-80gb")
    assert limited_share(h100.evolve(power_limit_watts=500), 0.54) == pytest.approx(0.54 * (5 / 7) ** (1 / 3))
    assert limited_share(h100, 0.54) == 0.54
    l4 = gpu("l4")
    watts = l4.board_power_watts / (l4.rate("int8").ops_per_s / 2e12)
    assert share_within_power_limit(l4, 0.9) == pytest.approx(0.9 * (watts / (350 / 363)) ** (1 / 3))
    assert share_within_power_limit(gpu("instinct-mi300x"), 0.5) == 0.5


def test_unified_memory_of_others_than_apple_is_read_as_that_of_their_cards() -> None:
    assert memory_class(gpu("apple-m3-max").evolve(vendor="NVIDIA")) == "GDDR"
