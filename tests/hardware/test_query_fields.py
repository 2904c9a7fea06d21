"""Query fields of accelerators: documentation, units and values of every record."""

import pytest
from pydantic import ValidationError

from planner.errors import SpecError
from planner.hardware.catalog import HardwareCatalog, load_hardware
from planner.hardware.gpu import Gpu, parse_link_bytes_per_s
from planner.hardware.query import SystemQuery, facet_counts, select, used_fields
from planner.hardware.query_fields import GPU_QUERY_FIELDS, PRICE_FIELDS, RENT_FIELD, SYSTEM_FIELDS, SYSTEM_QUERY_SCHEMA
from planner.hardware.query_schema import PlanOutcome, QueryContext
from planner.hardware.system import EquippedSystem, total_of_equal
from planner.paths import catalog_dir
from planner.units import GB

GPUS = load_hardware(catalog_dir()).gpus


def ids(found: tuple[Gpu, ...]) -> list[str]:
    return [gpu.id for gpu in found]


def test_every_field_is_documented_and_reads_every_record() -> None:
    documented = (
        "name vendor segment architecture year memory_gib bandwidth fp32 bf16_dense fp16_dense fp8_dense int8_dense"
        " power price launch_price compute_capability street used rent paid usd_per_gib usd_per_tflops"
        " bandwidth_per_usd"
        " tflops_per_watt ridge_point gib_per_watt bandwidth_per_watt nvlink mig devices laptop preliminary certainty"
        " fits hours job_cost job_cost_tokens"
    )
    assert list(GPU_QUERY_FIELDS) == documented.split()
    own = GPUS[0].evolve(purchase_price_usd=1)
    assert GPU_QUERY_FIELDS["paid"].read(own, QueryContext()) == 1
    for field in (field for name, field in GPU_QUERY_FIELDS.items() if name != "paid"):
        assert field.title
        assert field.help
        assert any(field.read(gpu, _everything_about(gpu)) is not None for gpu in GPUS)


def test_fields_are_in_their_units(hardware: HardwareCatalog) -> None:
    gpu = hardware.gpu("rtx-4090")
    read = {name: field.read(gpu, QueryContext()) for name, field in GPU_QUERY_FIELDS.items()}
    assert (read["memory_gib"], read["bandwidth"], read["bf16_dense"], read["power"]) == (24, 1008, 165.2, 450)
    assert (read["price"], read["year"], read["compute_capability"]) == (1599, 2022, (8, 9))
    assert read["launch_price"] == 1599
    known = QueryContext(prices={"rtx-4090": {"price": 2100.0}})
    assert (GPU_QUERY_FIELDS["price"].read(gpu, known), GPU_QUERY_FIELDS["launch_price"].read(gpu, known)) == (
        2100,
        1599,
    )
    assert (read["nvlink"], read["mig"], read["fits"]) == (False, False, None)
    assert GPU_QUERY_FIELDS["nvlink"].read(hardware.gpu("h100-sxm5-80gb"), QueryContext()) is True
    assert GPU_QUERY_FIELDS["nvlink"].read(hardware.gpu("gb10"), QueryContext()) is False
    assert GPU_QUERY_FIELDS["nvlink"].read(hardware.gpu("b100"), QueryContext()) is None
    assert GPU_QUERY_FIELDS["memory_gib"].read(gpu.evolve(memory_bytes=None), QueryContext()) is None
    assert GPU_QUERY_FIELDS["bandwidth"].read(hardware.gpu("rtx-5880-ada"), QueryContext()) is None


def _everything_about(gpu: Gpu) -> QueryContext:
    return QueryContext({gpu.id: PlanOutcome("fits", 1.0, 2.0, 0.5)}, {gpu.id: dict.fromkeys(PRICE_FIELDS, 1.0)})


HARDWARE = load_hardware(catalog_dir())
MACHINES = HARDWARE.machines
BY_ID = {machine.id: machine for machine in MACHINES}


def system_ids(found: tuple[EquippedSystem, ...]) -> list[str]:
    return [machine.id for machine in found]


def where(text: str) -> list[str]:
    return system_ids(select(MACHINES, SystemQuery(where=text)))


