"""What tables and detail panes show of whole machines, on the real catalog."""

from datetime import date

import pytest

from planner.hardware.catalog import load_hardware
from planner.paths import catalog_dir
from planner.plan.catalog import load_catalog
from planner.plan.placement import SystemFit, fits_by_system
from planner.plan.plan import ModelChoice, Plan
from planner.plan.prices import rents_by_system, rents_of, system_price_fields
from planner.present.catalog.records import system_fields
from planner.present.catalog.system_columns import SYSTEM_COLUMNS
from planner.present.catalog.system_details import system_details
from planner.present.catalog.system_row import (
    BANDWIDTH,
    BF16,
    PER_POWER_FIGURES,
    TOTALS,
    SystemRow,
    system_rows,
    systems_sentence,
)
from planner.present.format import THIN, UNKNOWN
from planner.units import GIB
from planner.workload.training import Training

COLUMNS = {column.key: column for column in SYSTEM_COLUMNS}
WITHOUT_SOURCE = ("Id in the catalog", "Circuit", "Assumed")


@pytest.fixture(scope="module")
def rows():
    return system_rows(load_hardware(catalog_dir()))


@pytest.fixture(scope="module")
def by_id(rows):
    return {row.id: row for row in rows}


def plain(text):
    return text.replace(THIN, " ")


def test_every_cell_says_something(rows):
    for row in rows:
        for column in SYSTEM_COLUMNS:
            assert column.text(row)
            assert "None" not in column.text(row)
            if column.tooltip:
                assert isinstance(column.tooltip(row), str)


def test_accelerators_are_counted_and_searched(rows):
    several = next(row for row in rows if row.gpu and (row.system.gpu_count or 0) > 1)
    assert several.accelerators == f"{several.system.gpu_count:,} × {several.gpu.name}"
    assert several.gpu.name.lower() in several.search_text
    assert several.id == several.system.id


def test_every_known_figure_has_a_source(rows):
    for row in rows:
        for group in system_details(row):
            for detail in group.details:
                assert detail.text
                assert detail.source or detail.text in (UNKNOWN, "not published") or detail.title in WITHOUT_SOURCE


def test_the_second_column_says_whether_the_plan_fits():
    assert SYSTEM_COLUMNS[1].key == "fits"
    assert SYSTEM_COLUMNS[1].shown


def test_every_total_is_the_number_of_accelerators_times_the_figure_of_one(rows):
    for row in rows:
        for total, field in ((BANDWIDTH, row.gpu and row.gpu.bandwidth_bytes_per_s), (BF16, _bf16(row.gpu))):
            value = total.value(row.gpu, row.system.gpu_count)
            assert value == (None if field is None else row.system.gpu_count * field)
            assert COLUMNS[total.key].number(row) == (None if value is None else value / total.per_unit)


def _bf16(gpu):
    rate = gpu.rate("bf16") if gpu else None
    return None if rate is None else rate.ops_per_s


def test_totals_say_their_formula_and_the_source_of_one(by_id):
    row = by_id["dgx-h100"]
    assert [COLUMNS[key].text(row) for key in ("bandwidth", "bf16")] == ["26.8", "7.92"]
    tooltip = plain(COLUMNS["bf16"].tooltip(row))
    assert tooltip.startswith("8 × 990 TFLOPS (H100 SXM5 80 GB)\n") or tooltip.startswith("8 × 989.5 TFLOPS")
    found = {detail.title: detail for group in system_details(row) for detail in group.details}
    assert plain(found["Total bandwidth"].text) == "26.8 TB/s"
    assert plain(found["Total bandwidth"].origin).startswith("derived: 8 × 3,350 GB/s (H100 SXM5 80 GB)\n")
    assert found["Total bandwidth"].mark == "ƒ"
    assert found["Basis of that figure"].text.startswith("FP8 tensor, SPARSE")


