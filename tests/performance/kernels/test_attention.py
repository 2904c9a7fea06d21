"""Time of attention over prompts and over caches, by hand."""

import pytest

from planner.performance.kernels.attention import (
    AttentionShape,
    DecodeCurve,
    LatentDecodeCurve,
    LatentPrefillCurve,
    LatentShape,
    PrefillCurve,
    attention_decode_seconds,
    attention_prefill_seconds,
    latent_decode_seconds,
    latent_prefill_seconds,
)
from planner.performance.kernels.gpu_figures import GpuFigures

CARD = GpuFigures(1e12, 100e12, multiprocessors=100, cache_bytes=1.0, link_bytes_per_s=1e11, clock_hz=1e9)
READ = PrefillCurve(
    launch=5,
    matrix=1,
    fill=0,
    memory=1e6,
    overlap=30,
    longest=0,
    windowed=0,
    block=0,
    heads_64=0.5,
    heads_192=0.6,
    heads_256=0.7,
    heads_512=0.8,
)
WRITE = DecodeCurve(
    launch=5,
    memory=1,
    unit=1e9,
    start=0,
    matrix=1e9,
    overlap=30,
    cache=1,
    queries=0,
    split=1,
    wide=1,
    windowed=1,
    heads_64=0.5,
    heads_192=1,
    heads_256=1,
    heads_512=1,
)


def _prompt(**sizes: float) -> AttentionShape:
    usual = {"sequences": 4.0, "tokens": 4_096.0, "heads": 32.0, "key_heads": 8.0, "head_size": 128.0, "window": 0.0}
    return AttentionShape(**{**usual, **sizes}, cache_bytes=2.0)


def test_a_prompt_multiplies_half_of_the_square_of_its_length() -> None:
    pairs = 4_096 * 4_097 / 2
    expected = 5e-6 + 4 * 4 * 32 * 128 * pairs / 100e12
    assert attention_prefill_seconds(READ, _prompt(), CARD) == pytest.approx(expected, rel=1e-4)


def test_a_window_leaves_out_what_is_further_away() -> None:
    windowed = attention_prefill_seconds(READ, _prompt(window=128.0), CARD)
    pairs = 128 * 129 / 2 + (4_096 - 128) * 128
    assert windowed == pytest.approx(5e-6 + 4 * 4 * 32 * 128 * pairs / 100e12, rel=1e-4)


@pytest.mark.parametrize(("size", "share"), [(64, 0.5), (192, 0.6), (256, 0.7), (512, 0.8)])
def test_other_head_sizes_have_their_own_rate(size: int, share: float) -> None:
    usual = attention_prefill_seconds(READ, _prompt(), CARD) - 5e-6
    other = attention_prefill_seconds(READ, _prompt(head_size=float(size)), CARD) - 5e-6
    assert other == pytest.approx(usual * size / 128 / share, rel=1e-4)


def test_the_longest_block_is_not_hidden() -> None:
    later = attention_prefill_seconds(READ._replace(longest=1), _prompt(), CARD)
    assert later - attention_prefill_seconds(READ, _prompt(), CARD) == pytest.approx(
        4_096 * 4 * 128 * 128 / (100e12 / 100), rel=1e-3
    )


def test_short_prompts_take_as_long_as_they_are_moved() -> None:
    moved = READ._replace(memory=1.0, matrix=1e9)
    expected = 5e-6 + 4 * 16 * 128 * (4 * 32 + 8 * 8) / 1e12
    assert attention_prefill_seconds(moved, _prompt(tokens=16.0), CARD) == pytest.approx(expected, rel=1e-4)


def test_a_new_token_reads_the_cache_once_for_each_group_of_heads() -> None:
    shape = _prompt(tokens=10_000.0)
    expected = 5e-6 + 2 * 4 * 8 * 128 * 10_000 * 2 / 1e12
    assert attention_decode_seconds(WRITE, shape, CARD) == pytest.approx(expected, rel=1e-4)
    assert attention_decode_seconds(WRITE, _prompt(tokens=10_000.0, window=20_000.0), CARD) == pytest.approx(
        5e-6 + 4 * (expected - 5e-6), rel=1e-4
    )
    many = _prompt(tokens=10_000.0, heads=64.0, key_heads=1.0)
    assert attention_decode_seconds(WRITE, many, CARD) == pytest.approx(
        5e-6 + 64 * 2 * 4 * 128 * 10_000 * 2 / 1e12, rel=1e-4
    )


