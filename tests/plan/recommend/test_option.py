"""Limits on hardware options, and which of them are the best; figures are made up and small enough to check by hand."""

from collections import Counter

import pytest
from pydantic import ValidationError

from planner.plan.recommend.option import (
    HardwareOption,
    Recommendation,
    Wish,
    excess_factors,
    is_within_limits,
    rank_options,
)


def option(gpu: str = "l40s", **changes: object) -> HardwareOption:
    fields = {
        "gpu": gpu,
        "count": 1,
        "having": "rent",
        "period": "run",
        "verdict": "fits",
        "free_bytes": 2**33,
        "fit_probability": None,
        "tokens_per_second": 1_000.0,
        "samples_per_second": None,
        "bound": None,
        "basis": "family",
        "hours": 10.0,
        "low_hours": 8.0,
        "high_hours": 12.0,
        "usd": 10.0,
        "low_usd": 10.0,
        "high_usd": 10.0,
        "power_watts": 300.0,
    }
    return HardwareOption.model_validate({**fields, **changes})


def ranked(*options: HardwareOption, wish: Wish | None = None) -> Recommendation:
    limits, left_out = wish or Wish(), Counter()
    allowed = [one for one in options if is_within_limits(one, limits, left_out)]
    return rank_options(allowed, options, limits, options[0].period, left_out)


@pytest.mark.parametrize(
    "wish",
    [
        {"budget_usd": 0},
        {"counts": [0]},
        {"counts": [5_000]},
        {"counts": []},
        {"modes": []},
        {"min_tokens_per_second": 0},
        {"min_samples_per_second": -1},
    ],
)
def test_wishes_that_make_no_sense_are_refused(wish):
    with pytest.raises(ValidationError):
        Wish.model_validate(wish)


def test_the_best_value_costs_at_most_twice_the_least():
    cheap, good, fleet = option(), option("a100", usd=19.0, hours=2.0), option("b200", usd=21.0, hours=0.1)
    best = ranked(cheap, good, fleet)
    # Products of cost and time: 100, 38 and 2.1, the last at more than twice the least cost.
    assert (best.cheapest, best.best_value, best.fastest) == (cheap, good, fleet)


def test_the_purchase_price_limits_what_is_bought():
    wish, left_out = Wish(max_price_usd=700), Counter()
    assert is_within_limits(option(having="own", purchase_usd=699.0), wish, left_out)
    assert is_within_limits(option(usd=5_000.0), wish, left_out)  # rented
    assert not is_within_limits(option(having="own", purchase_usd=1_400.0), wish, left_out)
    assert left_out == {"over the highest purchase price": 1}
    assert dict(excess_factors(option(having="own", purchase_usd=1_400.0), wish)) == {"the highest purchase price": 2.0}


def test_the_fastest_is_the_cheapest_of_those_that_are_as_fast():
    fast, as_fast, slower = option(usd=90.0, hours=1.0), option("a100", usd=30.0, hours=1.09), option("a40", hours=1.2)
    assert ranked(fast, as_fast, slower).fastest == as_fast


def test_what_was_never_measured_is_recommended_only_alone():
    guessed, measured = option(usd=1.0, hours=1.0, basis="unmeasured"), option("a100")
    both = ranked(guessed, measured)
    assert (both.cheapest, both.fastest, both.best_value) == (measured, measured, measured)
    assert both.options == (guessed, measured)  # it is listed, the cheapest first
    assert ranked(guessed).cheapest == guessed


def test_old_prices_lead_only_where_there_is_no_current_one():
    old, dear = option(usd=1.0, current=False), option("a100")
    assert ranked(old, dear).cheapest == dear
    assert ranked(old).cheapest == old
    assert ranked(old, option("a40", basis="unmeasured")).cheapest == old


def test_answers_are_what_a_minimum_speed_is_of_where_there_is_no_end():
    answers = option(period="month", tokens_per_second=2_000.0, output_token_seconds=0.1)
    wish = Wish(min_tokens_per_second=20)
    left_out: Counter[str] = Counter()
    assert not is_within_limits(answers, wish, left_out)  # 10 tokens/s of each answer
    assert left_out == {"slower than the minimum speed": 1}
    assert is_within_limits(answers.evolve(output_token_seconds=0.05), wish, left_out)
    assert is_within_limits(answers.evolve(period="run"), wish, left_out)


def test_samples_are_counted_where_there_are_no_tokens():
    images = option(tokens_per_second=None, samples_per_second=0.5)
    assert is_within_limits(images, Wish(min_samples_per_second=0.5), Counter())
    assert not is_within_limits(images, Wish(min_samples_per_second=0.6), Counter())
    assert not is_within_limits(images, Wish(min_tokens_per_second=1), Counter())


def test_the_closest_option_misses_the_limits_by_the_smallest_factor():
    wish = Wish(budget_usd=5, deadline_hours=2, power_limit_watts=300, min_tokens_per_second=4_000)
    assert dict(excess_factors(option(), wish)) == {"the budget": 2.0, "the deadline": 5.0, "too slow": 4.0}  # 40
    nearer = option("a100", usd=30.0, hours=2.0, tokens_per_second=3_000.0, power_watts=600.0)
    assert dict(excess_factors(nearer, wish)) == pytest.approx(
        {"the budget": 6.0, "the power limit": 2.0, "too slow": 4 / 3}
    )  # 16
    assert ranked(option(), nearer, wish=wish).nearest == nearer
    assert dict(excess_factors(option(power_watts=None), wish))["the power limit"] == float("inf")


def test_cards_of_all_copies_are_counted():
    assert option(count=4, copies=3).cards == 12


def test_ways_to_rent_the_same_offer_have_keys_of_their_own() -> None:
    ways = [option(offer="lambda", mode=mode).key for mode in ("on-demand", "spot", None)]
    assert ways == ["1×l40s··lambda·on-demand", "1×l40s··lambda·spot", "1×l40s··lambda·"]


def test_a_wish_is_for_up_to_eight_cards_and_any_power():
    assert Wish(power_limit_watts=0.5).counts == (1, 2, 4, 8)