def test_totals_that_are_not_known_say_why(by_id):
    assert [total.title for total in TOTALS] == ["Bandwidth", "BF16 dense", "FP16 dense"]
    assert COLUMNS["bf16"].text(by_id["dgx-2"]) == UNKNOWN
    assert (
        COLUMNS["bf16"].tooltip(by_id["dgx-2"]).startswith("the catalog does not have this figure for one Tesla V100")
    )
    assert (
        COLUMNS["bandwidth"].tooltip(by_id["dgx-station-v100"]).startswith("the catalog does not list the accelerators")
    )
    found = {detail.title: detail for detail in system_details(by_id["dgx-2"])[0].details}
    assert found["Total BF16 dense"].text == UNKNOWN
    assert found["Total BF16 dense"].tooltip.startswith("the catalog does not have this figure")
    assert plain(found["Total FP16 dense"].text) == "2.09 PFLOPS"
    assert "Total FP16 dense" not in {each.title for each in system_details(by_id["dgx-h100"])[0].details}


def test_what_a_machine_has_for_its_power(by_id):
    memory, rate = PER_POWER_FIGURES
    row = by_id["dgx-a100-640gb"]
    assert memory.value(row.system, row.gpu) == pytest.approx(640 / 6.5)
    assert rate.value(row.system, row.gpu) == pytest.approx(8 * 312 / 6500, rel=0.01)
    assert plain(COLUMNS["memory_per_kw"].tooltip(row)) == "640 GiB ÷ 6,500 W of the whole machine"
    assert rate.value(by_id["dgx-2"].system, by_id["dgx-2"].gpu) is None
    unknown = by_id["dgx-station-v100"]
    assert memory.value(unknown.system, None) is None
    assert "needs the Memory" in memory.formula(unknown.system, None)


def test_a_machine_is_fed_and_cooled_as_a_whole(by_id):
    groups = {group.title: group for group in system_details(by_id["dgx-h100"])}
    found = [(detail.title, plain(detail.text)) for detail in groups["Power and cooling"].details]
    assert found == [
        ("Circuit", "30 A at 240 V"),
        ("From the wall", "10,200 W"),
        ("Current", "42.5 A"),
        ("Circuits of this kind", "2"),
        ("Heat", "34,802 BTU/h"),
        ("Airflow", "1,604 CFM"),
        ("Airflow", "2,725 m³/h"),
        ("Assumed", "air cooling only"),
    ]
    assert len(system_details(by_id["dgx-station-v100"])) == 3


def test_a_verdict_with_what_is_left_on_each_accelerator(catalog):
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-405B"))
    rows = {row.id: row for row in system_rows(catalog.hardware, fits_by_system(plan, catalog))}
    fits = COLUMNS["fits"]
    assert [fits.text(rows[name]) for name in ("dgx-h200", "dgx-h100", "tpu-v4-pod", "dgx-station-v100")] == [
        "Fits",
        "Does not fit",
        "Not supported",
        UNKNOWN,
    ]
    assert fits.value(rows["dgx-h200"]) > fits.value(rows["dgx-h100"])
    missing = fits.tooltip(rows["dgx-h100"])
    assert missing.endswith("too much on each of 8, shared as in the plan or by its software")
    assert fits.tooltip(rows["dgx-spark"]).endswith("too much")
    assert fits.tooltip(rows["tpu-v4-pod"]) == rows["tpu-v4-pod"].unsupported != ""
    assert fits.tooltip(rows["dgx-station-v100"]) == "the catalog does not name this system's accelerator"


def test_a_plan_that_cannot_be_shared_between_so_many_has_no_verdict(catalog):
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), workload=Training(parallel={"tensor": 8}), count=8)
    rows = {row.id: row for row in system_rows(catalog.hardware, fits_by_system(plan, catalog))}
    row = rows["dgx-station-a100-320gb"]
    assert (COLUMNS["fits"].text(row), row.unsupported, row.free_bytes) == (UNKNOWN, "", None)
    assert COLUMNS["fits"].tooltip(row) == "parallel: 4 cards are not a multiple of tensor 8"


