"""`gpu-planner recommend` as a person and a script use it; prices are looked at on a fixed day."""

import json
import re
from datetime import date

import pytest

from planner.cli.main import DOES_NOT_FIT, main
from planner.cli.recommend import run
from planner.plan.files import load_plan

TODAY = date(2026, 11, 22)
TUNING = (
    *("meta-llama/Llama-3.1-8B", "--task", "training", "--method", "qlora", "--checkpointing", "full"),
    *("--tokens", "50e6"),
)
QUICK = ("gpt2", "--counts", "1")


@pytest.fixture
def said(capsys):
    """Return a way to ask on a fixed day, and read what was printed."""

    def ask(*words: str, code: int = 0) -> str:
        assert run([*words], TODAY) == code
        return capsys.readouterr().out

    return ask


def test_the_whole_answer(said, golden):
    golden("recommend.txt", said(*TUNING, "--budget", "20", "--deadline", "24", "--counts", "1,8", "--limit", "5"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "For 8 hours per day, 5 days per week, over 5 years. Costs and the budget are per month."),
        (
            ("--tokens", "1e6"),
            "For one run of 1,000,000 tokens. Hardware bought for it is assumed to be sold after 5 years.",
        ),
    ],
)
def test_it_says_what_the_costs_are_for(said, words, says):
    assert says in said("gpt2", "--counts", "1", *words).replace("\n", " ")


def test_it_says_how_the_weights_are_stored(said):
    assert "Weights as stored: FP32." in " ".join(said("gpt2", "--counts", "1").split())
    assert "Weights as stored" not in said("gpt2", "--counts", "1", "--weights", "bf16")


def test_scripts_get_everything(said):
    found = json.loads(said(*TUNING, "--json", "--counts", "1"))
    assert {"wish", "period", "options", "cheapest", "fastest", "best_value", "pareto", "left_out", "nearest"} < set(
        found
    )
    assert found["cheapest"] == found["options"][0]
    assert found["options"][0]["price_date"]


def test_all_options_are_listed_on_request(said):
    brief, limited, whole = said(*QUICK), said(*QUICK, "--limit", "4"), said(*QUICK, "--all")
    assert brief.startswith("Cheapest")
    assert "Provider" not in brief
    assert " options; --all lists them all, cheapest first" in brief
    assert "4 of " in limited
    assert "--all lists them all" in limited
    rows = int(re.search(r"([\d,]+) options; --all", brief)[1].replace(",", ""))
    assert 0 < rows <= len(json.loads(said(*QUICK, "--json"))["options"])  # alike ones are one row
    assert (
        len(whole.splitlines()) - len(brief.splitlines()) == rows + 1
    )  # two lines of head and a blank one for the hint and its own


def test_what_is_slower_than_the_minimum_is_left_out(said):
    fast = json.loads(said(*TUNING, "--counts", "1", "--min-speed", "5000", "--json"))
    assert fast["options"]
    assert all(option["tokens_per_second"] >= 5_000 for option in fast["options"])
    assert {"reason": "slower than the minimum speed"}.items() <= max(
        fast["left_out"], key=lambda one: one["reason"] == "slower than the minimum speed"
    ).items()
    images = said("stabilityai/stable-diffusion-xl-base-1.0", "--counts", "1", "--min-speed", "0.2", "--json")
    assert all(option["samples_per_second"] >= 0.2 for option in json.loads(images)["options"])


def test_changes_of_the_plan_are_named_applied_and_can_be_refused(said, tmp_path):
    plain = ("meta-llama/Llama-3.1-8B", "--task", "training", "--method", "qlora", "--tokens", "50e6", "--counts", "1")
    path = tmp_path / "changed.json"
    cheapest = json.loads(said(*plain, "--json", "--save", str(path)))["cheapest"]
    assert cheapest["changes"] == ["selective checkpointing"]
    assert load_plan(path).workload.activation_checkpointing == "selective"
    assert "Changes the plan: selective checkpointing" in said(*plain)
    as_planned = json.loads(said(*plain, "--json", "--as-planned"))
    assert as_planned["cheapest"]["usd"] > cheapest["usd"]
    assert not any(option["changes"] for option in as_planned["options"])


