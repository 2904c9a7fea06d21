"""Details of a card: figures, prices, software and measured speeds, with sources."""

from datetime import date

import pytest
from catalog_samples import CARD, details

from planner.cost.card_prices import CardPrices, PricePoint, PriceSpread
from planner.hardware.gpu import FigureNote, Provenance, Rate
from planner.hardware.published_speeds import PublishedSpeed
from planner.hardware.software_support import FeatureSupport, software_of
from planner.hardware.usable import UsableMemory
from planner.plan.catalog import Catalog
from planner.plan.prices import prices_of
from planner.present import format as fmt
from planner.present.catalog.gpu_details import (
    derived_group,
    fact_groups,
    gpu_details,
    price_group,
    rent_group,
    slice_group,
    software_group,
    speed_group,
)
from planner.units import GIB

TODAY = date(2026, 11, 22)


NONE = CardPrices(bought={}, rented={}, doubtful=(), servers=())


def _point(usd: float, day: str | None = "2026-10-23", **more: object) -> PricePoint:
    age = None if day is None else (TODAY - date.fromisoformat(day)).days
    return PricePoint(usd, day, age, "a shop", **more)  # type: ignore[arg-type]  # fields of one test each


def test_derived_figures_need_known_inputs(catalog: Catalog) -> None:
    gpu = catalog.hardware.gpu("h100-sxm5-80gb")
    shown = {detail.title: detail for detail in derived_group(gpu, NONE).details}
    assert "Price per GiB" not in shown
    assert shown["Ridge point"].text == "295 FLOP/byte"
    assert shown["Ridge point"].basis == "BF16 dense 989.5 TFLOPS ÷ bandwidth 3,350 GB/s × 1000"


def test_figures_per_dollar_are_shown_for_each_kind_of_price(catalog: Catalog) -> None:
    prices = CardPrices(bought={"street": PriceSpread((_point(32_000),))}, rented={}, doubtful=(), servers=())
    shown = {d.title: d for d in derived_group(catalog.hardware.gpu("h100-sxm5-80gb"), prices).details}
    assert shown["Price per GiB, street"].text == "400 USD/GiB"
    assert shown["Price per GiB, street"].basis == "median street price (Oct 2026) 32,000 USD ÷ memory 80 GiB"
    assert "Rate per watt, street" not in shown


def test_prices_have_range_age_history_and_omissions(catalog: Catalog) -> None:
    rented = PriceSpread(
        (
            _point(2.5, seller="A", region="eu"),
            _point(4.0, seller="B"),
            _point(3.0, "2026-01-01", seller="A", region="eu"),
            _point(1.0, "2024-01-01", seller="C"),
            _point(1.5, None, seller="D"),
        )
    )
    whole = PriceSpread(
        (_point(5.0, seller="B", cards=8), _point(6.0, "2026-01-01", seller="B", cards=8), _point(7.0, "2024-01-01"))
    )
    prices = CardPrices(
        bought={
            "list": PriceSpread((_point(1_000, None),)),
            "street": PriceSpread((_point(900, None, remarks=("of low trust",)), _point(950, None))),
            "used": PriceSpread((_point(700, remarks=("seen",)), _point(800, "2026-01-01", remarks=("seen",)))),
        },
        rented={"on-demand": rented, "spot": PriceSpread((_point(0.05),)), "reserved-1y": whole},
        doubtful=(_point(1, remarks=("one of several",)), _point(2)),
        servers=(_point(2_000), _point(3_000)),
    )
    details = price_group(catalog.hardware.gpu("rtx-4090"), prices).details
    lines = [(detail.title, detail.text) for detail in details]
    assert lines == [
        ("List price", "$1,000, 1 price without a date"),
        ("Street price", "$900 to $950, 2 prices without a date"),
        ("  remarks", "of low trust"),
        ("Used price", "$700 to $800, 2 prices"),
        ("  remarks", "seen"),
        ("As part of a server, per GPU", "$2,000 to $3,000, 2 prices"),
        (
            "Rented, on demand",
            "$2.50 to $4.00 per hour, 3 prices; 1 older than twelve months and 1 without a date left out",
        ),
        ("  A eu", "$2.50"),
        ("  B", "$4.00"),
        ("  over time, A eu", "$3.00 on 1 January 2026, then $2.50 on 23 October 2026"),
        ("Rented, spot", "$0.0500 per hour"),
        ("  ", "$0.0500"),
        ("Rented, reserved for 1 year", "$5.00 to $6.00 per hour, 2 prices; 1 older than twelve months left out"),
        ("  B", "$5.00"),
        ("  over time, B, 8 GPUs together", "$6.00 on 1 January 2026, then $5.00 on 23 October 2026"),
        ("  left out", "2 prices in doubt"),
    ]
    assert details[-1].origin == "one of several"
    assert details[0].as_of == "no date"
    assert details[3].as_of == "30 days old, recent"


