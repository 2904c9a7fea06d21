"""The price of one card, from purchase records."""

from datetime import date

from planner.cost.owning.purchase import card_price
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
