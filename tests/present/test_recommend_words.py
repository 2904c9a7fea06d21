"""Which hardware to take, in words."""

from datetime import date

import pytest

from planner.cost.job import DailyHours, Run
from planner.cost.terms import CostTerms
from planner.plan.plan import ModelChoice, Plan
from planner.plan.recommend.option import HardwareOption, Recommendation, Wish
from planner.plan.recommend.recommend import recommend
from planner.present.cost.recommendation import (
    OPTION_COLUMNS,
    award_views,
    excluded_sentence,
    no_option_sentence,
    option_rows,
    recommendation_lines,
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


def test_the_three_answers_say_what_why_and_what_comes_next(tuned, catalog):
    rows = option_rows(tuned, catalog.hardware)
    views = award_views(tuned, rows)
    assert [view.award for view in views] == ["cheapest", "fastest", "best value"]
    for view in views:
        assert "Fits" in view.sentence
        assert "tokens/s (limited by" in view.reason
        assert view.change.startswith("Next: ")
    lines = [plain(line) for line in recommendation_lines(tuned, catalog.hardware)]
    assert lines[0].startswith("Cheapest: ")
    assert len(lines) == 6


def test_one_option_is_all_three(catalog):
    one = found(option())
    (row,) = option_rows(one, catalog.hardware)
    assert row.awards == ("cheapest", "fastest", "best value")
    assert row.is_unbeaten
    first, *_ = award_views(one, (row,))
    assert plain(first.sentence) == (
        "2 × L40S, with ZeRO-3, RunPod, on demand: $3.00 per run, 2.00 h (1.80 – 2.20). Fits, 8.00 GiB free."
    )
    assert plain(first.reason) == (
        "No comparable option costs less. 1,000 tokens/s (limited by compute) and 700 W of board power."
    )
    assert first.change == ""


def test_what_is_not_known_is_left_out(catalog):
    bare = option(tokens_per_second=None, samples_per_second=40.0, bound=None, power_watts=None, mode=None, sharing="")
    (row,) = option_rows(found(bare), catalog.hardware)
    assert (row.how, row.cards) == ("owned", "2 × L40S")
    (cheapest, *_) = award_views(found(bare), (row,))
    assert cheapest.reason == "No comparable option costs less. 40.0 samples/s."
    paceless = option(tokens_per_second=None, power_watts=None)
    (cheapest, *_) = award_views(found(paceless), option_rows(found(paceless), catalog.hardware))
    assert cheapest.reason == "No comparable option costs less."


def test_a_month_has_no_hours(catalog):
    month = found(option(period="month"), period="month")
    (view, *_) = award_views(month, option_rows(month, catalog.hardware))
    assert "$3.00 per month. Fits" in view.sentence


def test_other_offers_of_the_same_cards_are_not_what_comes_next(catalog):
    dearer = option(usd=6.0, offer="y")
    other = option(usd=4.5, hours=3.0, low_hours=3.0, high_hours=3.0, gpu="a40", offer="z")
    three = found(option(), other, dearer)
    (cheapest, fastest, value) = award_views(three, option_rows(three, catalog.hardware))
    assert plain(cheapest.change) == "Next: 2 × A40, with ZeRO-3, RunPod, on demand, 50 % more expensive."
    assert plain(fastest.change).endswith("50 % slower.")
    assert plain(value.change).endswith("125 % higher time × cost.")
    tied = found(option(), option(gpu="a40"))
    assert award_views(tied, option_rows(tied, catalog.hardware))[0].change.endswith("on demand, just as good.")


def test_where_nothing_is_left_that_is_said(catalog, tuned):
    assert no_option_sentence(tuned, catalog.hardware) == ""
    nothing = found()
    told = "No hardware in the catalog can run this job at a comparable price."
    assert list(recommendation_lines(nothing, catalog.hardware)) == [told]
    near = found(nearest=option())
    assert no_option_sentence(near, catalog.hardware).startswith("No option is within the limits. Closest: 2 × L40S")


def test_what_was_left_out_is_counted(tuned):
    told = excluded_sentence(tuned)
    assert told.startswith("Excluded: ")
    assert "the card cannot run it" in told
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
    assert (cells["date"], cells["remarks"]) == ("no date", "odd")


def test_daily_hours_are_ranked_too(catalog):
    plan = TUNING.evolve(cost=CostTerms(job=DailyHours(hours_per_day=8)))
    month = recommend(plan, catalog, TODAY, Wish(counts=(1,)))
    assert "per month" in next(recommendation_lines(month, catalog.hardware))