def test_a_single_long_sequence_is_split_over_the_multiprocessors() -> None:
    alone = WRITE._replace(unit=10 / 64, memory=1e9)
    shape = _prompt(sequences=1.0, key_heads=1.0, heads=1.0, tokens=64_000.0)
    read = 2 * 128 * 64_000 * 2 / 1e12
    assert attention_decode_seconds(alone, shape, CARD) == pytest.approx(5e-6 + read, rel=1e-4)
    unsplit = alone._replace(split=1_000.0)
    assert attention_decode_seconds(unsplit, shape, CARD) == pytest.approx(5e-6 + 100 * read, rel=1e-4)


def test_products_and_queries_count_too() -> None:
    busy = WRITE._replace(matrix=1.0, memory=1e9, queries=1.0)
    shape = _prompt(tokens=10_000.0)
    products = 4 * 8 * 16 * 10_000 * 4 * 128 / 100e12
    assert attention_decode_seconds(busy, shape, CARD) == pytest.approx(
        5e-6 + products + 4 * 4 * 32 * 128 / 1e12, rel=1e-3
    )


LATENT_READ = LatentPrefillCurve(launch=8, matrix=1, fill=0, memory=1e9, overlap=30, longest=0, block=0, unfold=0)
LATENT_WRITE = LatentDecodeCurve(
    launch=8, memory=1, unit=1e9, start=0, matrix=1e9, overlap=30, queries=0, split=1, cache=1
)


def test_a_prompt_multiplies_queries_of_192_and_values_of_128() -> None:
    shape = LatentShape(sequences=2, tokens=2_048, heads=128, cache_bytes=2)
    pairs = 2_048 * 2_049 / 2
    expected = 8e-6 + 2 * 320 * 2 * 128 * pairs / 100e12
    assert latent_prefill_seconds(LATENT_READ, shape, CARD) == pytest.approx(expected, rel=1e-4)
    unfolded = latent_prefill_seconds(LATENT_READ._replace(unfold=2), shape, CARD)
    assert unfolded - expected == pytest.approx(2 * 2 * 2_048 * 512 * 128 * 256 * 2 / 100e12, rel=1e-2)


def test_all_heads_of_a_new_token_read_the_same_latents() -> None:
    shape = LatentShape(sequences=64, tokens=8_192, heads=16, cache_bytes=1)
    assert latent_decode_seconds(LATENT_WRITE, shape, CARD) == pytest.approx(8e-6 + 64 * 8_192 * 576 / 1e12, rel=1e-4)


def test_many_heads_are_bound_by_their_products() -> None:
    shape = LatentShape(sequences=64, tokens=8_192, heads=128, cache_bytes=1)
    busy = LATENT_WRITE._replace(matrix=1.0, memory=1e9)
    assert latent_decode_seconds(busy, shape, CARD) == pytest.approx(
        8e-6 + 64 * 128 * 8_192 * 2 * 1_088 / 100e12, rel=1e-4
    )


def test_each_64_heads_of_a_sequence_occupy_a_multiprocessor() -> None:
    """By hand: 100 sequences of 128 heads are two waves on 100 multiprocessors, and one of 64 heads is one."""
    shape = LatentShape(sequences=100, tokens=64, heads=128, cache_bytes=1)
    alone = LATENT_WRITE._replace(memory=1e9, unit=1)
    one_wave = 64 * 576 / CARD.port_bytes_per_s
    assert latent_decode_seconds(alone, shape, CARD) == pytest.approx(8e-6 + 2 * one_wave, rel=1e-4)
    assert latent_decode_seconds(alone, shape._replace(heads=64), CARD) == pytest.approx(8e-6 + one_wave, rel=1e-4)