def test_every_field_of_systems_is_documented_and_reads_every_record() -> None:
    documented = (
        "name vendor kind chip architecture topology year cards memory_gib memory_each_gib bandwidth bf16_dense"
        " fp16_dense link power price price_kind rent preliminary certainty fits"
    )
    assert list(SYSTEM_FIELDS) == documented.split()
    known = QueryContext(
        {each.id: PlanOutcome("fits") for each in MACHINES}, {each.id: {RENT_FIELD: 1.0} for each in MACHINES}
    )
    for field in SYSTEM_FIELDS.values():
        assert field.title
        assert field.help
        assert any(field.read(machine, known) is not None for machine in MACHINES)


def test_words_that_cards_have_too_are_in_the_same_unit_and_of_the_same_kind() -> None:
    shared = SYSTEM_FIELDS.keys() & GPU_QUERY_FIELDS.keys()
    assert {"memory_gib", "bandwidth", "bf16_dense", "power", "price", "year", "vendor", "fits"} <= shared
    for word in shared:
        assert (SYSTEM_FIELDS[word].unit, SYSTEM_FIELDS[word].kind) == (
            GPU_QUERY_FIELDS[word].unit,
            GPU_QUERY_FIELDS[word].kind,
        )


def test_figures_are_those_of_all_accelerators_together() -> None:
    machine = BY_ID["dgx-h100"]
    read = {word: field.read(machine, QueryContext()) for word, field in SYSTEM_FIELDS.items()}
    assert (read["cards"], read["memory_gib"], read["memory_each_gib"], read["power"]) == (8, 640, 80, 10_200)
    assert read["bandwidth"] == 8 * 3350
    assert read["bf16_dense"] == pytest.approx(8 * 989.5, rel=0.001)
    assert (read["link"], read["topology"], read["kind"]) == (900, "switch", "server")
    assert (read["chip"], read["architecture"], read["price_kind"]) == ("H100 SXM5 80 GB", "Hopper", "street")
    assert (read["rent"], read["fits"], read["preliminary"]) == (None, None, False)


def test_nothing_is_known_of_accelerators_that_the_catalog_does_not_name() -> None:
    machine = BY_ID["dgx-station-v100"]
    for word in ("chip", "architecture", "memory_gib", "memory_each_gib", "bandwidth", "bf16_dense", "link", "power"):
        assert SYSTEM_FIELDS[word].read(machine, QueryContext()) is None
    assert machine.accelerators is None
    assert machine.search_text.endswith("workstation\n")
    assert machine.total_of_all(3.0) == 12
    assert total_of_equal(None, 3.0) is None
    assert total_of_equal(8, None) is None


def test_a_machine_is_preliminary_where_its_record_or_its_accelerator_is() -> None:
    assert BY_ID["amd-helios-72"].preliminary
    assert BY_ID["vera-rubin-nvl72"].preliminary
    assert not BY_ID["dgx-station-v100"].preliminary
    assert BY_ID["dgx-a100-640gb"].year is None
    alone = EquippedSystem(BY_ID["dgx-h100"].system.evolve(gpu_count=None), BY_ID["dgx-h100"].gpu)
    assert alone.accelerators == "H100 SXM5 80 GB"


def test_expressions_and_their_opposites_leave_out_what_is_not_known() -> None:
    cheap, dear = where("price < 200000"), where("not (price < 200000)")
    assert "dgx-1-p100" in cheap
    assert "dgx-2" in dear
    unpriced = {machine.id for machine in MACHINES if machine.system.price_usd is None}
    assert not unpriced & {*cheap, *dear}
    assert len(cheap) + len(dear) + len(unpriced) == len(MACHINES)
    assert where("memory_gib >= 640 and power < 7000") == ["dgx-a100-640gb", "gb200-nvl4"]
    assert where('kind == "rack" and vendor == "nvidia"') == [
        *("gb200-nvl72", "gb300-nvl72", "vera-rubin-nvl72", "dgx-gb200", "dgx-gb300"),
    ]
    assert set(where('topology ~ "torus"')) == {
        *("tpu-v2-pod", "tpu-v4-pod", "tpu-v5e-pod", "tpu-v5p-pod", "tpu-v6e-pod", "tpu7x-pod"),
    }


