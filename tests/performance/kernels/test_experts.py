"""Time of routed experts, by hand."""

from math import exp

import pytest

from planner.performance.kernels.card import KernelCard
from planner.performance.kernels.experts import ExpertCurve, ExpertShape, experts_seconds

CARD = KernelCard(1e12, 100e12, multiprocessors=100, cache_bytes=1.0, link_bytes_per_s=1e11, clock_hz=1e9)
PLAIN = ExpertCurve(
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
    assert experts_seconds(PLAIN, SHAPE, CARD) == pytest.approx(20e-6 + touched * WEIGHTS * 2 / 1e12, rel=1e-4)


def test_a_single_token_touches_no_more_experts_than_it_chooses() -> None:
    seconds = experts_seconds(PLAIN._replace(spread=100.0), SHAPE._replace(tokens=1), CARD)
    assert seconds == pytest.approx(20e-6 + 8 * WEIGHTS * 2 / 1e12, rel=1e-4)


def test_many_tokens_multiply() -> None:
    seconds = experts_seconds(PLAIN, SHAPE._replace(tokens=16_384), CARD)
    assert seconds == pytest.approx(20e-6 + 2 * 16_384 * 8 * WEIGHTS / 100e12, rel=1e-4)


def test_the_fullest_of_several_cards_decides_but_sees_no_token_twice() -> None:
    shared = SHAPE._replace(tokens=16_384, cards=64)
    even = experts_seconds(PLAIN, shared, CARD)
    assert even == pytest.approx(20e-6 + 2 * 16_384 * 8 / 64 * WEIGHTS / 100e12, rel=1e-4)
    uneven = experts_seconds(PLAIN._replace(uneven=1e6), shared._replace(skewed=1), CARD)
    assert uneven == pytest.approx(20e-6 + 2 * 16_384 * 2 * WEIGHTS / 100e12, rel=1e-4)


def test_the_share_of_the_fullest_card_grows_with_the_number_of_cards() -> None:
    """By hand: 4 · 0.25 · 4^0.5 ÷ √(64 ÷ 4) = 0.5 more than the mean of four cards."""
    curve = PLAIN._replace(uneven=0.25, uneven_growth=0.5, even_growth=0)
    seconds = experts_seconds(curve, SHAPE._replace(tokens=16_384, experts=64, cards=4, skewed=1), CARD)
    assert seconds == pytest.approx(20e-6 + 1.5 * 2 * 16_384 * 8 / 4 * WEIGHTS / 100e12, rel=1e-4)
