"""The price of one card, from purchase records."""

from datetime import date

import pytest

from planner.cost.owning.purchase import card_price, server_price, used_card_price
from planner.plan.catalog import Catalog


def test_card_prices_are_the_median_of_what_is_asked(catalog: Catalog, today: date) -> None:
    purchases = catalog.cost.purchases
    l40s = card_price(purchases, "l40s", None, today)
    assert l40s is not None
    assert (l40s.value, l40s.low, l40s.high, l40s.date) == (8_500, 4_250, 17_000, None)
    assert "2 without a date" in l40s.source
    h100 = card_price(purchases, "h100-sxm5-80gb", None, today)
    assert h100 is not None
    assert (h100.low, h100.high) == (30_000, 40_000)
    old = card_price(purchases, "rtx-2080-ti", 999, date(2031, 1, 1))
    assert old is not None
    assert "one price, none from the last two years" in old.source
    launch = card_price(purchases, "no-such-card", 1_000, today)
    assert launch is not None
    assert (launch.value, launch.certainty) == (1_000, "assumed")
    assert card_price(purchases, "no-such-card", None, today) is None


def test_leftover_stock_does_not_stand_for_a_cards_price(catalog: Catalog, today: date) -> None:
    rtx_3090 = card_price(catalog.cost.purchases, "rtx-3090", 1_499, today, "2020-09")
    assert rtx_3090 is not None
    assert (rtx_3090.value, rtx_3090.date) == (1_070, "2025-03-04")
    assert rtx_3090.source.startswith("second-hand, as new ones are leftover stock at 2,199 USD: one price")
    # Nobody is known to sell this one second hand.
    rtx_3080 = card_price(catalog.cost.purchases, "rtx-3080-10-gb", 699, today, "2020-09")
    assert rtx_3080 is not None
    assert (rtx_3080.value, rtx_3080.certainty) == (1_158.94, "assumed")
    assert rtx_3080.source.startswith("leftover stock, far above the launch price")
    still_made = card_price(catalog.cost.purchases, "rtx-5090", 1_999, today, "2025-01")
    assert still_made is not None
    assert still_made.value > 1.2 * 1_999


def test_the_second_hand_price_is_the_median(catalog: Catalog) -> None:
    used = used_card_price(catalog.cost.purchases, "h100-sxm5-80gb")
    assert used is not None
    assert used.value == 23_500
    assert used_card_price(catalog.cost.purchases, "l40s") is None


def test_a_servers_price_is_that_of_such_servers(catalog: Catalog, today: date) -> None:
    h100 = server_price(catalog.cost.purchases, "h100-sxm5-80gb", 8, today)
    assert h100 is not None
    # 230,000, 255,237.04, 335,000 and 375,000 USD, of which two do not state the host.
    assert (h100.low, h100.value, h100.high) == (230_000, pytest.approx(295_118.52), 375_000)
    assert h100.source.startswith("2 of 4 do not state whether the host is included; median of 4 prices")
    three = tuple(one for one in catalog.cost.purchases if one.price_usd != 230_000)
    fewer = server_price(three, "h100-sxm5-80gb", 8, today)
    assert fewer is not None
    assert (fewer.low, fewer.high) == (pytest.approx(255_237.04), 375_000)
    assert server_price(catalog.cost.purchases, "h100-sxm5-80gb", 2, today) is None
    assert server_price(catalog.cost.purchases, "h100-nvl-94gb", 8, today) is None
