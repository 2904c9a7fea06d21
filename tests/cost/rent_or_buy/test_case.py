"""The inputs of a decision and the cash flows that follow from them, computed by hand."""

from dataclasses import replace

import pytest
from cost_cases import changed, two_cards

from planner.cost.figure import NINETY_PERCENT
from planner.cost.owning.residual import ResaleCurve, ResalePoint
from planner.cost.rent_or_buy.case import RESALE, TIME, USE

BAND = ResaleCurve(points=(ResalePoint(years=4, low=0.2, share=0.4, high=0.5),))


def test_cash_flows_follow_from_the_central_values() -> None:
    streams = two_cards().streams()
    assert (streams.capex_usd, streams.resale_base_usd) == (30_000, 25_000)
    # 1.2 kW with a PUE of 1.25 at 0.20 USD: 0.30 USD an hour at full load, of which 30 % at rest and 80 % at work.
    assert streams.own_usd_per_year == pytest.approx(0.3 * 8_766 * 0.3)
    assert streams.own_usd_per_hour == pytest.approx(0.15)
    assert streams.rent_usd_per_hour == pytest.approx(2.2)
    assert streams.rent_usd_per_year == pytest.approx(50 + 100 * 2)
    assert streams.own_usd(4) == pytest.approx(30_000 + 4 * (788.94 + 0.15 * 2_000) - 25_000 / 4)
    assert streams.rent_usd(4) == pytest.approx(4 * (2.2 * 2_000 + 250))


def test_a_figure_moves_within_its_range() -> None:
    case = two_cards()
    assert case.streams({"card_price_usd": NINETY_PERCENT}).capex_usd == pytest.approx(60_000)
    assert case.streams({"card_price_usd": -NINETY_PERCENT}).capex_usd == pytest.approx(15_000)
    assert case.central["card_price_usd"] == 10_000


def test_use_and_duration_multiply_the_hours() -> None:
    assert changed(two_cards(), **{USE: 0.5, TIME: 1.2}).streams().busy_hours_per_year == pytest.approx(1_200)


def test_only_figures_with_a_range_are_uncertain() -> None:
    assert two_cards().uncertain == ("card_price_usd",)
    assert replace(two_cards(), resale=BAND).uncertain == ("card_price_usd", RESALE)


def test_the_resale_value_moves_within_its_band() -> None:
    case = replace(two_cards(), resale=BAND)
    middle, best = case.streams().own_usd(4), case.streams({RESALE: NINETY_PERCENT}).own_usd(4)
    assert middle - best == pytest.approx(25_000 * (0.5 - 0.4))