def test_an_unchanged_price_is_listed_once_in_the_history(catalog: Catalog) -> None:
    old, new = _point(0.34, "2026-08-23", seller="A"), _point(0.34, "2026-09-25", seller="A")
    lowest = _point(900, remarks=("low end of 900-1,100; of low trust",))
    highest = _point(1_100, remarks=("high end of 900-1,100; of low trust", "high end", "low end of 1-2, used"))
    prices = CardPrices({"used": PriceSpread((lowest, highest))}, {"spot": PriceSpread((new, old))}, (), ())
    group = price_group(catalog.hardware.gpu("rtx-4090"), prices)
    shown = {detail.title: detail.text for detail in group.details}
    assert shown["  remarks"] == "of low trust; used"
    assert "$0.34 from 23 August 2026 to 25 September 2026" in shown.values()


def test_the_price_that_the_user_paid_has_derived_figures(catalog: Catalog) -> None:
    bundled = catalog.hardware.gpu("rtx-3090")
    said = FigureNote(field="purchase_price_usd", provenance=Provenance.own("your own figure", "2026-11-01"))
    mine = bundled.evolve(purchase_price_usd=720.0, figure_notes=(said, *bundled.figure_notes))
    (paid,) = price_group(mine, NONE).details
    assert (paid.title, paid.text, paid.certainty, paid.mark) == ("Paid by you", "$720", "yours", "yours")
    assert price_group(bundled, NONE).details == ()
    shown = {detail.title: detail for detail in derived_group(mine, NONE).details}
    assert shown["Price per GiB, as you paid"].text == "30.0 USD/GiB"
    assert shown["Price per GiB, as you paid"].basis == "your price 720 USD ÷ memory 24 GiB"
    assert "Rate per watt, as you paid" not in shown
    assert not any("as you paid" in detail.title for detail in derived_group(bundled, NONE).details)


def test_machine_rents_form_their_own_group() -> None:
    group = rent_group("To rent", {"spot": PriceSpread((_point(16, seller="A"),))})
    assert group.title == "To rent"
    assert [(detail.title, detail.text) for detail in group.details] == [
        ("Rented, spot", "$16.00 per hour"),
        ("  A", "$16.00"),
    ]


def test_software_support_shows_versions_notes_and_unknown_features() -> None:
    known = FeatureSupport("cuda", "yes", "8.0", "12.x", source="the matrix", as_of="2026-11-22")
    partly = FeatureSupport("pytorch", "partly", newest="2.14", reason="CUDA 12.6", source="x", as_of="2026-11-22")
    unknown = FeatureSupport("jax", None, reason="nobody says it")
    details = software_group((known, partly, unknown)).details
    assert [(detail.title, detail.text) for detail in details] == [
        ("CUDA toolkit", "yes, from 8.0 to 12.x"),
        ("PyTorch", "partly, to 2.14: CUDA 12.6"),
        ("JAX", "unknown: nobody says it"),
    ]
    assert details[0].as_of == "read 22 November 2026"


@pytest.mark.parametrize(
    ("per_gpu", "count", "text"),
    [
        (False, 1, "1,000 tokens/s, $0.69 per million"),
        (True, 8, "1,000 tokens/s on each GPU, $0.69 per million"),
    ],
)
def test_measured_speeds_have_a_cost_per_million(per_gpu: bool, count: int, text: str) -> None:
    speed = PublishedSpeed(
        id="x", gpu="g", gpu_count=count, task="training", model="M", precision="bf16", framework="F",
        value_per_second=1_000, unit="tokens/s", per_gpu=per_gpu, source="made up", as_of="2026-11-21",
    )  # fmt: skip
    prices = CardPrices({}, {"on-demand": PriceSpread((_point(2.5),))}, (), ())
    rent, detail = speed_group((speed,), prices).details
    assert (rent.title, rent.text) == ("At a rent of", "$2.50 per hour")
    assert detail.text == text
    assert detail.title == ("M bf16, training" if count == 1 else "M bf16, 8 GPUs, training")
    assert "a million" not in speed_group((speed.evolve(precision=None),), NONE).details[0].text


def test_empty_groups_are_left_out(catalog: Catalog) -> None:
    gpu = catalog.hardware.gpu("rtx-4090")
    titles = [group.title for group in fact_groups(gpu, NONE, (), ())]
    assert titles == ["Derived"]
    full = fact_groups(gpu, prices_of(gpu, catalog, TODAY), software_of(gpu, catalog.software), catalog.speeds[:1])
    assert [group.title for group in full] == ["Derived", "Prices", "Software", "Published benchmarks"]


