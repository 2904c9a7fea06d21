"""Ages and ranges of prices, in words."""

from datetime import date

import pytest
from catalog_samples import point

from planner.cost.card_prices import PriceSpread
from planner.cost.renting.offer import Offer
from planner.cost.terms import days_since
from planner.present.cost.prices import (
    age_of,
    age_phrase,
    age_text,
    months_text,
    newest_age_days,
    oldest_price_text,
    price_range_text,
    remarks_text,
)

TODAY = date(2026, 11, 22)


def offer(price_date: str | None = "2026-11-10") -> Offer:
    return Offer(
        id="x",
        provider="AWS",
        instance="p5.48xlarge",
        gpu="h100-sxm5-80gb",
        gpu_count=8,
        on_demand_price_usd_per_hour=55.04,
        price_date=price_date,
        source="a price list",
    )


@pytest.mark.parametrize(
    ("days", "age", "words"),
    [
        (0, "fresh", "today"),
        (7, "fresh", "7 days old"),
        (8, "recent", "8 days old"),
        (31, "aging", "31 days old"),
        (91, "old", "91 days old"),
        (366, "outdated", "366 days old"),
        (None, "undated", "no date"),
    ],
)
def test_age(days, age, words):
    assert age_of(days) == age
    assert age_text(days) == words


def test_ages_are_told_with_their_word():
    assert age_phrase(None) == "no date"
    assert age_phrase(40) == "40 days old, aging"


def test_the_newest_price_is_found():
    assert newest_age_days([offer(), offer(price_date="2026-11-20"), offer(price_date=None)], TODAY) == 2
    assert newest_age_days([offer(price_date=None)], TODAY) is None


def test_the_oldest_price_is_told():
    assert oldest_price_text([offer(), offer(price_date="2026-11-20")], TODAY) == "oldest price 12 days old"
    assert oldest_price_text([offer(), offer(price_date=None)], TODAY) == "oldest price 12 days old, 1 without a date"
    assert oldest_price_text([offer(price_date=None)], TODAY) == "1 without a date"
    assert oldest_price_text([], TODAY) == ""


def test_a_price_range_states_how_many_prices_it_leaves_out():
    old, undated = point(3.0, "2020-01-01", age_days=2_000), point(2.0, None, age_days=None)
    assert price_range_text(PriceSpread((point(5.0), old, undated))) == (
        "$5.00, 1 October 2026, 1 price; 1 older than twelve months and 1 without a date left out"
    )


def test_prices_from_several_months_show_their_years():
    assert months_text((point(1.0, "2026-10-01"), point(2.0, "2026-10-20"))) == "Oct 2026"
    assert months_text((point(1.0, "2026-09-01"), point(2.0, "2025-11-20"))) == "2025 – 2026"


def test_a_month_or_a_year_is_as_old_as_its_first_day():
    assert days_since("2026-11-10", TODAY) == 12
    assert days_since("2026-11", TODAY) == 21
    assert days_since("2026", TODAY) == 325
    assert days_since(None, TODAY) is None


def test_remarks_are_told_once_and_without_the_end_of_the_range():
    ends = (point(1.0, remarks=("low end of 1,000-2,000, new",)), point(2.0, remarks=("new; boxed",)))
    assert remarks_text(ends) == "new; boxed"
