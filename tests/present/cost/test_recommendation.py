"""Which hardware to take, in words."""

from datetime import date

import pytest

from planner.cost.terms import CostTerms, DailyHours, Run, Service
from planner.plan.plan import ModelChoice, Plan
from planner.plan.recommend.option import HardwareOption, Recommendation, Wish
from planner.plan.recommend.recommend import recommend
from planner.present.cost.recommendation import (
    OPTION_COLUMNS,
    assumed_use_sentence,
    award_views,
    excluded_sentence,
    no_option_sentence,
    option_columns,
    option_rows,
)
from planner.present.format import THIN
from planner.workload.workload import Training

TODAY = date(2026, 11, 22)
TUNING = Plan(
    model=ModelChoice(id="meta-llama/Llama-3.1-8B"),
    workload=Training(method="qlora", activation_checkpointing="full"),
    cost=CostTerms(job=Run(amount=50e6, unit="tokens")),
)


@pytest.fixture(scope="module")
def tuned(catalog) -> Recommendation:
    return recommend(TUNING, catalog, TODAY, Wish(counts=(1, 2)))


def option(**changes: object) -> HardwareOption:
    return HardwareOption.model_validate(
        {
            "gpu": "l40s",
            "count": 2,
            "having": "rent",
            "period": "run",
            "sharing": "with ZeRO-3",
            "verdict": "fits",
            "free_bytes": 2**33,
            "fit_probability": None,
            "tokens_per_second": 1_000.0,
            "samples_per_second": None,
            "bound": "compute",
            "basis": "family",
            "hours": 2.0,
            "low_hours": 1.8,
            "high_hours": 2.2,
            "usd": 3.0,
            "low_usd": 3.0,
            "high_usd": 3.0,
            "power_watts": 700.0,
            "offer": "x",
            "provider": "RunPod",
            "mode": "on-demand",
            "price_date": "2026-11-10",
            **changes,
        }
    )


def found(*options: HardwareOption, **changes: object) -> Recommendation:
    first = options[0] if options else None
    fields = {
        "wish": Wish(),
        "period": "run",
        "options": options,
        "cheapest": first,
        "fastest": first,
        "best_value": first,
        "pareto": tuple(one.key for one in options[:1]),
        "left_out": (),
        **changes,
    }
    return Recommendation.model_validate(fields)


def plain(text: str) -> str:
    return text.replace(THIN, " ")


def test_each_recommended_option_has_a_trade_off_bars_and_facts(tuned, catalog):
    views = award_views(tuned, catalog.hardware)
    assert sorted(award for view in views for award in view.awards) == ["best value", "cheapest", "fastest"]
    for view in views:
        assert [meter.label for meter in view.meters] == ["Price", "Time"]
        assert any("tokens/s, limited by" in fact for fact in view.facts)
        assert any("Fits" in fact for fact in view.facts)
    for position in range(2):  # both bars are on a scale that all cards share
        assert max(view.meters[position].fraction for view in views) == 1
    assert views[0].title.startswith("Cheapest")
    assert "The fastest is" in views[0].why


def test_the_bars_are_shares_of_the_largest_amount(catalog):
    cheap = option(usd=2.0, hours=10.0, low_hours=8.0, high_hours=12.0)
    fast = option(usd=8.0, hours=2.5, low_hours=2.0, high_hours=3.0, gpu="h100-sxm5-80gb", sharing="")
    first, second = award_views(found(cheap, fast, cheapest=cheap, fastest=fast, best_value=cheap), catalog.hardware)
    assert [meter.fraction for meter in first.meters] == [0.25, 1.0]
    assert [meter.fraction for meter in second.meters] == [1.0, 0.25]
    assert (first.title, second.title) == ("Cheapest and best value", "Fastest")
    assert first.why == (
        "The fastest is about 4.0 times as fast for 4.0 times the price. "
        "Best value: lowest price × time among options up to twice the lowest price."
    )
    assert second.why == "About 4.0 times as fast for 4.0 times the price of the cheapest."


