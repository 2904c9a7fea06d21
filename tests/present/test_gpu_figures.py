"""Columns that follow from others, or from the market."""

from planner.cost.card_prices import CardPrices, PricePoint, PriceSpread
from planner.hardware.gpu import Gpu, Provenance
from planner.plan.catalog import load_catalog
from planner.plan.evaluate import fits_by_gpu
from planner.plan.plan import ModelChoice, Plan
from planner.present.catalog.column_sets import COLUMN_SETS
from planner.present.catalog.gpu_columns import GPU_COLUMNS
from planner.present.catalog.gpu_row import GpuRow, gpu_rows, product_kind
from planner.present.catalog.system_details import power_group
from planner.present.cost.prices import months_text, price_range_text
from planner.units import GIB
from planner.workload.workload import Inference

SOURCE = Provenance(basis="published", certainty="confirmed", source="a data sheet", as_of="2026-01-31")
COLUMNS = {column.key: column for column in GPU_COLUMNS}


def card(**changes):
    figures = {"memory_bytes": 24 * GIB, "launch_price_usd": 1200.0, "board_power_watts": 300.0, **changes}
    return Gpu(
        **{
            "id": "a-card",
            "name": "A card",
            "vendor": "NVIDIA",
            "segment": "consumer",
            "architecture": "Ada Lovelace",
            "memory_label": "24 GB",
            "provenance": SOURCE,
            **figures,
        }
    )


def point(usd, day="2026-10-01", **changes):
    return PricePoint(usd, day, **{"age_days": 10, "source": "a shop's page", **changes})


PRICES = CardPrices(
    bought={"street": PriceSpread((point(900.0), point(1100.0, "2026-09-01")))},
    rented={"on-demand": PriceSpread((point(0.5, seller="Someone", region="eu-1"), point(0.9)))},
    doubtful=(),
    servers=(),
)


def test_a_derived_figure_shows_its_formula_and_is_unknown_without_its_inputs():
    column = COLUMNS["usd_per_gib"]
    assert column.text(GpuRow(card())) == "50.0"
    assert "price ÷ memory" in column.tooltip(GpuRow(card()))
    unpriced = GpuRow(card(launch_price_usd=None))
    assert column.text(unpriced) == "unknown"
    assert "unknown without" in column.tooltip(unpriced)


def test_prices_stay_apart_by_kind_with_their_range_and_days():
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


def test_what_a_range_leaves_out_is_said_beside_it():
    old, undated = point(3.0, "2020-01-01", age_days=2_000), point(2.0, None, age_days=None)
    assert price_range_text(PriceSpread((point(5.0), old, undated))) == (
        "$5.00, 1 October 2026, 1 price; 1 older than twelve months and 1 without a date left out"
    )


def test_what_the_person_paid_is_a_column_of_its_own():
    paid = COLUMNS["paid"]
    assert paid.text(GpuRow(card(purchase_price_usd=720.0))) == "$720"
    assert "a data sheet" in paid.tooltip(GpuRow(card(purchase_price_usd=720.0)))
    assert paid.text(GpuRow(card())) == "unknown"
    assert "not entered" in paid.tooltip(GpuRow(card()))
    assert not paid.shown


def test_without_prices_nothing_is_claimed():
    row = GpuRow(card())
    assert {COLUMNS[key].text(row) for key in ("street", "used", "rent")} == {"unknown"}
    assert "no rental offer" in COLUMNS["rent"].tooltip(row)


def test_parts_are_said_as_what_they_are():
    assert product_kind(card()) == "card"
    assert product_kind(card(name="RTX 9 Laptop GPU")) == "laptop part"
    assert product_kind(card(device_count=2)) == "card, 2 devices of 12.0\u2009GiB"
    assert product_kind(card(segment="soc", unified_memory=True)) == "system on a chip, memory shared with the CPU"


def test_sets_of_columns_name_columns_and_begin_with_the_name():
    known = {column.key for column in GPU_COLUMNS}
    for keys in COLUMN_SETS.values():
        assert keys[0] == "name"
        assert set(keys) <= known
        assert len(set(keys)) == len(keys)


def test_a_build_says_what_it_draws_and_what_to_mind():
    group = power_group(card(board_power_watts=600.0, form_factor="Dual-slot"), 4)
    assert group.title == "Power and cooling of 4 cards"
    said = {detail.title: detail for detail in group.details}
    assert said["From the wall"].basis
    assert said["Warning"].text
    unknown = power_group(card(board_power_watts=None), 1)
    assert [detail.title for detail in unknown.details][-1] == "Warning"


def test_rows_carry_verdicts_and_prices_where_they_are_given():
    catalog = load_catalog()
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), workload=Inference(), gpu="rtx-4090")
    rows = {row.id: row for row in gpu_rows(catalog.hardware, fits_by_gpu(plan, catalog), prices={"rtx-4090": PRICES})}
    assert rows["rtx-4090"].verdict == "fits"
    assert rows["rtx-4090"].prices is PRICES
    assert rows["rtx-3090"].prices is None
    assert gpu_rows(catalog.hardware)[0].verdict is None


def test_prices_of_several_months_are_of_their_years():
    assert months_text((point(1.0, "2026-10-01"), point(2.0, "2026-10-20"))) == "Oct 2026"
    assert months_text((point(1.0, "2026-09-01"), point(2.0, "2025-11-20"))) == "2025 – 2026"


def test_columns_whose_titles_are_terms_of_the_trade_say_what_they_mean():
    helps = {column.key: column.help for column in GPU_COLUMNS}
    assert helps["ridge_point"].startswith("Dense 16-bit operations per byte")
    assert helps["usd_per_gib"] == "Price per GiB of memory, at launch"
    assert helps["street"] == "Median price in shops"
    assert all(helps[column.key] for column in GPU_COLUMNS if column.is_number and column.key != "year")
