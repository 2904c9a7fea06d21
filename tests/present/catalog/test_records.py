"""Cards and systems as flat records for JSON and CSV files."""

from dataclasses import replace
from datetime import date

import pytest

from planner.hardware.catalog import HardwareCatalog, load_hardware
from planner.hardware.own import CardChange, OwnHardware, with_own_hardware
from planner.hardware.published_speeds import speeds_of
from planner.hardware.software_support import software_of
from planner.paths import catalog_dir
from planner.plan.prices import prices_of, rents_of
from planner.present.catalog.comparison import ComparisonEntry
from planner.present.catalog.gpu_row import GpuRow, JobSummary, gpu_rows
from planner.present.catalog.records import (
    GPU_FIELDS,
    SYSTEM_FIELDS,
    card_facts,
    comparison_totals,
    gpu_fields,
    price_fields,
    system_facts,
    system_fields,
)
from planner.present.catalog.system_row import SystemRow, system_rows, system_rows_without_plan
from planner.present.columns import to_csv

DAY = date(2026, 11, 22)


@pytest.fixture
def row(catalog):
    """Return a way to get the row of a card with its prices."""

    def make(gpu_id):
        gpu = catalog.hardware.gpu(gpu_id)
        return GpuRow(gpu, prices=prices_of(gpu, catalog, DAY))

    return make


def around(row, catalog):
    gpu = row.gpu
    return card_facts(gpu, row.prices, software_of(gpu, catalog.software), speeds_of(gpu.id, catalog.speeds))


HARDWARE: HardwareCatalog = load_hardware(catalog_dir())


def test_card_facts_are_derived_figures_prices_software_and_speeds(row, catalog):
    card = row("rtx-4090")
    told = around(card, catalog)
    used = card.prices.bought["used"]
    assert told["derived"]["usd_per_gib"] == 1599 / 24
    assert told["derived"]["usd_per_gib_used"] == used.median_usd / 24
    assert "tflops_per_watt_used" not in told["derived"]
    assert "usd_per_gib_list" not in told["derived"]
    assert told["derived"]["ridge_point_flop_per_byte"] > 100
    assert told["prices"]["bought"]["used"]["median_usd"] == used.median_usd
    assert told["prices"]["bought"]["used"]["points"][0]["price_usd"] == used.points[0].price_usd
    rented = told["prices"]["rented"]["on-demand"]
    assert rented["low_usd_per_hour"] <= rented["median_usd_per_hour"] <= rented["high_usd_per_hour"]
    assert all(point["source"] and point["price_usd_per_hour"] for point in rented["points"])
    assert {"bf16", "cuda"} < {fact["feature"] for fact in told["software"]}
    assert told["speeds"][0]["value_per_second"] > 0


def test_prices_are_listed_by_kind_with_sources(row):
    fields = price_fields(row("rtx-4090").prices)
    assert list(fields) == [
        *("street_price_usd", "street_price_source", "used_price_usd", "used_price_source"),
        *("rent_usd_per_hour", "rent_source"),
    ]
    assert fields["used_price_usd"] == 1025
    assert all(fields.values())
    assert set(price_fields(None).values()) == {None}


def test_system_facts_are_totals_unsupported_formats_rents_and_power(catalog):
    def told(name):
        system = catalog.hardware.system(name)
        (row,) = system_rows_without_plan((system,), catalog.hardware, catalog.software)
        return system_facts(replace(row, rented=rents_of(system, catalog, DAY)))

    dgx = told("dgx-h100")
    assert dgx["totals"]["memory_bytes"] == 8 * 80 * 2**30
    assert dgx["totals"]["bf16_ops_per_s"] == 8 * catalog.hardware.gpu("h100-sxm5-80gb").rate("bf16").ops_per_s
    assert dgx["prices"]["rented"]["on-demand"]["low_usd_per_hour"] > 0
    assert next(step["value"] for step in dgx["power"]["figures"] if step["key"] == "wall") == 10_200
    assert dgx["power"]["circuit"] == "30 A at 240 V"
    older = told("dgx-2")
    assert older["totals"]["bf16_ops_per_s"] is None
    assert older["totals"]["fp16_ops_per_s"] == 16 * catalog.hardware.gpu("tesla-v100-sxm3-32gb").rate("fp16").ops_per_s
    assert next(fact["source"] for fact in older["lacks"] if fact["feature"] == "bf16")
    unknown = told("dgx-station-v100")
    assert (unknown["power"], unknown["lacks"], unknown["prices"]) == (None, [], {"rented": {}})


