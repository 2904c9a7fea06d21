"""What an offer says of itself: its prices, their range and age, and what is doubtful about it."""

from datetime import date

import pytest
from renting_samples import OFFER

from planner.cost.renting.offer import AMBIGUOUS, FROM_PRICE, UNVERIFIED
from planner.errors import SpecError

EITHER = {"gpu": None, "candidates": ("h100-sxm5-80gb", "h100-pcie-80gb")}


def test_an_offer_has_the_modes_that_have_a_price() -> None:
    assert dict(OFFER.prices) == {"on-demand": 40, "spot": 16, "reserved-1y": 28, "reserved-3y": 20}
    bare = OFFER.evolve(spot_price_usd_per_hour=None, reserved_3y_price_usd_per_hour=None)
    assert dict(bare.prices) == {"on-demand": 40, "reserved-1y": 28}
    assert bare.price_usd_per_hour("spot") is None


def test_only_a_median_has_a_range() -> None:
    assert OFFER.price_range == (1, 1)
    assert OFFER.evolve(price_kind="median").price_range == (0.6, 1.54)


def test_a_plain_offer_has_one_card_and_no_doubt() -> None:
    assert OFFER.doubts == ()
    assert OFFER.cards == ("h100-sxm5-80gb",)
    assert not OFFER.ambiguous


def test_every_doubt_is_told() -> None:
    odd = OFFER.evolve(
        **EITHER, price_kind="from", incomplete="the host is billed separately", billed_currency=None, notes=("unsure",)
    )
    assert odd.ambiguous
    assert odd.cards == EITHER["candidates"]
    assert odd.doubts == (
        f"one of h100-sxm5-80gb, h100-pcie-80gb: {AMBIGUOUS}",
        FROM_PRICE,
        "the host is billed separately",
        UNVERIFIED,
    )


@pytest.mark.parametrize(
    ("day", "days", "history"), [("2025-11-22", 365, False), ("2025-11-21", 366, True), (None, None, False)]
)
def test_a_price_older_than_twelve_months_is_history(day: str | None, days: int | None, history: bool) -> None:
    offer, today = OFFER.evolve(price_date=day), date(2026, 11, 22)
    assert offer.age_days(today) == days
    assert offer.is_history(today) is history


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"on_demand_price_usd_per_hour": 0.08}, "is not between 0.01 and 100 USD per GPU and hour"),
        ({"on_demand_price_usd_per_hour": 15}, "the spot price is above the on-demand price"),
        ({"gpu": None}, "needs either gpu or candidates"),
        ({"gpu": None, "candidates": ("l4",)}, "a single candidate must be named as gpu"),
        ({"billed_currency": "EUR"}, "needs an exchange rate"),
        ({"billed_currency": None}, "an unverified currency needs an explanatory note"),
    ],
)
def test_an_implausible_offer_is_refused(changes: dict[str, object], reason: str) -> None:
    with pytest.raises(SpecError, match=reason):
        OFFER.evolve(**changes)
