import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.trace.allocator.settings import block_size_bytes, segment_size_bytes

MIB = 1 << 20


@pytest.mark.parametrize(
    ("requested", "handed_out"), [(1, 512), (511, 512), (512, 512), (513, 1024), (MIB + 1, MIB + 512)]
)
def test_sizes_are_multiples_of_512_bytes(requested, handed_out):
    assert block_size_bytes(requested) == handed_out


@pytest.mark.parametrize(
    ("requested", "handed_out"),
    [
        # PyTorch's own example, in KiB so that it lies above 512 bytes × 4: from 1024 on, the steps are 256 wide.
        (1200 << 10, 1280 << 10),
        (1280 << 10, 1280 << 10),
        (1793 << 10, 2048 << 10),
        # A power of two is left as it is.
        (1024 << 10, 1024 << 10),
        # Up to 512 bytes × 4 the usual multiple of 512 bytes is taken.
        (1200, 1536),
        (2048, 2048),
        # From 2048 on, the steps of a quarter are 512 bytes.
        (2049, 2560),
        (100, 512),
    ],
)
def test_four_divisions_between_powers_of_two(requested, handed_out):
    assert block_size_bytes(requested, divisions=4) == handed_out


@given(st.integers(1, 1 << 45), st.integers(0, 6))
def test_rounding_adds_less_than_a_step(requested, power):
    divisions = 1 << power
    size = block_size_bytes(requested, divisions)
    assert size >= requested
    assert size % 512 == 0
    # Doubling is the worst: a request right above a power of two with one division, which PyTorch takes as none.
    assert (
        size < requested + 512 if divisions == 1 else size <= max(requested + requested // divisions, requested + 511)
    )


@pytest.mark.parametrize(
    ("size", "asked"),
    [
        (512, 2 * MIB),
        (MIB, 2 * MIB),
        (MIB + 512, 20 * MIB),
        (10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (10 * MIB + 512, 12 * MIB),
        (21 * MIB, 22 * MIB),
    ],
)
def test_what_the_card_is_asked_for(size, asked):
    assert segment_size_bytes(size) == asked