def test_cheaper_options_of_unknown_speed_are_not_denied(catalog):
    guessed = option(usd=1.0, basis="unmeasured", gpu="arc-b580")
    sure = option()
    both = found(guessed, sure, cheapest=sure, fastest=sure, best_value=sure)
    (view,) = award_views(both, catalog.hardware)
    assert view.why == (
        "Cheaper options, from $1.00, are passed over because their speed was never measured. None is clearly faster."
    )
    old = found(option(usd=1.5, current=False), sure, cheapest=sure, fastest=sure, best_value=sure)
    (view,) = award_views(old, catalog.hardware)
    assert view.why.startswith(
        "Cheaper options, from $1.50, are passed over because their rental price is old or undated."
    )


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (DailyHours(hours_per_day=8), "For 8 hours per day, 5 days per week, over 3 years."),
        (Service(requests_per_day=10_000), "For 10,000 requests per day, over 3 years."),
        (
            Run(amount=50e6, unit="tokens"),
            "For one run of 50,000,000 tokens. Hardware bought for it is assumed to be sold after 3 years.",
        ),
        (Run(amount=20, repeats_per_year=12), "For a run of 20.0 hours, 12 times per year, over 3 years."),
    ],
)
def test_the_job_that_prices_are_for_is_told(job, words):
    assert assumed_use_sentence(CostTerms(job=job, horizon_years=3)) == words


def test_marks_tell_awards_and_guesses(catalog):
    guessed = option(usd=1.0, basis="unmeasured", gpu="arc-b580")
    sure = option()
    both = found(guessed, sure, cheapest=sure, fastest=sure, best_value=sure)
    marks = next(column for column in OPTION_COLUMNS if column.key == "awards")
    assert [marks.text(row) for row in option_rows(both, catalog.hardware)] == [
        "speed not measured",
        "cheapest, fastest, best value",
    ]
    alone = found(guessed)
    assert [marks.text(row) for row in option_rows(alone, catalog.hardware)] == [
        "cheapest, fastest, best value, speed not measured"
    ]
    assert award_views(alone, catalog.hardware)[0].title == "Cheapest, fastest and best value, speed not measured"
    assert [row.id for row in option_rows(both, catalog.hardware)] == [guessed.key, sure.key]


def test_one_option_is_all_three(catalog):
    (view,) = award_views(found(option()), catalog.hardware)
    assert view.awards == ("cheapest", "fastest", "best value")
    assert view.title == "Cheapest, fastest and best value"
    assert plain(view.text) == (
        "Cheapest, fastest and best value: 2 × L40S, with ZeRO-3, RunPod, on demand\n"
        "None is clearly faster.\n"
        "$3.00 per run, 2.00 h (1.80 – 2.20)\n"
        "1,000 tokens/s, limited by compute\n"
        "Fits, 8.00 GiB free; 700 W of board power\n"
        "Price of 10 November 2026"
    )


def test_what_is_not_known_is_left_out(catalog):
    bare = option(tokens_per_second=None, samples_per_second=40.0, bound=None, power_watts=None, mode=None, sharing="")
    (view,) = award_views(found(bare), catalog.hardware)
    assert (view.row.how, view.row.cards) == ("your own", "2 × L40S")
    assert plain("; ".join(view.facts)) == "40.0 samples/s; Fits, 8.00 GiB free; Price of 10 November 2026"


def test_only_what_is_paid_for_lacks_a_date(catalog):
    bought = option(mode=None, having="own", purchase_usd=9_000.0, upfront_usd=12_000.0, price_date=None)
    (view,) = award_views(found(bought), catalog.hardware)
    assert view.row.how == "owned"
    assert view.warnings == ("The price has no date",)
    (view,) = award_views(found(bought.evolve(purchase_usd=None, upfront_usd=None)), catalog.hardware)
    assert view.warnings == ()


def test_a_month_has_a_speed_in_place_of_a_time(catalog):
    month = option(period="month", output_token_seconds=0.05)
    (view,) = award_views(found(month, period="month"), catalog.hardware)
    assert [plain(meter.text) for meter in view.meters] == ["$3.00 per month", "20.0 tokens/s per answer"]
    assert "hours" not in {column.key for column in option_columns("month")}
    assert "hours" in {column.key for column in option_columns("run")}