def test_every_known_figure_of_a_card_has_a_source(catalog):
    for gpu in catalog.hardware.gpus:
        usable = catalog.hardware.usable_memory(gpu)
        details = [detail for group in gpu_details(gpu, usable) for detail in group.details]
        assert len(details) > 20
        for detail in details:
            assert detail.text
            assert detail.source or detail.text in ("unknown", "not published") or detail.title == "Id in the catalog"


def test_the_details_of_a_card_are_grouped():
    groups = gpu_details(CARD)
    assert [group.title for group in groups] == [
        "Memory",
        "Dense rates on matrix units",
        "Rates on shader cores",
        "Formats without a rate",
        "Chip",
        "Board",
    ]
    found = details(groups)
    assert (found["Physical"].text, found["Physical"].exact) == ("80.0\u2009GiB", "85,899,345,920\u2009B")
    assert (found["BF16, fp32 accumulation"].text, found["BF16, fp32 accumulation"].mark) == (
        "989\u2009TFLOPS",
        "derived",
    )
    assert found["FP32"].text == "67\u2009TFLOPS"
    assert found["FP64, TF32, FP16, FP8, INT8, FP4"].text == fmt.NOT_PUBLISHED
    assert (found["Boost clock"].text, found["Boost clock"].mark) == ("1,980\u2009MHz", "derived")
    assert (found["Shader cores"].text, found["Matrix units"].text) == ("16,896", fmt.NOT_PUBLISHED)
    assert found["Usable by a program"].text == fmt.UNKNOWN


def test_a_card_without_matrix_units_has_no_group_for_them():
    plain = CARD.evolve(rates=(), boost_clock_hz=None)
    assert "Dense rates on matrix units" not in [group.title for group in gpu_details(plain)]
    every = tuple(
        Rate(dtype=dtype, ops_per_s=1e12, unit="tensor")
        for dtype in ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4")
    )
    assert "Rates on shader cores" not in [group.title for group in gpu_details(CARD.evolve(rates=every))]


def test_a_compilation_target_is_shown_only_for_vendors_that_number_it():
    assert details(gpu_details(CARD))["Compute capability"].text == fmt.UNKNOWN
    radeon = details(gpu_details(CARD.evolve(vendor="AMD", compute_capability="gfx1100")))
    assert (radeon["ROCm target"].text, "Compute capability" in radeon) == ("gfx1100", False)
    assert {"ROCm target", "Compute capability"}.isdisjoint(details(gpu_details(CARD.evolve(vendor="Google"))))


def test_usable_memory_is_measured_or_marked_as_assumed():
    usable = UsableMemory(
        bytes=78 * GIB,
        low_bytes=77 * GIB,
        high_bytes=79 * GIB,
        certainty="assumed",
        source="the family",
        explanation="as other Hopper GPUs",
    )
    assumed = details(gpu_details(CARD, usable))["Usable by a program"]
    assert (assumed.text, assumed.mark) == ("78.0\u2009GiB", "assumed")
    assert "77.0 – 79.0" in assumed.exact
    measured = details(gpu_details(CARD.evolve(usable_memory_bytes=79 * GIB), usable))["Usable by a program"]
    assert (measured.text, measured.mark) == ("79.0\u2009GiB", "published")


def test_the_users_power_limit_follows_the_board_power():
    limited = CARD.evolve(board_power_watts=450.0, power_limit_watts=250.0)
    (board,) = [group for group in gpu_details(limited) if group.title == "Board"]
    told = {detail.title: detail.text for detail in board.details}
    assert (told["Board power"], told["Your power limit"]) == ("450\u2009W", "250\u2009W")


def test_slices_of_a_card_have_memory_share_number_and_verdict(catalog: Catalog) -> None:
    table = catalog.hardware.mig_table(catalog.hardware.gpu("h100-sxm5-80gb"))
    shown = {detail.title: detail for detail in slice_group(table, {"3g.40gb": "fits"}).details}

    assert shown["3g.40gb"].text == (
        f"{fmt.size(39.5 * GIB)} · 60 of 132 multiprocessors · 4 of 8 of the bandwidth · at most 2 · 3 decoders · fits"
    )
    assert shown["1g.10gb+me"].text.endswith("at most 1 · media engines · 1 decoder")
    assert shown["3g.40gb"].basis == "memory slices 0, 4 to start at"
    assert (shown["3g.40gb"].mark, shown["7g.80gb"].mark) == ("published", "assumed")


def test_engines_of_a_slice_are_counted(catalog: Catalog) -> None:
    table = catalog.hardware.mig_table(catalog.hardware.gpu("a100-sxm4-40gb"))
    shown = {detail.title: detail.text for detail in slice_group(table).details}

    assert shown["1g.5gb"].endswith("at most 7 · 1 copy engine")
    assert shown["2g.10gb"].endswith("at most 3 · 1 decoder · 2 copy engines")


def test_a_card_that_cannot_be_divided_has_no_slices() -> None:
    assert slice_group(None).details == ()
