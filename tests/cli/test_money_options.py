"""The options about money, as changes of a plan's terms."""

import pytest

from planner.cli.money_options import (
    add_money_options,
    check_market,
    money_from,
    option_of,
)
from planner.cli.parser import Parser
from planner.cost.terms import CostTerms, DailyHours, RentTerms, Run, Service
from planner.errors import SpecError

USUAL = CostTerms()
RUNS = CostTerms(job=Run(amount=5, unit="hours", repeats_per_year=3), rent=RentTerms(mode="spot"))


def asked(*words: str, base: CostTerms = USUAL) -> CostTerms:
    parser = Parser("test", "", "")
    add_money_options(parser)
    return money_from(parser.parse_args([*words]), base)


def market(catalog, *words: str) -> RentTerms:
    parser = Parser("test", "", "")
    add_money_options(parser)
    arguments = parser.parse_args([*words])
    return check_market(arguments, money_from(arguments, USUAL), catalog).rent


@pytest.mark.parametrize(
    ("words", "job"),
    [
        (["--tokens", "50e6"], Run(amount=50e6, unit="tokens")),
        (["--tokens", "1,000"], Run(amount=1_000, unit="tokens")),
        (["--epochs", "3", "--dataset", "2000"], Run(amount=3, unit="epochs", dataset_samples=2_000)),
        (["--hours", "8", "--repeats", "12"], Run(amount=8, unit="hours", repeats_per_year=12)),
        (["--requests-per-day", "100", "--peak-factor", "4"], Service(requests_per_day=100, peak_factor=4)),
        (["--hours-per-day", "3", "--days-per-week", "7"], DailyHours(hours_per_day=3, days_per_week=7)),
        ([], DailyHours(hours_per_day=8)),
        (["--days-per-week", "2"], DailyHours(hours_per_day=8, days_per_week=2)),
    ],
)
def test_jobs(words, job):
    assert asked(*words).job == job


def test_a_job_of_the_same_kind_keeps_the_rest():
    assert asked("--steps", "10", base=RUNS).job == Run(amount=10, unit="steps", repeats_per_year=3)
    assert asked("--hours-per-day", "10", base=RUNS).job == DailyHours(hours_per_day=10)
    assert asked("--repeats", "9", base=RUNS).job == Run(amount=5, unit="hours", repeats_per_year=9)


def test_terms_and_any_other_field():
    found = asked(
        *("--place", "desk", "--card-price", "1,900", "--discount-rate", "0", "--history", "--regions", "a, b"),
        *("--money", "buy.pue=1.2", "--money", "rent.offer=some-offer", "--money", "horizon_years=2"),
        base=RUNS,
    )
    assert (found.buy.place, found.buy.card_price_usd, found.buy.pue) == ("desk", 1_900, 1.2)
    assert asked("--place", "data-center").buy.place == asked("--place", "data-centre").buy.place == "data-centre"
    assert (found.rent.mode, found.rent.offer, found.rent.regions) == ("spot", "some-offer", ("a", "b"))
    assert found.rent.include_history
    assert (found.horizon_years, found.discount_rate) == (2, 0)


@pytest.mark.parametrize(
    ("words", "option", "reason"),
    [
        (
            ["--tokens", "5", "--requests-per-day", "3"],
            "--tokens and --requests-per-day",
            "cannot be combined: they are different jobs",
        ),
        (["--tokens", "-1"], "--tokens", "must be more than 0"),
        (["--tokens", "1e30"], "--tokens", "must be at most 1,000,000,000,000,000,000"),
        (["--tokens", "nan"], "--tokens", "is not a number"),
        (["--samples", "many"], "--samples", "is not a number"),
        (["--requests-per-day", "0"], "--requests-per-day", "must be more than 0"),
        (["--requests-per-day", "9", "--peak-factor", "0.5"], "--peak-factor", "must be at least 1"),
        (["--requests-per-day", "9", "--output-tokens", "0"], "--output-tokens", "must be more than 0"),
        (["--hours-per-day", "25"], "--hours-per-day", "must be at most 24"),
        (["--days-per-week", "8"], "--days-per-week", "must be at most 7"),
        (["--dataset", "10"], "--dataset", "does not apply to this kind of job"),
        (["--tokens", "9", "--prompt-tokens", "3"], "--prompt-tokens", "does not apply to this kind of job"),
        (["--card-price", "-3"], "--card-price", "must be more than 0"),
        (["--card-price", "1e9"], "--card-price", "must be at most 10,000,000"),
        (["--tariff", "-0.1"], "--tariff", "must be at least 0"),
        (["--horizon", "0"], "--horizon", "must be more than 0"),
        (["--horizon", "inf"], "--horizon", "is not a number"),
        (["--discount-rate", "1"], "--discount-rate", "must be less than 1"),
        (["--mode", "weekly"], "--mode", "choose on-demand, spot"),
        (["--place", "moon"], "--place", "choose desk, lab"),
        (["--money", "foo"], "--money", "is not NAME=VALUE"),
        (["--money", "buy.x=1"], "--money buy.x", "there is no such field"),
        (["--money", "region.x=1"], "--money region", "is not a text"),
        (["--money", "job=3"], "--money job", "not an object of named fields"),
        (["--money", "horizon_years=2", "--money", "horizon_years.x=3"], "--money horizon_years.x", "no fields"),
        (["--money", "buy.colocation_usd_per_kw_month=200"], "--money buy", "colocation_power"),
    ],
)
def test_wrong_values_name_their_option_and_what_to_do(words, option, reason):
    with pytest.raises(SpecError) as caught:
        asked(*words)
    assert caught.value.field == option
    assert reason in caught.value.reason
    assert caught.value.hint


def test_what_belongs_to_another_job_says_to_which():
    with pytest.raises(SpecError) as caught:
        asked("--peak-factor", "3")
    assert caught.value.hint == "Add --requests-per-day."


def test_providers_and_regions_are_found_by_part_of_their_names(catalog):
    assert market(catalog, "--provider", "aws").providers == ("AWS",)
    assert set(market(catalog, "--provider", "runpod").providers) == {"RunPod Community", "RunPod Secure"}
    assert market(catalog, "--regions", "us-east-1").regions == ("us-east-1",)
    assert market(catalog).providers == ()
    for words in (["--provider", "Nobody"], ["--regions", "mars"], ["--provider", ","]):
        with pytest.raises(SpecError) as caught:
            market(catalog, *words)
        assert caught.value.field == words[0]
        assert "gpu-planner prices" in caught.value.hint


def test_fields_of_a_plan_have_options():
    assert option_of("cost.rent.offer") == "--offer"
    assert option_of("cost.horizon_years") == "--horizon"
    assert option_of("cost.buy.server_power_watts") == "--money buy.server_power_watts"
    assert option_of("count") == "count"
