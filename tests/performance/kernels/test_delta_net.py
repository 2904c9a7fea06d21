"""Time of a gated delta net over a prompt, by hand."""

import pytest

from planner.performance.kernels.delta_net import DeltaNetShape, delta_net_seconds


def test_separate_kernels_carry_matrices_and_states_through_memory() -> None:
    # 300 tokens are 5 chunks. A chunk of a head, in bytes: 13 matrices of 64 × 128 numbers, a square of 64 in 32 bits
    # and one in 16, written and read, and a state of 128 × 128, written and read.
    moved = 13 * 64 * 128 * 2 + (64 * 64) * (2 * 4 + 2 * 2) + 2 * 128 * 128 * 2
    operations = 2 * 64 * 128 * (5 * 64 + 3 * 128)
    shape = DeltaNetShape(sequences=2, tokens=300, heads=8, width=128)
    by_memory = delta_net_seconds(shape, 1e12, 1e30, fused=False)
    assert by_memory == pytest.approx(38e-6 + 5 * (1.3e-6 + 16 * moved / 0.8e12))
    by_products = delta_net_seconds(shape, 1e30, 1e14, fused=False)
    assert by_products == pytest.approx(38e-6 + 5 * (1.3e-6 + 16 * operations / 0.5e14))


def test_the_fused_kernel_gives_each_multiprocessor_a_head() -> None:
    for sequences, waves in ((16, 1), (17, 2)):
        shape = DeltaNetShape(sequences=sequences, tokens=8_192, heads=8, width=128)
        assert delta_net_seconds(shape, 1e12, 1e14, fused=True) == pytest.approx(18e-6 + 128 * waves * 2.6e-6)


@pytest.mark.parametrize(("bandwidth", "rate", "printed"), [(3.35e12, 593e12, 0.259e-3), (8e12, 1_012e12, 0.338e-3)])
def test_it_is_what_the_authors_of_the_fused_kernel_print_of_the_separate_ones(
    bandwidth: float, rate: float, printed: float
) -> None:
    """8,192 tokens of 8 heads on H100 and B200: flashinfer-ai/flashinfer#3866 and #3001."""
    shape = DeltaNetShape(sequences=1, tokens=8_192, heads=8, width=128)
    assert delta_net_seconds(shape, bandwidth, rate, fused=False) == pytest.approx(printed, rel=0.45)
