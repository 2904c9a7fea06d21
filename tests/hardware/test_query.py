"""Filtering, sorting and counting accelerators."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from planner.errors import SpecError
from planner.hardware.catalog import HardwareCatalog, load_hardware
from planner.hardware.gpu import Gpu
from planner.hardware.query import GpuQuery, facet_counts, select, used_fields
from planner.hardware.query_fields import GPU_QUERY_SCHEMA
from planner.hardware.query_schema import PlanOutcome
from planner.paths import catalog_dir
from planner.units import GIB

GPUS = load_hardware(catalog_dir()).gpus


def ids(found: tuple[Gpu, ...]) -> list[str]:
    return [gpu.id for gpu in found]


def test_an_empty_query_finds_everything_in_order(hardware: HardwareCatalog) -> None:
    assert select(hardware.gpus, GpuQuery()) == hardware.gpus


@pytest.mark.parametrize(
    ("text", "gpu_id"),
    [
        ("4090", "rtx-4090"),
        ("RTX 4090", "rtx-4090"),
        ("rtx4090", "rtx-4090"),
        ("HBM3 h100", "h100-sxm5-80gb"),
        ("ada workstation 6000", "rtx-6000-ada"),
        ("ada gaming 6000", None),
        ("nvidia ada lovelace 6000", "rtx-6000-ada"),
        ("trillium", "tpu-v6e"),
        ("mac studio m3", "apple-m3-ultra"),
        ("xyzzy", None),
    ],
)
def test_every_word_must_be_in_name_alias_vendor_architecture_or_kind(text: str, gpu_id: str | None) -> None:
    found = ids(select(GPUS, GpuQuery(text=text)))
    assert found == [] if gpu_id is None else gpu_id in found


def test_facets_and_ranges_narrow_together() -> None:
    query = GpuQuery(
        vendors=("NVIDIA", "AMD"),
        segments=("consumer",),
        architectures=("Ada Lovelace", "RDNA3"),
        memory_min_bytes=24 * GIB,
        memory_max_bytes=24 * GIB,
        year_min=2022,
        year_max=2022,
    )
    assert set(ids(select(GPUS, query))) == {"rtx-4090", "radeon-rx-7900-xtx"}


def test_unknown_figures_are_outside_every_range(hardware: HardwareCatalog) -> None:
    undated = hardware.gpu("b100")
    assert select((undated,), GpuQuery(year_min=1900)) == ()
    assert select((undated,), GpuQuery(year_max=3000)) == ()


def test_sorting_puts_unknown_values_last_both_ways(hardware: HardwareCatalog) -> None:
    three = tuple(hardware.gpu(gpu_id) for gpu_id in ("a10g", "rtx-4090", "rtx-3090"))
    assert ids(select(three, GpuQuery(sort=("bf16_dense",)))) == ["rtx-3090", "rtx-4090", "a10g"]
    assert ids(select(three, GpuQuery(sort=("-bf16_dense",)))) == ["rtx-4090", "rtx-3090", "a10g"]


def test_sorting_by_several_fields_keeps_the_first_foremost() -> None:
    query = GpuQuery(text="geforce rtx 40", where='not name ~ "laptop"', sort=("-memory_gib", "name"))
    assert ids(select(GPUS, query))[:4] == ["rtx-4090", "rtx-4090-d", "rtx-4060-ti-16-gb", "rtx-4070-ti-super"]


def test_capabilities_sort_as_versions_and_targets_last() -> None:
    found = select(GPUS, GpuQuery(sort=("-compute_capability",)))
    assert found[0].compute_capability == "12.1"
    versions = [gpu.compute_capability for gpu in found if gpu.vendor == "NVIDIA" and gpu.compute_capability]
    assert versions.index("10.0") < versions.index("9.0")
    assert found[-1].compute_capability is None or found[-1].compute_capability.startswith("gfx")


def test_names_sort_without_regard_to_case(hardware: HardwareCatalog) -> None:
    gpu = hardware.gpu("rtx-4090")
    two = (gpu.evolve(id="x", name="b"), gpu.evolve(id="y", name="A"))
    assert ids(select(two, GpuQuery(sort=("name",)))) == ["y", "x"]


def test_fits_is_read_from_the_verdicts_given() -> None:
    verdicts = {"rtx-4090": PlanOutcome("fits"), "rtx-3090": PlanOutcome("tight")}
    assert ids(select(GPUS, GpuQuery(where='fits == "fits"'), verdicts)) == ["rtx-4090"]
    assert ids(select(GPUS, GpuQuery(where='fits in ("fits", "tight")', sort=("fits",)), verdicts)) == [
        "rtx-4090",
        "rtx-3090",
    ]
    assert select(GPUS, GpuQuery(where='fits == "fits"'), {}) == ()


def test_time_and_cost_of_a_job_are_words_too() -> None:
    judged = {
        "rtx-4090": PlanOutcome("fits", 3.0, 9.0),
        "rtx-3090": PlanOutcome("fits", 5.0, 7.0),
        "l4": PlanOutcome("fits", 4.0),
    }
    assert ids(select(GPUS, GpuQuery(where="hours < 4.5", sort=("hours",)), judged)) == ["rtx-4090", "l4"]
    assert ids(select(GPUS, GpuQuery(where='fits == "fits"', sort=("job_cost",)), judged)) == [
        "rtx-3090",
        "rtx-4090",
        "l4",
    ]
    assert select(GPUS, GpuQuery(where="job_cost < 1"), judged) == ()


@pytest.mark.parametrize(
    "query",
    [
        GpuQuery(where='fits == "fits"'),
        GpuQuery(sort=("-fits",)),
        GpuQuery(where="hours < 3"),
        GpuQuery(sort=("job_cost",)),
    ],
)
def test_fits_without_verdicts_is_an_error(query: GpuQuery) -> None:
    with pytest.raises(SpecError, match="needs a model"):
        select(GPUS, query)
    with pytest.raises(SpecError, match="needs a model"):
        facet_counts(GPUS, query)


def test_a_query_is_checked_when_it_is_made() -> None:
    assert ids(select(GPUS, GpuQuery(where=" "))) == ids(GPUS)
    with pytest.raises(SpecError, match="there is no field 'colour'"):
        GpuQuery(sort=("-colour",))
    with pytest.raises(SpecError, match="at position 8"):
        GpuQuery(where="year > > 3")
    with pytest.raises(ValidationError):
        GpuQuery.model_validate({"vendors": ("3dfx",)})


def test_facet_counts_ignore_their_own_choice() -> None:
    counts = facet_counts(GPUS, GpuQuery(vendors=("AMD",), segments=("consumer",)))
    assert set(counts["vendor"]) == {"NVIDIA", "AMD", "Intel"}
    assert set(counts["segment"]) == {gpu.segment for gpu in GPUS if gpu.vendor == "AMD"}
    assert set(counts["architecture"]) == {
        gpu.architecture for gpu in GPUS if gpu.vendor == "AMD" and gpu.segment == "consumer"
    }


@settings(max_examples=50)
@given(
    st.builds(
        GpuQuery,
        text=st.sampled_from(["", "rtx", "a1"]),
        vendors=st.lists(st.sampled_from(["NVIDIA", "AMD", "Apple"]), max_size=2, unique=True).map(tuple),
        segments=st.lists(st.sampled_from(["consumer", "datacenter", "soc"]), max_size=2, unique=True).map(tuple),
        architectures=st.lists(st.sampled_from(["Ampere", "CDNA3"]), max_size=1).map(tuple),
        year_min=st.none() | st.integers(2012, 2026),
        where=st.sampled_from(["", "memory_gib >= 24", "nvlink"]),
    )
)
def test_a_facet_count_is_what_choosing_only_that_value_shows(query: GpuQuery) -> None:
    counts = facet_counts(GPUS, query)
    for facet in GPU_QUERY_SCHEMA.facets:
        field = {"vendor": "vendors", "segment": "segments", "architecture": "architectures"}[facet]
        shown = {value: number for value, number in counts[facet].items() if number}
        for value, number in shown.items():
            assert number == len(select(GPUS, query.evolve(**{field: (value,)})))
        others = tuple({getattr(gpu, facet) for gpu in GPUS} - shown.keys())
        assert not (others and select(GPUS, query.evolve(**{field: others})))


def test_prices_are_words_once_they_are_known(hardware: HardwareCatalog) -> None:
    prices = {"rtx-3090": {"used": 720.0}, "rtx-4090": {"used": 1100.0, "rent": 0.3}}
    query = GpuQuery(where="used < 1000 or rent < 1", sort=("-used",))
    assert [gpu.id for gpu in select(hardware.gpus, query, prices=prices)] == ["rtx-4090", "rtx-3090"]
    assert used_fields(query) == {"used", "rent"}
    assert used_fields(GpuQuery()) == frozenset()
    with pytest.raises(SpecError, match="rent: needs the prices of accelerators"):
        select(hardware.gpus, query)