def test_how_many_cards_and_machines_is_said(catalog):
    service = option(period="month", copies=3, machines=6, cards_per_machine=8, power_watts=2_100.0)
    (view,) = award_views(found(service, period="month"), catalog.hardware)
    assert view.row.cards == "6 × L40S, 3 copies of 2, with ZeRO-3"
    assert view.facts[0] == "48 GPUs in 6 machines of 8, of which the job uses 6"
    bought = {"having": "own", "mode": None, "offer": None, "provider": None}
    owned = option(**bought, copies=4, count=1, machines=2, cards_per_machine=2)
    (view,) = award_views(found(owned), catalog.hardware)
    assert view.row.cards == "4 × L40S, 4 copies, with ZeRO-3"
    assert view.facts[0] == "4 GPUs in 2 machines"


def test_changes_guesses_the_network_and_doubts_are_warned_of(catalog):
    odd = option(
        changes=("8-bit AdamW", "full checkpointing"),
        basis="unmeasured",
        network_bytes_per_s=50e9,
        price_date=None,
        remarks=("the price has no date", "odd"),
    )
    (view,) = award_views(found(odd), catalog.hardware)
    assert view.warnings == (
        "Changes the plan: 8-bit AdamW and full checkpointing",
        "No speed was measured on this family of GPUs",
        "Needs 400 Gbit/s for each GPU between the machines, taken as part of their price",
        "The price has no date",
        "Odd",
    )
    (view,) = award_views(found(odd.evolve(network_usd=12.5)), catalog.hardware)
    assert "Includes $12.50 for 400 Gbit/s for each GPU between the machines" in view.warnings


def test_where_nothing_is_left_that_is_said(catalog, tuned):
    assert no_option_sentence(tuned) == ""
    nothing = found()
    assert no_option_sentence(nothing).startswith("None of this hardware can run the job at a comparable price. Allow")
    assert award_views(nothing, catalog.hardware) == ()


def test_the_closest_option_says_by_how_much_it_misses_the_limits(catalog):
    near = found(nearest=option(), wish=Wish(budget_usd=1.5, deadline_hours=0.5, min_tokens_per_second=3_000))
    assert no_option_sentence(near) == "No option is within the limits."
    (view,) = award_views(near, catalog.hardware)
    assert view.title == "Closest to the limits"
    assert view.why == "2.0 times the budget, 4.0 times the deadline and 3.0 times too slow."


def test_what_was_left_out_is_counted(tuned):
    told = excluded_sentence(tuned)
    assert told.startswith("Excluded options: ")
    assert "the GPU cannot run it" in told
    assert excluded_sentence(found()) == ""


def test_every_column_can_be_shown(tuned, catalog):
    rows = option_rows(tuned, catalog.hardware)
    for column in OPTION_COLUMNS:
        assert all(isinstance(column.text(row), str) for row in rows)
    cells = {column.key: plain(column.text(rows[0])) for column in OPTION_COLUMNS}
    assert cells["usd"].startswith("$")
    assert cells["hours"].endswith("h")
    assert "cheapest" in cells["awards"]
    (bare,) = option_rows(found(option(price_date=None, remarks=("odd",))), catalog.hardware)
    cells = {column.key: column.text(bare) for column in OPTION_COLUMNS}
    assert (cells["date"], cells["remarks"], cells["changes"]) == ("no date", "odd", "none")


def test_daily_hours_are_ranked_too(catalog):
    plan = TUNING.evolve(cost=CostTerms(job=DailyHours(hours_per_day=8)))
    month = recommend(plan, catalog, TODAY, Wish(counts=(1,)))
    assert "per month" in award_views(month, catalog.hardware)[0].meters[0].text


def test_what_is_bought_tells_its_price(catalog):
    bought = option(having="own", mode=None, offer=None, provider=None, purchase_usd=699.0, upfront_usd=1_146.0)
    (view,) = award_views(found(bought), catalog.hardware)
    assert view.meters[0].text == "$3.00 per run; $699 to buy"
    assert "$1,146 at the start, with the machine for the GPUs" in view.facts
    (single,) = award_views(found(bought.evolve(count=1)), catalog.hardware)
    assert "$1,146 at the start, with the machine for the GPU" in single.facts
