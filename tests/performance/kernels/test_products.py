"""Time of matrix products and of routed experts, by hand."""

from math import exp

import pytest

from planner.performance.kernels.gpu_figures import GpuFigures
from planner.performance.kernels.products import (
    ExpertCurve,
    ExpertShape,
    ProductCurve,
    ProductShape,
    experts_seconds,
    matmul_seconds,
)

CARD = GpuFigures(1e12, 100e12, multiprocessors=100, cache_bytes=1.0, link_bytes_per_s=1e11, clock_hz=1e9)
QUICK = CARD._replace(ops_per_s=1e18)
PLAIN = ProductCurve(
    launch=2, matrix=1, edge=0, prologue=0, memory=1, cache=1, overlap=30, merge=1e6, inputs=0, held=1e-9
)
"""Nothing but waves of blocks and bytes, the larger of which counts."""


def test_one_row_takes_as_long_as_its_weights_are_read() -> None:
    seconds = matmul_seconds(PLAIN, ProductShape(1, 8_192, 8_192, 2, 2), QUICK)
    moved = 2 * (8_192 * 8_192 + 8_192 + 8_192)
    assert seconds == pytest.approx(2e-6 + moved / 1e12, rel=1e-4)


def test_whole_waves_of_blocks_run_at_the_dense_rate() -> None:
    # 80 × 80 blocks of 64 × 64 are 64 waves of 100.
    seconds = matmul_seconds(PLAIN, ProductShape(5_120, 5_120, 4_096, 2, 2), CARD)
    assert seconds == pytest.approx(2e-6 + 2 * 5_120 * 5_120 * 4_096 / 100e12, rel=1e-4)


def test_one_block_more_than_a_wave_takes_a_second_wave() -> None:
    full = matmul_seconds(PLAIN, ProductShape(640, 640, 65_536, 0.01, 0.01), CARD)
    more = matmul_seconds(PLAIN, ProductShape(641, 640, 65_536, 0.01, 0.01), CARD)
    block = 2 * 64 * 64 * 65_536 / (100e12 / 100)
    assert full == pytest.approx(2e-6 + block, rel=1e-4)
    assert more == pytest.approx(2e-6 + 2 * block, rel=1e-4)


def test_a_small_result_is_split_so_that_more_multiprocessors_work() -> None:
    shape = ProductShape(64, 64, 65_536, 0.01, 0.01)
    split = matmul_seconds(PLAIN._replace(merge=1), shape, CARD)
    block = 2 * 64 * 64 * 65_536 / (100e12 / 100)
    assert split == pytest.approx(2e-6 + block / 8 + 1e-6, rel=1e-4)


def test_weights_that_fit_into_the_cache_are_read_faster() -> None:
    cached = PLAIN._replace(cache=4e12 / 6.4e12, held=1)
    shape = ProductShape(1, 1_024, 1_024, 2, 2)
    moved = 2 * (1_024 * 1_024 + 2 * 1_024)
    assert matmul_seconds(cached, shape, QUICK._replace(cache_bytes=1e9)) == pytest.approx(
        2e-6 + moved / 4e12, rel=1e-4
    )


def test_inputs_that_are_quantised_first_pass_through_memory() -> None:
    shape = ProductShape(1_000, 64, 1_000, 1, 1)
    assert matmul_seconds(PLAIN._replace(inputs=3), shape, CARD) - matmul_seconds(PLAIN, shape, CARD) == pytest.approx(
        3 * 1_000 * 1_000 / 1e12
    )


EXPERTS = ExpertCurve(
    launch=20,
    matrix=1,
    memory=1,
    few=0,
    fall=1,
    overlap=30,
    moved=0,
    even=0,
    uneven=0,
    even_growth=1,
    uneven_growth=1,
    expert=0,
    prologue=0,
    cache=1,
    unit=1e9,
    spread=1,
    clustered=1,
)
SHAPE = ExpertShape(
    tokens=64, hidden=2_048, width=768, experts=128, chosen=8, cards=1, matrices=3, weight_bytes=2, skewed=0
)
WEIGHTS = 3 * 2_048 * 768


def test_few_tokens_read_the_experts_that_they_touch() -> None:
    touched = 128 * (1 - exp(-64 * 8 / 128))
    assert experts_seconds(EXPERTS, SHAPE, CARD) == pytest.approx(20e-6 + touched * WEIGHTS * 2 / 1e12, rel=1e-4)


def test_a_single_token_touches_no_more_experts_than_it_chooses() -> None:
    seconds = experts_seconds(EXPERTS._replace(spread=100.0), SHAPE._replace(tokens=1), CARD)
    assert seconds == pytest.approx(20e-6 + 8 * WEIGHTS * 2 / 1e12, rel=1e-4)


def test_many_tokens_multiply() -> None:
    seconds = experts_seconds(EXPERTS, SHAPE._replace(tokens=16_384), CARD)
    assert seconds == pytest.approx(20e-6 + 2 * 16_384 * 8 * WEIGHTS / 100e12, rel=1e-4)


def test_the_fullest_of_several_cards_decides_but_sees_no_token_twice() -> None:
    shared = SHAPE._replace(tokens=16_384, cards=64)
    even = experts_seconds(EXPERTS, shared, CARD)
    assert even == pytest.approx(20e-6 + 2 * 16_384 * 8 / 64 * WEIGHTS / 100e12, rel=1e-4)
    uneven = experts_seconds(EXPERTS._replace(uneven=1e6), shared._replace(skewed=1), CARD)
    assert uneven == pytest.approx(20e-6 + 2 * 16_384 * 2 * WEIGHTS / 100e12, rel=1e-4)


def test_the_share_of_the_fullest_card_grows_with_the_number_of_cards() -> None:
    """By hand: 4 · 0.25 · 4^0.5 ÷ √(64 ÷ 4) = 0.5 more than the mean of four cards."""
    curve = EXPERTS._replace(uneven=0.25, uneven_growth=0.5, even_growth=0)
    seconds = experts_seconds(curve, SHAPE._replace(tokens=16_384, experts=64, cards=4, skewed=1), CARD)
    assert seconds == pytest.approx(20e-6 + 1.5 * 2 * 16_384 * 8 / 4 * WEIGHTS / 100e12, rel=1e-4)