def test_comparison_totals_cover_all_accelerators_and_the_machine(row, catalog):
    cards = comparison_totals(ComparisonEntry("8 x", "H100", 8, row("h100-sxm5-80gb")))
    assert cards["memory_bytes"] == 8 * 80 * 2**30
    assert cards["cards_power_watts"] == 5600
    assert cards["bf16_ops_per_s"] == 8 * catalog.hardware.gpu("h100-sxm5-80gb").rate("bf16").ops_per_s
    assert (cards["system_power_watts"], cards["system_price_usd"]) == (None, None)
    assert comparison_totals(ComparisonEntry("k80", "K80", 2, row("tesla-k80")))["bf16_ops_per_s"] is None
    dgx = catalog.hardware.system("dgx-a100-640gb")
    system = SystemRow(dgx, catalog.hardware.gpu(dgx.gpu_id))
    machine = comparison_totals(ComparisonEntry("dgx", dgx.name, 8, row(dgx.gpu_id), system))
    assert (machine["system_power_watts"], machine["system_price_usd"]) == (6500, 300_000)
    bare = comparison_totals(ComparisonEntry("dgx", dgx.name, 1, None, system))
    assert bare["memory_bytes"] is None


def test_the_fields_of_a_card_are_its_figures_derived_figures_and_sources() -> None:
    rows = {row.id: gpu_fields(row) for row in gpu_rows(HARDWARE)}
    assert rows["rtx-4090"]["memory_bytes"] == 24 * 2**30
    assert rows["rtx-4090"]["bf16_ops_per_s"] == 1.652e14
    assert rows["rtx-4090"]["usd_per_gib"] == 1599 / 24
    assert rows["tesla-k80"]["usd_per_gib"] is None
    assert rows["l4"]["source"]
    assert "memory_bytes: derived, 24 × 2^30 bytes" in str(rows["l4"]["other_sources"])
    assert len({tuple(row) for row in rows.values()}) == 1
    assert {"ridge_point_flop_per_byte", "bandwidth_gb_per_s_per_usd", "rent_usd_per_hour"} < set(rows["l4"])
    assert not {"ridge_point", "bandwidth_per_usd", "bandwidth_per_watt"} & set(rows["l4"])
    card = next(gpu for gpu in HARDWARE.gpus if len(gpu.notes) > 1)
    assert rows[card.id]["notes"] == "; ".join(card.notes)


def test_the_users_own_figure_has_its_own_basis() -> None:
    own = OwnHardware(changes=(CardChange(gpu="l4", purchase_price_usd=900, date="2026-11-01"),))
    row = next(row for row in gpu_rows(with_own_hardware(HARDWARE, own)) if row.id == "l4")
    others = str(gpu_fields(row)["other_sources"]).split("; ")
    assert others[0] == "purchase_price_usd: yours, your own figure, 2026-11-01"


def test_the_field_names_do_not_need_a_row() -> None:
    assert tuple(gpu_fields(gpu_rows(HARDWARE)[0])) == GPU_FIELDS
    assert tuple(system_fields(system_rows(HARDWARE)[0])) == SYSTEM_FIELDS
    for fields in (GPU_FIELDS, SYSTEM_FIELDS):
        assert to_csv(fields, []) == f"{','.join(fields)}\n"


def test_the_source_of_a_jobs_cost_is_one_line() -> None:
    job = JobSummary(2.0, 2.0, "2 h", "", 10.0, "$10", "Someone, eu-1\n8 × x, on demand", None)
    fields = gpu_fields(GpuRow(HARDWARE.gpu("l4"), job=job))
    assert fields["plan_job_cost_source"] == "Someone, eu-1; 8 × x, on demand"


def test_the_fields_of_a_system_are_its_figures_and_its_source() -> None:
    row = next(row for row in system_rows(HARDWARE) if row.id == "dgx-2")
    fields = system_fields(row)
    assert fields["gpu_count"] == 16
    assert fields["source"]
    assert fields["bandwidth_bytes_per_s"] == 16 * HARDWARE.gpu("tesla-v100-sxm3-32gb").bandwidth_bytes_per_s
    assert (fields["bf16_ops_per_s"], fields["plan_verdict"], fields["plan_reason"]) == (None, None, "")


def test_single_figures_of_a_system_have_their_own_sources() -> None:
    row = next(row for row in system_rows(HARDWARE) if row.system.figure_notes)
    field = row.system.figure_notes[0].field
    assert f"{field}: published" in str(system_fields(row)["other_sources"])
