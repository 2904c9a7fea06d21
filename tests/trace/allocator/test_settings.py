import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import SpecError
from planner.trace.allocator.settings import DEFAULT_SETTINGS, AllocatorSettings

MIB = 1 << 20

SETTINGS = st.builds(
    AllocatorSettings,
    expandable_segments=st.booleans(),
    max_split_size_bytes=st.none() | st.integers(20, 1 << 20).map(lambda mebibytes: mebibytes * MIB),
    garbage_collection_threshold=st.none() | st.floats(0, 1, exclude_min=True, exclude_max=True),
    roundup_power2_divisions=st.none() | st.integers(0, 6).map(lambda power: 1 << power),
)


@given(SETTINGS)
def test_what_is_written_reads_back(settings):
    assert AllocatorSettings.parse(settings.text) == settings
    assert str(settings) == settings.text


def test_the_defaults_are_an_empty_text():
    assert DEFAULT_SETTINGS.text == ""
    assert AllocatorSettings.parse("") == AllocatorSettings.parse(" , ") == DEFAULT_SETTINGS


def test_all_options_at_once():
    text = "expandable_segments:True,max_split_size_mb:128,garbage_collection_threshold:0.8,roundup_power2_divisions:4"
    assert AllocatorSettings.parse(text) == AllocatorSettings(
        expandable_segments=True,
        max_split_size_bytes=128 * MIB,
        garbage_collection_threshold=0.8,
        roundup_power2_divisions=4,
    )
    assert AllocatorSettings.parse(text).text == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" max_split_size_mb : 20 ,", AllocatorSettings(max_split_size_bytes=20 * MIB)),
        ("expandable_segments:True,expandable_segments:False", DEFAULT_SETTINGS),
        ("expandable_segments:False", DEFAULT_SETTINGS),
        ("backend:native,pinned_use_background_threads:True", DEFAULT_SETTINGS),
    ],
)
def test_spaces_repetitions_and_options_that_change_nothing(text, expected):
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
def test_what_is_wrong_names_its_option(text, field, reason):
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
def test_torch_takes_and_refuses_the_same(text):
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