def test_before_the_plan_was_asked_nothing_is_said(by_id):
    row = by_id["dgx-h100"]
    assert (row.verdict, row.free_bytes, row.reason) == (None, None, "")
    assert SystemRow(row.system, row.gpu, SystemFit(None, "why")).reason == "why"
    assert row.system.memory_bytes == 640 * GIB


def test_a_format_that_the_chip_lacks_is_none_and_not_unknown(catalog):
    rows = {row.id: row for row in system_rows(catalog.hardware, software=catalog.software)}
    assert [COLUMNS["bf16"].text(rows[name]) for name in ("dgx-2", "dgx-h100", "amd-helios-72")] == [
        "none",
        "7.92",
        UNKNOWN,
    ]
    found = {detail.title: detail for detail in system_details(rows["dgx-2"])[0].details}
    assert found["Total BF16 dense"].text == "none"
    assert found["Total BF16 dense"].source


def test_a_sentence_says_on_how_many_the_plan_fits(catalog, rows):
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-70B"))
    judged = system_rows(catalog.hardware, fits_by_system(plan, catalog))
    fits = sum(row.verdict in ("fits", "tight") for row in judged)
    said = f"Llama fits on {fits} of 43 systems as planned. The smallest is "
    assert systems_sentence("Llama", judged).startswith(said)
    assert systems_sentence("Llama", rows) == "Llama does not fit on any of 43 systems as planned."


def test_what_chips_without_a_compute_capability_lack_is_found_too(catalog):
    rows = {row.id: row for row in system_rows(catalog.hardware, software=catalog.software)}
    assert {"fp4", "fp64"} <= set(rows["trn1-32xl"].lacks)
    assert "fp8" in rows["tpu-v4-pod"].lacks
    assert rows["dgx-station-v100"].lacks == {}


def test_what_each_accelerator_has_says_where_that_is_from(rows, by_id):
    row, unknown = by_id["dgx-h100"], by_id["dgx-station-v100"]
    assert [COLUMNS[key].text(row) for key in ("cards", "memory_each", "link")] == ["8", "80", "900"]
    assert plain(COLUMNS["memory_each"].tooltip(row)).startswith("85,899,345,920 B\nderived: ")
    assert [COLUMNS[key].text(unknown) for key in ("cards", "memory_each", "link")] == ["4", UNKNOWN, UNKNOWN]
    assert (COLUMNS["memory_each"].tooltip(unknown), COLUMNS["link"].tooltip(unknown)) == ("", "")
    assert [COLUMNS[key].text(row) for key in ("kind", "topology", "architecture")] == ["server", "switch", "Hopper"]
    found = {detail.title: detail for group in system_details(row) for detail in group.details}
    assert plain(found["Links per accelerator"].text) == "900 GB/s, sum of both directions"
    assert found["Topology"].source
    assert "Links per accelerator" not in {each.title for group in system_details(unknown) for each in group.details}


def test_rents_are_of_all_of_a_machine_with_their_month():
    catalog = load_catalog()
    day = date(2026, 11, 22)
    rents = rents_by_system(catalog, day)
    rows = {row.id: row for row in system_rows(catalog.hardware, rents=rents)}
    for name, row in rows.items():
        assert rents[name] == rents_of(row.system, catalog, day)
    known, unknown = rows["dgx-h100"], rows["gb300-nvl72"]
    low = known.on_demand.low.price_usd
    assert COLUMNS["rent"].value(known) == low == system_price_fields(rents)["dgx-h100"]["rent"]
    assert COLUMNS["rent"].tooltip(known).startswith("Cheapest: ")
    assert system_price_fields(rents)["gb300-nvl72"] == {}
    assert COLUMNS["rent"].text(unknown) == UNKNOWN
    assert COLUMNS["rent"].tooltip(unknown) == "The catalog has no offer with this many in one machine."
    told, none = system_fields(known), system_fields(unknown)
    assert (told["rent_usd_per_hour"], none["rent_usd_per_hour"], none["rent_source"]) == (low, None, None)
    assert told["memory_bytes_each"] == 80 * GIB
    assert told["links_bytes_per_s_each"] == 900e9
