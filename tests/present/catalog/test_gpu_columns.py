"""Columns of accelerators: what a cell, its tooltip and its sorting show."""

import re
from dataclasses import replace
from datetime import date

import pytest
from catalog_samples import PRICES, card, point

from planner.cost.card_prices import CardPrices, PriceSpread
from planner.cost.figure import Figure
from planner.hardware.software_support import SoftwareFact
from planner.plan.prices import buying_prices, prices_by_card
from planner.present.catalog.gpu_columns import GPU_COLUMNS, lower_is_better
from planner.present.catalog.gpu_details import gpu_details, price_group
from planner.present.catalog.gpu_row import GpuRow, gpu_rows
from planner.present.format import THIN


def _column(key):
    return next(column for column in GPU_COLUMNS if column.key == key)


COLUMNS = {column.key: column for column in GPU_COLUMNS}


def test_column_keys_are_unique_and_headers_name_their_units():
    assert len({column.key for column in GPU_COLUMNS}) == len(GPU_COLUMNS)
    assert _column("memory").header == "Memory, GiB"
    assert _column("name").header == "Name"


def test_no_cell_of_any_card_is_empty(catalog):
    for row in gpu_rows(catalog.hardware):
        for column in GPU_COLUMNS:
            text = column.text(row)
            assert text
            assert "None" not in text
            assert "nan" not in text.split()
            if column.tooltip:
                assert isinstance(column.tooltip(row), str)


def test_the_sort_values_of_a_column_have_one_type(catalog):
    rows = gpu_rows(catalog.hardware)
    for column in GPU_COLUMNS:
        values = [value for row in rows if (value := column.value(row)) is not None]
        assert sorted(values) is not values


def test_verdicts_sort_from_bad_to_good(catalog):
    gpu = catalog.hardware.gpu("rtx-4090")
    fits = _column("fits")
    rows = [GpuRow(gpu, verdict) for verdict in ("does-not-fit", "tight", "fits")]
    assert [fits.value(row) for row in rows] == sorted(fits.value(row) for row in rows)
    assert [fits.text(row) for row in rows] == ["Does not fit", "Tight", "Fits"]


def test_an_unknown_figure_has_no_source_and_an_unsupported_one_has(catalog):
    columns = {column.key: column for column in GPU_COLUMNS}
    gpu = catalog.hardware.gpu("rtx-4090").evolve(board_power_watts=None, launch_price_usd=None)
    fact = SoftwareFact(id="x", feature="fp4", targets=("8.9",), support="no", source="the maker", as_of="2026-11-22")
    row = GpuRow(gpu, lacks={"fp4": fact})
    assert [columns[key].tooltip(row) for key in ("power", "price")] == ["", ""]
    assert columns["bandwidth"].tooltip(row)
    assert columns["fp4"].tooltip(row) == "the maker\nread 22 November 2026"


def test_the_tooltip_of_a_verdict_states_its_basis(catalog):
    gpu = catalog.hardware.gpu("rtx-4090")
    tooltip = _column("fits").tooltip
    assert tooltip(GpuRow(gpu, "fits", 2**30)).replace(THIN, " ") == "1.00 GiB free"
    assert tooltip(GpuRow(gpu, "does-not-fit", -(2**30))).replace(THIN, " ") == "1.00 GiB short"
    assert tooltip(GpuRow(gpu, reason="no kernels")) == "no kernels"
    assert _column("fits").text(GpuRow(gpu, reason="no kernels")) == "Not supported"
    assert _column("fits").text(GpuRow(gpu)) == "unknown"


def test_usable_memory_of_two_devices_is_shown_for_each_and_sorted_by_the_sum(catalog):
    rows = {row.id: row for row in gpu_rows(catalog.hardware)}
    usable = next(column for column in GPU_COLUMNS if column.key == "usable_memory")
    assert usable.text(rows["tesla-k80"]) == "2 × 11.2"
    assert usable.value(rows["tesla-k80"]) == 2 * rows["tesla-k80"].usable.bytes
    assert usable.text(rows["rtx-4090"]) == "23.5"
    titles = [line.title for group in gpu_details(rows["tesla-k80"].gpu) for line in group.details]
    assert "Usable by a program, on each device" in titles


@pytest.mark.parametrize(
    ("key", "expected"),
    [("price", True), ("usd_per_gib", True), ("power", True), ("memory", False), ("year", None), ("ridge_point", None)],
)
def test_each_column_states_whether_lower_is_better(key, expected):
    assert lower_is_better(key) is expected


def test_a_derived_figure_shows_its_formula_and_is_unknown_without_its_inputs():
    column = COLUMNS["usd_per_gib"]
    assert column.text(GpuRow(card())) == "50.0"
    assert "price ÷ memory" in column.tooltip(GpuRow(card()))
    unpriced = GpuRow(card(launch_price_usd=None))
    assert column.text(unpriced) == "unknown"
    assert "unknown without" in column.tooltip(unpriced)