def test_fewer_bits_are_tried_only_if_they_are_allowed(said):
    serving = ("meta-llama/Llama-3.1-8B", "--counts", "1", "--own", "--place", "desk", "--json")
    full, fewer = json.loads(said(*serving)), json.loads(said(*serving, "--quantize"))
    assert not any("weights in" in name for option in full["options"] for name in option["changes"])
    assert any("weights in" in name for option in fewer["options"] for name in option["changes"])
    assert fewer["cheapest"]["usd"] < full["cheapest"]["usd"]


def test_rent_own_and_makers_can_be_asked_for(said):
    assert {one["having"] for one in json.loads(said(*QUICK, "--rent", "--json"))["options"]} == {"rent"}
    assert {one["having"] for one in json.loads(said(*QUICK, "--own", "--json"))["options"]} == {"own"}
    apple = json.loads(said(*QUICK, "--vendor", "amd, intel", "--tight", "--json"))
    assert apple["wish"]["vendors"] == ["AMD", "Intel"]
    assert apple["wish"]["include_tight"]


def test_the_cheapest_becomes_a_plan(said, tmp_path):
    path = tmp_path / "cheapest.json"
    cheapest = json.loads(said(*TUNING, "--json", "--counts", "1", "--save", str(path)))["cheapest"]
    assert load_plan(path).gpu == cheapest["gpu"]
    assert load_plan(path).cost.rent.offer == cheapest["offer"]


def test_nothing_within_the_limits_names_the_nearest(said, tmp_path):
    path = tmp_path / "none.json"
    words = (*QUICK, "--budget", "0.0001", "--save", str(path))
    told = said(*words)
    assert said(*words, "--check", code=DOES_NOT_FIT) == told
    assert told.startswith("No option is within the limits.\n\nClosest to the limits: ")
    assert "times the budget." in told
    assert "over the budget" in told
    assert not path.exists()


def test_runs_beyond_the_horizon_are_no_option(said):
    assert "a run takes longer than the horizon" in said(*QUICK, "--tokens", "1e18")


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["--budget", "-1"], "--budget: must be more than 0, not -1", "--help"),
        (["--budget", "x"], "--budget: 'x' is not a price in US dollars", "such as 1,200"),
        (["--deadline", "0"], "--deadline: must be more than 0", "--help"),
        (["--min-speed", "0"], "--min-speed: must be more than 0", "--help"),
        (["--deadline", "24"], "--deadline: a deadline needs the size of the run", "Add --tokens N"),
        (["--power", "1e99"], "--power: must be at most 100,000,000", "--help"),
        (["--modes", "weekly"], "--modes: there is no 'weekly'; choose on-demand", "--help"),
        (["--counts", "0"], "--counts: must be at least 1", "--help"),
        (["--counts", "1,x"], "--counts: 'x' is not a whole number", "Type a whole number"),
        (["--vendor", "Foo"], "--vendor: unknown vendor 'Foo'", "Vendors: AMD"),
        (["--limit", "-1"], "--limit: '-1' is too small", "--help"),
        (["--epochs", "3"], "--dataset: the size of an epoch is missing", "the number of samples"),
        (
            ["--task", "training", "--tp", "5", "--count", "5", "--counts", "5"],
            "12 attention heads are not divisible by 5",
            "",
        ),
        (["--regions", "mars"], "--regions: there is no offer of 'mars'", "gpu-planner prices"),
        (
            ["--electricity", "XX", "--own", "--counts", "1"],
            "--electricity: the catalog has no electricity data for 'XX'",
            "DE",
        ),
    ],
)
def test_wrong_input_is_told_with_what_to_do(capsys, words, message, hint):
    assert main(["recommend", "gpt2", *words]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert hint in printed


def test_help_says_what_scripts_get(capsys):
    assert main(["recommend", "--help-all"]) == 0
    assert "--json prints one object: wish, period, options" in capsys.readouterr().out
