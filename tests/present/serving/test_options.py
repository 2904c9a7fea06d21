from datetime import date

import pytest
from service_samples import held, option, simulation

from planner.plan.plan import ModelChoice, Plan
from planner.plan.recommend.option import ExcludedCount, HardwareOption, Wish
from planner.plan.recommend.recommend import recommend
from planner.plan.serving.answer import Consequence, ServingAnswer, ServingWish
from planner.present.serving.options import (
    SERVING_COLUMNS,
    consequence_sentence,
    left_out_sentence,
    option_sentence,
    program_title,
    search_sentence,
    serving_row,
    serving_rows,
)
from planner.workload.workload import Inference


def answer(*options, **changes):
    fields = {"wish": ServingWish(), "done": 3, "total": 3, "options": options}
    return ServingAnswer(**(fields | changes))


@pytest.fixture
def found_hardware(catalog) -> HardwareOption:
    """The cheapest way to own two L40S for a month, at a round price."""
    plan = Plan(model=ModelChoice(id="openai-community/gpt2"), workload=Inference(profile="vllm"))
    wish = Wish(having=("own",), counts=(1,), vendors=("NVIDIA",))
    found = recommend(plan, catalog, date(2026, 11, 22), wish)
    assert found is not None
    return next(each for each in found.options if each.basis != "unmeasured").evolve(usd=250.0)


def test_an_option_is_told_in_one_line(catalog):
    row = serving_row(option(), catalog.hardware)
    assert option_sentence(row) == "2 × L40S (2 replicas), price unknown"
    assert program_title(row.option.plan) == "vLLM"
    whole = serving_row(option(replicas=1, cards_per_replica=2, changes=("KV cache in fp8",)), catalog.hardware)
    assert whole.arrangement == "1 replica of 2, KV cache in fp8"
    assert serving_row(option(replicas=1), catalog.hardware).arrangement == ""


def test_a_price_names_its_offer_and_a_guess(catalog, found_hardware):
    row = serving_row(option(hardware=found_hardware), catalog.hardware)
    assert row.how == "owned"
    assert option_sentence(row).endswith("owned, $250 per month")
    guessed = serving_row(option(hardware=found_hardware.evolve(basis="unmeasured")), catalog.hardware)
    assert option_sentence(guessed).endswith("speed not measured")


def test_rows_have_the_figures_of_their_columns(catalog):
    (row,) = serving_rows(answer(option()), catalog.hardware)
    texts = {column.key: column.text(row) for column in SERVING_COLUMNS}
    assert row.id == "l40s/2/1"
    assert texts == {
        "cards": "2 × L40S",
        "arrangement": "2 replicas",
        "how": "price unknown",
        "usd": "unknown",
        "ttft-p95": "0.8",
        "tpot-p95": "40",
        "outcome": "met",
        "basis": "estimated",
        "busy": "75",
        "watts": "700",
    }
    bare = serving_row(option(simulation=simulation(latencies=())), catalog.hardware)
    assert bare.percentile("ttft") is None


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"change": "longer-prompts", "factor": 1.1, "holds": True}, "Prompts 10\u2009% longer: still met"),
        (
            {
                "change": "more-requests",
                "factor": 1.25,
                "holds": False,
                "broken": ("p95 time to first token", "goodput"),
            },
            "25\u2009% more requests: misses p95 time to first token and goodput",
        ),
        ({"change": "longer-answers", "factor": 1.5, "holds": False}, "Answers 50\u2009% longer: misses a target"),
        ({"change": "fewer-replicas", "factor": 0.5, "holds": True}, "One replica fewer: still met"),
        ({"change": "fewer-replicas", "factor": 0.5, "holds": False}, "One replica fewer: misses a target"),
        (
            {"change": "fp8-cache", "factor": 1, "holds": True, "cache_factor": 2.0},
            "A KV cache in FP8 holds 2 × the tokens",
        ),
        ({"change": "fp8-cache", "factor": 1, "holds": False}, "A KV cache in FP8, and misses a target"),
        ({"change": "no-prefix-cache", "factor": 1, "holds": True}, "Without the prefix cache: still met"),
        ({"change": "no-prefix-cache", "factor": 1, "holds": False}, "Without the prefix cache: misses a target"),
    ],
)
def test_consequences_are_told_by_what_changes(fields, told):
    assert consequence_sentence(Consequence(**fields)) == told


def test_a_search_says_what_it_found():
    assert search_sentence(answer(option())) == "1 option meets the targets."
    assert search_sentence(answer(option(), option())) == "2 options meet the targets."
    risky = option(simulation=simulation(targets=(held(high=2),)))
    assert search_sentence(answer(risky)) == "1 option probably meets the targets."
    assert search_sentence(answer(risky, option())) == "2 options probably meet the targets, 1 of them for sure."
    assert search_sentence(answer()) == "No hardware within the limits meets the targets."
    assert search_sentence(answer(done=0)) == "Nothing found so far."


def test_a_search_says_why_cheaper_options_are_not_the_best(found_hardware):
    def priced(usd):
        return option(hardware=found_hardware.evolve(usd=usd))

    assert search_sentence(answer(priced(9.0), priced(9.0), option())) == "3 options meet the targets."
    told = search_sentence(answer(priced(9.0), priced(8.0), priced(10.0)))
    assert told.startswith("3 options meet the targets. Cheaper, but with a speed never measured")
    assert told.endswith(": 1.")
    watts = answer(priced(9.0), priced(8.0), wish=ServingWish(objective="watts"))
    assert search_sentence(watts) == "2 options meet the targets."


def test_what_is_left_out_is_counted_by_reason():
    reasons = tuple(ExcludedCount(reason=f"reason {number}", count=10 - number) for number in range(8))
    told = left_out_sentence(answer(left_out=(ExcludedCount(reason="does-not-fit", count=12), *reasons)))
    assert told.startswith("Left out: 12 (the plan does not fit), 10 (reason 0)")
    assert told.endswith("and 12 for other reasons.")
    assert left_out_sentence(answer()) == ""
