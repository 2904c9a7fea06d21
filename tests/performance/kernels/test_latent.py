"""Time of latent attention, by hand."""

import pytest

from planner.performance.kernels.card import KernelCard
from planner.performance.kernels.latent import (
    LatentReadCurve,
    LatentShape,
    LatentWriteCurve,
    latent_read_seconds,
    latent_write_seconds,
)

CARD = KernelCard(1e12, 100e12, multiprocessors=100, cache_bytes=1.0, link_bytes_per_s=1e11, clock_hz=1e9)
READ = LatentReadCurve(launch=8, matrix=1, fill=0, memory=1e9, overlap=30, longest=0, block=0, unfold=0)
WRITE = LatentWriteCurve(launch=8, memory=1, unit=1e9, start=0, matrix=1e9, overlap=30, queries=0, split=1, cache=1)


def test_a_prompt_multiplies_queries_of_192_and_values_of_128() -> None:
    shape = LatentShape(sequences=2, tokens=2_048, heads=128, cache_bytes=2)
    pairs = 2_048 * 2_049 / 2
    expected = 8e-6 + 2 * 320 * 2 * 128 * pairs / 100e12
    assert latent_read_seconds(READ, shape, CARD) == pytest.approx(expected, rel=1e-4)
    unfolded = latent_read_seconds(READ._replace(unfold=2), shape, CARD)
    assert unfolded - expected == pytest.approx(2 * 2 * 2_048 * 512 * 128 * 256 * 2 / 100e12, rel=1e-2)


def test_all_heads_of_a_new_token_read_the_same_latents() -> None:
    shape = LatentShape(sequences=64, tokens=8_192, heads=16, cache_bytes=1)
    assert latent_write_seconds(WRITE, shape, CARD) == pytest.approx(8e-6 + 64 * 8_192 * 576 / 1e12, rel=1e-4)


def test_many_heads_are_bound_by_their_products() -> None:
    shape = LatentShape(sequences=64, tokens=8_192, heads=128, cache_bytes=1)
    busy = WRITE._replace(matrix=1.0, memory=1e9)
    assert latent_write_seconds(busy, shape, CARD) == pytest.approx(
        8e-6 + 64 * 128 * 8_192 * 2 * 1_088 / 100e12, rel=1e-4
    )


def test_each_64_heads_of_a_sequence_occupy_a_multiprocessor() -> None:
    """By hand: 100 sequences of 128 heads are two waves on 100 multiprocessors, and one of 64 heads is one."""
    shape = LatentShape(sequences=100, tokens=64, heads=128, cache_bytes=1)
    alone = WRITE._replace(memory=1e9, unit=1)
    one_wave = 64 * 576 / CARD.port_bytes_per_s
    assert latent_write_seconds(alone, shape, CARD) == pytest.approx(8e-6 + 2 * one_wave, rel=1e-4)
    assert latent_write_seconds(alone, shape._replace(heads=64), CARD) == pytest.approx(8e-6 + one_wave, rel=1e-4)
