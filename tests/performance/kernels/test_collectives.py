"""Time of collectives, by hand."""

import pytest

from planner.performance.kernels.card import KernelCard
from planner.performance.kernels.collectives import CollectiveCurve, collective_seconds, collective_shape

CARD = KernelCard(1e12, 100e12, multiprocessors=100, cache_bytes=1.0, link_bytes_per_s=1e11, clock_hz=1e9)
CURVE = CollectiveCurve(launch=10, hops=1.5, link=0.8, crowd=0.9, overlap=30, protocol=0)


def test_an_all_reduce_sends_everything_twice_but_the_own_part() -> None:
    assert collective_shape("all-reduce", 4, 1e9).sent_bytes == 1.5e9
    assert collective_shape("all-gather", 4, 1e9).sent_bytes == 0.75e9


def test_large_messages_are_bound_by_the_links() -> None:
    shape = collective_shape("all-reduce", 4, 1e9)
    assert collective_seconds(CURVE, shape, CARD) == pytest.approx(1.5e9 / (1e11 * 0.8 * 0.9), rel=1e-4)


def test_small_messages_take_the_latency() -> None:
    assert collective_seconds(CURVE, collective_shape("all-reduce", 8, 8), CARD) == pytest.approx(
        10e-6 * 1.5**2, rel=1e-4
    )


def test_messages_in_between_grow_with_the_root_of_their_size() -> None:
    between = CURVE._replace(protocol=100.0)
    assert collective_seconds(between, collective_shape("all-gather", 2, 2e6), CARD) == pytest.approx(100e-6, rel=1e-4)
