"""Tables of GGUF types: unique numbers, and sizes that follow from the layout of their blocks."""

from planner.dtypes import GGUF_FILE_TYPES
from planner.ggml import FILE_TYPE_NAMES, GGML_TYPES

BY_NAME = {kind.name: kind for kind in GGML_TYPES}


def test_numbers_and_names_are_unique():
    assert len({kind.number for kind in GGML_TYPES}) == len(BY_NAME) == len(GGML_TYPES)
    assert len(set(FILE_TYPE_NAMES.values())) == len(FILE_TYPE_NAMES)


def test_a_q4_0_block_holds_a_16_bit_scale_and_32_values_of_4_bits():
    assert BY_NAME["Q4_0"][2:] == (32, 2 + 32 * 4 // 8)
    assert BY_NAME["Q8_0"][2:] == (32, 2 + 32)
    assert BY_NAME["BF16"][2:] == (1, 2)


def test_every_file_type_with_a_weight_format_is_a_type_of_the_specification():
    assert set(GGUF_FILE_TYPES) <= set(FILE_TYPE_NAMES.values())
    assert set(GGUF_FILE_TYPES.values()) <= set(BY_NAME)