def test_each_kind_of_price_has_its_range_and_dates():
    row = GpuRow(card(), prices=PRICES)
    assert COLUMNS["street"].text(row) == "$1,000 (2026)"
    assert COLUMNS["street"].value(row) == COLUMNS["street"].number(row) == 1000
    assert COLUMNS["street"].tooltip(row) == (
        "Median of $900 – $1,100, 1 September 2026 – 1 October 2026, 2 prices\na shop's page"
    )
    assert COLUMNS["used"].text(row) == "unknown"
    assert COLUMNS["used"].tooltip(row) == "The catalog has no price of this kind."
    assert COLUMNS["rent"].text(row) == "$0.50 (Oct 2026)"
    assert "Cheapest: Someone, eu-1" in COLUMNS["rent"].tooltip(row)


def test_a_price_without_a_date_is_marked_and_its_remark_shown():
    undated = PriceSpread((point(5.0, None, age_days=None, remarks=("of low trust",)),))
    row = GpuRow(card(), prices=CardPrices(bought={"used": undated}, rented={}, doubtful=(), servers=()))
    assert COLUMNS["used"].text(row) == "$5.00 (no date)"
    assert COLUMNS["used"].tooltip(row) == "Median of $5.00, 1 price without a date\nof low trust\na shop's page"


def test_the_price_that_the_user_paid_has_its_own_column():
    paid = COLUMNS["paid"]
    assert paid.text(GpuRow(card(purchase_price_usd=720.0))) == "$720"
    assert "a data sheet" in paid.tooltip(GpuRow(card(purchase_price_usd=720.0)))
    assert paid.text(GpuRow(card())) == "unknown"
    assert "not entered" in paid.tooltip(GpuRow(card()))
    assert not paid.shown


def test_missing_prices_are_unknown():
    row = GpuRow(card())
    assert {COLUMNS[key].text(row) for key in ("street", "used", "rent")} == {"unknown"}
    assert "no rental offer" in COLUMNS["rent"].tooltip(row)


def test_columns_with_technical_titles_have_a_help_text():
    helps = {column.key: column.help for column in GPU_COLUMNS}
    assert helps["ridge_point"].startswith("Dense 16-bit operations per byte")
    assert helps["usd_per_gib"] == "Price per GiB of memory, at launch"
    assert helps["street"] == "Median of the known street prices"
    assert all(helps[column.key] for column in GPU_COLUMNS if column.is_number and column.key != "year")


def test_the_price_of_a_card_names_the_year_it_is_from(catalog):
    prices = buying_prices(catalog, date(2026, 11, 22))
    rows = {row.id: row for row in gpu_rows(catalog.hardware, buying=prices)}
    price = COLUMNS["buy"]
    assert price.text(rows["rtx-3090"]) == "$1,070 (2025)"
    assert price.tooltip(rows["rtx-3090"]).startswith("Second-hand, as new ones are leftover stock")
    assert price.text(rows["radeon-rx-7900-xt"]) == "$899 (2022)"
    assert price.tooltip(rows["radeon-rx-7900-xt"]) == "The vendor's launch price, from the catalog"
    undated = replace(rows["rtx-3090"], buying=Figure(value=1_000, source="a shop"))
    assert price.text(undated) == "$1,000 (no date)"
    own = replace(rows["rtx-3090"], buying=Figure.own(1_000))
    assert price.text(own) == "$1,000"
    unpriced = next(row for row in rows.values() if row.buying is None)
    assert (price.text(unpriced), price.value(unpriced)) == ("unknown", None)
    assert price.tooltip(unpriced).startswith("The catalog has no price of this GPU alone.")


def test_what_was_rented_only_over_a_year_ago_is_marked_in_cells_tooltips_and_details(catalog):
    today = date(2026, 11, 23)
    prices = prices_by_card(catalog, today)
    rows = [row for row in gpu_rows(catalog.hardware, prices=prices) if row.prices and "on-demand" in row.prices.rented]
    history = {row.id for row in rows if COLUMNS["rent"].text(row).endswith(", outdated)")}
    ages = {row.id: [point.age_days for point in row.prices.rented["on-demand"].points] for row in rows}
    assert history == {name for name, each in ages.items() if all(age is not None and age > 365 for age in each)}
    assert "tpu-v5e" in history
    for row in rows:
        told = {each.title: each for each in price_group(row.gpu, row.prices).details}
        counted = re.search("prices? older than twelve months", COLUMNS["rent"].tooltip(row))
        assert (counted is not None) == (row.id in history)
        assert told["Rented, on demand"].as_of.endswith(", outdated") == (row.id in history)
