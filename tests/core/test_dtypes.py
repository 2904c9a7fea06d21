"""Bits per weight, by hand, and the bytes of single tensors to the last one."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.dtypes import (
    ELEMENT_BYTES,
    FORMAT_SPELLINGS,
    GGUF_FILE_TYPES,
    KV_FORMATS,
    SCHEMES,
    SchemeOverhead,
    gguf_type,
    scheme_called,
)

EXTENTS = st.integers(1, 2_000)
TYPES = [*SCHEMES.values(), *(gguf_type(name) for name in set(GGUF_FILE_TYPES.values()))]


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("fp32", 32),
        ("bf16", 16),
        ("fp16", 16),
        ("nf4", 4 + 32 / 64),  # a block of 64 shares one fp32 maximum
        ("nf4-dq", 4 + 8 / 64 + 32 / (64 * 256)),  # the maxima in 8 bits, 256 of which share an fp32 one: 4.127
        ("int8", 8 + 32 / 4096),  # an fp32 scale for each row
        ("fp8", 8 + 32 / 4096),
        ("fp8-block128", 8 + 32 / 128**2),
        ("mxfp8", 8 + 8 / 32),
        ("mxfp4", 4 + 8 / 32),
        ("nvfp4", 4 + 8 / 16 + 32 / 4096**2),
        ("awq4-128", 4 + (16 + 4) / 128),  # a 16-bit scale and a 4-bit zero a group
        ("awq4-64", 4 + 20 / 64),
        ("gptq4-128", 4 + 20 / 128 + 32 / 4096),  # and the group of each column in 32 bits
        ("gptq4-64", 4 + 20 / 64 + 32 / 4096),
        ("gptq4-32", 4 + 20 / 32 + 32 / 4096),
        ("gptq8-128", 8 + (16 + 8) / 128 + 32 / 4096),
        ("Q8_0", 8.5),
        ("Q6_K", 6.5625),
        ("Q5_0", 5.5),
        ("Q5_1", 6.0),
        ("Q4_0", 4.5),
        ("Q4_1", 5.0),
        ("IQ4_NL", 4.5),
        ("IQ4_XS", 4.25),
        ("Q2_K", 2.625),
    ],
)
def test_bits_of_a_projection(name, bits):
    assert SCHEMES[name].bits_per_weight == pytest.approx(bits, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "bits"), [("Q5_K", 5.5), ("Q4_K", 4.5), ("Q3_K", 3.4375), ("F32", 32), ("F16", 16), ("BF16", 16)]
)
def test_bits_of_a_gguf_block(name, bits):
    assert gguf_type(name).bits_per_weight == bits


def test_an_unknown_block_type_is_a_key_error():
    with pytest.raises(KeyError):
        gguf_type("Q9_Z")


def test_one_projection_in_nf4_with_double_quantisation():
    # Llama-3.1-8B, down_proj: 4096 × 14336 = 58,720,256 elements: 29,360,128 B of nibbles, 917,504 8-bit maxima,
    # and 917,504 / 256 = 3,584 fp32 ones.
    assert SCHEMES["nf4-dq"].tensor_bytes((4096, 14336)) == 29_360_128 + 917_504 + 4 * 3_584


def test_a_started_block_is_a_whole_one():
    # 3 × 100 elements: 150 B, ⌈300 / 64⌉ = 5 blocks by flat order, ⌈100 / 128⌉ · 3 = 3 groups by row.
    assert SCHEMES["nf4"].tensor_bytes((3, 100)) == 150 + 5 * 4
    assert SCHEMES["awq4-128"].tensor_bytes((3, 100)) == 158  # 150 + 3 · 2.5, rounded up
    assert SCHEMES["fp8-block128"].tensor_bytes((129, 128)) == 129 * 128 + 2 * 4


def test_leading_extents_are_rows():
    assert SCHEMES["fp8"].tensor_bytes((8, 16, 32)) == SCHEMES["fp8"].tensor_bytes((128, 32)) == 4096 + 128 * 4
    assert SCHEMES["fp32"].tensor_bytes((7,)) == 28


@pytest.mark.parametrize(
    ("overhead", "number"),
    [
        (SchemeOverhead(Fraction(1), "flat", 64), 5),
        (SchemeOverhead(Fraction(1), "group", 64), 6),
        (SchemeOverhead(Fraction(1), "tile", 64), 2),
        (SchemeOverhead(Fraction(1), "row"), 3),
        (SchemeOverhead(Fraction(1), "column"), 100),
        (SchemeOverhead(Fraction(1), "tensor"), 1),
    ],
)
def test_what_overheads_belong_to(overhead, number):
    assert overhead.overhead_count(3, 100) == number


@pytest.mark.parametrize(
    ("name", "bits"), [("fp32", 32), ("bf16", 16), ("fp8", 8), ("q8_0", 8.5), ("q5_1", 6), ("q4_0", 4.5)]
)
def test_bits_of_cached_elements(name, bits):
    assert KV_FORMATS[name] == Fraction(bits)


def test_tf32_is_stored_as_fp32():
    assert ELEMENT_BYTES["tf32"] == ELEMENT_BYTES["fp32"] == 4


@pytest.mark.parametrize("name", SCHEMES)
def test_every_scheme_says_where_it_is_from(name):
    assert SCHEMES[name].name == name
    assert SCHEMES[name].title
    assert SCHEMES[name].source


@given(st.sampled_from(TYPES), EXTENTS, EXTENTS)
def test_no_scheme_is_below_its_data_bits(scheme, rows, columns):
    assert 8 * scheme.tensor_bytes((rows, columns)) >= scheme.data_bits * rows * columns


@given(st.sampled_from(TYPES), EXTENTS, EXTENTS, st.integers(1, 64))
def test_larger_tensors_never_need_less(scheme, rows, columns, more):
    own = scheme.tensor_bytes((rows, columns))
    assert scheme.tensor_bytes((rows + more, columns)) >= own
    assert scheme.tensor_bytes((rows, columns + more)) >= own


def test_formats_are_known_by_the_words_of_other_programs() -> None:
    assert set(FORMAT_SPELLINGS.values()) <= set(SCHEMES)
    assert scheme_called("Half") == "fp16"
    assert scheme_called("q4_k_m") == "Q4_K_M"
    assert scheme_called("nothing") is None
