"""Settings of the caching allocator, and the sizes of its blocks and segments."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import SpecError
from planner.memory.segments import block_size_bytes, segment_size_bytes
from planner.trace.allocator_settings import DEFAULT_SETTINGS, AllocatorSettings

MIB = 1 << 20


SETTINGS = st.builds(
    AllocatorSettings,
    expandable_segments=st.booleans(),
    max_split_size_bytes=st.none() | st.integers(20, 1 << 20).map(lambda mebibytes: mebibytes * MIB),
    garbage_collection_threshold=st.none() | st.floats(0, 1, exclude_min=True, exclude_max=True),
    roundup_power2_divisions=st.none() | st.integers(0, 6).map(lambda power: 1 << power),
)


@given(SETTINGS)
def test_the_text_of_settings_parses_to_the_same_settings(settings):
    assert AllocatorSettings.parse(settings.text) == settings
    assert str(settings) == settings.text


def test_default_settings_are_an_empty_text():
    assert DEFAULT_SETTINGS.text == ""
    assert AllocatorSettings.parse("") == AllocatorSettings.parse(" , ") == DEFAULT_SETTINGS


def test_all_options_are_parsed_together():
    text = "expandable_segments:True,max_split_size_mb:128,garbage_collection_threshold:0.8,roundup_power2_divisions:4"
    assert AllocatorSettings.parse(text) == AllocatorSettings(
        expandable_segments=True,
        max_split_size_bytes=128 * MIB,
        garbage_collection_threshold=0.8,
        roundup_power2_divisions=4,
    )
    assert AllocatorSettings.parse(text).text == str(AllocatorSettings.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" max_split_size_mb : 20 ,", AllocatorSettings(max_split_size_bytes=20 * MIB)),
        ("expandable_segments:True,expandable_segments:False", DEFAULT_SETTINGS),
        ("expandable_segments:False", DEFAULT_SETTINGS),
        ("backend:native,pinned_use_background_threads:True", DEFAULT_SETTINGS),
    ],
)
def test_spaces_repeated_and_irrelevant_options_are_accepted(text, expected):
    assert AllocatorSettings.parse(text) == expected


@pytest.mark.parametrize(
    ("text", "field", "reason"),
    [
        ("expandable_segments:true", "expandable_segments", "must be True or False, not true"),
        ("max_split_size_mb:19", "max_split_size_mb", "must be at least 20,971,520"),
        ("max_split_size_mb:-1", "max_split_size_mb", "must be a whole number, not -1"),
        ("max_split_size_mb:20.5", "max_split_size_mb", "must be a whole number, not 20.5"),
        ("max_split_size_mb:²", "max_split_size_mb", "must be a whole number"),
        ("garbage_collection_threshold:1.0", "garbage_collection_threshold", "less than 1"),
        ("garbage_collection_threshold:0", "garbage_collection_threshold", "must be more than 0"),
        ("garbage_collection_threshold:nan", "garbage_collection_threshold", "less than 1"),
        ("garbage_collection_threshold:high", "garbage_collection_threshold", "must be a fraction, not high"),
        ("roundup_power2_divisions:3", "roundup_power2_divisions", "it must be a power of two"),
        ("roundup_power2_divisions:0", "roundup_power2_divisions", "must be at least 1"),
        ("roundup_power2_divisions:[256:1,>:8]", "roundup_power2_divisions", "size intervals"),
        ("per_process_memory_fraction:0.5", "per_process_memory_fraction", "this option is not modeled"),
        ("backend:cudaMallocAsync", "backend", "the allocator cudaMallocAsync is not modeled"),
        ("expandable_segment:True", "expandable_segment", "PyTorch's allocator has no such option"),
        ("expandable_segments", "expandable_segments", "an option needs a name and a value"),
        (":True", ":True", "an option needs a name and a value"),
        ("max_split_size_mb:", "max_split_size_mb:", "an option needs a name and a value"),
    ],
)
def test_an_invalid_value_names_its_option(text, field, reason):
    with pytest.raises(SpecError, match=reason) as caught:
        AllocatorSettings.parse(f"max_split_size_mb:64,{text}")
    assert caught.value.field == field


@pytest.mark.oracle
@pytest.mark.parametrize(
    "text",
    [
        "",
        "expandable_segments:True,max_split_size_mb:128",
        " max_split_size_mb : 30 ",
        "expandable_segments:True,",
        "expandable_segments:True,expandable_segments:False",
        "garbage_collection_threshold:0.8,roundup_power2_divisions:1",
        "pinned_use_background_threads:True",
        "expandable_segments:true",
        "expandable_segments:True expandable_segments:False",
        "expandable_segments",
        "max_split_size_mb:19",
        "max_split_size_mb:abc",
        "garbage_collection_threshold:1.0",
        "garbage_collection_threshold:0",
        "roundup_power2_divisions:3",
        "roundup_power2_divisions:0",
    ],
)
def test_pytorch_accepts_and_refuses_the_same_settings(text):
    torch = pytest.importorskip("torch", minversion="2.10", reason="older ones have no parser in builds without CUDA")
    assert _accepts(AllocatorSettings.parse, text, SpecError) == _accepts(
        torch._C._accelerator_setAllocatorSettings, text, (ValueError, RuntimeError)
    )


def _accepts(parse, text, refusal):
    try:
        parse(text)
    except refusal:
        return False
    return True


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
def test_sizes_are_rounded_to_four_steps_between_powers_of_two(requested, handed_out):
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
def test_segment_sizes_follow_from_block_sizes(size, asked):
    assert segment_size_bytes(size) == asked