def test_sorting_puts_what_is_not_known_last() -> None:
    found = select(MACHINES, SystemQuery(where="cards == 8", sort=("-power", "name")))
    powers = [machine.system.max_power_watts for machine in found]
    known = [watts for watts in powers if watts is not None]
    assert powers == [*sorted(known, reverse=True), *[None] * (len(powers) - len(known))]


def test_verdicts_and_rents_are_given_by_id() -> None:
    query = SystemQuery(where='rent < 30 and fits == "fits"', sort=("rent",))
    assert used_fields(query) == {"rent", "fits"}
    fits = {"dgx-h100": PlanOutcome("fits"), "dgx-2": PlanOutcome("fits"), "dgx-h200": PlanOutcome("tight")}
    rents = {"dgx-h100": {"rent": 24.0}, "dgx-2": {"rent": 20.0}, "dgx-h200": {"rent": 28.0}}
    assert system_ids(select(MACHINES, query, fits, rents)) == ["dgx-2", "dgx-h100"]
    with pytest.raises(SpecError, match="fits: needs a model"):
        select(MACHINES, query, None, rents)
    with pytest.raises(SpecError, match="rent: needs the prices of systems"):
        select(MACHINES, query, fits)


def test_facets_count_what_is_not_known_too() -> None:
    counts = facet_counts(MACHINES, SystemQuery(vendors=("NVIDIA",)))
    assert counts["vendor"]["Google"] == 13
    assert sum(counts["topology"].values()) == 28
    for name, facet in SYSTEM_QUERY_SCHEMA.facets.items():
        every = facet_counts(MACHINES, SystemQuery())[name]
        for value, count in every.items():
            assert len(select(MACHINES, SystemQuery.model_validate({facet.chosen: (value,)}))) == count
    assert system_ids(select(MACHINES, SystemQuery(architectures=(None,)))) == ["dgx-station-v100"]


def test_a_wrong_word_is_named_with_those_that_are_meant() -> None:
    with pytest.raises(SpecError, match="found 'memory'") as caught:
        SystemQuery(where="memory > 3")
    assert "Did you mean memory_gib or memory_each_gib?" in caught.value.hint
    with pytest.raises(SpecError, match="there is no field 'colour'") as caught:
        SystemQuery(sort=("-colour",))
    assert caught.value.hint.startswith("Fields of systems: name vendor kind")
    with pytest.raises(ValidationError):
        SystemQuery.model_validate({"kinds": ("cupboard",)})


def test_links_are_as_the_system_says_where_it_says_what_each_accelerator_has() -> None:
    compared = 0
    for machine in MACHINES:
        told = machine.system.interconnect or ""
        for words in ("GB/s total per GPU", "GB/s per GPU"):
            if words in told:
                figure = float(told.partition(words)[0].replace(",", " ").split()[-1])
                assert machine.links_bytes_per_s == figure * GB
                compared += 1
    assert compared >= 15
    assert parse_link_bytes_per_s("NVLink-C2C to Grace CPU; ConnectX-7 200 Gb/s") is None
    assert parse_link_bytes_per_s(None) is None


EVERY_PAIR = ("domain of 72 GPUs", "all-to-all mesh", "all to all", "on the board only")
"""Words of records for links between every two cards, directly or through switches."""


def test_topologies_are_what_the_record_or_its_note_says() -> None:
    said = {"full mesh": "full mesh", "hybrid cube mesh": "hybrid cube mesh", "2D torus": "2D torus"}
    said |= {"3D torus": "3D torus", "switch": "Switch"}
    for machine in MACHINES:
        system = machine.system
        if system.topology is None:
            continue
        noted = any(note.field == "topology" for note in system.figure_notes)
        told = system.interconnect or ""
        assert noted or any(words in told for words in (said[system.topology], *EVERY_PAIR))


def test_a_system_with_its_accelerator_has_the_source_of_its_record() -> None:
    assert BY_ID["dgx-h100"].provenance is HARDWARE.system("dgx-h100").provenance


def test_systems_are_found_by_their_links() -> None:
    found = {machine.id for machine in select(MACHINES, SystemQuery(text="nvswitch"))}
    assert {"dgx-h100", "hgx-a100-8-80gb"} <= found
    assert "dgx-station-v100" not in found
