"""What is known around a card, for other programs."""

from dataclasses import replace
from datetime import date

import pytest

from planner.hardware.software_support import software_of
from planner.hardware.speeds import speeds_of
from planner.plan.prices import prices_of, rents_of
from planner.present.catalog.comparison import ComparisonEntry
from planner.present.catalog.gpu_row import GpuRow
from planner.present.catalog.records import card_facts, comparison_totals, price_fields, system_facts
from planner.present.catalog.system_row import SystemRow, system_rows_without_plan

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


def test_around_a_card_are_derived_figures_prices_software_and_speeds(row, catalog):
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


def test_prices_stand_by_kind_with_their_sources(row):
    fields = price_fields(row("rtx-4090").prices)
    assert list(fields) == [
        *("street_price_usd", "street_price_source", "used_price_usd", "used_price_source"),
        *("rent_usd_per_hour", "rent_source"),
    ]
    assert fields["used_price_usd"] == 1025
    assert all(fields.values())
    assert set(price_fields(None).values()) == {None}


def test_around_a_system_are_totals_what_it_lacks_rents_and_what_feeds_it(catalog):
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


def test_totals_are_those_of_all_accelerators_and_of_the_machine(row, catalog):
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
